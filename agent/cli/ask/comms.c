// SPDX-License-Identifier: BSD-3-Clause
// tocsin comms: lists the communicators of all jobs, collected from all nodes. --watch prints
// changes.
#include "ask/ask.h"
#include "show/answers.h"

#include <lib/escape.h>
#include <records/communicators.h>
#include <records/ranks.h>

#include <poll.h>
#include <string.h>
#include <time.h>

#define WATCH_MS 2000
#define JOB_BYTES_MAX 128
#define KEY_BYTES 256

enum {
	OPTION_JOB,
	OPTION_ALL,
	OPTION_WATCH,
	OPTION_COUNT,
};

static const struct option_spec options[OPTION_COUNT] = {
	[OPTION_JOB] =
		{"job", "ID",
		 "only this job: slurm:1234.0, 1234.0, or 1234 for all its\n"
		 "steps; other ids with or without their prefix; or this\n"
		 "communicator (the first digits of its hash, at least\n"
		 "four)"},
	[OPTION_ALL] = {"all", NULL, "print each communicator of jobs that have ended"},
	[OPTION_WATCH] =
		{"watch", NULL,
		 "ask every two seconds, and print a line when a\n"
		 "communicator appears, disappears or changes its state;\n"
		 "with --json each line is an object"},
};

static const char details[] =
	"All nodes are asked. The output says how many did not answer within --timeout\n"
	"(1 s to 3600 s, in whole seconds). tocsin status --nccl prints the same facts in\n"
	"the form of NCCL's own tools.\n"
	"\n"
	"Communicators that do not advance come first, with what is known of the cause.\n"
	"Of communicators that have ended, the table shows one of each job.\n"
	"tocsin why JOB, or tocsin why with the hash of a communicator, lists the ranks.\n"
	"A communicator is\n"
	"  moving   some rank moved in the last ten seconds\n"
	"  quiet    no rank moved, and none is known to wait\n"
	"  waiting  no rank moved for ten seconds, and some rank waits in an operation\n"
	"  stuck    like waiting, and the awaited rank provably cannot come by itself, or\n"
	"           the wait has lasted as long as [job] stuck or stuck_busy\n"
	"  ended    finalized, aborted, or all its processes are gone\n"
	"\n" ASK_EXIT_STATUS;

static const char *comm_finding_word(const json_t *comm, const char *name) {
	return fact_word(json_object_get(comm, "finding"), name);
}

// Print text that may come from other machines, without terminal control sequences.
static void print_escaped(const char *text) {
	size_t size = strlen(text);
	struct escape_unit unit;

	for (size_t at = 0; at < size; at += unit.taken_bytes) {
		escape_next(text + at, size - at, &unit);
		if (text[at] == '"' || text[at] == '\\')
			putchar(text[at]);
		else
			fwrite(unit.text, unit.text_size, 1, stdout);
	}
}

static void print_change(const struct target *target, const json_t *comm, bool gone) {
	const char *hash = json_string_value(json_object_get(comm, "hash"));
	const char *job = json_string_value(json_object_get(comm, "job"));
	const char *sentence = comm_finding_word(comm, "sentence");
	time_t now = time(NULL);
	struct tm local;
	char clock[32];

	if (target->json) {
		json_t *line = json_pack("{s:b,s:O}", "gone", gone, "communicator", comm);

		ask_print_json(target, line);
		json_decref(line);
		return;
	}
	strftime(clock, sizeof(clock), "%H:%M:%S", localtime_r(&now, &local));
	printf("%s ", clock);
	print_escaped(hash != NULL ? hash : "?");
	printf(" ");
	print_escaped(job != NULL ? job : "-");
	printf(": ");
	print_escaped(gone ? "gone" : comm_finding_word(comm, "state"));
	if (!gone && sentence[0] != '\0') {
		printf(": ");
		print_escaped(sentence);
	}
	printf("\n");
}

// Print the differences to *before, and replace *before with the new answer.
static void print_changes(const struct target *target, const json_t *answer, json_t **before) {
	json_t *seen = json_object();
	const char *name;
	char key[KEY_BYTES];
	json_t *comm, *last;
	size_t n;

	json_array_foreach(json_object_get(answer, "communicators"), n, comm) {
		snprintf(
			key, sizeof(key), "%s %s %lld",
			json_string_value(json_object_get(comm, "hash")),
			json_string_value(json_object_get(comm, "secondary_hash")),
			(long long)json_integer_value(json_object_get(comm, "size"))
		);
		last = json_object_get(*before, key);
		if (last == NULL ||
		    strcmp(comm_finding_word(last, "state"), comm_finding_word(comm, "state")) !=
			    0 ||
		    strcmp(comm_finding_word(last, "cause"), comm_finding_word(comm, "cause")) != 0)
			print_change(target, comm, false);
		json_object_set(seen, key, comm);
	}
	json_object_foreach(*before, name, comm) {
		if (json_object_get(seen, name) == NULL)
			print_change(target, comm, true);
	}
	json_decref(*before);
	*before = seen;
}

static int comms_run(const struct arguments *arguments) {
	const char *job = arguments->values[OPTION_JOB];
	char question[JOB_BYTES_MAX + 16];
	json_t *before, *answer;
	struct contact contact;
	struct target target;
	int status, err;

	if (job != NULL &&
	    (job[0] == '\0' || strlen(job) > JOB_BYTES_MAX || strpbrk(job, " \t\r\n") != NULL)) {
		command_error(
			"comms", "--job: \"%.40s\" is not a job: give one word of at most %d bytes",
			job, JOB_BYTES_MAX
		);
		return EXIT_USAGE;
	}
	snprintf(
		question, sizeof(question), "COMMS%s%s", job != NULL ? " " : "",
		job != NULL ? job : ""
	);
	if (arguments->values[OPTION_WATCH] == NULL)
		return ask(
			&comms_command, arguments, question,
			arguments->values[OPTION_ALL] != NULL ? show_all_comms : show_comms, NULL
		);
	status = target_init(&target, &comms_command, arguments);
	if (status != 0)
		return status;
	before = json_object();
	contact_init(&contact, &target.agent);
	err = contact_open(&contact, true);
	while (err == 0 && (err = contact_json(&contact, question, &answer)) == 0) {
		print_changes(&target, answer, &before);
		json_decref(answer);
		if (command_flush_output() != NULL)
			break;
		poll(NULL, 0, WATCH_MS);
	}
	json_decref(before);
	status = err != 0 ? ask_report_failure(&contact, err) : EXIT_NEGATIVE;
	contact_fini(&contact);
	return status;
}

static const struct record *const comms_records[] = {
	&communicator_record, &diagnosis_record, &rank_record, NULL};

const struct command comms_command = {
	.name = "comms",
	.summary = "List the communicators of all jobs: which ranks wait, and why",
	.details = details,
	.options = options,
	.option_count = OPTION_COUNT,
	.target = TARGET_READ,
	.whole_seconds = true,
	.records = comms_records,
	.run = comms_run,
};
