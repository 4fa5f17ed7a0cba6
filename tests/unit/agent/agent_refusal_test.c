// SPDX-License-Identifier: BSD-3-Clause
// Tests of agent/refusal.c alone. An agent with another cluster name is never refused in practice,
// because its key is wrong too. Therefore the test stubs the overlay.
#include "agent.h"

#include <lib/log.h>
#include <support/cases.h>
#include <support/cmocka.h>

#include <fcntl.h>
#include <string.h>
#include <unistd.h>

static struct overlay_listener *listener;
static struct loop_job *deferred;
static struct sock_addr refused_by;
static enum agent_exit left_with;
static uint32_t left_count;

void overlay_listen(struct overlay *overlay, struct overlay_listener *given) {
	(void)overlay;
	listener = given;
}

void overlay_unlisten(struct overlay *overlay, struct overlay_listener *given) {
	(void)overlay;
	assert_ptr_equal(listener, given);
	listener = NULL;
}

const struct ras *overlay_ras(const struct overlay *overlay) {
	(void)overlay;
	return NULL;
}

struct sock_addr overlay_address(const struct overlay *overlay) {
	struct sock_addr address;

	(void)overlay;
	assert_int_equal(sock_addr_parse("10.0.0.2:1", 10, 0, NULL, &address), 0);
	return address;
}

uint64_t ras_self_id(const struct ras *ras) {
	(void)ras;
	return 7;
}

int ras_peer_find(const struct ras *ras, uint64_t id, struct ras_peer *ret_peer) {
	static struct ras_record record = {.name = "n2", .name_length = 2};

	(void)ras;
	assert_int_equal(id, 7);
	*ret_peer = (struct ras_peer){.record = &record};
	return 0;
}

void ras_view(const struct ras *ras, struct ras_view *ret_view) {
	(void)ras;
	*ret_view = (struct ras_view){.refused_by = refused_by, .versions = {.min = 1, .max = 2}};
}

void loop_defer(struct loop *loop, struct loop_job *job) {
	(void)loop;
	deferred = job;
}

void loop_undefer(struct loop *loop, struct loop_job *job) {
	(void)loop;
	(void)job;
	deferred = NULL;
}

void agent_leave(struct agent *agent, enum agent_exit status) {
	agent->leaving = true;
	left_with = status;
	left_count++;
}

static void begin(struct agent *agent) {
	*agent = (struct agent){0};
	refused_by = (struct sock_addr){0};
	deferred = NULL;
	left_count = 0;
	assert_int_equal(refusal_start(agent), 0);
}

static void happen(enum ras_event_kind kind, enum ras_cause cause) {
	const struct ras_event event = {.kind = kind, .cause = cause};

	listener->event(listener, &event);
}

static void turn_ends(void) {
	if (deferred != NULL)
		deferred->run(deferred);
}

static void each_refusal_has_its_exit_status(void **state) {
	static const struct {
		enum ras_cause cause;
		enum agent_exit exit;
	} cases[] = {
		{RAS_CAUSE_CONFLICT, AGENT_EXIT_CONFLICT},
		{RAS_CAUSE_CLUSTER, AGENT_EXIT_REFUSED},
		{RAS_CAUSE_VERSION, AGENT_EXIT_REFUSED},
	};
	struct agent agent;

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		begin(&agent);
		happen(RAS_EVENT_JOIN_REFUSED, cases[n].cause);
		// A listener must not leave from within its callback.
		assert_int_equal(left_count, 0);
		turn_ends();
		assert_int_equal(left_count, 1);
		assert_int_equal(left_with, cases[n].exit);
		refusal_stop(&agent);
	}
}

static void other_events_end_nothing(void **state) {
	struct agent agent;

	(void)state;
	begin(&agent);
	for (unsigned kind = 0; kind < RAS_EVENT_KIND_COUNT; kind++) {
		if (kind != RAS_EVENT_JOIN_REFUSED)
			happen((enum ras_event_kind)kind, RAS_CAUSE_CONFLICT);
	}
	assert_null(deferred);
	refusal_stop(&agent);
}

static void only_the_first_of_several_refusals_counts(void **state) {
	struct agent agent;

	(void)state;
	begin(&agent);
	happen(RAS_EVENT_JOIN_REFUSED, RAS_CAUSE_CONFLICT);
	happen(RAS_EVENT_JOIN_REFUSED, RAS_CAUSE_CLUSTER);
	turn_ends();
	happen(RAS_EVENT_JOIN_REFUSED, RAS_CAUSE_VERSION);
	turn_ends();
	assert_int_equal(left_count, 1);
	assert_int_equal(left_with, AGENT_EXIT_CONFLICT);
	refusal_stop(&agent);
}

static void an_agent_that_leaves_anyway_is_not_asked_again(void **state) {
	struct agent agent;

	(void)state;
	begin(&agent);
	agent.leaving = true;
	happen(RAS_EVENT_JOIN_REFUSED, RAS_CAUSE_CONFLICT);
	turn_ends();
	assert_int_equal(left_count, 0);
	refusal_stop(&agent);
}

// The log rate limit is per call site. This time is late enough that the earlier tests have not
// used it up.
static uint64_t far_ahead(void) {
	return UINT64_C(1) << 62;
}

// Deliver one refusal event and return its log line in `text`.
static void line_of(const struct ras_event *event, char *text, size_t size) {
	struct log_sink sink = {.monotonic_ns = far_ahead, .realtime_ns = far_ahead};
	struct agent agent;
	ssize_t got;
	int ends[2];

	assert_int_equal(pipe2(ends, O_CLOEXEC | O_NONBLOCK), 0);
	begin(&agent);
	assert_int_equal(sock_addr_parse("10.0.0.9:2", 10, 0, NULL, &refused_by), 0);
	sink.fd = ends[1];
	log_set_sink(&sink);
	listener->event(listener, event);
	log_set_sink(NULL);
	got = read(ends[0], text, size - 1);
	assert_true(got > 0);
	text[got] = '\0';
	close(ends[0]);
	close(ends[1]);
	refusal_stop(&agent);
}

static void the_line_names_both_addresses(void **state) {
	const struct ras_event event = {
		.kind = RAS_EVENT_JOIN_REFUSED, .cause = RAS_CAUSE_CONFLICT};
	char text[1024];

	(void)state;
	line_of(&event, text, sizeof(text));
	assert_non_null(
		strstr(text, "refused node=n2 address=10.0.0.2:1 by=10.0.0.9:2 cause=conflict")
	);
}

static void the_line_names_both_ranges_of_versions(void **state) {
	const struct ras_event event = {
		.kind = RAS_EVENT_JOIN_REFUSED,
		.cause = RAS_CAUSE_VERSION,
		.value = ras_versions_pack((struct ras_versions){.min = 3, .max = 3}),
	};
	char text[1024];

	(void)state;
	line_of(&event, text, sizeof(text));
	assert_non_null(strstr(
		text, "the other agent speaks version 3 of the protocol, this agent 1-2; upgrade"
	));
}

UNIT_GROUP(agent_refusal) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_refusal_has_its_exit_status),
		cmocka_unit_test(other_events_end_nothing),
		cmocka_unit_test(only_the_first_of_several_refusals_counts),
		cmocka_unit_test(an_agent_that_leaves_anyway_is_not_asked_again),
		cmocka_unit_test(the_line_names_both_addresses),
		cmocka_unit_test(the_line_names_both_ranges_of_versions),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
