// SPDX-License-Identifier: BSD-3-Clause
// Which node holds which rank, and the events of ranks about silent nodes.
#include "jobhost_bed.h"
#include "jobs/host/inside.h"

#define NODES 5
#define SIZE 40

// A communicator of SIZE with rank 1 here; the test reads its process's messages by hand.
struct comm_bed {
	struct bed *bed;
	int page, fd;
	struct host_comm *comm;
};

static struct comm_bed open_comm(struct bed *bed) {
	struct comm_bed at = {.bed = bed, .page = memory(JOB_PAGE_BYTES, SEALS)};
	struct job_register told = good_register(1);
	char reason[JOB_REASON_BYTES];

	told.size = SIZE;
	at.fd = raw_greet(bed, at.page);
	raw_send(at.fd, &told, sizeof(told), -1);
	assert_int_equal(raw_answer(bed, at.fd, reason), JOB_REGISTERED);
	assert_int_equal(raw_answer(bed, at.fd, reason), JOB_FAILED);
	at.comm = bed->host->comms;
	assert_non_null(at.comm);
	return at;
}

static void close_comm(struct comm_bed *at) {
	close(at->fd);
	close(at->page);
	settle(at->bed);
}

// Place ranks on nodes by a function. Node 0 means unknown; the other nodes are 100 and above.
static void learn_ranks(struct comm_bed *at, uint32_t (*node_of)(uint32_t rank)) {
	struct ras_merged_rank ranks[SIZE] = {0};
	struct ras_merged_comm merged = {.size = SIZE, .ranks = ranks};

	for (uint32_t rank = 0; rank < SIZE; rank++) {
		if (node_of(rank) == 0)
			continue;
		ranks[merged.rank_count].rank.rank = rank;
		ranks[merged.rank_count++].node = 99 + node_of(rank);
	}
	assert_int_equal(roster_merge_answer(at->comm, &merged), 0);
}

static uint32_t in_blocks(uint32_t rank) {
	return 1 + rank / (SIZE / NODES);
}

static uint32_t in_turn(uint32_t rank) {
	return 1 + rank % NODES;
}

static uint32_t but_the_first(uint32_t rank) {
	return rank < 8 ? 0 : in_blocks(rank);
}

static void a_roster_takes_one_row_for_each_node_of_a_regular_layout(void **state) {
	struct comm_bed at = open_comm(*state);
	uint32_t count;
	const struct roster_row *rows;

	learn_ranks(&at, in_blocks);
	assert_int_equal(at.comm->roster.count, NODES);
	assert_int_equal(at.comm->roster.ranks, SIZE);
	learn_ranks(&at, in_turn);
	assert_int_equal(at.comm->roster.count, NODES);
	rows = roster_find_node_rows(&at.comm->roster, 102, &count);
	assert_int_equal(count, 1);
	assert_int_equal(rows->first, 2);
	assert_int_equal(rows->stride, NODES);
	assert_int_equal(rows->count, SIZE / NODES);
	assert_true(roster_is_complete(at.comm));
	close_comm(&at);
}

static void what_is_told_of_a_node_replaces_what_was_known_of_it(void **state) {
	struct comm_bed at = open_comm(*state);
	const struct roster_row told[] = {{101, 3, 2, 1}, {101, 30, 1, 1}, {300, 39, 1, 1}};
	uint32_t count;

	learn_ranks(&at, in_blocks);
	assert_int_equal(roster_merge_rows(at.comm, told, COUNT_OF(told)), 0);
	assert_int_equal(at.comm->roster.count, NODES + 2);
	(void)roster_find_node_rows(&at.comm->roster, 101, &count);
	assert_int_equal(count, 2);
	(void)roster_find_node_rows(&at.comm->roster, 100, &count);
	assert_int_equal(count, 1);
	for (uint32_t n = 1; n < at.comm->roster.count; n++)
		assert_true(at.comm->roster.rows[n - 1].node <= at.comm->roster.rows[n].node);
	close_comm(&at);
}

static void an_agent_replaces_its_own_rows_and_adds_those_of_unknown_nodes_only(void **state) {
	struct comm_bed at = open_comm(*state);
	const struct roster_row reported[] = {{101, 3, 2, 1}, {102, 9, 1, 1}, {300, 39, 1, 1}};
	const struct roster_row *rows;
	uint32_t count;

	learn_ranks(&at, in_blocks);
	// 102 says that it holds rank 9 only, and that 101 holds other ranks than it said itself.
	assert_int_equal(roster_merge_reported(at.comm, 102, reported, COUNT_OF(reported)), 0);
	rows = roster_find_node_rows(&at.comm->roster, 101, &count);
	assert_int_equal(count, 1);
	assert_int_equal(rows->first, 8);
	rows = roster_find_node_rows(&at.comm->roster, 102, &count);
	assert_int_equal(rows->first, 9);
	(void)roster_find_node_rows(&at.comm->roster, 300, &count);
	assert_int_equal(count, 1);
	// Two agents claim rank 9 now, so neither is believed.
	assert_false(agree_can_report_rank(at.comm, 102, 9));
	assert_false(agree_can_report_rank(at.comm, 101, 9));
	close_comm(&at);
}

static void rows_that_no_communicator_has_are_refused_whole(void **state) {
	static const struct roster_row bad[][2] = {
		{{1, 0, 1, 1}, {2, SIZE, 1, 1}},
		{{1, 0, 1, 1}, {2, 0, SIZE + 1, 1}},
		{{1, 0, 1, 1}, {2, 1, UINT32_MAX, UINT32_MAX}},
		{{1, 0, 1, 1}, {2, 1, 0, 1}},
		{{1, 0, 1, 1}, {2, 1, 2, 0}},
		{{2, 0, 1, 1}, {1, 1, 1, 1}},
	};
	struct comm_bed at = open_comm(*state);

	for (size_t n = 0; n < COUNT_OF(bad); n++)
		assert_int_equal(roster_merge_rows(at.comm, bad[n], 2), -EBADMSG);
	assert_int_equal(at.comm->roster.count, 0);
	close_comm(&at);
}

// Return the number of events of this kind so far, and the text of the last one.
static uint32_t
heard(struct comm_bed *at, enum tocsin_event_kind kind, char words[static JOB_REASON_BYTES]) {
	union {
		struct job_event event;
		struct job_failed failed;
	} packet;
	uint32_t count = 0;
	ssize_t size;

	settle(at->bed);
	while ((size = recv(at->fd, &packet, sizeof(packet), 0)) > 0)
		if (size == sizeof(packet.event) && packet.event.kind == (uint32_t)kind) {
			memcpy(words, packet.event.text, JOB_REASON_BYTES);
			count++;
		}
	return count;
}

static bool alive(const struct jobhost *host, uint64_t node) {
	(void)host;
	return node != 0;
}

static bool not_alive(const struct jobhost *host, uint64_t node) {
	(void)host;
	return node == 0;
}

// Node 101 holds the ranks 8 to 15, and rank 1 lives here.
static void a_rank_is_gone_by_the_word_of_the_agent_that_holds_it_only(void **state) {
	static const struct roster_row claim = {300, 9, 1, 1};
	struct comm_bed at = open_comm(*state);

	// Any agent may report a rank that the roster does not have, or not yet.
	assert_true(agree_can_report_rank(at.comm, 104, 9));
	assert_false(agree_can_report_rank(at.comm, 104, 1)); // it lives here
	learn_ranks(&at, in_blocks);
	assert_true(agree_can_report_rank(at.comm, 101, 8));
	assert_true(agree_can_report_rank(at.comm, 101, 15));
	assert_false(agree_can_report_rank(at.comm, 101, 7));
	assert_false(agree_can_report_rank(at.comm, 101, 16));
	assert_false(agree_can_report_rank(at.comm, 104, 9));
	assert_false(agree_can_report_rank(at.comm, 100, 1));
	// Another agent claims the rank: neither of the two is believed.
	assert_int_equal(roster_merge_rows(at.comm, &claim, 1), 0);
	assert_false(agree_can_report_rank(at.comm, 300, 9));
	assert_false(agree_can_report_rank(at.comm, 101, 9));
	assert_true(agree_can_report_rank(at.comm, 101, 8));
	learn_ranks(&at, in_turn);
	assert_true(agree_can_report_rank(at.comm, 102, 37));
	assert_false(agree_can_report_rank(at.comm, 102, 38));
	close_comm(&at);
}

static void a_set_is_numbered_by_the_agent_of_the_lowest_rank_that_is_left(void **state) {
	static const uint32_t one[] = {9}, first_node[] = {0, 2, 3, 4, 5, 6, 7}, local[] = {0, 1};
	struct comm_bed at = open_comm(*state);

	learn_ranks(&at, in_blocks);
	assert_true(agree_can_number_set(at.comm, 100, one, 1));
	assert_false(agree_can_number_set(at.comm, 104, one, 1));
	// Rank 1 is the lowest that is left, so this agent numbers the set itself.
	assert_false(agree_can_number_set(at.comm, 101, first_node, COUNT_OF(first_node)));
	// Another agent says that the rank which lives here is gone.
	assert_false(agree_can_number_set(at.comm, 100, local, COUNT_OF(local)));
	close_comm(&at);
}

static void apply_troubles(
	struct comm_bed *at,
	const struct node_trouble *rows,
	uint32_t count,
	bool (*is_back)(const struct jobhost *host, uint64_t node)
) {
	const struct troubles troubles = {.rows = (struct node_trouble *)rows, .count = count};

	node_apply_troubles(at->bed->host, at->comm, &troubles, is_back);
}

static void all_ranks_of_a_node_that_is_down_are_gone_at_once(void **state) {
	struct comm_bed at = open_comm(*state);
	const struct node_trouble down = {101, TOCSIN_PEER_GONE};
	char words[JOB_REASON_BYTES];

	learn_ranks(&at, in_blocks);
	apply_troubles(&at, &down, 1, not_alive);
	apply_troubles(&at, &down, 1, not_alive);
	assert_int_equal(at.comm->gone_count, 8);
	assert_int_equal(at.comm->gone[0].rank, 8);
	assert_int_equal(at.comm->gone[7].rank, 15);
	assert_int_equal(heard(&at, TOCSIN_PEER_GONE, words), 8);
	assert_string_equal(words, "its node #0000000000000065 is down");
	apply_troubles(&at, NULL, 0, alive);
	assert_int_equal(heard(&at, TOCSIN_PEER_BACK, words), 0);
	close_comm(&at);
}

static void an_agreed_set_is_told_again_to_who_has_not_heard_of_it(void **state) {
	struct comm_bed at = open_comm(*state);
	const struct node_trouble down = {101, TOCSIN_PEER_GONE};
	uint64_t notices;

	// Rank 0 comes first, so this agent numbers the sets.
	agree_add_gone_rank(at.bed->host, at.comm, 0, "test", 1, false);
	learn_ranks(&at, in_blocks);
	apply_troubles(&at, &down, 1, not_alive);
	assert_int_equal(at.comm->agreed_count, 9);
	look_again(at.bed);
	notices = jobhost_counters(at.bed->host)->notices;
	look_again(at.bed);
	assert_int_equal(jobhost_counters(at.bed->host)->notices, notices);
	agree_add_gone_rank(at.bed->host, at.comm, 9, "test", 1, false);
	agree_add_gone_rank(at.bed->host, at.comm, 10, "test", 1, false);
	look_again(at.bed);
	assert_int_equal(jobhost_counters(at.bed->host)->notices, notices + 1);
	close_comm(&at);
}

static uint64_t notices_after(struct comm_bed *at, uint32_t seconds) {
	uint64_t before = jobhost_counters(at->bed->host)->notices;

	while (seconds-- > 0)
		look_again(at->bed);
	return jobhost_counters(at->bed->host)->notices - before;
}

static void an_agreed_set_is_repeated_by_its_coordinator_alone(void **state) {
	static const uint32_t one[] = {9};
	struct comm_bed at = open_comm(*state);

	// Rank 0 is alive elsewhere, so another agent numbers the set.
	agree_add_gone_rank(at.bed->host, at.comm, 9, "test", 1, false);
	agree_apply_set(at.bed->host, at.comm, 1, one, 1, &at.comm->gone[0]);
	assert_int_equal(at.comm->agreed_count, 1);
	assert_int_equal(notices_after(&at, 100), 0);
	agree_add_gone_rank(at.bed->host, at.comm, 0, "test", 1, false);
	assert_int_equal(at.comm->agreed_count, 2);
	// The pauses double up to 300 s: after 1, 3, 7, ... 511, 811 s.
	assert_int_equal(notices_after(&at, 3), 2);
	assert_int_equal(notices_after(&at, 60), 4);
	assert_int_equal(notices_after(&at, 937), 4);
	close_comm(&at);
}

static void changes_of_one_turn_are_sent_as_one_set(void **state) {
	struct comm_bed at = open_comm(*state);
	uint32_t sets = 0, events = 0;
	struct job_failed packet;

	for (uint32_t rank = 7; rank < 10; rank++)
		agree_add_gone_rank(at.bed->host, at.comm, rank, "test", 1, false);
	settle(at.bed);
	while (recv(at.fd, &packet, sizeof(packet), 0) > 0) {
		sets += packet.head.kind == JOB_FAILED;
		events += packet.head.kind == JOB_EVENT;
	}
	assert_int_equal(sets, 1);
	assert_int_equal(events, 3);
	close_comm(&at);
}

static void ranks_that_are_here_are_never_gone_with_a_node(void **state) {
	struct comm_bed at = open_comm(*state);
	const struct node_trouble down = {100, TOCSIN_PEER_GONE};

	learn_ranks(&at, in_blocks);
	apply_troubles(&at, &down, 1, not_alive);
	assert_int_equal(at.comm->gone_count, 7);
	assert_null(agree_find_gone_rank(at.comm, 1));
	close_comm(&at);
}

// 4,096 rows of 2^20 ranks are 2^32 ranks.
static void rows_that_name_more_ranks_than_can_be_gone_lose_nobody(void **state) {
	enum { ROWS = 4096 };
	static struct roster_row rows[ROWS];
	struct comm_bed at = open_comm(*state);
	const struct node_trouble down = {101, TOCSIN_PEER_GONE};

	at.comm->size = JOB_COMM_SIZE_MAX;
	for (uint32_t n = 0; n < ROWS; n++)
		rows[n] = (struct roster_row){101, 0, JOB_COMM_SIZE_MAX, 1};
	assert_int_equal(roster_merge_rows(at.comm, rows, ROWS), 0);
	apply_troubles(&at, &down, 1, not_alive);
	assert_int_equal(at.comm->gone_count, 0);
	at.comm->size = SIZE;
	close_comm(&at);
}

static void a_drain_of_this_node_logs_its_ranks_once(void **state) {
	struct comm_bed at = open_comm(*state);

	assert_int_equal(stall_record_drain_advice(at.bed->host, false), 0);
	assert_int_equal(stall_record_drain_advice(at.bed->host, true), 1);
	assert_int_equal(stall_record_drain_advice(at.bed->host, true), 0);
	assert_int_equal(stall_record_drain_advice(at.bed->host, false), 0);
	assert_int_equal(stall_record_drain_advice(at.bed->host, true), 1);
	close_comm(&at);
}

static void a_suspect_node_is_told_once_and_then_that_it_is_back(void **state) {
	struct comm_bed at = open_comm(*state);
	const struct node_trouble suspect = {103, TOCSIN_PEER_SUSPECT};
	const struct node_trouble unreachable = {103, TOCSIN_PEER_UNREACHABLE};
	char words[JOB_REASON_BYTES];

	learn_ranks(&at, in_blocks);
	apply_troubles(&at, &suspect, 1, not_alive);
	apply_troubles(&at, &suspect, 1, not_alive);
	assert_int_equal(heard(&at, TOCSIN_PEER_SUSPECT, words), 8);
	apply_troubles(&at, &unreachable, 1, not_alive);
	assert_int_equal(heard(&at, TOCSIN_PEER_UNREACHABLE, words), 8);
	apply_troubles(&at, NULL, 0, not_alive);
	assert_int_equal(heard(&at, TOCSIN_PEER_BACK, words), 0);
	apply_troubles(&at, NULL, 0, alive);
	assert_int_equal(heard(&at, TOCSIN_PEER_BACK, words), 8);
	assert_int_equal(at.comm->gone_count, 0);
	close_comm(&at);
}

static void a_node_that_is_known_later_than_it_fell_loses_its_ranks_then(void **state) {
	struct comm_bed at = open_comm(*state);
	const struct node_trouble down = {100, TOCSIN_PEER_GONE};

	learn_ranks(&at, but_the_first);
	apply_troubles(&at, &down, 1, not_alive);
	assert_int_equal(at.comm->gone_count, 0);
	assert_false(roster_is_complete(at.comm));
	learn_ranks(&at, in_blocks);
	apply_troubles(&at, &down, 1, not_alive);
	assert_int_equal(at.comm->gone_count, 7);
	close_comm(&at);
}

static void what_a_communicator_waits_for_is_told_once_until_a_rank_moves(void **state) {
	struct comm_bed at = open_comm(*state);
	const struct stall waits = {TOCSIN_COMM_WAITING, 7, "rank 7 has not come"};
	const struct stall stuck = {TOCSIN_COMM_STUCK, 7, "rank 7 does nothing"};
	const struct jobhost_counters *counters = jobhost_counters(at.bed->host);
	char words[JOB_REASON_BYTES];

	stall_notify_ranks(at.bed->host, at.comm, &waits);
	stall_notify_ranks(at.bed->host, at.comm, &waits);
	assert_int_equal(heard(&at, TOCSIN_COMM_WAITING, words), 1);
	assert_string_equal(words, waits.text);
	assert_int_equal(counters->waiting, 1);
	stall_notify_ranks(at.bed->host, at.comm, &stuck);
	assert_int_equal(heard(&at, TOCSIN_COMM_STUCK, words), 1);
	assert_int_equal(counters->waiting, 0);
	assert_int_equal(counters->stuck, 1);
	// The rank made progress, so it can be reported again.
	at.comm->ranks->report.progress_ns = loop_now_ns(at.bed->loop);
	assert_false(stall_needs_query(at.bed->host, at.comm, loop_now_ns(at.bed->loop)));
	assert_int_equal(counters->stuck, 0);
	stall_notify_ranks(at.bed->host, at.comm, &stuck);
	assert_int_equal(heard(&at, TOCSIN_COMM_STUCK, words), 1);
	assert_int_equal(counters->stalls, 2);
	close_comm(&at);
	assert_int_equal(counters->stuck, 1); // its process lives, detached
}

static void only_one_that_stands_is_asked_for_and_ever_more_seldom(void **state) {
	struct comm_bed at = open_comm(*state);
	struct jobs_rank_report *report = &at.comm->ranks->report;
	uint64_t now_ns = loop_now_ns(at.bed->loop);
	uint32_t asked = 0;

	// Rank 0 is on another node: its agent asks first. This agent asks much later, since its
	// rank waits as well.
	report->launched = 5;
	report->completed = 4;
	report->knows = JOBS_KNOWS_COMPLETED;
	report->progress_ns = now_ns;
	assert_false(stall_needs_query(at.bed->host, at.comm, now_ns + 9 * SECOND));
	assert_false(stall_needs_query(at.bed->host, at.comm, now_ns + 12 * SECOND));
	assert_true(stall_needs_query(at.bed->host, at.comm, now_ns + 25 * SECOND));
	for (uint64_t s = 26; s < 3600; s++)
		asked += stall_needs_query(at.bed->host, at.comm, now_ns + s * SECOND);
	assert_in_range(asked, 5, 20);
	report->completed = 5; // not stuck: nothing to do here, even if it waits for a message
	report->call = job_call_pack(JOB_CALL_RECV, 0, 7);
	report->progress_ns = now_ns + 3600 * SECOND;
	for (uint64_t s = 3601; s < 7200; s++)
		assert_false(stall_needs_query(at.bed->host, at.comm, now_ns + s * SECOND));
	close_comm(&at);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

UNIT_GROUP(jobhost_node) {
	const struct CMUnitTest tests[] = {
		TEST(a_roster_takes_one_row_for_each_node_of_a_regular_layout),
		TEST(what_is_told_of_a_node_replaces_what_was_known_of_it),
		TEST(an_agent_replaces_its_own_rows_and_adds_those_of_unknown_nodes_only),
		TEST(rows_that_no_communicator_has_are_refused_whole),
		TEST(a_rank_is_gone_by_the_word_of_the_agent_that_holds_it_only),
		TEST(a_set_is_numbered_by_the_agent_of_the_lowest_rank_that_is_left),
		TEST(all_ranks_of_a_node_that_is_down_are_gone_at_once),
		TEST(an_agreed_set_is_told_again_to_who_has_not_heard_of_it),
		TEST(an_agreed_set_is_repeated_by_its_coordinator_alone),
		TEST(changes_of_one_turn_are_sent_as_one_set),
		TEST(ranks_that_are_here_are_never_gone_with_a_node),
		TEST(rows_that_name_more_ranks_than_can_be_gone_lose_nobody),
		TEST(a_drain_of_this_node_logs_its_ranks_once),
		TEST(a_suspect_node_is_told_once_and_then_that_it_is_back),
		TEST(what_a_communicator_waits_for_is_told_once_until_a_rank_moves),
		TEST(only_one_that_stands_is_asked_for_and_ever_more_seldom),
		TEST(a_node_that_is_known_later_than_it_fell_loses_its_ranks_then),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
