// SPDX-License-Identifier: BSD-3-Clause
// tocsin events: lists past events of the agent. --follow also waits for new ones, across restarts
// of the agent.
#include "ask/ask.h"
#include "ask/when.h"
#include "show/event_line.h"
#include "show/paint.h"

#include <lib/parse.h>
#include <records/events.h>

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <string.h>

#define FOLLOW_MS 500
#define NUMBER_MAX UINT64_C(999999999) // a larger number is a time

enum {
	OPTION_SINCE,
	OPTION_UNTIL,
	OPTION_FOLLOW,
	OPTION_COUNT,
};

static const struct option_spec options[OPTION_COUNT] = {
	[OPTION_SINCE] =
		{"since", "WHEN",
		 "events after the one of this NUMBER (0: all of this\n"
		 "start of the agent that are kept), or since this time;\n"
		 "default: the last 100 events"},
	[OPTION_UNTIL] = {"until", "TIME", "events until this time; default: until now"},
	[OPTION_FOLLOW] =
		{"follow", NULL,
		 "or -f: stay, and print new events; if the agent goes\n"
		 "away, wait until it is back. With --json each event is a\n"
		 "line"},
};

static const char details[] =
	"The agent keeps a limited number of events. A gap in the numbers means that\n"
	"events were dropped. The numbers begin again with each start of the agent.\n"
	"Events of earlier starts have no number. They are listed if WHEN is a time.\n"
	"\n"
	"A time is one of\n"
	"  90s 10m 2h 3d          this long ago, by the agent's clock\n"
	"  15:10 15:10:05         today, or yesterday if that is still to come\n"
	"  2026-11-29             a date, 2026-11-29T15:10, with seconds and their\n"
	"                         fraction, with Z or +01:00\n"
	"  @1795965000            UNIX time in seconds; with ten digits also without @\n"
	"Without Z or +01:00 it is local time; the events are listed in UTC.\n"
	"\n" ASK_EXIT_STATUS;

struct follower {
	struct contact contact;
	bool colour;
	int64_t last;  // number of the last event printed
	int64_t start; // start number of the agent, detects a restart; -1: unknown
	bool lost;     // the loss of the agent was reported
};

static void print_events(struct follower *follower, const json_t *answer) {
	const struct target *target = target_of(&follower->contact);
	const json_t *event;
	size_t n;

	json_array_foreach(json_object_get(answer, "events"), n, event) {
		if (target->json)
			ask_print_json(target, event);
		else
			event_line_print(event, follower->contact.whole, follower->colour, stdout);
		follower->last = event_line_sequence(event);
	}
	(void)command_flush_output();
}

static int
ask_events(struct follower *follower, const char *since, const char *until, json_t **ret_answer) {
	char question[2 * WHEN_BYTES + 16];

	snprintf(
		question, sizeof(question), "EVENTS %s%s%s", since, *until != '\0' ? " " : "", until
	);
	return contact_json(&follower->contact, question, ret_answer);
}

// Read the agent's start number. After a restart, event numbers begin anew.
static int follower_check_restart(struct follower *follower) {
	json_t *answer;
	int64_t start;
	int err = contact_json(&follower->contact, "HEALTH", &answer);

	if (err != 0)
		return err;
	start = json_integer_value(json_object_get(answer, "start"));
	json_decref(answer);
	if (follower->start >= 0 && start != follower->start)
		follower->last = 0;
	follower->start = start;
	return 0;
}

static int events_follow(struct follower *follower) {
	char since[32];
	json_t *answer;
	int err;

	for (;;) {
		err = contact_open(&follower->contact, true);
		if (err == 0)
			err = follower_check_restart(follower);
		if (err == 0 && follower->lost)
			fprintf(stderr, "tocsin events: the agent is back\n");
		if (err == 0)
			follower->lost = false;
		// Poll for new events until a request fails; contact.why then holds the reason.
		while (err == 0) {
			snprintf(since, sizeof(since), "%" PRId64, follower->last);
			err = ask_events(follower, since, "", &answer);
			if (err != 0)
				break;
			print_events(follower, answer);
			json_decref(answer);
			if (command_flush_output() != NULL)
				break;
			poll(NULL, 0, FOLLOW_MS);
		}
		if (command_flush_output() != NULL)
			return EXIT_NEGATIVE; // main() reports the write error
		if (!follower->lost)
			command_error("events", "%s; waiting for the agent", follower->contact.why);
		follower->lost = true;
		poll(NULL, 0, FOLLOW_MS);
	}
}

// Read --since and --until. Returns false after reporting an error.
static bool options_read(
	const struct arguments *arguments,
	char ret_since[static WHEN_BYTES],
	char ret_until[static WHEN_BYTES]
) {
	const char *since = arguments->values[OPTION_SINCE];
	const char *until = arguments->values[OPTION_UNTIL];
	uint64_t number;

	ret_since[0] = ret_until[0] = '\0';
	if (until != NULL && arguments->values[OPTION_FOLLOW] != NULL) {
		command_error("events", "--until and --follow exclude each other");
		return false;
	}
	if (until != NULL && !when_translate("events", "until", until, ret_until))
		return false;
	if (since == NULL) {
		// All events that are kept are searched for the end.
		snprintf(ret_since, WHEN_BYTES, "%s", until != NULL ? "@0" : "");
		return true;
	}
	if (parse_u64(since, strlen(since), 0, NUMBER_MAX, NULL, &number) == 0) {
		snprintf(ret_since, WHEN_BYTES, "%" PRIu64, number);
		return true;
	}
	return when_translate("events", "since", since, ret_since);
}

static int events_run(const struct arguments *arguments) {
	bool follows = arguments->values[OPTION_FOLLOW] != NULL;
	struct follower follower = {.start = -1};
	char since[WHEN_BYTES], until[WHEN_BYTES];
	struct target target;
	int64_t skipped;
	json_t *answer;
	int status, err;

	if (!options_read(arguments, since, until))
		return EXIT_USAGE;
	status = target_init(&target, &events_command, arguments);
	if (status != 0)
		return status;
	follower.colour = paint_is_enabled(stdout);
	contact_init(&follower.contact, &target.agent);
	err = contact_open(&follower.contact, true);
	if (err == 0)
		err = follower_check_restart(&follower);
	if (err == 0)
		err = ask_events(&follower, since, until, &answer);
	if (err != 0) {
		status = ask_report_failure(&follower.contact, err);
	} else {
		skipped = json_integer_value(json_object_get(answer, "skipped"));
		if (!target.json && skipped > 0)
			printf("%" PRId64 " older events are kept: tocsin events --since 0\n\n",
			       skipped);
		if (!target.json)
			printf("%s%s%s\n", paint_begin(PAINT_FAINT, follower.colour),
			       event_line_head, paint_end(PAINT_FAINT, follower.colour));
		if (!target.json || follows)
			print_events(&follower, answer);
		else
			ask_print_json(&target, answer);
		if (follower.last == 0)
			follower.last = json_integer_value(json_object_get(answer, "last"));
		json_decref(answer);
		if (follows)
			status = events_follow(&follower);
	}
	contact_fini(&follower.contact);
	return status;
}

static const struct record *const events_records[] = {&event_record, NULL};

const struct command events_command = {
	.name = "events",
	.summary = "List past events, and with --follow new ones",
	.details = details,
	.options = options,
	.option_count = OPTION_COUNT,
	.letter = 'f',
	.letter_option = OPTION_FOLLOW,
	.target = TARGET_READ,
	.records = events_records,
	.run = events_run,
};
