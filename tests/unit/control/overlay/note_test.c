// SPDX-License-Identifier: BSD-3-Clause
// control/overlay/note.c with a fake core.
#include "overlay/inside.h"

#include <support/cmocka.h>

#include <stdio.h>

static struct overlay overlay;
static uint64_t sequence;
static bool paused; // the core notices a pause of its own

static void tell(enum ras_event_kind kind) {
	const struct ras_event event = {.kind = kind, .sequence = ++sequence};

	overlay_note_store(&overlay, &event);
}

uint64_t overlay_now_ns(const struct overlay *of) {
	(void)of;
	return 0;
}

int ras_add_event(struct ras *ras, uint64_t now_ns, const struct ras_event *note) {
	(void)ras;
	(void)now_ns;
	if (paused)
		tell(RAS_EVENT_PAUSED);
	tell(note->kind);
	return 0;
}

static void note(const char *text) {
	const struct ras_event event = {.kind = RAS_EVENT_REPORTED};

	assert_int_equal(overlay_note(&overlay, &event, text), 0);
}

static int set_up(void **state) {
	(void)state;
	overlay = (struct overlay){0};
	sequence = 0;
	paused = false;
	return 0;
}

static void an_event_has_the_words_of_its_note(void **state) {
	(void)state;
	note("one");
	note("two");
	tell(RAS_EVENT_REPORTED); // not caused by any note
	assert_string_equal(overlay_event_text(&overlay, 1), "one");
	assert_string_equal(overlay_event_text(&overlay, 2), "two");
	assert_string_equal(overlay_event_text(&overlay, 3), "");
}

static void what_the_core_tells_before_a_note_does_not_get_its_words(void **state) {
	(void)state;
	paused = true;
	note("broken cable");
	assert_string_equal(overlay_event_text(&overlay, 1), "");
	assert_string_equal(overlay_event_text(&overlay, 2), "broken cable");
}

static void words_are_forgotten_after_so_many_that_are_newer(void **state) {
	char text[16];

	(void)state;
	for (uint32_t n = 0; n <= OVERLAY_TEXTS; n++) {
		snprintf(text, sizeof(text), "%u", n + 1);
		note(text);
	}
	assert_string_equal(overlay_event_text(&overlay, 1), "");
	assert_string_equal(overlay_event_text(&overlay, 2), "2");
	assert_string_equal(overlay_event_text(&overlay, OVERLAY_TEXTS + 1), text);
}

UNIT_GROUP(note) {
#define CASE(test) cmocka_unit_test_setup(test, set_up)
	const struct CMUnitTest tests[] = {
		CASE(an_event_has_the_words_of_its_note),
		CASE(what_the_core_tells_before_a_note_does_not_get_its_words),
		CASE(words_are_forgotten_after_so_many_that_are_newer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
