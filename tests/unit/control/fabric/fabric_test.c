// SPDX-License-Identifier: BSD-3-Clause
// Life of devices and pairs of fabrics: normal operation, and after each possible event of a
// device or a peer.
#include "control/fabric/fabric_bed.h"

#include <lib/log.h>
#include <lib/rcu_thread.h>
#include <lib/scoped.h>
#include <ras/payload.h>
#include <support/cases.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

static uint32_t generation(uint32_t agent, uint32_t peer) {
	struct fabric_pair_view view;

	assert_true(bed_find_pair(agent, peer, &view));
	return view.pairing.generation;
}

static bool is_absent(uint32_t agent, uint32_t peer) {
	struct fabric_pair_view view;

	return !bed_find_pair(agent, peer, &view) || (view.pairing.retired == 0 && !view.in_lane &&
						      view.pairing.state != PAIRING_PENDING);
}

static void port_becomes(uint32_t agent, enum ibv_port_state state) {
	struct fake_device *fake = bed.agents[agent].fakes[0];

	fake->ports[0].attr.state = state;
	fake_device_event(
		fake, state == IBV_PORT_ACTIVE ? IBV_EVENT_PORT_ACTIVE : IBV_EVENT_PORT_ERR, 1
	);
}

// Normal operation.

static void neighbours_are_paired_and_each_device_with_itself(void **state) {
	struct fabric_device_view view;
	struct fabric_numbers numbers;

	(void)state;
	bed_start_both();
	fabric_device_at(bed.agents[0].fabric, 0, &view);
	assert_int_equal(view.state, FABRIC_DEVICE_UP);
	assert_true(view.open);
	assert_string_equal(view.name, "rdma0");
	assert_string_equal(view.reason, "");
	assert_int_equal(view.opened, 1);
	fabric_numbers(bed.agents[0].fabric, &numbers);
	assert_int_equal(numbers.counters.pairs, 2);
	assert_int_equal(numbers.counters.paths, 2);
	assert_int_equal(numbers.counters.devices_up, 1);
	assert_int_equal(numbers.pairing.ready, 2);
}

static enum pairing_reason why_none(uint32_t agent, uint32_t peer) {
	struct fabric_pair_view view;

	return bed_find_pair(agent, peer, &view) && view.pairing.state == PAIRING_FAILED
		       ? view.pairing.failure.reason
		       : PAIRING_REASON_NONE;
}

static void limited_members_get_no_pair_until_one_becomes_a_full_one(void **state) {
	(void)state;
	for (uint32_t n = 0; n < 2; n++) {
		fake_device_infiniband(bed.agents[n].fakes[0], (uint16_t)(5 + n));
		bed.agents[n].fakes[0]->ports[0].pkeys[0] = 0x7fff;
		bed_start(n);
	}
	bed_until(why_none(0, 1) == PAIRING_LIMITED_MEMBERS);
	bed_until(why_none(1, 0) == PAIRING_LIMITED_MEMBERS);
	bed.agents[1].fakes[0]->ports[0].pkeys[0] = 0xffff;
	fake_device_event(bed.agents[1].fakes[0], IBV_EVENT_PKEY_CHANGE, 1);
	bed_until(bed_is_ready(0, 1) && bed_is_ready(1, 0));
}

// Return the row of the agent's pair with a peer, among the rows that it adds to the collective.
static struct ras_conn_row row_of(uint32_t agent, uint32_t peer) {
	const struct overlay *overlay = bed.agents[agent].overlay;
	const struct ras_contribution wanted = {.part = 0};
	uint8_t bytes[RAS_COLLECT_PART_BYTES_MAX];
	struct ras_conn_row row = {0}, found = {0};
	struct wire_writer writer;
	struct wire_reader reader;
	size_t size = 0;

	wire_writer_init(&writer, bytes, sizeof(bytes));
	assert_false(overlay->contribute(overlay->contribute_ctx, &wanted, &writer));
	assert_int_equal(wire_writer_finish(&writer, &size), 0);
	wire_reader_init(&reader, bytes, size);
	while (ras_conn_get(&reader, &row) == 0) {
		if (row.peer == bed_id(peer))
			found = row;
	}
	assert_int_equal(found.peer, bed_id(peer));
	return found;
}

static struct bed_ping ping_once(uint32_t agent, uint32_t peer) {
	struct fabric_ping_request request = bed_ping_request(peer);
	struct bed_ping ping;

	assert_int_equal(bed_ping(agent, &request, &ping), 0);
	bed_until(ping.ended);
	return ping;
}

static void pair_is_a_row_of_the_collective_with_what_was_measured_on_it(void **state) {
	const struct overlay *overlay = bed.agents[0].overlay;
	const struct ras_contribution past = {.part = 1};
	uint8_t bytes[RAS_COLLECT_PART_BYTES_MAX];
	struct wire_writer writer;
	struct ras_conn_row row;
	size_t size = 0;

	(void)state;
	bed_start_both();
	ping_once(0, 1);
	row = row_of(0, 1);
	assert_int_equal(row.transport, RAS_TRANSPORT_ROCE);
	assert_int_equal(row.samples, 3);
	assert_int_equal(row.received_bytes, 24);
	assert_int_equal(row.errors, 0);
	assert_int_equal(row.retransmits, RAS_RETRANSMITS_UNKNOWN);
	assert_int_equal(row_of(0, 0).errors, 0);
	wire_writer_init(&writer, bytes, sizeof(bytes));
	assert_false(overlay->contribute(overlay->contribute_ctx, &past, &writer));
	assert_int_equal(wire_writer_finish(&writer, &size), 0);
	assert_int_equal(size, 0);
}

static void row_of_a_pair_names_what_its_device_is_on(void **state) {
	static const enum ras_transport transports[] = {
		RAS_TRANSPORT_ROCE, RAS_TRANSPORT_INFINIBAND, RAS_TRANSPORT_SOFT};
	struct verbs_calls soft = fake_verbs_calls;

	soft.in_process = true;
	for (size_t n = 0; n < COUNT_OF(transports); n++) {
		bed_pair_close(state);
		bed_pair_open(state);
		for (uint32_t agent = 0; agent < 2; agent++) {
			if (transports[n] == RAS_TRANSPORT_INFINIBAND)
				fake_device_infiniband(
					bed.agents[agent].fakes[0], (uint16_t)(agent + 1)
				);
			if (transports[n] == RAS_TRANSPORT_SOFT)
				bed.agents[agent].config.devices[0].calls = &soft;
		}
		bed_start_both();
		assert_int_equal(row_of(0, 1).transport, transports[n]);
	}
	bed_pair_close(state);
	bed_pair_open(state); // before `soft` is gone
}

static void errors_of_a_pair_outlive_it(void **state) {
	uint32_t before;

	(void)state;
	bed_start_both();
	for (uint32_t n = 1; n <= 3; n++) {
		before = generation(0, 1);
		fake_qp_error(bed_qp(0, 1), 1, IBV_WC_REM_OP_ERR, 5);
		assert_int_equal(ping_once(0, 1).result.end, PROBE_FAILED);
		bed_until(bed_is_ready(0, 1) && bed_is_ready(1, 0) && generation(0, 1) != before);
		assert_int_equal(row_of(0, 1).errors, n);
		assert_int_equal(row_of(1, 0).errors, n);
	}
	// A pair that ends for another reason, here a death, adds no error.
	bed_say(0, 1, RAS_DEAD);
	bed_until(is_absent(0, 1));
	bed_say(0, 1, RAS_ALIVE);
	bed_until(bed_is_ready(0, 1) && bed_is_ready(1, 0));
	assert_int_equal(row_of(0, 1).errors, 3);
	assert_int_equal(row_of(0, 0).errors, 0);
}

static void neighbour_that_is_none_any_more_keeps_its_pair_until_it_is_idle(void **state) {
	struct fabric_pair_view view;

	(void)state;
	bed_start_both();
	bed_link(0, 1, false);
	bed_pass(3 * RAS_NS_PER_SEC);
	assert_true(bed_find_pair(0, 1, &view));
	assert_int_equal(view.pairing.state, PAIRING_READY);
	assert_false(view.pairing.wanted);
}

static void agent_without_devices_has_a_fabric_that_does_nothing(void **state) {
	struct fabric_numbers numbers;
	struct fabric_ping_request request;
	struct bed_ping ping;

	(void)state;
	bed.agents[0].config.device_count = 0;
	bed_start(0);
	bed_pass(3 * RAS_NS_PER_SEC);
	assert_int_equal(fabric_device_count(bed.agents[0].fabric), 0);
	fabric_numbers(bed.agents[0].fabric, &numbers);
	assert_int_equal(numbers.counters.driver_calls, 0);
	request = bed_ping_request(1);
	assert_int_equal(bed_ping(0, &request, &ping), -ENODEV);
}

// Devices.

static uint64_t no_time(void) {
	return 0;
}

static uint32_t count_of(const char *text, const char *word) {
	uint32_t count = 0;

	while ((text = strstr(text, word)) != NULL) {
		text++;
		count++;
	}
	return count;
}

static void port_bounces(void) {
	port_becomes(0, IBV_PORT_DOWN);
	bed_until(bed_device(0) == FABRIC_DEVICE_DOWN);
	port_becomes(0, IBV_PORT_ACTIVE);
	bed_until(bed_device(0) == FABRIC_DEVICE_UP);
}

static void device_without_completion_events_is_used_and_the_log_says_so_once(void **state) {
	scoped_fd int fd = memfd_create("log", MFD_CLOEXEC);
	const struct log_sink sink = {.fd = fd, .monotonic_ns = no_time, .realtime_ns = no_time};
	struct fabric_device_view view;
	char text[16384];
	ssize_t size;

	(void)state;
	log_set_sink(&sink);
	fake_verbs_fail(FAKE_CREATE_COMP_CHANNEL, 1, UINT32_MAX, -EOPNOTSUPP);
	bed_start_both();
	for (int n = 0; n < 3; n++)
		port_bounces();
	fabric_device_at(bed.agents[0].fabric, 0, &view);
	assert_false(view.lane.events);
	log_set_sink(NULL);
	size = pread(fd, text, sizeof(text) - 1, 0);
	assert_true(size > 0);
	text[size] = '\0';
	assert_int_equal(count_of(text, "rdma_device_without_events device=rdma0 "), 1);
}

static void device_without_active_port_is_waited_for_and_then_paired(void **state) {
	struct fabric_device_view view;

	(void)state;
	bed.agents[0].fakes[0]->ports[0].attr.state = IBV_PORT_DOWN;
	bed_start(0);
	bed_start(1);
	bed_until(bed_device(0) == FABRIC_DEVICE_WAITING && bed_is_ready(1, 1));
	fabric_device_at(bed.agents[0].fabric, 0, &view);
	assert_false(view.open);
	assert_true(view.reason[0] != '\0');
	bed_pass(5 * RAS_NS_PER_SEC);
	bed_settle();
	assert_int_equal(bed_device(0), FABRIC_DEVICE_WAITING);
	bed.agents[0].fakes[0]->ports[0].attr.state = IBV_PORT_ACTIVE;
	bed_until(bed_is_ready(0, 1) && bed_is_ready(1, 0));
}

static void device_that_cannot_be_opened_is_tried_again_at_growing_distance(void **state) {
	struct fabric_numbers numbers;

	(void)state;
	fake_verbs_fail(FAKE_OPEN, 1, 4, -EACCES);
	bed_start(0);
	bed_until(bed_device(0) == FABRIC_DEVICE_UP);
	fabric_numbers(bed.agents[0].fabric, &numbers);
	assert_int_equal(numbers.counters.open_failures, 4);
	assert_true(clock_now_ns(&bed.clock) >= UINT64_C(1015000000000)); // 1 + 2 + 4 + 8 s
}

static void port_that_goes_down_keeps_its_pairs_and_gets_no_new_ones(void **state) {
	struct fabric_device_view view;
	struct fabric_ping_request request;
	struct bed_ping ping;

	(void)state;
	bed_start(0);
	bed_link(0, 1, false);
	bed_until(bed_is_ready(0, 0));
	port_becomes(0, IBV_PORT_DOWN);
	bed_until(bed_device(0) == FABRIC_DEVICE_DOWN);
	fabric_device_at(bed.agents[0].fabric, 0, &view);
	assert_string_not_equal(view.reason, "");
	assert_true(view.open);
	assert_true(bed_is_ready(0, 0));
	request = bed_ping_request(1);
	assert_int_equal(bed_ping(0, &request, &ping), 0);
	bed_until(ping.ended);
	assert_int_equal(ping.result.err, -ENETDOWN);
	assert_int_equal(ping.result.failure.reason, PAIRING_NO_DEVICE);
	port_becomes(0, IBV_PORT_ACTIVE);
	bed_until(bed_device(0) == FABRIC_DEVICE_UP);
}

static void port_that_could_not_be_asked_is_asked_again(void **state) {
	(void)state;
	bed_start_both();
	port_becomes(0, IBV_PORT_DOWN);
	bed_until(bed_device(0) == FABRIC_DEVICE_DOWN);
	bed_settle();
	fake_verbs_fail(FAKE_QUERY_PORT, 1, 2, -EIO);
	port_becomes(0, IBV_PORT_ACTIVE);
	bed_until(bed_device(0) == FABRIC_DEVICE_UP);
}

static void address_that_changes_is_what_the_next_pair_is_made_with(void **state) {
	struct fake_device *fake = bed.agents[0].fakes[0];
	struct fabric_device_view view;
	struct fabric_pair_view pair;
	uint32_t before;

	(void)state;
	bed_start_both();
	before = generation(0, 1);
	for (uint32_t n = 2; n < 4; n++)
		fake->ports[0].gids[n].gid.raw[15] = 77;
	fake_device_event(fake, IBV_EVENT_GID_CHANGE, 1);
	bed_until((fabric_device_at(bed.agents[0].fabric, 0, &view), view.events == 1));
	bed_settle();
	fabric_device_at(bed.agents[0].fabric, 0, &view);
	assert_int_equal(view.facts.port.gid.raw[15], 77);
	fake_qp_event(bed_qp(0, 1), IBV_EVENT_QP_FATAL);
	bed_until(bed_is_ready(0, 1) && bed_is_ready(1, 0) && generation(0, 1) != before);
	assert_true(bed_find_pair(1, 0, &pair));
	assert_int_equal(pair.pairing.theirs.endpoint.gid.raw[15], 77);
}

static void device_that_fails_for_good_is_closed_opened_again_and_paired_anew(void **state) {
	uint32_t before[2];
	struct fabric_device_view view;

	(void)state;
	bed_start_both();
	before[0] = generation(0, 0);
	before[1] = generation(0, 1);
	fake_device_event(bed.agents[0].fakes[0], IBV_EVENT_DEVICE_FATAL, 0);
	bed_until((fabric_device_at(bed.agents[0].fabric, 0, &view), view.opened == 2));
	bed_until(bed_is_ready(0, 0) && bed_is_ready(0, 1) && bed_is_ready(1, 0));
	assert_int_not_equal(generation(0, 0), before[0]);
	assert_int_not_equal(generation(0, 1), before[1]);
	assert_int_equal(bed_device(0), FABRIC_DEVICE_UP);
}

static void device_that_fails_while_its_lane_is_being_attached_is_closed_then(void **state) {
	struct fabric_device_view view;

	(void)state;
	bed.agents[0].workers[0].halted = true;
	bed_start(0);
	bed_until((fabric_device_at(bed.agents[0].fabric, 0, &view), view.opened == 1));
	fake_device_event(bed.agents[0].fakes[0], IBV_EVENT_DEVICE_FATAL, 0);
	bed_until(bed_device(0) == FABRIC_DEVICE_CLOSING);
	bed.agents[0].workers[0].halted = false;
	bed_until((fabric_device_at(bed.agents[0].fabric, 0, &view), view.opened == 2));
	bed_until(bed_is_ready(0, 0));
}

static void events_that_come_after_the_last_one_do_not_turn_the_loop(void **state) {
	struct fake_device *fake = bed.agents[0].fakes[0];
	uint64_t before;

	(void)state;
	bed_start_both();
	bed_hang(FAKE_DESTROY_QP); // keeps the pair open
	fake_device_event(fake, IBV_EVENT_DEVICE_FATAL, 0);
	for (uint32_t n = 0; n < 8; n++)
		fake_device_event(fake, IBV_EVENT_PORT_ERR, 1);
	bed_until(bed_hangs());
	bed_pass(RAS_NS_PER_SEC);
	before = loop_counters(bed.loop)->events;
	bed_pass(RAS_NS_PER_SEC);
	assert_true(loop_counters(bed.loop)->events - before < 10);
	bed_let_go();
}

static void device_whose_events_cannot_be_read_is_opened_again(void **state) {
	struct fabric_device_view view;

	(void)state;
	bed_start_both();
	fake_verbs_fail(FAKE_GET_ASYNC_EVENT, 1, 1, -EIO);
	fake_device_event(bed.agents[0].fakes[0], IBV_EVENT_PORT_ERR, 1);
	bed_until((fabric_device_at(bed.agents[0].fabric, 0, &view), view.opened == 2));
	bed_until(bed_is_ready(0, 1));
}

static void device_that_is_being_closed_can_be_looked_at(void **state) {
	struct fabric_device_view view;
	struct fabric_numbers numbers;

	(void)state;
	bed_start_both();
	bed_hang(FAKE_DEREG_MR); // its lane is freed by then
	fake_device_event(bed.agents[0].fakes[0], IBV_EVENT_DEVICE_FATAL, 0);
	bed_until(bed_hangs());
	fabric_device_at(bed.agents[0].fabric, 0, &view);
	assert_int_equal(view.state, FABRIC_DEVICE_CLOSING);
	assert_false(view.open);
	fabric_numbers(bed.agents[0].fabric, &numbers);
	assert_int_equal(numbers.lanes.completions, 0);
	bed_let_go();
}

static void worker_that_has_no_place_costs_the_device_until_it_has_one(void **state) {
	struct fabric_device_view view;

	(void)state;
	bed.agents[0].workers[0].polls_max = 1; // the prober's worker
	bed_start(0);
	bed_until(bed_device(0) == FABRIC_DEVICE_CLOSING);
	bed_until(bed_device(0) == FABRIC_DEVICE_WAITING);
	fabric_device_at(bed.agents[0].fabric, 0, &view);
	assert_string_equal(view.reason, "its worker has no room to poll another device");
	bed.agents[0].workers[0].polls_max = WORKER_POLLS_MAX;
	bed_until(bed_is_ready(0, 0));
}

// A device that is not open yet may still have a fabric in common with the peer's device.
static void offer_that_comes_before_the_device_is_open_is_not_refused_for_good(void **state) {
	struct fabric_pair_view view;

	(void)state;
	bed.agents[0].overlay->links[1] = false; // only n1 wants the pair
	bed.agents[0].fakes[0]->ports[0].attr.state = IBV_PORT_DOWN;
	bed_start(0);
	bed_start(1);
	bed_until(bed_find_pair(1, 0, &view) && view.pairing.failure.by_peer);
	assert_int_equal(view.pairing.failure.reason, PAIRING_NO_DEVICE);
	bed.agents[0].fakes[0]->ports[0].attr.state = IBV_PORT_ACTIVE;
	bed_until(bed_is_ready(1, 0));
}

// Pairs.

static void peer_that_dies_costs_its_pair_and_no_other(void **state) {
	struct fabric_pair_view view;
	uint32_t before;

	(void)state;
	bed_start_both();
	before = generation(0, 0);
	bed_say(0, 1, RAS_DEAD);
	bed_until(is_absent(0, 1));
	assert_true(bed_find_pair(0, 1, &view));
	assert_int_equal(view.pairing.failure.reason, PAIRING_PEER_DEAD);
	assert_true(bed_is_ready(0, 0));
	assert_int_equal(generation(0, 0), before);
	bed_say(0, 1, RAS_ALIVE);
	bed_until(bed_is_ready(0, 1));
}

static void peer_that_starts_again_gets_a_new_pair(void **state) {
	uint32_t before;

	(void)state;
	bed_start_both();
	before = generation(0, 1);
	bed_destroy(1);
	bed.agents[1].overlay->incarnation = ras_incarnation(8, 0);
	bed_say(0, 1, RAS_ALIVE);
	bed_start(1);
	bed_until(bed_is_ready(0, 1) && bed_is_ready(1, 0));
	assert_int_not_equal(generation(0, 1), before);
}

static void agent_that_learns_its_start_pairs_anew(void **state) {
	(void)state;
	bed.agents[0].overlay->incarnation = 0; // not joined yet
	bed_start(0);
	bed_start(1);
	bed_until(bed_device(0) == FABRIC_DEVICE_UP);
	bed_pass(2 * RAS_NS_PER_SEC);
	assert_false(bed_is_ready(0, 0));
	bed.agents[0].overlay->incarnation = ras_incarnation(9, 0);
	bed_until(bed_is_ready(0, 0) && bed_is_ready(0, 1) && bed_is_ready(1, 0));
}

// A reader that holds the current version of the path table.
struct reader {
	pthread_t thread;
	pthread_barrier_t has, lets_go;
};

static void *read_paths(void *argument) {
	struct reader *reader = argument;

	assert_int_equal(rcu_thread_register("reader", 0), 0);
	pthread_barrier_wait(&reader->has);
	pthread_barrier_wait(&reader->lets_go);
	rcu_thread_unregister();
	return NULL;
}

static void reader_begin(struct reader *reader) {
	pthread_barrier_init(&reader->has, NULL, 2);
	pthread_barrier_init(&reader->lets_go, NULL, 2);
	assert_int_equal(pthread_create(&reader->thread, NULL, read_paths, reader), 0);
	pthread_barrier_wait(&reader->has);
}

static void reader_end(struct reader *reader) {
	pthread_barrier_wait(&reader->lets_go);
	pthread_join(reader->thread, NULL);
	pthread_barrier_destroy(&reader->has);
	pthread_barrier_destroy(&reader->lets_go);
}

static bool has_path_to(uint32_t agent, uint32_t peer) {
	const struct path_snapshot *snapshot;
	bool has = false;

	rcu_thread_online(0);
	snapshot = path_table_snapshot(bed.agents[agent].paths);
	for (uint32_t n = 0; n < PATH_TABLE_ROWS_MAX; n++) {
		const struct path_row *row = path_snapshot_row(snapshot, n);

		has = has || (row != NULL && row->peer == bed_id(peer));
	}
	rcu_thread_offline();
	return has;
}

static void path_is_taken_away_and_let_go_of_before_its_pair_is_drained(void **state) {
	struct fabric_device_view view;
	const struct fabric_pair *fabric_pair;
	struct reader reader;

	(void)state;
	bed_start_both();
	fabric_pair = bed_fabric_pair(0, 1);
	assert_true(has_path_to(0, 1));
	reader_begin(&reader);
	bed_say(0, 1, RAS_DEAD);
	bed_turn();
	bed_pass(RAS_NS_PER_SEC); // the pair still waits, however long the reader takes
	assert_int_equal(fabric_pair->stage, FABRIC_PAIR_LEAVING);
	assert_false(has_path_to(0, 1));
	fabric_device_at(bed.agents[0].fabric, 0, &view);
	assert_int_equal(view.counters.failed, 0); // the lane has reported no failure
	reader_end(&reader);
	bed_until(is_absent(0, 1));
	fabric_device_at(bed.agents[0].fabric, 0, &view);
	assert_int_equal(view.counters.drained, 1);
}

static void pair_that_failed_by_itself_is_not_destroyed_before_its_path_is_let_go_of(void **state) {
	const struct fabric_pair *fabric_pair;
	struct reader reader;

	(void)state;
	bed_start_both();
	fabric_pair = bed_fabric_pair(0, 1);
	reader_begin(&reader);
	fake_qp_event(bed_qp(0, 1), IBV_EVENT_QP_FATAL);
	for (uint32_t n = 0; n < 1000 && fabric_pair->stage != FABRIC_PAIR_OUT; n++)
		bed_pass(RAS_NS_PER_MS);
	bed_pass(RAS_NS_PER_SEC);
	assert_int_equal(fabric_pair->stage, FABRIC_PAIR_OUT);
	assert_false(has_path_to(0, 1));
	reader_end(&reader);
	bed_until(bed_is_ready(0, 1));
}

static void pair_whose_operation_failed_is_made_again_and_says_why(void **state) {
	struct fabric_pair_view view;
	struct fabric_ping_request request;
	struct bed_ping ping;
	uint32_t before;

	(void)state;
	bed_start_both();
	before = generation(0, 1);
	fake_qp_error(bed_qp(0, 1), 2, IBV_WC_REM_OP_ERR, 5);
	request = bed_ping_request(1);
	assert_int_equal(bed_ping(0, &request, &ping), 0);
	bed_until(ping.ended);
	assert_int_equal(ping.result.err, 0);
	assert_int_equal(ping.result.end, PROBE_FAILED);
	assert_int_equal(ping.result.answered, 1);
	assert_int_equal(ping.result.cause.status, IBV_WC_REM_OP_ERR);
	bed_until(bed_is_ready(0, 1) && bed_is_ready(1, 0));
	assert_int_not_equal(generation(0, 1), before);
	assert_true(bed_find_pair(0, 1, &view));
	assert_int_equal(view.pairing.failure.reason, PAIRING_BROKEN);
	assert_non_null(strstr(view.pairing.failure.text, "REM_OP_ERR"));
}

static void read_that_is_under_way_when_the_peer_dies_ends_with_it(void **state) {
	struct bed_ping ping;

	(void)state;
	bed_start_both();
	bed_ping_held(&ping);
	assert_int_equal(ping.ended, 0);
	bed_say(0, 1, RAS_DEAD);
	bed_until(ping.ended);
	assert_int_equal(ping.result.end, PROBE_FAILED);
	assert_int_equal(ping.result.outcome, OP_FLUSHED);
	bed_until(is_absent(0, 1));
}

static void device_that_never_flushes_is_cut_off_by_destroying_the_queue_pair(void **state) {
	struct fabric_device_view view;
	struct bed_ping ping;

	(void)state;
	bed_start_both();
	bed.agents[0].fakes[0]->never_flushes = true;
	bed_ping_held(&ping);
	bed_say(0, 1, RAS_DEAD);
	bed_until(ping.ended);
	fabric_device_at(bed.agents[0].fabric, 0, &view);
	assert_int_equal(view.counters.stuck, 1);
	bed_until(is_absent(0, 1));
	bed.agents[0].fakes[0]->never_flushes = false;
	bed_say(0, 1, RAS_ALIVE);
	bed_until(bed_is_ready(0, 1));
}

static void queue_pair_that_cannot_be_destroyed_is_tried_again_now_and_then(void **state) {
	struct bed_ping ping;
	uint64_t before;

	(void)state;
	bed_start_both();
	bed.agents[0].fakes[0]->never_flushes = true;
	bed_ping_held(&ping);
	bed_settle();
	before = fake_verbs_calls_made(FAKE_DESTROY_QP);
	fake_verbs_fail(FAKE_DESTROY_QP, 1, 5, -EBUSY);
	bed_say(0, 1, RAS_DEAD);
	bed_until(fake_verbs_calls_made(FAKE_DESTROY_QP) > before);
	for (uint32_t n = 0; n < 200; n++) // many turns, little time
		assert_int_equal(loop_turn(bed.loop, 1), 0);
	assert_in_range(fake_verbs_calls_made(FAKE_DESTROY_QP), before + 1, before + 2);
	bed_until(ping.ended);
	bed_until(is_absent(0, 1));
	bed.agents[0].fakes[0]->never_flushes = false;
}

UNIT_GROUP(fabric) {
	const struct CMUnitTest tests[] = {
		BED_TEST(neighbours_are_paired_and_each_device_with_itself),
		BED_TEST(limited_members_get_no_pair_until_one_becomes_a_full_one),
		BED_TEST(pair_is_a_row_of_the_collective_with_what_was_measured_on_it),
		BED_TEST(row_of_a_pair_names_what_its_device_is_on),
		BED_TEST(errors_of_a_pair_outlive_it),
		BED_TEST(neighbour_that_is_none_any_more_keeps_its_pair_until_it_is_idle),
		BED_TEST(agent_without_devices_has_a_fabric_that_does_nothing),
		BED_TEST(device_without_completion_events_is_used_and_the_log_says_so_once),
		BED_TEST(device_without_active_port_is_waited_for_and_then_paired),
		BED_TEST(device_that_cannot_be_opened_is_tried_again_at_growing_distance),
		BED_TEST(port_that_goes_down_keeps_its_pairs_and_gets_no_new_ones),
		BED_TEST(port_that_could_not_be_asked_is_asked_again),
		BED_TEST(address_that_changes_is_what_the_next_pair_is_made_with),
		BED_TEST(device_that_fails_for_good_is_closed_opened_again_and_paired_anew),
		BED_TEST(device_that_fails_while_its_lane_is_being_attached_is_closed_then),
		BED_TEST(events_that_come_after_the_last_one_do_not_turn_the_loop),
		BED_TEST(device_whose_events_cannot_be_read_is_opened_again),
		BED_TEST(device_that_is_being_closed_can_be_looked_at),
		BED_TEST(worker_that_has_no_place_costs_the_device_until_it_has_one),
		BED_TEST(offer_that_comes_before_the_device_is_open_is_not_refused_for_good),
		BED_TEST(peer_that_dies_costs_its_pair_and_no_other),
		BED_TEST(peer_that_starts_again_gets_a_new_pair),
		BED_TEST(agent_that_learns_its_start_pairs_anew),
		BED_TEST(path_is_taken_away_and_let_go_of_before_its_pair_is_drained),
		BED_TEST(pair_that_failed_by_itself_is_not_destroyed_before_its_path_is_let_go_of),
		BED_TEST(pair_whose_operation_failed_is_made_again_and_says_why),
		BED_TEST(read_that_is_under_way_when_the_peer_dies_ends_with_it),
		BED_TEST(device_that_never_flushes_is_cut_off_by_destroying_the_queue_pair),
		BED_TEST(queue_pair_that_cannot_be_destroyed_is_tried_again_now_and_then),
	};

	return cmocka_run_group_tests(tests, rcu_group_begin, rcu_group_end);
}
