// SPDX-License-Identifier: BSD-3-Clause
// The node's own address changes, or is lost and returns.
#include "control/ras/ras_lone.h"

#include <support/cmocka.h>

#include <errno.h>

#define SEC RAS_NS_PER_SEC
#define MS RAS_NS_PER_MS

static struct sock_addr elsewhere(void) {
	return lone_address(14);
}

static struct message_init sent_init(const struct lone *lone, uint32_t conn) {
	const struct lone_frame *frame = lone_latest(lone, conn, MESSAGE_INIT);
	struct message_init init;
	struct wire_reader reader;

	wire_reader_init(&reader, frame->bytes + 1, frame->size - 1);
	assert_int_equal(message_init_decode(&reader, &init), 0);
	return init;
}

static void another_address_is_told_by_a_new_start_over_new_connections(void **state) {
	struct sock_addr address = elsewhere();
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = lone_link(lone, 2);
	struct ras_record *told;
	struct message_init init;
	uint32_t opening;

	(void)state;
	assert_int_equal(ras_set_own_address(lone->ras, lone->now_ns, &address), 0);
	assert_true(lone_is_closed(lone, conn));
	assert_true(sock_addr_equal(&lone_peer(lone, 1).record->address, &address));
	assert_int_equal(lone_peer(lone, 1).incarnation, ras_incarnation(2, 0));
	assert_int_equal(lone_events(lone, RAS_EVENT_ADDRESS_CHANGED), 1);
	assert_true(sock_addr_equal(&lone_event(lone, RAS_EVENT_ADDRESS_CHANGED)->other, &address));
	opening = lone_opening(lone, 2);
	assert_int_not_equal(opening, 0);
	lone_answer(lone, 2);
	init = sent_init(lone, opening);
	assert_int_equal(
		ras_record_intern(lone->interner, init.record, init.record_size, &told), 0
	);
	assert_true(sock_addr_equal(&told->address, &address));
	assert_int_equal(told->start, 2);
	assert_true(link_is_ready(lone_find_link(lone, 2)));
	ras_record_put(lone->interner, told);
	lone_destroy(lone);
}

static void with_the_address_of_before_only_the_connections_are_new(void **state) {
	struct sock_addr address = lone_address(1);
	struct lone *lone = lone_of(4, 1);
	uint32_t conn = lone_link(lone, 2);

	(void)state;
	assert_int_equal(ras_set_own_address(lone->ras, lone->now_ns, &address), 0);
	assert_true(lone_is_closed(lone, conn));
	assert_int_not_equal(lone_opening(lone, 2), 0);
	assert_int_equal(lone_peer(lone, 1).incarnation, ras_incarnation(1, 0));
	assert_int_equal(lone_events(lone, RAS_EVENT_ADDRESS_CHANGED), 0);
	lone_destroy(lone);
}

static void those_who_fell_silent_meanwhile_are_not_suspected_for_it(void **state) {
	struct sock_addr address = elsewhere();
	struct lone *lone = lone_of(6, 1);

	(void)state;
	for (uint32_t back = 0; back < 2; back++) {
		lone_link(lone, 2);
		lone_pass(lone, 4 * SEC);
		assert_int_equal(lone_peer(lone, 2).state, RAS_SUSPECT);
		if (back == 0)
			assert_int_equal(ras_set_own_address(lone->ras, lone->now_ns, &address), 0);
		else
			ras_own_address_restored(lone->ras, lone->now_ns);
		assert_int_equal(lone_peer(lone, 2).state, RAS_ALIVE);
	}
	lone_destroy(lone);
}

static void links_are_dialled_at_once_when_the_address_is_back(void **state) {
	struct lone *lone = lone_of(6, 1);

	(void)state;
	lone_end(lone, lone_link(lone, 2), RAS_CAUSE_RESET);
	lone_end(lone, lone_opening(lone, 2), RAS_CAUSE_OWN_FAULT);
	assert_int_equal(lone_opening(lone, 2), 0);
	ras_own_address_restored(lone->ras, lone->now_ns);
	assert_int_not_equal(lone_opening(lone, 2), 0);
	lone_destroy(lone);
}

static void one_that_has_not_joined_yet_joins_with_the_new_address(void **state) {
	struct lone *lone =
		lone_create(&(struct lone_setup){.count = 4, .self = 1, .joining = true});
	struct sock_addr address = elsewhere();

	(void)state;
	lone_pass(lone, 100 * MS);
	assert_int_equal(ras_set_own_address(lone->ras, lone->now_ns, &address), 0);
	assert_true(sock_addr_equal(&lone_peer(lone, 1).record->address, &address));
	lone_pass(lone, 2 * SEC);
	assert_int_not_equal(lone_opening(lone, 3), 0); // the retries continue
	lone_destroy(lone);
}

static void no_address_and_one_that_leaves_change_nothing(void **state) {
	struct sock_addr none = {0}, address = elsewhere(), own = lone_address(1);
	struct lone *lone = lone_of(4, 1);

	(void)state;
	assert_int_equal(ras_set_own_address(lone->ras, lone->now_ns, &none), -EINVAL);
	ras_leave(lone->ras, lone->now_ns);
	assert_int_equal(ras_set_own_address(lone->ras, lone->now_ns, &address), -EAGAIN);
	assert_true(sock_addr_equal(&lone_peer(lone, 1).record->address, &own));
	lone_destroy(lone);
}

UNIT_GROUP(ras_address) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(another_address_is_told_by_a_new_start_over_new_connections),
		cmocka_unit_test(with_the_address_of_before_only_the_connections_are_new),
		cmocka_unit_test(those_who_fell_silent_meanwhile_are_not_suspected_for_it),
		cmocka_unit_test(links_are_dialled_at_once_when_the_address_is_back),
		cmocka_unit_test(one_that_has_not_joined_yet_joins_with_the_new_address),
		cmocka_unit_test(no_address_and_one_that_leaves_change_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
