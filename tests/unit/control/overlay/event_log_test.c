// SPDX-License-Identifier: BSD-3-Clause
// control/overlay/event_log.c: events as lines of the log. The core is fake.
#include "overlay/inside.h"

#include <lib/log.h>
#include <support/cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PEERS 64 // more peers than may log at once

static struct ras_record record = {.name = "n2", .name_length = 2};
static int file;
static char text[65536];

int ras_peer_find(const struct ras *ras, uint64_t id, struct ras_peer *ret_peer) {
	(void)ras;
	(void)id;
	*ret_peer = (struct ras_peer){.record = &record};
	return 0;
}

void ras_view(const struct ras *ras, struct ras_view *ret_view) {
	(void)ras;
	*ret_view = (struct ras_view){0};
}

const char *overlay_note_text(const struct overlay *overlay, const struct ras_event *event) {
	(void)overlay;
	(void)event;
	return NULL;
}

static uint64_t still(void) {
	return RAS_NS_PER_SEC;
}

static int open_log(void **state) {
	struct log_sink sink = {.monotonic_ns = still, .realtime_ns = still};

	(void)state;
	file = memfd_create("log", MFD_CLOEXEC);
	if (file < 0 || sock_addr_parse("10.0.0.2:1", 10, 0, NULL, &record.address) != 0)
		return -1;
	sink.fd = file;
	log_set_sink(&sink);
	return 0;
}

static int close_log(void **state) {
	(void)state;
	log_set_sink(NULL);
	return close(file);
}

static void tell(enum ras_event_kind kind, enum ras_cause cause) {
	const struct overlay overlay = {0};
	struct ras_event event = {.kind = kind, .cause = cause, .peer = 2, .name = "n2"};

	if (kind == RAS_EVENT_CONFLICT)
		assert_int_equal(sock_addr_parse("10.0.0.9:7", 10, 0, NULL, &event.other), 0);
	overlay_log_event(&overlay, &event);
}

static const char *logged(void) {
	ssize_t size = pread(file, text, sizeof(text) - 1, 0);

	assert_true(size >= 0);
	text[size] = '\0';
	return text;
}

static uint32_t count_of(const char *part) {
	uint32_t count = 0;

	for (const char *at = logged(); (at = strstr(at, part)) != NULL; at++)
		count++;
	return count;
}

// Regression: all events shared one budget, and the joins had used it up.
static void many_events_of_one_kind_hold_back_none_of_another(void **state) {
	(void)state;
	for (uint32_t n = 0; n < PEERS; n++)
		tell(RAS_EVENT_JOINED, RAS_CAUSE_NONE);
	tell(RAS_EVENT_CONFLICT, RAS_CAUSE_CONFLICT);
	tell(RAS_EVENT_DEAD, RAS_CAUSE_GONE);
	assert_int_equal(count_of(" event=JOINED peer=n2 address=10.0.0.2:1"), LOG_BURST_MAX);
	assert_int_equal(
		count_of(" event=CONFLICT peer=n2 address=10.0.0.2:1 other=10.0.0.9:7 "), 1
	);
	assert_int_equal(count_of(" event=DEAD peer=n2 cause=gone"), 1);
}

UNIT_GROUP(event_log) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			many_events_of_one_kind_hold_back_none_of_another, open_log, close_log
		),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
