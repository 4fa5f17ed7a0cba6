// SPDX-License-Identifier: BSD-3-Clause
// Attempts with one key: an end of an earlier attempt is never told to ranks of a later one.
#include "jobhost_bed.h"
#include "jobs/host/inside.h"

#include <lib/wire.h>

#include <jobs/share.h>

#define SIZE 8
#define PEER 300
#define PEER_BEHIND_NS (950 * SECOND) // our clock minus the clock of the peer
#define NOTICE_GONE 1		      // numbers of notice.c
#define NOTICE_AGREED 2
#define NOTICE_ROSTER 3
#define NOTICE_DEPARTED 7

// A rank of the communicator, with a process of its own; the test reads its messages by hand.
struct one_rank {
	struct bed *bed;
	int page, fd;
};

static struct one_rank open_rank(struct bed *bed, uint32_t number, uint32_t attempt) {
	struct one_rank rank = {.bed = bed, .page = memory(JOB_PAGE_BYTES, SEALS)};
	struct job_register told = good_register(1);
	struct job_hello hello = good_hello();
	char reason[JOB_REASON_BYTES];

	told.rank = number;
	told.size = SIZE;
	hello.attempt = attempt;
	rank.fd = raw_connect(bed);
	raw_send(rank.fd, &hello, sizeof(hello), rank.page);
	assert_int_equal(raw_answer(bed, rank.fd, reason), JOB_WELCOME);
	raw_send(rank.fd, &told, sizeof(told), -1);
	assert_int_equal(raw_answer(bed, rank.fd, reason), JOB_REGISTERED);
	return rank;
}

static void write_page(const struct one_rank *rank, size_t offset, const void *bytes, size_t size) {
	assert_int_equal(pwrite(rank->page, bytes, size, (off_t)offset), (ssize_t)size);
}

// Let the page have communicator 1 with this number of launched operations.
static void put_counts(const struct one_rank *rank, uint64_t launched) {
	const struct job_counts counts = {.comm = 1, .total = launched};
	const uint32_t slots = 1;

	write_page(rank, offsetof(struct job_page, head.slots_used), &slots, sizeof(slots));
	write_page(rank, offsetof(struct job_page, launched), &counts, sizeof(counts));
}

// Note that communicator `number` was unregistered after this number of launched operations. It
// replaces the note of communicator 1 if the index is the same.
static void put_departure(const struct one_rank *rank, uint64_t number, uint64_t launched) {
	const struct job_departure departure = {.comm = number, .launched = launched};

	write_page(
		rank,
		offsetof(struct job_page, head.departures) +
			number % JOB_DEPARTURES * sizeof(departure),
		&departure, sizeof(departure)
	);
}

static void leave_job(struct one_rank *rank) {
	const struct job_leave leave = {.head = {JOB_SOCKET_MAGIC, JOB_SOCKET_VERSION, JOB_LEAVE}};

	raw_send(rank->fd, &leave, sizeof(leave), -1);
	settle(rank->bed);
}

static void close_rank(struct one_rank *rank) {
	close(rank->fd);
	close(rank->page);
	settle(rank->bed);
}

// Return the ranks that the process was told to be gone since the last call, one bit for each.
static uint32_t told_gone(struct one_rank *rank) {
	union {
		struct job_event event;
		struct job_failed failed;
	} packet;
	uint32_t gone = 0;
	ssize_t size;

	settle(rank->bed);
	while ((size = recv(rank->fd, &packet, sizeof(packet), 0)) > 0) {
		if (size == sizeof(packet.event) && packet.event.kind == TOCSIN_PEER_GONE)
			gone |= 1u << packet.event.rank;
		for (uint32_t n = 0; size == sizeof(packet.failed) && n < packet.failed.count; n++)
			gone |= 1u << packet.failed.ranks[n];
	}
	return gone;
}

static struct host_comm the_key(uint32_t attempt) {
	return (struct host_comm
	){.comm_hash = 9, .uid = geteuid(), .size = SIZE, .attempt = attempt};
}

static struct host_comm *newest(struct bed *bed) {
	const struct host_comm key = the_key(0);

	return comm_find_by_key(bed->host, &key);
}

static void
put_notice_head(struct wire_writer *writer, uint8_t kind, uint32_t attempt, uint64_t fact_ns) {
	wire_put_u8(writer, 2); // version
	wire_put_u8(writer, kind);
	wire_put_u64(writer, 9);
	wire_put_u64(writer, 0);
	wire_put_u64(writer, 0);
	wire_put_u32(writer, geteuid());
	wire_put_u32(writer, SIZE);
	wire_put_u32(writer, attempt);
	wire_put_u64(writer, fact_ns);
}

static void notice_put(struct bed *bed, struct wire_writer *writer, const void *bytes) {
	size_t size = 0;

	assert_int_equal(wire_writer_finish(writer, &size), 0);
	notice_handle(bed->host, PEER, bytes, size);
	settle(bed);
}

// The peer says that a rank ended at this time of our clock.
static void hear_gone(struct bed *bed, uint32_t attempt, uint32_t rank, uint64_t at_ns) {
	uint8_t bytes[256];
	struct wire_writer writer;

	wire_writer_init(&writer, bytes, sizeof(bytes));
	put_notice_head(&writer, NOTICE_GONE, attempt, at_ns - PEER_BEHIND_NS);
	wire_put_u32(&writer, rank);
	wire_put_string(&writer, "test", 4);
	notice_put(bed, &writer, bytes);
}

// The peer numbers a set of one rank, as the agent of rank `by`.
static void hear_set_by(struct bed *bed, uint32_t by, uint32_t rank, uint64_t oldest_ns) {
	uint8_t bytes[256];
	struct wire_writer writer;

	wire_writer_init(&writer, bytes, sizeof(bytes));
	put_notice_head(&writer, NOTICE_AGREED, 0, oldest_ns - PEER_BEHIND_NS);
	wire_put_u64(&writer, (uint64_t)by << 44 | 7);
	wire_put_u32(&writer, rank);
	wire_put_string(&writer, "test", 4);
	wire_put_u16(&writer, 1);
	wire_put_u32(&writer, rank);
	wire_put_u32(&writer, 1);
	notice_put(bed, &writer, bytes);
}

static void hear_set(struct bed *bed, uint32_t rank, uint64_t oldest_ns) {
	hear_set_by(bed, 0, rank, oldest_ns);
}

static void hear_roster(struct bed *bed, uint32_t rank, uint64_t asked_ns) {
	uint8_t bytes[256];
	struct wire_writer writer;

	wire_writer_init(&writer, bytes, sizeof(bytes));
	put_notice_head(&writer, NOTICE_ROSTER, 0, asked_ns - PEER_BEHIND_NS);
	wire_put_u16(&writer, 1);
	wire_put_u64(&writer, PEER);
	wire_put_u32(&writer, rank);
	wire_put_u32(&writer, 1);
	wire_put_u32(&writer, 1);
	notice_put(bed, &writer, bytes);
}

// The peer says that a rank left in order, not before this time of our clock.
static void hear_departed(struct bed *bed, uint32_t rank, uint64_t at_ns) {
	uint8_t bytes[256];
	struct wire_writer writer;

	wire_writer_init(&writer, bytes, sizeof(bytes));
	put_notice_head(&writer, NOTICE_DEPARTED, 0, at_ns - PEER_BEHIND_NS);
	wire_put_u16(&writer, 1);
	wire_put_u32(&writer, rank);
	notice_put(bed, &writer, bytes);
}

static uint64_t now_ns(const struct bed *bed) {
	return loop_now_ns(bed->loop);
}

static void pass_seconds(struct bed *bed, uint64_t seconds) {
	clock_advance(&bed->clock, seconds * SECOND);
	settle(bed);
}

static void know_the_peer(struct bed *bed) {
	peer_clock_learn(bed->host, PEER, now_ns(bed), now_ns(bed) - PEER_BEHIND_NS);
	settle(bed);
}

static void an_end_before_a_rank_registered_is_not_told_to_it(void **state) {
	struct bed *bed = *state;
	struct one_rank rank;
	uint64_t since_ns;

	know_the_peer(bed);
	pass_seconds(bed, 5);
	rank = open_rank(bed, 1, 0);
	since_ns = now_ns(bed);
	// The news come before and long after: what counts is when the rank ended.
	hear_gone(bed, 0, 5, since_ns - SECOND);
	pass_seconds(bed, 60);
	hear_gone(bed, 0, 5, since_ns - SECOND);
	assert_int_equal(told_gone(&rank), 0);
	hear_gone(bed, 0, 6, since_ns + SECOND);
	assert_int_equal(told_gone(&rank), 1u << 6);
	hear_gone(bed, 0, 5, since_ns - SECOND);
	assert_int_equal(told_gone(&rank), 0);
	close_rank(&rank);
}

static void a_notice_waits_for_the_clock_of_its_sender(void **state) {
	struct bed *bed = *state;
	struct one_rank rank = open_rank(bed, 1, 0);
	uint64_t since_ns = now_ns(bed);

	pass_seconds(bed, 60);
	// Neither is told before it is known when they ended.
	hear_gone(bed, 0, 5, since_ns - SECOND);
	hear_gone(bed, 0, 6, since_ns + SECOND);
	assert_int_equal(bed->host->held_count, 2);
	assert_int_equal(told_gone(&rank), 0);
	know_the_peer(bed);
	assert_int_equal(bed->host->held_count, 0);
	assert_int_equal(told_gone(&rank), 1u << 6);
	// A clock is asked for again after ten minutes, and a notice is not held for ever.
	pass_seconds(bed, 601);
	hear_gone(bed, 0, 7, now_ns(bed));
	assert_int_equal(bed->host->held_count, 1);
	for (int n = 0; n < 62; n++)
		look_again(bed);
	assert_int_equal(bed->host->held_count, 0);
	assert_int_equal(told_gone(&rank), 0);
	close_rank(&rank);
}

// A newer agent may append fields. Version 1 had another layout.
static void a_notice_of_a_newer_version_is_read_as_far_as_it_is_known(void **state) {
	static const struct {
		uint8_t version;
		bool is_read;
	} rows[] = {{1, false}, {3, true}, {UINT8_MAX, true}};
	struct bed *bed = *state;
	struct one_rank rank = open_rank(bed, 1, 0);

	know_the_peer(bed);
	pass_seconds(bed, 5);
	for (uint32_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		uint8_t bytes[256];
		struct wire_writer writer;

		wire_writer_init(&writer, bytes, sizeof(bytes));
		put_notice_head(&writer, NOTICE_GONE, 0, now_ns(bed) - PEER_BEHIND_NS);
		wire_put_u32(&writer, 5 + n);
		wire_put_string(&writer, "test", 4);
		wire_put_u64(&writer, 7);
		bytes[0] = rows[n].version;
		notice_put(bed, &writer, bytes);
		assert_int_equal(told_gone(&rank), rows[n].is_read ? 1u << (5 + n) : 0);
	}
	close_rank(&rank);
}

static void a_rank_that_registers_after_an_end_begins_an_attempt(void **state) {
	struct bed *bed = *state;
	struct one_rank first = open_rank(bed, 1, 0), second;
	struct host_comm *earlier = newest(bed);

	know_the_peer(bed);
	pass_seconds(bed, 2);
	hear_gone(bed, 0, 5, now_ns(bed) - SECOND);
	assert_int_equal(told_gone(&first), 1u << 5);
	pass_seconds(bed, 2);
	second = open_rank(bed, 2, 0);
	assert_true(earlier->is_past && newest(bed) != earlier);
	hear_gone(bed, 0, 5, now_ns(bed) - 3 * SECOND);
	hear_set(bed, 5, now_ns(bed) - 3 * SECOND);
	assert_int_equal(told_gone(&second), 0);
	assert_int_equal(newest(bed)->gone_count, 0);
	// An end after both registered is told to both.
	pass_seconds(bed, 2);
	hear_gone(bed, 0, 6, now_ns(bed) - SECOND);
	assert_int_equal(told_gone(&first), 1u << 5 | 1u << 6);
	assert_int_equal(told_gone(&second), 1u << 6);
	close_rank(&first);
	close_rank(&second);
}

static void late_news_of_an_end_part_the_ranks_that_registered_before_and_after(void **state) {
	struct bed *bed = *state;
	struct one_rank first = open_rank(bed, 1, 0), second;
	uint64_t first_ns = now_ns(bed);

	know_the_peer(bed);
	pass_seconds(bed, 10);
	second = open_rank(bed, 2, 0);
	assert_int_equal(newest(bed)->rank_count, 2);
	hear_set(bed, 5, first_ns + 5 * SECOND); // the set comes first
	hear_gone(bed, 0, 5, first_ns + 5 * SECOND);
	assert_int_equal(told_gone(&first), 1u << 5);
	assert_int_equal(told_gone(&second), 0);
	assert_int_equal(newest(bed)->rank_count, 1);
	close_rank(&first);
	close_rank(&second);
}

static void a_set_with_an_end_before_the_registration_is_not_taken(void **state) {
	struct bed *bed = *state;
	struct one_rank rank;

	know_the_peer(bed);
	pass_seconds(bed, 2);
	rank = open_rank(bed, 1, 0);
	hear_set(bed, 5, now_ns(bed) - SECOND);
	assert_int_equal(told_gone(&rank), 0);
	pass_seconds(bed, 2);
	hear_set(bed, 5, now_ns(bed) - SECOND);
	assert_int_equal(told_gone(&rank), 1u << 5);
	close_rank(&rank);
}

static void the_lowest_rank_that_has_not_left_numbers_the_set(void **state) {
	struct bed *bed = *state;
	struct one_rank rank = open_rank(bed, 1, 0);

	know_the_peer(bed);
	pass_seconds(bed, 2);
	hear_gone(bed, 0, 5, now_ns(bed) - SECOND);
	assert_int_equal(told_gone(&rank), 1u << 5);
	assert_int_equal(newest(bed)->agreed_count, 0); // rank 0 may number the set
	// Rank 0 of an earlier attempt left before rank 1 registered.
	hear_departed(bed, 0, now_ns(bed) - 3 * SECOND);
	assert_int_equal(newest(bed)->agreed_count, 0);
	hear_departed(bed, 1, now_ns(bed) - SECOND); // it lives here
	hear_departed(bed, 0, now_ns(bed) - SECOND);
	assert_int_equal(newest(bed)->agreed_count, 1);
	assert_int_equal(newest(bed)->view >> 44, 1);
	// Later sets follow at once.
	hear_gone(bed, 0, 6, now_ns(bed));
	assert_int_equal(newest(bed)->agreed_count, 2);
	close_rank(&rank);
}

static void a_set_is_taken_from_the_lowest_rank_that_has_not_left(void **state) {
	struct bed *bed = *state;
	struct one_rank rank = open_rank(bed, 2, 0);

	know_the_peer(bed);
	pass_seconds(bed, 2);
	hear_roster(bed, 0, now_ns(bed) - SECOND);
	hear_departed(bed, 0, now_ns(bed));
	hear_set_by(bed, 1, 5, now_ns(bed));
	assert_int_equal(newest(bed)->agreed_count, 1);
	assert_int_equal(told_gone(&rank), 1u << 5);
	close_rank(&rank);
}

// The agents that miss a set ask by repeating the end, also if no rank is left here.
static void a_departure_is_reported_to_agents_that_lack_a_set(void **state) {
	struct bed *bed = *state;
	struct one_rank rank = open_rank(bed, 0, 0);
	const struct jobhost_counters *counters = jobhost_counters(bed->host);

	put_counts(&rank, 1);
	leave_job(&rank);
	close_rank(&rank);
	assert_null(newest(bed));
	for (uint64_t sent = 1; sent <= 2; sent++) {
		// Each of many agents repeats it, and one answer serves all.
		hear_gone(bed, 0, 5, now_ns(bed));
		hear_gone(bed, 0, 5, now_ns(bed));
		assert_int_equal(counters->notices, sent);
		pass_seconds(bed, 3);
	}
	hear_gone(bed, 1, 5, now_ns(bed)); // another attempt
	assert_int_equal(counters->notices, 2);
}

static void a_local_rank_that_leaves_hands_the_set_on(void **state) {
	struct bed *bed = *state;
	struct one_rank first = open_rank(bed, 0, 0), second = open_rank(bed, 1, 0);

	know_the_peer(bed);
	put_counts(&first, 1);
	leave_job(&first);
	close_rank(&first);
	pass_seconds(bed, 2);
	hear_gone(bed, 0, 5, now_ns(bed));
	assert_int_equal(newest(bed)->agreed_count, 1);
	assert_int_equal(newest(bed)->view >> 44, 1);
	close_rank(&second);
}

static void a_roster_from_before_the_registration_loses_nobody_with_a_node(void **state) {
	struct bed *bed = *state;
	struct one_rank rank, more;

	know_the_peer(bed);
	pass_seconds(bed, 2);
	rank = open_rank(bed, 1, 0);
	hear_roster(bed, 5, now_ns(bed) - SECOND);
	assert_int_equal(newest(bed)->roster.count, 0);
	pass_seconds(bed, 2);
	hear_roster(bed, 5, now_ns(bed) - SECOND);
	assert_int_equal(newest(bed)->roster.count, 1);
	// The row is of a time before the second rank, so it is learned anew.
	more = open_rank(bed, 2, 0);
	assert_int_equal(newest(bed)->roster.count, 0);
	close_rank(&rank);
	close_rank(&more);
}

static void a_number_that_is_registered_again_begins_an_attempt(void **state) {
	struct bed *bed = *state;
	struct one_rank rank = open_rank(bed, 1, 0), other = open_rank(bed, 2, 0);
	struct jobs_rank_report report;
	uint64_t serial = newest(bed)->serial;

	put_counts(&rank, 1);
	leave_job(&rank);
	close_rank(&rank);
	assert_int_equal(read_report(bed, 0, &report), 2);
	assert_int_equal(report.left, JOBS_LEFT_CLOSED);
	rank = open_rank(bed, 1, 0);
	assert_int_not_equal(newest(bed)->serial, serial);
	assert_int_equal(newest(bed)->rank_count, 1);
	// The one that left is of the earlier attempt, and forgotten.
	assert_int_equal(read_report(bed, 0, &report), 2);
	assert_int_equal(report.left, JOBS_LEFT_NOT);
	// A rank that leaves the earlier attempt is no part of the later one.
	put_counts(&other, 1);
	leave_job(&other);
	close_rank(&other);
	assert_int_equal(ranks_shown(bed), 1);
	close_rank(&rank);
}

static void a_rank_that_left_has_the_counts_that_its_page_last_had(void **state) {
	struct bed *bed = *state;
	struct one_rank held = open_rank(bed, 1, 0), noted = open_rank(bed, 2, 0);
	struct jobs_rank_report report;

	put_counts(&held, 7);
	put_departure(&noted, 1, 9);
	leave_job(&held);
	leave_job(&noted);
	for (uint32_t n = 0; n < 2; n++) {
		assert_int_equal(read_report(bed, n, &report), 2);
		assert_int_equal(report.left, JOBS_LEFT_CLOSED);
		assert_int_equal(report.launched, report.rank == 1 ? 7 : 9);
	}
	close_rank(&held);
	close_rank(&noted);
}

// Zero counts would say that it has not launched what it launched.
static void a_rank_that_left_with_unknown_counts_is_not_shown(void **state) {
	struct bed *bed = *state;
	struct one_rank rank = open_rank(bed, 1, 0), other = open_rank(bed, 2, 0);

	put_departure(&rank, 1, 9);
	put_departure(&rank, 1 + JOB_DEPARTURES, 3);
	leave_job(&rank);
	assert_int_equal(ranks_shown(bed), 1);
	close_rank(&rank);
	close_rank(&other);
}

static void attempts_that_a_launcher_counts_are_communicators_of_their_own(void **state) {
	struct bed *bed = *state;
	struct one_rank first = open_rank(bed, 1, 0), second = open_rank(bed, 1, 1);
	const struct jobs_rank_report **rows = calloc(4, sizeof(void *));
	struct ras_comm_id ids[2];

	know_the_peer(bed);
	pass_seconds(bed, 2);
	hear_gone(bed, 1, 5, now_ns(bed) - SECOND);
	assert_int_equal(told_gone(&first), 0);
	assert_int_equal(told_gone(&second), 1u << 5);
	hear_gone(bed, 2, 6, now_ns(bed) - SECOND);
	assert_int_equal(told_gone(&second) & 1u << 6, 0);
	assert_int_equal(jobhost_select_reports(bed->host, rows, 4), 2);
	ids[0] = jobs_comm_id(rows[0]);
	ids[1] = jobs_comm_id(rows[1]);
	assert_int_not_equal(ras_comm_id_compare(&ids[0], &ids[1]), 0);
	free(rows);
	close_rank(&first);
	close_rank(&second);
}

static void a_rank_of_an_earlier_agent_stays_in_its_attempt(void **state) {
	struct bed *bed = *state;
	struct one_rank first = open_rank(bed, 1, 0), second;
	struct job_register told = good_register(1);
	char reason[JOB_REASON_BYTES];

	know_the_peer(bed);
	pass_seconds(bed, 2);
	hear_gone(bed, 0, 5, now_ns(bed) - SECOND);
	second = (struct one_rank){.bed = bed, .page = memory(JOB_PAGE_BYTES, SEALS)};
	second.fd = raw_greet(bed, second.page);
	told.rank = 2;
	told.size = SIZE;
	told.flags = JOB_REGISTER_AGAIN;
	raw_send(second.fd, &told, sizeof(told), -1);
	assert_int_equal(raw_answer(bed, second.fd, reason), JOB_REGISTERED);
	assert_int_equal(newest(bed)->rank_count, 2);
	// A lost connection, and the same registration without the flag.
	told.flags = 0;
	raw_send(second.fd, &told, sizeof(told), -1);
	settle(bed);
	assert_int_equal(newest(bed)->rank_count, 2);
	close_rank(&first);
	close_rank(&second);
}

// Let a rank that an earlier agent registered at this time register again; 0: it does not say when.
static struct one_rank open_rank_again(struct bed *bed, uint32_t number, uint64_t at_ns) {
	struct one_rank rank = {.bed = bed, .page = memory(JOB_PAGE_BYTES, SEALS)};
	struct job_register told = good_register(1);
	const uint32_t at_s = (uint32_t)(at_ns / SECOND);
	char reason[JOB_REASON_BYTES];

	put_counts(&rank, 1);
	write_page(
		&rank, offsetof(struct job_page, launched[0].marks.registered_s), &at_s,
		sizeof(at_s)
	);
	rank.fd = raw_greet(bed, rank.page);
	told.rank = number;
	told.size = SIZE;
	told.flags = JOB_REGISTER_AGAIN;
	raw_send(rank.fd, &told, sizeof(told), -1);
	assert_int_equal(raw_answer(bed, rank.fd, reason), JOB_REGISTERED);
	return rank;
}

static void an_end_while_no_agent_ran_is_told_to_ranks_that_had_registered(void **state) {
	struct bed *bed = *state;
	const uint64_t began_ns = now_ns(bed);
	struct one_rank first = open_rank_again(bed, 1, began_ns - 100 * SECOND);
	struct one_rank second = open_rank_again(bed, 2, began_ns - 20 * SECOND);
	struct one_rank older = open_rank_again(bed, 3, 0), late;

	know_the_peer(bed);
	// No end is told before the pages are read.
	hear_gone(bed, 0, 5, began_ns - 50 * SECOND);
	assert_int_equal(told_gone(&first) | told_gone(&second) | told_gone(&older), 0);
	look_again(bed);
	look_again(bed);
	hear_gone(bed, 0, 5, began_ns - 50 * SECOND);
	assert_int_equal(told_gone(&first), 1u << 5);
	assert_int_equal(told_gone(&second) | told_gone(&older), 0);
	// A rank of a second attempt that registers again later does not join.
	late = open_rank_again(bed, 4, began_ns - 20 * SECOND);
	look_again(bed);
	look_again(bed);
	hear_gone(bed, 0, 5, began_ns - 50 * SECOND);
	assert_int_equal(told_gone(&late), 0);
	hear_gone(bed, 0, 6, now_ns(bed));
	assert_int_equal(told_gone(&first), 1u << 6);
	assert_int_equal(told_gone(&second) & told_gone(&older) & told_gone(&late), 1u << 6);
	close_rank(&first);
	close_rank(&second);
	close_rank(&older);
	close_rank(&late);
}

static void a_set_of_before_the_start_is_taken_by_ranks_that_had_registered(void **state) {
	struct bed *bed = *state;
	const uint64_t began_ns = now_ns(bed);
	struct one_rank rank = open_rank_again(bed, 1, began_ns - 30 * SECOND);

	know_the_peer(bed);
	look_again(bed);
	look_again(bed);
	hear_set(bed, 5, began_ns - 45 * SECOND);
	assert_int_equal(told_gone(&rank), 0);
	hear_set(bed, 5, began_ns - 10 * SECOND);
	assert_int_equal(told_gone(&rank), 1u << 5);
	close_rank(&rank);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

UNIT_GROUP(jobhost_attempt) {
	const struct CMUnitTest tests[] = {
		TEST(an_end_before_a_rank_registered_is_not_told_to_it),
		TEST(a_notice_waits_for_the_clock_of_its_sender),
		TEST(a_notice_of_a_newer_version_is_read_as_far_as_it_is_known),
		TEST(a_rank_that_registers_after_an_end_begins_an_attempt),
		TEST(late_news_of_an_end_part_the_ranks_that_registered_before_and_after),
		TEST(a_set_with_an_end_before_the_registration_is_not_taken),
		TEST(the_lowest_rank_that_has_not_left_numbers_the_set),
		TEST(a_set_is_taken_from_the_lowest_rank_that_has_not_left),
		TEST(a_departure_is_reported_to_agents_that_lack_a_set),
		TEST(a_local_rank_that_leaves_hands_the_set_on),
		TEST(a_roster_from_before_the_registration_loses_nobody_with_a_node),
		TEST(a_number_that_is_registered_again_begins_an_attempt),
		TEST(a_rank_that_left_has_the_counts_that_its_page_last_had),
		TEST(a_rank_that_left_with_unknown_counts_is_not_shown),
		TEST(attempts_that_a_launcher_counts_are_communicators_of_their_own),
		TEST(a_rank_of_an_earlier_agent_stays_in_its_attempt),
		TEST(an_end_while_no_agent_ran_is_told_to_ranks_that_had_registered),
		TEST(a_set_of_before_the_start_is_taken_by_ranks_that_had_registered),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
