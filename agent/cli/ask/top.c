// SPDX-License-Identifier: BSD-3-Clause
// tocsin top: live view of the whole cluster. A terminal gets a full screen, other outputs one line
// a second.
#include "show/top.h"

#include "ask/ask.h"
#include "show/paint.h"
#include "show/screen.h"

#include <lib/clock.h>

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NS_PER_MS UINT64_C(1000000)
#define PERIOD_MS 1000
#define PERIOD_NODE_MS 2000 // an agent forwards at most five requests a second to another node
#define ANSWER_NS UINT64_C(3000000000) // short, because a person is watching
#define COUNT_MAX 1000000000

enum {
	OPTION_COUNT_OF,
	OPTION_COUNT,
};

static const struct option_spec options[OPTION_COUNT] = {
	[OPTION_COUNT_OF] = {"count", "N", "end after N views; default: go on until q is pressed"},
};

static const char details[] =
	"On a terminal: problems, the ring, links, traffic and events, as far as they\n"
	"fit. The screen is drawn again every second and on any key; q quits. If\n"
	"standard output is no terminal, or with --json: one line a second. With --node\n"
	"the interval is two seconds. If the agent goes away, top waits until it is\n"
	"back.\n"
	"\n"
	"Exit status: 0 done, 2 a mistake in the command line, 3 no agent answered at\n"
	"the start, or at the end.\n";

struct top {
	struct contact contact;
	struct top_view view;
	bool connected;
	int period_ms;
	uint64_t left; // views still to be shown
	char trouble[CONTACT_WHY_BYTES];
};

// Compute the bytes per second sent and received since the previous call.
static void rates_measure(struct top_rates *rates, const json_t *counters) {
	const json_t *overlay = json_object_get(counters, "overlay");
	uint64_t now_ns = clock_monotonic_ns();
	struct top_rates now = {
		.at_ns = now_ns,
		.sent_bytes = summary_number(overlay, "bytes_sent"),
		.received_bytes = summary_number(overlay, "bytes_received"),
		.sent_per_s = -1,
		.received_per_s = -1,
	};
	double seconds = (double)(now_ns - rates->at_ns) / 1e9;

	// A restarted agent counts from 0.
	if (rates->at_ns != 0 && seconds > 0 && now.sent_bytes >= rates->sent_bytes) {
		now.sent_per_s = (double)(now.sent_bytes - rates->sent_bytes) / seconds;
		now.received_per_s = (double)(now.received_bytes - rates->received_bytes) / seconds;
	}
	*rates = now;
}

// Refresh the view. If that fails, the previous view stays, and view.trouble says why.
static int top_refresh(struct top *top) {
	struct top_view *view = &top->view;
	struct summary summary = {.health = NULL};
	json_t *peers = NULL, *counters = NULL;
	int err = top->connected ? 0 : contact_open(&top->contact, true);

	if (err == 0)
		err = summary_gather(&top->contact, &summary);
	if (err == 0)
		err = contact_json(&top->contact, "COUNTERS", &counters);
	// Only a small ring is drawn, and only the drawing needs the peers.
	if (err == 0 && summary_number(summary.health, "alive") +
					summary_number(summary.health, "dead") +
					summary_number(summary.health, "left") <=
				TOP_DRAWN_MAX)
		err = contact_json(&top->contact, "PEERS", &peers);
	top->connected = err == 0 || (err == -EREMOTEIO && top->contact.protocol > 0);
	if (err == 0) {
		summary_fini(&view->summary);
		json_decref(view->peers);
		json_decref(view->counters);
		view->summary = summary;
		view->peers = peers;
		view->counters = counters;
		rates_measure(&view->rates, counters);
	} else {
		summary_fini(&summary);
		json_decref(counters);
	}
	if (err == -EINTR)
		return err;
	snprintf(top->trouble, sizeof(top->trouble), "%s", top->contact.why);
	view->trouble = err == 0 ? NULL : top->trouble;
	view->place = top->contact.place;
	return err;
}

// Terminal.

// Refresh and draw until `q` is pressed or enough views were shown.
static int run_screen(struct top *top) {
	uint64_t period_ns = (uint64_t)top->period_ms * NS_PER_MS, due_ns;
	enum screen_event event = SCREEN_DUE;
	struct screen screen;
	struct frame frame;
	int err = screen_enter(&screen);

	if (err == 0) {
		top->contact.watched[0] = STDIN_FILENO;
		top->contact.watched[1] = screen.signals;
	}
	due_ns = clock_monotonic_ns() + period_ns;
	while (err == 0 && event != SCREEN_QUIT && top->left > 0) {
		int refresh_err;

		if (frame_init(&frame, screen.columns, screen.rows - 1) == 0) {
			top_draw(&top->view, &frame);
			screen_show(&screen, &frame);
			frame_fini(&frame);
		}
		top->left -= event == SCREEN_DUE;
		event = screen_wait(&screen, top->left > 0 ? due_ns : 0);
		if (event != SCREEN_DUE || top->left == 0)
			continue;
		// A key interrupts the refresh. The key is handled first, then the refresh is
		// repeated.
		refresh_err = top_refresh(top);
		due_ns = clock_monotonic_ns();
		if (refresh_err != -EINTR)
			due_ns += period_ns;
		if (refresh_err == -EINTR)
			event = screen_wait(&screen, due_ns);
	}
	screen_leave(&screen);
	if (err != 0) {
		command_error("top", "cannot use this terminal: %s", strerrordesc_np(-err));
		return EXIT_NEGATIVE;
	}
	fflush(stdout);
	screen_raise_quit_signal(&screen);
	return top->view.trouble == NULL ? EXIT_DONE : EXIT_UNREACHED;
}

// Lines.

static int run_lines(struct top *top) {
	const struct top_view *view = &top->view;
	char text[FRAME_LINE_BYTES];
	json_t *object;

	for (;;) {
		if (target_of(&top->contact)->json) {
			object = view->trouble != NULL
					 ? json_pack("{s:s}", "error", view->trouble)
					 : json_pack(
						   "{s:O,s:O?}", "health", view->summary.health,
						   "counters", view->counters
					   );
			ask_print_json(target_of(&top->contact), object);
			json_decref(object);
		} else {
			top_format_line(view, text);
			paint_print_line(text, paint_is_enabled(stdout), stdout);
		}
		if (--top->left == 0 || command_flush_output() != NULL)
			break;
		poll(NULL, 0, top->period_ms);
		top_refresh(top);
	}
	return view->trouble == NULL ? EXIT_DONE : EXIT_UNREACHED;
}

// Return true if a person can watch a full screen and press q: input and output are terminals.
static bool screen_is_usable(const struct target *target) {
	const char *term = getenv("TERM"); // NOLINT(concurrency-mt-unsafe): one thread

	return !target->json && isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 &&
	       term != NULL && strcmp(term, "dumb") != 0;
}

static int top_run(const struct arguments *arguments) {
	const char *count = arguments->values[OPTION_COUNT_OF];
	struct top top = {.left = UINT64_MAX};
	struct parse_error error;
	struct target target;
	int status, err;

	if (count != NULL &&
	    parse_u64(count, strlen(count), 1, COUNT_MAX, &error, &top.left) != 0) {
		command_error("top", "--count: %s", error.text);
		return EXIT_USAGE;
	}
	status = target_init(&target, &top_command, arguments);
	if (status != 0)
		return status;
	top.period_ms = target.agent.node != NULL ? PERIOD_NODE_MS : PERIOD_MS;
	contact_init(&top.contact, &target.agent);
	top.contact.silent = true; // the screen shows that the agent does not answer
	if (target.agent.timeout_ns == 0)
		top.contact.answer_ns = ANSWER_NS;
	err = top_refresh(&top);
	if (err != 0)
		status = ask_report_failure(&top.contact, err);
	else
		status = screen_is_usable(&target) ? run_screen(&top) : run_lines(&top);
	summary_fini(&top.view.summary);
	json_decref(top.view.peers);
	json_decref(top.view.counters);
	contact_fini(&top.contact);
	return status;
}

const struct command top_command = {
	.name = "top",
	.summary = "Watch the cluster: problems, ring, links, traffic, events",
	.details = details,
	.options = options,
	.option_count = OPTION_COUNT,
	.target = TARGET_READ,
	.run = top_run,
};
