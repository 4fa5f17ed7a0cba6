// SPDX-License-Identifier: BSD-3-Clause
// A crowd of one user: work counted in steps, quotas that subordinate users share, and the shares
// of users in an answer.
#include "jobhost_bed.h"
#include "jobs/host/inside.h"

#define COMMS 8u
#define STEPS_MAX 3  // compared keys for one lookup, on average
#define CHAIN_MAX 16 // compared keys for one lookup of one key; no real table has a longer chain

static uint64_t keys_compared(const struct jobhost *host) {
	return host->users_by_uid.compared + host->processes_by_pid.compared +
	       host->processes_by_page.compared + host->parents_by_pid.compared +
	       host->comms_by_key.compared + host->ranks_by_number.compared;
}

// A process that only the agent's tables know: it has no socket, no page and no pidfd.
static struct host_process *fake_process(struct jobhost *host, uid_t uid, pid_t pid) {
	struct host_process *process = calloc(1, sizeof(*process));

	assert_non_null(process);
	process->host = host;
	process->user = user_get(host, uid);
	assert_non_null(process->user);
	process->uid = uid;
	process->pid = pid;
	process->page_inode = (ino_t)pid;
	process->page_fd = process->pidfd.fd = -1;
	process_enlist(process);
	return process;
}

static void
fake_rank_with(struct host_process *process, uint64_t number, uint64_t hash, uint32_t flags) {
	struct job_register told = good_register(number);
	char reason[JOB_REASON_BYTES];

	told.comm_hash = hash;
	told.flags = flags;
	assert_non_null(rank_add(process, &told, reason));
}

static void fake_rank(struct host_process *process, uint64_t number, uint64_t hash) {
	fake_rank_with(process, number, hash, 0);
}

// Let processes of one user register COMMS communicators each. Returns the keys compared for one of
// these registrations, on average.
static double grow_crowd(struct jobhost *host, uint32_t from, uint32_t to) {
	const uint64_t before = keys_compared(host);

	for (uint32_t n = from; n < to; n++) {
		struct host_process *process = fake_process(host, 12345, (pid_t)(100000 + n));

		assert_ptr_equal(
			process_find_by_page(host, process->pid, process->page_inode), process
		);
		for (uint32_t comm = 0; comm < COMMS; comm++)
			fake_rank(process, 1 + comm, n * COMMS + comm);
	}
	return (double)(keys_compared(host) - before) / ((to - from) * COMMS);
}

static void a_registration_compares_as_few_keys_in_a_crowd_of_twice_the_size(void **state) {
	struct bed *bed = *state;
	struct jobhost *host = bed->host;

	host->config.processes_max = host->config.per_user_max = 4096;
	for (uint32_t size = 125; size <= 2000; size *= 2) {
		double steps = grow_crowd(host, size == 125 ? 0 : size / 2, size);

		assert_true(steps > 0);
		assert_true(steps <= STEPS_MAX);
	}
	assert_int_equal(host->counters.ranks, 2000 * COMMS);
}

static void every_lookup_in_a_communicator_of_one_node_compares_few_keys(void **state) {
	struct bed *bed = *state;
	struct jobhost *host = bed->host;
	uint64_t before;
	char reason[JOB_REASON_BYTES];

	host->config.processes_max = host->config.per_user_max = 4096;
	for (uint32_t n = 0; n < 4000; n++) {
		struct host_process *process = fake_process(host, 12345, (pid_t)(100000 + n));
		struct job_register told = good_register(1);

		told.size = 4001;
		told.rank = n;
		assert_non_null(rank_add(process, &told, reason));
	}
	before = keys_compared(host);
	for (uint32_t n = 0; n < 1000; n++)
		assert_true(agree_is_coordinator(host, host->comms));
	assert_false(roster_is_complete(host->comms));
	// All lookups are of the same key, so their mean is the length of one chain.
	assert_true(keys_compared(host) - before <= 1000 * CHAIN_MAX);
}

static void an_answer_gives_each_user_a_share_and_the_oldest_communicators(void **state) {
	static const struct jobs_rank_report *reports[REPORTS_MAX];
	struct bed *bed = *state;
	struct jobhost *host = bed->host;
	struct host_process *other;
	uint64_t newest = 0;

	host->config.processes_max = host->config.per_user_max = 4096;
	(void)grow_crowd(host, 0, 1000);
	other = fake_process(host, 54321, 99);
	fake_rank(other, 1, 1);
	fake_rank(other, 2, UINT64_MAX);
	assert_int_equal(jobhost_select_reports(host, reports, REPORTS_MAX), 2 + 2048);
	assert_int_equal(host->counters.unshown, 1000 * COMMS - 2048);
	assert_int_equal(reports[0]->uid, 54321); // a cut hits the user with most ranks
	assert_int_equal(reports[1]->uid, 54321);
	for (uint32_t n = 2; n < 2 + 2048; n++) {
		assert_int_equal(reports[n]->uid, 12345);
		newest = reports[n]->comm_hash > newest ? reports[n]->comm_hash : newest;
	}
	assert_int_equal(newest, 2047);
	assert_int_equal(jobhost_select_reports(host, reports, 10), 10);
	assert_int_equal(reports[1]->uid, 54321);
	assert_int_equal(reports[2]->uid, 12345);
	assert_int_equal(host->counters.unshown, 1000 * COMMS - 8);
}

static struct subuids *subuids_of(const struct bed *bed, const char *text) {
	struct subuids *subuids;
	char path[64];
	FILE *file;

	snprintf(path, sizeof(path), "%s/subuid", bed->directory);
	file = fopen(path, "w");
	assert_non_null(file);
	assert_int_equal(fputs(text, file) >= 0, true);
	assert_int_equal(fclose(file), 0);
	subuids = subuids_read(path);
	assert_int_equal(unlink(path), 0);
	return subuids;
}

static void the_users_of_a_range_have_one_owner(void **state) {
	static const struct {
		const char *text;
		uid_t uid, owner;
	} cases[] = {
		{"1000:100000:65536\n", 100000, 1000},
		{"1000:100000:65536\n", 165535, 1000},
		{"1000:100000:65536\n", 165536, 165536},
		{"1000:100000:65536\n", 99999, 99999},
		{"1000:100000:65536", 100001, 1000},
		// All ranges of one name share one owner: the first uid of the lowest range.
		{"eve:500000:10\nbob:100000:10\neve:300000:10\n", 500003, 300000},
		{"eve:500000:10\nbob:100000:10\neve:300000:10\n", 300009, 300000},
		{"eve:500000:10\nbob:100000:10\neve:300000:10\n", 100005, 100000},
		{"eve:500000:10\nevelyn:100000:10\n", 100005, 100000},
		// No line that is not valid hides the next one.
		{"# comment\n\n:::\nx\nx:\nx:1\nx:-1:5\nx:5:0\nx:a:b\nx:9:9:9\n7:200:9\n", 205, 7},
		{"x:0:4294967295\n", 1000, 1000},
		{"x:4294967290:100\n", 4294967291u, 4294967291u},
		{"x:4294967290:4\n", 4294967291u, 4294967290u},
		{"", 1000, 1000},
	};

	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		struct subuids *subuids = subuids_of(*state, cases[n].text);

		assert_int_equal(subuid_owner(subuids, cases[n].uid), cases[n].owner);
		subuids_destroy(subuids);
	}
}

static void a_file_of_ranges_that_is_too_long_is_read_up_to_a_limit(void **state) {
	const struct bed *bed = *state;
	const size_t size = 2u << 20;
	char *text = malloc(size + 1);
	struct subuids *subuids;

	assert_non_null(text);
	memset(text, 'x', size);
	text[size] = '\0';
	memcpy(text, "7:200:9\n", 8);
	memcpy(text + size - 9, "\n8:300:9\n", 9);
	subuids = subuids_of(bed, text);
	assert_int_equal(subuid_owner(subuids, 200), 7);
	assert_int_equal(subuid_owner(subuids, 300), 300);
	subuids_destroy(subuids);
	free(text);
	assert_null(subuids_read("/dev/zero"));
	assert_null(subuids_read(bed->directory));
	assert_null(subuids_read("/nonexistent"));
}

static void subordinate_users_share_the_quota_of_their_owner(void **state) {
	struct bed *bed = *state;
	struct jobhost *host = bed->host;
	struct host_process *own, *subordinate, *stranger;
	char reason[JOB_REASON_BYTES];
	struct job_register told = good_register(100);

	host->config.per_user_max = 1; // and eight ranks
	jobhost_use_subuids(host, subuids_of(bed, "1000:100000:65536\n"));
	own = fake_process(host, 1000, 1);
	subordinate = fake_process(host, 100007, 2);
	stranger = fake_process(host, 1001, 3);
	assert_ptr_equal(own->user, subordinate->user);
	assert_int_equal(own->user->processes, 2);
	for (uint32_t n = 0; n < 4; n++) {
		fake_rank(own, 1 + n, n);
		fake_rank(subordinate, 1 + n, n);
	}
	assert_null(rank_add(own, &told, reason));
	assert_null(rank_add(subordinate, &told, reason));
	assert_non_null(strstr(reason, "has 8 ranks already"));
	// They are different users all the same: a key of one is not a key of the other.
	assert_int_equal(own->ranks->comm->rank_count, 1);
	fake_rank(stranger, 1, 1);
}

static void a_refused_rank_uses_no_quota_and_a_replaced_one_frees_its_own(void **state) {
	struct bed *bed = *state;
	struct jobhost *host = bed->host;
	struct host_process *first, *next;
	char reason[JOB_REASON_BYTES];
	struct job_register told = good_register(1);

	host->config.per_user_max = 1; // and eight ranks
	first = fake_process(host, 1000, 1);
	next = fake_process(host, 1000, 2);
	next->pid = first->pid; // after exec()
	for (uint32_t n = 0; n < 8; n++)
		fake_rank(first, 1 + n, n);
	told = first->ranks->told;
	told.comm = 100;
	for (uint32_t n = 0; n < 3; n++) {
		struct job_register other = good_register(100);

		other.comm_hash = 77;
		assert_null(rank_add(next, &other, reason));
		assert_non_null(strstr(reason, "has 8 ranks already"));
		assert_int_equal(first->user->ranks, 8);
		assert_int_equal(host->counters.ranks, 8);
	}
	// The rank of the program that exec() replaced gives its place to the new one.
	assert_non_null(rank_add(next, &told, reason));
	assert_int_equal(first->user->ranks, 8);
	assert_int_equal(first->rank_count, 7);
	next->pid = 2; // as in the table of processes
}

static void a_user_who_has_used_a_turn_up_is_served_in_the_next_one(void **state) {
	struct bed *bed = *state;
	int page = memory(JOB_PAGE_BYTES, SEALS), fd = raw_greet(bed, page);
	struct host_user *user = LIST_FIRST(&bed->host->users);
	const struct job_register told = good_register(1);

	assert_true(user_has_time(user));
	user->spent_ns = USER_TURN_NS;
	raw_send(fd, &told, sizeof(told), -1);
	settle(bed); // the fake clock makes this one turn
	assert_int_equal(bed->host->counters.ranks, 0);
	clock_advance(&bed->clock, 1);
	settle(bed);
	assert_int_equal(bed->host->counters.ranks, 1);
	close(fd);
	close(page);
	settle(bed);
}

static void ranks_of_each_user_are_sent_to_in_turn(void **state) {
	struct bed *bed = *state;
	struct jobhost *host = bed->host;
	struct host_process *process = fake_process(host, 12345, 1);
	struct host_process *other = fake_process(host, 54321, 2);

	for (uint32_t n = 0; n < 3; n++) {
		fake_rank(process, 1 + n, n);
		rank_send_comm_state(process->ranks);
	}
	fake_rank(other, 1, 1);
	rank_send_comm_state(other->ranks);
	host->turn_ns = loop_now_ns(bed->loop);
	host->spent_ns = JOBS_TURN_NS; // the fake clock leaves it so: one rank in each turn
	turn(bed, 0);
	assert_true(other->ranks->is_unsent);
	turn(bed, 0);
	assert_false(other->ranks->is_unsent);
	assert_true(process->ranks->is_unsent);
	turn(bed, 0);
	turn(bed, 0);
	assert_false(process->ranks->is_unsent);
	assert_int_equal(process->ranks->comm->unsent_count, 0);
}

static void a_reload_of_ranges_keeps_the_counts_of_earlier_communicators(void **state) {
	struct bed *bed = *state;
	struct jobhost *host = bed->host;
	const struct jobs_rank_report *reports[4];
	struct host_process *process = fake_process(host, 100001, 1);
	struct host_user *before = process->user;

	fake_rank(process, 1, 1);
	agree_add_gone_rank(host, host->comms, 3, "test", host->began_ns + 1, false);
	process_free(process);
	assert_int_equal(before->empty_comms, 1);
	jobhost_use_subuids(host, subuids_of(bed, "1000:100000:65536\n"));
	process = fake_process(host, 100001, 2);
	assert_ptr_not_equal(process->user, before);
	// A rank of an earlier agent joins the communicator although a rank of it is gone.
	fake_rank_with(process, 1, 1, JOB_REGISTER_AGAIN);
	assert_ptr_equal(process->ranks->comm->user, before);
	assert_int_equal(before->empty_comms, 0);
	assert_int_equal(process->user->empty_comms, 0);
	assert_int_equal(jobhost_select_reports(host, reports, 1), 1);
}

static void counts_of_a_user_end_with_what_was_counted(void **state) {
	struct bed *bed = *state;
	struct jobhost *host = bed->host;

	(void)grow_crowd(host, 0, 4);
	agree_add_gone_rank(host, host->comms, 3, "test", 1, false);
	assert_int_equal(LIST_FIRST(&host->users)->gone_ranks, 1);
	while (host->processes != NULL)
		process_free(host->processes);
	clock_advance(&bed->clock, 61 * SECOND);
	look_again(bed);
	assert_null(host->comms);
	assert_null(LIST_FIRST(&host->users));
	assert_int_equal(host->users_by_uid.count, 0);
	assert_int_equal(host->comms_by_key.count, 0);
	assert_int_equal(host->ranks_by_number.count, 0);
	assert_int_equal(host->processes_by_page.count, 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, setup, teardown)

UNIT_GROUP(jobhost_crowd) {
	const struct CMUnitTest tests[] = {
		TEST(a_registration_compares_as_few_keys_in_a_crowd_of_twice_the_size),
		TEST(every_lookup_in_a_communicator_of_one_node_compares_few_keys),
		TEST(an_answer_gives_each_user_a_share_and_the_oldest_communicators),
		TEST(the_users_of_a_range_have_one_owner),
		TEST(a_file_of_ranges_that_is_too_long_is_read_up_to_a_limit),
		TEST(subordinate_users_share_the_quota_of_their_owner),
		TEST(a_refused_rank_uses_no_quota_and_a_replaced_one_frees_its_own),
		TEST(a_user_who_has_used_a_turn_up_is_served_in_the_next_one),
		TEST(ranks_of_each_user_are_sent_to_in_turn),
		TEST(a_reload_of_ranges_keeps_the_counts_of_earlier_communicators),
		TEST(counts_of_a_user_end_with_what_was_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
