// SPDX-License-Identifier: BSD-3-Clause
#include "feeds/http/http_places.h"

#include <support/cmocka.h>

#define SECOND UINT64_C(1000000000)
#define ROOM (HTTP_CONNECTIONS_MAX - PLACES_SPARE)

static struct http_places places;

static struct http_place *begin(int fd, uint64_t now_ns) {
	int cut = 0;
	struct http_place *place = http_places_add(&places, fd, now_ns, &cut);

	assert_int_equal(cut, -1);
	return place;
}

// Use descriptors 0 to count - 1, one per second, the first at 0.
static void begin_many(uint32_t count, struct http_place **ret_places) {
	http_places_init(&places);
	for (uint32_t n = 0; n < count; n++)
		ret_places[n] = begin((int)n, n * SECOND);
}

static int cut_for(int fd, uint64_t now_ns) {
	int cut;

	(void)http_places_add(&places, fd, now_ns, &cut);
	return cut;
}

static void who_asks_too_slowly_is_cut_once(void **state) {
	(void)state;
	http_places_init(&places);
	begin(7, SECOND);
	assert_int_equal(http_places_next_overdue(&places, SECOND + PLACES_ASK_NS - 1), -1);
	assert_int_equal(http_places_next_overdue(&places, SECOND + PLACES_ASK_NS), 7);
	assert_int_equal(http_places_next_overdue(&places, SECOND + PLACES_ASK_NS), -1);
}

static void who_is_answered_has_longer_and_then_as_long_again_to_ask(void **state) {
	struct http_place *place;

	(void)state;
	http_places_init(&places);
	place = begin(7, 0);
	http_place_request_done(place, SECOND);
	assert_int_equal(http_places_next_overdue(&places, SECOND + PLACES_TAKE_NS - 1), -1);
	http_place_answer_done(place, 20 * SECOND);
	assert_int_equal(http_places_next_overdue(&places, 20 * SECOND + PLACES_ASK_NS - 1), -1);
	assert_int_equal(http_places_next_overdue(&places, 20 * SECOND + PLACES_ASK_NS), 7);
}

static void who_takes_its_answer_too_slowly_is_cut(void **state) {
	(void)state;
	http_places_init(&places);
	http_place_request_done(begin(7, 0), 0);
	assert_int_equal(http_places_next_overdue(&places, PLACES_TAKE_NS), 7);
}

static void each_that_is_overdue_is_told(void **state) {
	struct http_place *of[3];

	(void)state;
	begin_many(3, of);
	assert_int_equal(http_places_next_overdue(&places, PLACES_ASK_NS + SECOND), 0);
	assert_int_equal(http_places_next_overdue(&places, PLACES_ASK_NS + SECOND), 1);
	assert_int_equal(http_places_next_overdue(&places, PLACES_ASK_NS + SECOND), -1);
}

static void a_newcomer_ends_who_has_waited_longest(void **state) {
	struct http_place *of[ROOM];

	(void)state;
	begin_many(ROOM, of);
	assert_int_equal(cut_for(1000, 100 * SECOND), 0);
	assert_int_equal(cut_for(1001, 100 * SECOND), 1);
}

static void who_is_being_answered_stays_while_others_only_wait(void **state) {
	struct http_place *of[ROOM];

	(void)state;
	begin_many(ROOM, of);
	http_place_request_done(of[0], 60 * SECOND);
	assert_int_equal(cut_for(1000, 100 * SECOND), 1);
	for (uint32_t n = 1; n < ROOM; n++)
		http_place_request_done(of[n], (60 + n) * SECOND);
	// All except the new one above have been answered: it is closed first, then the oldest.
	assert_int_equal(cut_for(1001, 101 * SECOND), 1000);
	assert_int_equal(cut_for(1002, 101 * SECOND), 1001);
}

static void a_flood_leaves_a_place_for_each_that_comes(void **state) {
	struct http_place *of[2000];
	int owner[2000];

	(void)state;
	http_places_init(&places);
	for (int fd = 0; fd < 2000; fd++) {
		int cut;

		of[fd] = http_places_add(&places, fd, (uint64_t)fd, &cut);
		owner[fd] = cut;
		// The library closes connections later than requested.
		if (fd > 4 && owner[fd - 4] >= 0)
			http_places_remove(&places, of[owner[fd - 4]]);
	}
	assert_true(owner[1999] >= 0);
}

static void a_reader_beyond_the_limit_ends_the_one_that_reads_longest(void **state) {
	struct http_place *of[PLACES_READERS_MAX + 2];
	int cut;

	(void)state;
	begin_many(PLACES_READERS_MAX + 2, of);
	for (uint32_t n = 0; n < PLACES_READERS_MAX; n++) {
		http_place_request_done(of[n], (100 + n) * SECOND);
		http_places_add_reader(&places, of[n], &cut);
		assert_int_equal(cut, -1);
	}
	// A client that asked for no page is not counted.
	http_place_request_done(of[PLACES_READERS_MAX], 50 * SECOND);
	http_place_request_done(of[PLACES_READERS_MAX + 1], 200 * SECOND);
	http_places_add_reader(&places, of[PLACES_READERS_MAX + 1], &cut);
	assert_int_equal(cut, 0);
	http_place_answer_done(of[1], 201 * SECOND);
	http_places_add_reader(&places, of[1], &cut);
	assert_int_equal(cut, -1);
}

static void a_place_that_ended_is_free_for_another(void **state) {
	struct http_place *of[ROOM];

	(void)state;
	begin_many(ROOM, of);
	http_places_remove(&places, of[3]);
	assert_ptr_equal(begin(70, 80 * SECOND), of[3]);
}

UNIT_GROUP(http_places) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_asks_too_slowly_is_cut_once),
		cmocka_unit_test(who_is_answered_has_longer_and_then_as_long_again_to_ask),
		cmocka_unit_test(who_takes_its_answer_too_slowly_is_cut),
		cmocka_unit_test(each_that_is_overdue_is_told),
		cmocka_unit_test(a_newcomer_ends_who_has_waited_longest),
		cmocka_unit_test(who_is_being_answered_stays_while_others_only_wait),
		cmocka_unit_test(a_flood_leaves_a_place_for_each_that_comes),
		cmocka_unit_test(a_reader_beyond_the_limit_ends_the_one_that_reads_longest),
		cmocka_unit_test(a_place_that_ended_is_free_for_another),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
