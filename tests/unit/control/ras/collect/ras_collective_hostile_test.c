// SPDX-License-Identifier: BSD-3-Clause
// Collective messages that are malformed, forged, late or unrequested.
#include <support/collective_frames.h>
#include <support/fake_notice.h>

// Origins of floods: members of the net without links, whose notices come through node 0.
#define FLOOD_ORIGIN 3
#define FLOOD_ORIGINS 101

static void a_cancel_counts_only_from_whom_asked(void **state) {
	struct net *net = net_create(4);
	struct bytes cancel;
	uint64_t id;

	(void)state;
	net_chain(net);
	net->nodes[3].deaf = true;
	id = collect(net, 0);
	net_run(net);
	cancel = cancel_bytes(0, id);
	assert_int_equal(inject(net, 3, 2, &cancel), 0);
	// The root rejects a cancel of its own collective as well.
	assert_int_equal(inject(net, 1, 0, &cancel), 0);
	assert_int_equal(counters_of(net, 2)->cancels_foreign, 1);
	assert_int_equal(counters_of(net, 0)->cancels_foreign, 1);
	cancel = cancel_bytes(0, id + 1);
	assert_int_equal(inject(net, 1, 2, &cancel), 0); // for an unknown collective
	assert_int_equal(counters_of(net, 2)->running, 1);
	net_run_out(net);
	assert_ended_well(net, 0);
	net_destroy(net);
}

static void a_replayed_request_is_answered_empty_and_asked_of_nobody(void **state) {
	struct net *net = net_create(3);
	struct bytes request = request_bytes(0, (UINT64_C(1) << 32) + 500, RAS_COLLECT_COMMS);

	(void)state;
	net_chain(net);
	assert_int_equal(inject(net, 0, 1, &request), 0);
	net_run(net);
	assert_int_equal(net->nodes[1].contributed, 1);
	assert_int_equal(net->nodes[2].contributed, 1);
	for (uint32_t n = 0; n < 3; n++) {
		uint64_t before = net->sent_frames;

		assert_int_equal(inject(net, 0, 1, &request), 0);
		assert_int_equal(net->sent_frames, before + 1);
		assert_int_equal(net->first->size, COLLECTED_HEADER_BYTES);
		assert_int_equal(net->first->to, 0);
		net_run(net);
	}
	assert_int_equal(net->nodes[1].contributed, 1);
	assert_int_equal(counters_of(net, 1)->requests_repeated, 3);
	net_destroy(net);
}

static void a_request_in_a_forged_name_is_refused_and_changes_nothing(void **state) {
	// One in the receiver's own name, and one from a future start of the origin.
	const struct bytes forged[] = {
		request_bytes(1, 1, RAS_COLLECT_COMMS),
		request_bytes(0, UINT64_MAX, RAS_COLLECT_COMMS),
	};
	struct net *net = net_create(3);

	(void)state;
	net_chain(net);
	for (size_t n = 0; n < COUNT_OF(forged); n++) {
		assert_int_equal(inject(net, 0, 1, &forged[n]), 0);
		assert_int_equal(counters_of(net, 1)->requests_forged, n + 1);
		assert_int_equal(net->sent_frames, n + 1); // the rejection
	}
	assert_int_equal(net->nodes[1].contributed, 0);
	net_run(net);
	collect(net, 0);
	net_run_out(net);
	assert_int_equal(result_of(net, 0)->result.answered, 3);
	net_destroy(net);
}

static void a_kind_of_a_newer_version_is_refused(void **state) {
	struct net *net = net_create(2);
	struct bytes request = request_bytes(0, (UINT64_C(1) << 32) + 1, RAS_COLLECT_KIND_END);

	(void)state;
	net_ring(net);
	assert_int_equal(inject(net, 0, 1, &request), 0);
	assert_int_equal(counters_of(net, 1)->requests_refused, 1);
	assert_true(net->first->size > COLLECTED_HEADER_BYTES);
	assert_true(net_idle(net));
	net_destroy(net);
}

static void answers_nobody_asked_for_change_nothing(void **state) {
	struct net *net = net_create(4);
	struct bytes foreign;
	uint64_t id;

	(void)state;
	net_chain(net);
	net->nodes[3].deaf = true;
	id = collect(net, 0);
	net_run(net);
	foreign = answer_bytes(0, id, 3, 1, COLLECTED_FINAL);
	// Node 1 asked node 2 and was asked by node 0, so node 0 is no leg of node 1.
	assert_int_equal(inject(net, 0, 1, &foreign), 0);
	assert_int_equal(counters_of(net, 1)->answers_foreign, 1);
	foreign = answer_bytes(0, id + 9, 3, 1, COLLECTED_FINAL);
	assert_int_equal(inject(net, 2, 1, &foreign), 0);
	assert_int_equal(counters_of(net, 1)->answers_late, 1);
	assert_int_equal(counters_of(net, 1)->running, 1);
	net_run_out(net);
	assert_ended_well(net, 0);
	net_destroy(net);
}

static void parts_of_strangers_and_parts_sent_twice_are_left_out_and_counted(void **state) {
	struct net *net = net_create(2);
	const struct net_result *kept;
	struct bytes frames[3];
	uint64_t id;

	(void)state;
	net_ring(net);
	net->nodes[1].deaf = true;
	id = collect(net, 0);
	frames[0] = answer_bytes(0, id, 1, 1, 0);
	frames[1] = answer_bytes(0, id, 1, 2, 0); // a duplicate, and one after the last part
	frames[2] = answer_bytes(0, id, 99, 1, COLLECTED_FINAL);
	for (size_t n = 0; n < COUNT_OF(frames); n++)
		assert_int_equal(inject(net, 1, 0, &frames[n]), 0);
	kept = result_of(net, 0);
	assert_int_equal(kept->result.answered, 2);
	assert_int_equal(kept->result.surplus, 3);
	net_destroy(net);
}

static void every_truncation_of_a_message_is_refused_and_changes_nothing(void **state) {
	struct net *net = net_create(2);
	struct bytes frames[3];
	uint64_t id;

	(void)state;
	net_ring(net);
	net->nodes[1].deaf = true;
	id = collect(net, 0);
	net_run(net);
	frames[0] = request_bytes(1, (UINT64_C(1) << 32) + 1, RAS_COLLECT_COMMS);
	frames[1] = cancel_bytes(0, id);
	frames[2] = answer_bytes(0, id, 1, 1, COLLECTED_FINAL);
	for (size_t n = 0; n < COUNT_OF(frames); n++) {
		for (size_t size = 1; size < frames[n].size; size++) {
			// A frame of answers may be empty behind its header.
			if (n == 2 && size == COLLECTED_HEADER_BYTES)
				continue;
			assert_int_equal(net_inject(net, 1, 0, frames[n].data, size), -EBADMSG);
		}
	}
	assert_int_equal(counters_of(net, 0)->running, 1);
	assert_int_equal(net->nodes[0].contributed, 1);
	assert_int_equal(net->nodes[0].result_count, 0);
	net_destroy(net);
}

static void counts_and_lengths_that_disagree_are_refused_without_memory(void **state) {
	struct net *net = net_create(2);
	struct bytes request = request_bytes(1, (UINT64_C(1) << 32) + 1, RAS_COLLECT_COMMS);
	struct bytes answer;
	uint64_t allocations;
	uint64_t id;

	(void)state;
	net_ring(net);
	net->nodes[1].deaf = true;
	id = collect(net, 0);
	answer = answer_bytes(0, id, 1, 1, COLLECTED_FINAL);
	allocations = net->allocations;
	// 65,535 communicators to skip; 2 in a frame without room; then in descending order.
	memset(&request.data[request.size - 2], 0xff, 2);
	assert_int_equal(inject(net, 1, 0, &request), -EMSGSIZE);
	request.data[request.size - 2] = 2;
	request.data[request.size - 1] = 0;
	assert_int_equal(inject(net, 1, 0, &request), -EBADMSG);
	request.size += 48;
	assert_int_equal(inject(net, 1, 0, &request), -EBADMSG); // a duplicate
	// An item longer than the message, then one shorter than its own fields.
	memset(&answer.data[COLLECTED_HEADER_BYTES + 1], 0xff, 4);
	assert_int_equal(inject(net, 1, 0, &answer), -EBADMSG);
	memset(&answer.data[COLLECTED_HEADER_BYTES + 1], 0, 4);
	assert_int_equal(inject(net, 1, 0, &answer), -EBADMSG);
	assert_int_equal(net->allocations, allocations);
	net_destroy(net);
}

static void items_of_a_newer_version_are_handed_up_and_skipped(void **state) {
	static const uint8_t item[] = {77, 3, 0, 0, 0, 'n', 'e', 'w'};
	struct net *net = net_create(3);
	struct bytes answer;
	uint64_t id;

	(void)state;
	net_chain(net);
	net->nodes[2].deaf = true;
	id = collect(net, 0);
	net_run(net);
	answer = answer_bytes(0, id, 2, 0, COLLECTED_FINAL);
	memcpy(answer.data + answer.size, item, sizeof(item));
	answer.size += sizeof(item);
	assert_int_equal(inject(net, 2, 1, &answer), 0);
	assert_memory_equal(
		net->first->bytes + net->first->size - sizeof(item), item, sizeof(item)
	);
	net_run_out(net);
	assert_int_equal(result_of(net, 0)->result.answered, 2);
	net_destroy(net);
}

// Build a notice as its origin would send it: all nodes of the net have the key of 0.
static struct bytes notice_bytes(uint32_t origin, uint64_t id, uint32_t kind, size_t size) {
	static const uint8_t key[RAS_KEY_BYTES];
	const struct collect_notice notice = {
		.origin = net_id(origin),
		.id = id,
		.kind = kind,
		.payload = "x: sixteen bytes",
		.size = size,
	};
	struct wire_writer writer;
	struct bytes frame = {0};

	wire_writer_init(&writer, frame.data, sizeof(frame.data));
	fake_notice_encode(&notice, 0, key, &writer);
	assert_int_equal(wire_writer_finish(&writer, &frame.size), 0);
	return frame;
}

#define NOTICE_ID ((UINT64_C(1) << 32) + 1) // the first one of start 1

static void a_notice_that_is_malformed_or_repeated_stops_here(void **state) {
	struct bytes frame = notice_bytes(0, NOTICE_ID, RAS_NOTICE_OWN_MIN, 1);
	struct net *net = net_create(3);

	(void)state;
	net_chain(net);
	for (size_t size = 1; size < frame.size; size++)
		assert_int_equal(net_inject(net, 0, 1, frame.data, size), -EBADMSG);
	assert_int_equal(inject(net, 0, 1, &frame), 0);
	assert_int_equal(inject(net, 0, 1, &frame), 0);
	assert_int_equal(net->nodes[1].noticed, 1);
	assert_int_equal(counters_of(net, 1)->notices_repeated, 1);
	assert_int_equal(net->sent_frames, 1);
	frame = notice_bytes(0, 99, RAS_NOTICE_OWN_MIN, 1); // of an earlier start
	assert_int_equal(inject(net, 0, 1, &frame), 0);
	assert_int_equal(counters_of(net, 1)->notices_repeated, 2);
	frame = notice_bytes(0, NOTICE_ID + 1, FLOOD_NOTICE_FORGET, 1); // too short for its kind
	assert_int_equal(inject(net, 0, 1, &frame), -EBADMSG);
	assert_int_equal(net->nodes[1].forgotten, 0);
	assert_int_equal(net->nodes[1].noticed, 1);
	net_destroy(net);
}

static void a_notice_that_its_origin_did_not_sign_stops_here_and_hides_no_later_one(void **state) {
	const struct bytes real = notice_bytes(0, NOTICE_ID, RAS_NOTICE_OWN_MIN, 1);
	struct net *net = net_create(4);

	(void)state;
	net_chain(net);
	// Each changed byte is one of the fields that are signed, except the hops. The id is
	// changed into one of a later start as well.
	for (size_t at = 1; at < real.size; at++) {
		struct bytes forged = real;

		if ((at >= 21 && at < 25) || (at >= 1 && at < 9))
			continue; // hops and size, and the origin
		forged.data[at] ^= 0x10;
		assert_int_equal(inject(net, 2, 1, &forged), 0);
	}
	assert_int_equal(net->nodes[1].noticed, 0);
	assert_int_equal(net->sent_frames, 0);
	assert_true(counters_of(net, 1)->notices_forged > 64);
	assert_int_equal(net->nodes[1].forged, 0); // the neighbour may know another key
	assert_int_equal(inject(net, 2, 1, &real), 0);
	assert_int_equal(net->nodes[1].noticed, 1);
	assert_int_equal(net->sent_frames, 1);
	net_destroy(net);
}

static void a_wrong_signature_from_the_origin_itself_is_reported_once_in_a_while(void **state) {
	struct bytes forged = notice_bytes(0, NOTICE_ID, RAS_NOTICE_OWN_MIN, 1);
	struct net *net = net_create(2);

	(void)state;
	net_chain(net);
	forged.data[forged.size - 1] ^= 1;
	for (uint32_t n = 0; n < 9; n++)
		assert_int_equal(inject(net, 0, 1, &forged), 0);
	assert_int_equal(net->nodes[1].forged, 1);
	assert_int_equal(net->nodes[1].forged_by, net_id(0));
	assert_int_equal(counters_of(net, 1)->notices_forged, 9);
	net_destroy(net);
}

static void a_notice_of_an_unknown_member_is_dropped_until_its_key_is_known(void **state) {
	struct bytes frame = notice_bytes(9, NOTICE_ID, RAS_NOTICE_OWN_MIN, 1);
	struct net *net = net_create(3);

	(void)state;
	net_chain(net);
	assert_int_equal(inject(net, 0, 1, &frame), 0);
	assert_int_equal(counters_of(net, 1)->notices_unproven, 1);
	assert_int_equal(net->nodes[1].noticed, 0);
	assert_int_equal(net->sent_frames, 0);
	net_destroy(net);
}

static void a_victim_reports_who_brings_notices_in_its_name_and_knows_its_echo(void **state) {
	struct net *net = net_create(3);
	const uint64_t first = NOTICE_ID;
	struct bytes own, forged;

	(void)state;
	net_chain(net);
	own = notice_bytes(1, first, RAS_NOTICE_OWN_MIN, 1);
	assert_int_equal(ras_notice(net->nodes[1].ras, net->now_ns, RAS_NOTICE_OWN_MIN, "x", 1), 0);
	net_run(net);
	assert_int_equal(inject(net, 2, 1, &own), 0);	 // the echo of its own notice
	own = notice_bytes(1, 5, RAS_NOTICE_OWN_MIN, 1); // from before a restart
	assert_int_equal(inject(net, 2, 1, &own), 0);
	assert_int_equal(counters_of(net, 1)->notices_repeated, 2);
	assert_int_equal(net->nodes[1].forged, 0);
	net->sent_frames = 0;
	// Another content of that number, and a number that it has not used yet.
	forged = notice_bytes(1, first, RAS_NOTICE_OWN_MIN + 1, 1);
	assert_int_equal(inject(net, 2, 1, &forged), 0);
	assert_int_equal(net->nodes[1].forged, 1);
	assert_int_equal(net->nodes[1].forged_by, net_id(2));
	forged = notice_bytes(1, first + 1, RAS_NOTICE_OWN_MIN, 1);
	assert_int_equal(inject(net, 2, 1, &forged), 0);
	assert_int_equal(counters_of(net, 1)->notices_forged, 2);
	assert_int_equal(net->nodes[1].noticed, 0);
	assert_int_equal(net->sent_frames, 0);
	net_destroy(net);
}

static void a_forged_collective_hides_no_notice_of_its_origin(void **state) {
	const struct bytes real = notice_bytes(0, NOTICE_ID, RAS_NOTICE_OWN_MIN, 1);
	struct bytes ahead = request_bytes(0, UINT64_C(16) << 32, RAS_COLLECT_COMMS);
	struct net *net = net_create(3);

	(void)state;
	net_chain(net);
	assert_int_equal(inject(net, 2, 1, &ahead), 0);
	assert_int_equal(inject(net, 0, 1, &real), 0);
	assert_int_equal(net->nodes[1].noticed, 1);
	net_run_out(net);
	net_destroy(net);
}

static struct net *flood_net_create(void) {
	struct net *net = net_create(FLOOD_ORIGIN + FLOOD_ORIGINS);

	net_connect(net, 0, 1);
	net_connect(net, 1, 2);
	return net;
}

// Let node 0 pass on one notice of this origin. Returns true if node 1 forwards it.
static bool is_notice_forwarded(struct net *net, uint32_t origin, uint64_t number, uint32_t kind) {
	const struct bytes frame =
		notice_bytes(origin, NOTICE_ID + number, kind, 16); // as FORGET needs
	uint64_t before = net->sent_frames;

	assert_int_equal(inject(net, 0, 1, &frame), 0);
	net_run(net);
	return net->sent_frames > before;
}

static void a_lone_origin_that_floods_is_forwarded_up_to_half_of_the_limit(void **state) {
	struct net *net = flood_net_create();
	uint32_t forwarded = 0;

	(void)state;
	for (uint64_t id = 1; id <= 2 * FLOOD_FORWARD_MAX; id++)
		forwarded += is_notice_forwarded(net, FLOOD_ORIGIN, id, RAS_NOTICE_OWN_MIN);
	assert_int_equal(forwarded, FLOOD_FORWARD_MAX / 2);
	assert_int_equal(counters_of(net, 1)->notices_dropped, 2 * FLOOD_FORWARD_MAX - forwarded);
	// Notices that are not forwarded are still delivered; the core's own are forwarded.
	assert_int_equal(net->nodes[1].noticed, 2 * FLOOD_FORWARD_MAX);
	assert_true(is_notice_forwarded(
		net, FLOOD_ORIGIN, 2 * FLOOD_FORWARD_MAX + 1, FLOOD_NOTICE_FORGET
	));
	assert_true(is_notice_forwarded(net, FLOOD_ORIGIN + 100, 1, RAS_NOTICE_OWN_MIN));
	net_turn(net, RAS_NS_PER_SEC);
	assert_true(is_notice_forwarded(
		net, FLOOD_ORIGIN, 2 * FLOOD_FORWARD_MAX + 2, RAS_NOTICE_OWN_MIN
	));
	net_destroy(net);
}

// 100 origins of a user who starts and ends jobs, and one node with a few notices of its own.
static void a_hundred_origins_that_flood_share_the_limit_and_starve_nobody(void **state) {
	struct net *net = flood_net_create();
	uint32_t quiet = 0;
	uint64_t id = 0;

	(void)state;
	for (uint32_t second = 0; second < 3; second++) {
		uint32_t all = 0, of[100] = {0};

		for (uint32_t n = 0; n < 256; n++) {
			id++;
			for (uint32_t origin = 0; origin < COUNT_OF(of); origin++)
				of[origin] += is_notice_forwarded(
					net, FLOOD_ORIGIN + origin, id, RAS_NOTICE_OWN_MIN
				);
			if (n % 64 == 63)
				quiet += is_notice_forwarded(
					net, FLOOD_ORIGIN + 100, id, RAS_NOTICE_OWN_MIN
				);
		}
		for (uint32_t origin = 0; origin < COUNT_OF(of); origin++) {
			all += of[origin];
			assert_in_range(of[origin], 80, 84);
		}
		assert_in_range(all, 8000, FLOOD_FORWARD_MAX);
		net_turn(net, RAS_NS_PER_SEC);
	}
	assert_int_equal(quiet, 12);
	net_destroy(net);
}

// The first floods of a second use up the limit. Notices that later floods send in vain must not
// count as origins, because the shares of the next second would be too small.
static void notices_that_are_dropped_do_not_shrink_the_next_shares(void **state) {
	struct net *net = flood_net_create();
	uint32_t forwarded = 0;
	uint64_t id = 0;

	(void)state;
	for (uint32_t origin = 1; origin <= 5; origin++) {
		for (uint32_t n = 0; n < FLOOD_FORWARD_MAX; n++)
			(void)is_notice_forwarded(
				net, FLOOD_ORIGIN - 1 + origin, ++id, RAS_NOTICE_OWN_MIN
			);
	}
	net_turn(net, RAS_NS_PER_SEC);
	for (uint32_t n = 0; n < FLOOD_FORWARD_MAX; n++)
		forwarded += is_notice_forwarded(net, FLOOD_ORIGIN, ++id, RAS_NOTICE_OWN_MIN);
	assert_int_equal(forwarded, FLOOD_FORWARD_MAX / 6); // the shares of five, and a free one
	net_destroy(net);
}

UNIT_GROUP(ras_collective_hostile) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cancel_counts_only_from_whom_asked),
		cmocka_unit_test(a_replayed_request_is_answered_empty_and_asked_of_nobody),
		cmocka_unit_test(a_request_in_a_forged_name_is_refused_and_changes_nothing),
		cmocka_unit_test(a_kind_of_a_newer_version_is_refused),
		cmocka_unit_test(answers_nobody_asked_for_change_nothing),
		cmocka_unit_test(parts_of_strangers_and_parts_sent_twice_are_left_out_and_counted),
		cmocka_unit_test(every_truncation_of_a_message_is_refused_and_changes_nothing),
		cmocka_unit_test(counts_and_lengths_that_disagree_are_refused_without_memory),
		cmocka_unit_test(items_of_a_newer_version_are_handed_up_and_skipped),
		cmocka_unit_test(a_notice_that_is_malformed_or_repeated_stops_here),
		cmocka_unit_test(
			a_notice_that_its_origin_did_not_sign_stops_here_and_hides_no_later_one
		),
		cmocka_unit_test(
			a_wrong_signature_from_the_origin_itself_is_reported_once_in_a_while
		),
		cmocka_unit_test(a_notice_of_an_unknown_member_is_dropped_until_its_key_is_known),
		cmocka_unit_test(a_victim_reports_who_brings_notices_in_its_name_and_knows_its_echo
		),
		cmocka_unit_test(a_forged_collective_hides_no_notice_of_its_origin),
		cmocka_unit_test(a_lone_origin_that_floods_is_forwarded_up_to_half_of_the_limit),
		cmocka_unit_test(a_hundred_origins_that_flood_share_the_limit_and_starve_nobody),
		cmocka_unit_test(notices_that_are_dropped_do_not_shrink_the_next_shares),
	};

	return cmocka_run_group_tests_name("ras_collective_hostile", tests, NULL, NULL);
}
