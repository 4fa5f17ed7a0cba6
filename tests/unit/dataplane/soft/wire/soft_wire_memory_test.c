// SPDX-License-Identifier: BSD-3-Clause
// Threads wait for each other only by joining, so a sleep that is never ended hangs the test.
#include "nic/nic.h"

#include <support/cases.h>
#include <support/cmocka.h>

#include <errno.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define RING 1024 // slots of a receiver

static struct soft_wire *create_v4(uint8_t last, struct soft_counters *counters) {
	const struct wire_config config = {
		.address = {.address = {127, 0, 0, last}, .family = SOCK_ADDR_V4},
		.counters = counters,
	};
	char reason[SOFT_REASON_MAX + 1] = "";
	struct soft_wire *wire;

	if (wire_memory_create(&config, reason, &wire) != 0)
		fail_msg("%s", reason);
	return wire;
}

static struct soft_wire *create_v6(uint8_t last, struct soft_counters *counters) {
	const struct wire_config config = {
		.address = {.address = {0xfd, [15] = last}, .family = SOCK_ADDR_V6},
		.counters = counters,
	};
	char reason[SOFT_REASON_MAX + 1] = "";
	struct soft_wire *wire;

	if (wire_memory_create(&config, reason, &wire) != 0)
		fail_msg("%s", reason);
	return wire;
}

// Send a frame with a number and only the fields that the hub reads.
static void send_number(struct soft_wire *from, const struct soft_wire *to, uint8_t number) {
	bool ip4 = frame_is_ip4(&to->gid);
	uint8_t *bytes = from->calls->take(from);

	assert_non_null(bytes);
	memset(bytes, 0, 64);
	bytes[0] = ip4 ? 0x45 : 0x60;
	memcpy(bytes + (ip4 ? 16 : 24), to->gid.raw + (ip4 ? 12 : 0), ip4 ? 4 : 16);
	bytes[63] = number;
	from->calls->give(from, 64);
	from->calls->flush(from);
}

static void a_frame_reaches_the_wire_of_its_address_unchanged(void **state) {
	struct soft_counters counters = {0};
	struct soft_wire *a = create_v4(1, &counters);
	struct soft_wire *b = create_v4(2, &counters);
	struct soft_wire *c = create_v6(1, &counters);
	struct wire_frame frames[WIRE_BATCH];

	(void)state;
	send_number(a, b, 7);
	send_number(a, c, 8);
	send_number(c, a, 9);
	assert_int_equal(b->calls->receive(b, frames, WIRE_BATCH, 0), 1);
	assert_int_equal(frames[0].size, 64);
	assert_int_equal(frames[0].bytes[63], 7);
	assert_true(frames[0].id_known);
	assert_int_equal(c->calls->receive(c, frames, WIRE_BATCH, 0), 1);
	assert_int_equal(frames[0].bytes[63], 8);
	assert_int_equal(a->calls->receive(a, frames, WIRE_BATCH, 0), 1);
	assert_int_equal(frames[0].bytes[63], 9);
	assert_int_equal(a->calls->receive(a, frames, WIRE_BATCH, 0), 0);
	assert_int_equal(a->mtu, 4096);
	assert_true(a->calls->due(a) == NIC_NEVER);
	assert_int_equal(counters.send_failed, 0);
	wire_destroy(a);
	wire_destroy(b);
	wire_destroy(c);
}

static void frames_come_in_order_and_stay_until_the_next_receive(void **state) {
	struct soft_counters counters = {0};
	struct soft_wire *a = create_v4(1, &counters);
	struct soft_wire *b = create_v4(2, &counters);
	struct wire_frame frames[WIRE_BATCH];

	(void)state;
	for (uint32_t i = 0; i < RING; i++)
		send_number(a, b, (uint8_t)i);
	assert_int_equal(b->calls->receive(b, frames, 3, 0), 3);
	// The ring is full, and frames that the receiver holds are not overwritten.
	send_number(a, b, 99);
	assert_int_equal(counters.send_failed, 1);
	for (uint8_t i = 0; i < 3; i++)
		assert_int_equal(frames[i].bytes[63], i);
	for (uint32_t i = 3; i < RING; i++) {
		assert_int_equal(b->calls->receive(b, frames, 1, 0), 1);
		assert_int_equal(frames[0].bytes[63], (uint8_t)i);
	}
	assert_int_equal(b->calls->receive(b, frames, 1, 0), 0);
	send_number(a, b, 100);
	assert_int_equal(b->calls->receive(b, frames, 1, 0), 1);
	wire_destroy(a);
	wire_destroy(b);
}

static void a_frame_to_nobody_or_without_address_is_lost_and_counted(void **state) {
	struct soft_counters counters = {0};
	struct soft_wire *a = create_v4(1, &counters);
	struct soft_wire *b = create_v4(2, &counters);
	struct soft_wire gone = {.gid = b->gid};

	(void)state;
	wire_destroy(b);
	send_number(a, &gone, 1);
	assert_int_equal(counters.send_failed, 1);
	memset(a->calls->take(a), 0x45, 64);
	a->calls->give(a, FRAME_IP4_BYTES - 1);
	memset(a->calls->take(a), 0x60, 64);
	a->calls->give(a, FRAME_IP6_BYTES - 1);
	memset(a->calls->take(a), 0x75, 64);
	a->calls->give(a, 64);
	assert_int_equal(counters.send_failed, 4);
	wire_destroy(a);
}

static void an_address_has_one_wire_and_a_second_is_told_so(void **state) {
	struct soft_counters counters = {0};
	struct soft_wire *a = create_v4(1, &counters);
	struct wire_config config = {.address = a->address, .counters = &counters};
	char reason[SOFT_REASON_MAX + 1] = "";
	struct soft_wire *wire = NULL;

	(void)state;
	assert_int_equal(wire_memory_create(&config, reason, &wire), -EADDRINUSE);
	assert_null(wire);
	assert_string_equal(reason, "127.0.0.1 is held by another device of this process");
	config.address = (struct sock_addr){0};
	assert_int_equal(wire_memory_create(&config, reason, &wire), -EINVAL);
	assert_string_equal(reason, "the memory wire needs an address");
	wire_destroy(a);
	wire_destroy(create_v4(1, &counters));
}

static void any_address_is_the_first_free_one(void **state) {
	struct soft_counters counters = {0};
	const struct wire_config config = {.address_any = true, .counters = &counters};
	char reason[SOFT_REASON_MAX + 1] = "";
	char text[SOCK_ADDR_TEXT_BYTES];
	struct soft_wire *wires[2];

	(void)state;
	for (size_t i = 0; i < 2; i++)
		assert_int_equal(wire_memory_create(&config, reason, &wires[i]), 0);
	sock_addr_format(&wires[0]->address, text);
	assert_string_equal(text, "127.64.0.1:4791");
	sock_addr_format(&wires[1]->address, text);
	assert_string_equal(text, "127.64.0.2:4791");
	wire_destroy(wires[0]);
	assert_int_equal(wire_memory_create(&config, reason, &wires[0]), 0);
	sock_addr_format(&wires[0]->address, text);
	assert_string_equal(text, "127.64.0.1:4791");
	wire_destroy(wires[0]);
	wire_destroy(wires[1]);
}

static void *wait_for_frame(void *argument) {
	struct soft_wire *wire = argument;
	struct wire_frame frame;

	// The lock of the device is not needed, because the wire has only one user here.
	while (wire->calls->receive(wire, &frame, 1, 0) == 0)
		wire->calls->wait(wire, -1, NIC_NEVER);
	return NULL;
}

static void a_frame_ends_a_wait_without_limit(void **state) {
	struct soft_counters counters = {0};
	struct soft_wire *a = create_v4(1, &counters);
	struct soft_wire *b = create_v4(2, &counters);
	pthread_t thread;

	(void)state;
	for (uint32_t i = 0; i < 100; i++) {
		assert_int_equal(pthread_create(&thread, NULL, wait_for_frame, b), 0);
		send_number(a, b, 1);
		pthread_join(thread, NULL);
	}
	wire_destroy(a);
	wire_destroy(b);
}

static void the_doorbell_and_the_time_end_a_wait(void **state) {
	struct soft_counters counters = {0};
	struct soft_wire *wire = create_v4(1, &counters);
	int doorbell = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);

	(void)state;
	assert_return_code(doorbell, errno);
	wire->calls->wait(wire, doorbell, NIC_NEVER);
	wire->calls->wait(wire, -1, 1000);
	wire->calls->wait(wire, -1, 0);
	close(doorbell);
	wire_destroy(wire);
}

UNIT_GROUP(soft_wire_memory) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_frame_reaches_the_wire_of_its_address_unchanged),
		cmocka_unit_test(frames_come_in_order_and_stay_until_the_next_receive),
		cmocka_unit_test(a_frame_to_nobody_or_without_address_is_lost_and_counted),
		cmocka_unit_test(an_address_has_one_wire_and_a_second_is_told_so),
		cmocka_unit_test(any_address_is_the_first_free_one),
		cmocka_unit_test(a_frame_ends_a_wait_without_limit),
		cmocka_unit_test(the_doorbell_and_the_time_end_a_wait),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
