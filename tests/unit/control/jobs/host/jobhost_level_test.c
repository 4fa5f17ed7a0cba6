// SPDX-License-Identifier: BSD-3-Clause
// The information level that the agent requests from jobs through their pages.
#include "control/jobs/host/jobhost_bed.h"

#include <tocsin/job.h>

#define MINUTE (60 * SECOND)

// A process that greeted with its own page.
struct guest {
	int page, fd;
};

static struct guest guest_of(struct bed *bed, const char *job) {
	struct guest guest = {.page = memory(JOB_PAGE_BYTES, SEALS), .fd = raw_connect(bed)};
	struct job_hello hello = good_hello();
	char reason[JOB_REASON_BYTES];

	memcpy(hello.job_id, job, strlen(job) + 1);
	raw_send(guest.fd, &hello, sizeof(hello), guest.page);
	assert_int_equal(raw_answer(bed, guest.fd, reason), JOB_WELCOME);
	return guest;
}

static void guest_end(struct bed *bed, struct guest *guest) {
	close(guest->fd);
	close(guest->page);
	settle(bed);
}

static uint8_t level_in(struct bed *bed, int page) {
	uint64_t wanted = 0;

	assert_int_equal(
		pread(page, &wanted, sizeof(wanted), offsetof(struct job_page, head.wanted)),
		sizeof(wanted)
	);
	return job_wanted_level(wanted, clock_now_ns(&bed->clock));
}

static void an_order_reaches_the_jobs_it_names_and_no_others(void **state) {
	static const struct {
		const char *word;
		bool reached[4];
	} cases[] = {
		{"slurm:12.0", {true, false, false, false}},
		{"slurm:12", {true, true, false, false}},
		{"12.1", {false, true, false, false}},
		{"12", {true, true, false, false}},
		{"1", {false, false, false, false}},
		{"slurm", {false, false, false, false}},
		{"12.", {false, false, false, false}},
		{"123.0", {false, false, true, false}},
		{"", {true, true, true, true}},
	};
	struct bed *bed = *state;
	struct guest guests[4] = {
		guest_of(bed, "slurm:12.0"), guest_of(bed, "slurm:12.1"),
		guest_of(bed, "flux:123.0"), guest_of(bed, "")};

	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		assert_int_equal(jobhost_request_level(bed->host, "default", MINUTE, ""), 0);
		assert_int_equal(
			jobhost_request_level(bed->host, "kernels", MINUTE, cases[n].word), 0
		);
		for (int guest = 0; guest < 4; guest++)
			if ((level_in(bed, guests[guest].page) == TOCSIN_LEVEL_KERNELS) !=
			    cases[n].reached[guest])
				fail_msg("\"%s\", job %d", cases[n].word, guest);
	}
	for (int guest = 0; guest < 4; guest++)
		guest_end(bed, &guests[guest]);
}

static void the_newest_order_holds_and_ends(void **state) {
	struct bed *bed = *state;
	struct guest guest = guest_of(bed, "slurm:12.0");

	assert_int_equal(jobhost_request_level(bed->host, "network", 10 * MINUTE, ""), 0);
	assert_int_equal(jobhost_request_level(bed->host, "kernels", MINUTE, "12"), 0);
	assert_int_equal(level_in(bed, guest.page), TOCSIN_LEVEL_KERNELS);
	for (int n = 0; n < 61; n++)
		look_again(bed);
	assert_int_equal(level_in(bed, guest.page), TOCSIN_LEVEL_NETWORK);
	assert_int_equal(jobhost_request_level(bed->host, "default", SECOND, ""), 0);
	assert_int_equal(level_in(bed, guest.page), TOCSIN_LEVEL_DEFAULT);
	guest_end(bed, &guest);
}

static void the_end_of_an_order_needs_no_agent(void **state) {
	struct bed *bed = *state;
	struct guest guest = guest_of(bed, "");

	assert_int_equal(jobhost_request_level(bed->host, "kernels", 5 * SECOND, ""), 0);
	assert_int_equal(level_in(bed, guest.page), TOCSIN_LEVEL_KERNELS);
	clock_advance(&bed->clock, 4 * SECOND); // no turn: the agent is stopped
	assert_int_equal(level_in(bed, guest.page), TOCSIN_LEVEL_KERNELS);
	clock_advance(&bed->clock, 2 * SECOND);
	assert_int_equal(level_in(bed, guest.page), TOCSIN_LEVEL_DEFAULT);
	guest_end(bed, &guest);
}

static void a_process_that_comes_later_is_asked_at_its_greeting(void **state) {
	struct bed *bed = *state;
	struct guest guest;

	assert_int_equal(jobhost_request_level(bed->host, "sampled", MINUTE, ""), 0);
	guest = guest_of(bed, "");
	assert_int_equal(level_in(bed, guest.page), TOCSIN_LEVEL_SAMPLED);
	guest_end(bed, &guest);
}

static void what_an_earlier_agent_asked_for_is_taken_back(void **state) {
	struct bed *bed = *state;
	struct guest guest = guest_of(bed, "");

	assert_int_equal(jobhost_request_level(bed->host, "kernels", MINUTE, ""), 0);
	bed->host = jobhost_destroy(bed->host);
	host_start(bed);
	assert_int_equal(level_in(bed, guest.page), TOCSIN_LEVEL_KERNELS);
	close(guest.fd);
	guest.fd = raw_greet(bed, guest.page);
	look_again(bed);
	assert_int_equal(level_in(bed, guest.page), TOCSIN_LEVEL_DEFAULT);
	guest_end(bed, &guest);
}

static void a_word_that_the_job_wrote_itself_is_put_right(void **state) {
	struct bed *bed = *state;
	struct guest guest = guest_of(bed, "");
	const uint64_t forged = UINT64_MAX;

	assert_int_equal(
		pwrite(guest.page, &forged, sizeof(forged), offsetof(struct job_page, head.wanted)),
		sizeof(forged)
	);
	look_again(bed);
	assert_int_equal(level_in(bed, guest.page), TOCSIN_LEVEL_DEFAULT);
	guest_end(bed, &guest);
}

// The page is sealed or opened read-only: the job receives nothing, but is counted as before.
static void a_page_that_cannot_be_written_is_read_all_the_same(void **state) {
	struct bed *bed = *state;
	struct guest guest = {.page = memory(JOB_PAGE_BYTES, SEALS | F_SEAL_WRITE)};

	guest.fd = raw_greet(bed, guest.page);
	assert_int_equal(jobhost_request_level(bed->host, "kernels", MINUTE, ""), 0);
	look_again(bed);
	assert_int_equal(level_in(bed, guest.page), TOCSIN_LEVEL_DEFAULT);
	assert_int_equal(jobhost_counters(bed->host)->pages_bad, 0);
	assert_int_equal(jobhost_counters(bed->host)->processes, 1);
	guest_end(bed, &guest);
}

static void orders_that_cannot_be_are_refused(void **state) {
	struct bed *bed = *state;
	char job[JOB_ID_BYTES + 1];

	memset(job, 'x', JOB_ID_BYTES);
	job[JOB_ID_BYTES] = '\0';
	assert_int_equal(jobhost_request_level(bed->host, "much", MINUTE, ""), -EINVAL);
	assert_int_equal(jobhost_request_level(bed->host, "", MINUTE, ""), -EINVAL);
	assert_int_equal(jobhost_request_level(bed->host, "kernels", MINUTE, job), -ENAMETOOLONG);
	for (int n = 0; n < 64; n++) {
		snprintf(job, sizeof(job), "job:%d", n);
		assert_int_equal(jobhost_request_level(bed->host, "kernels", MINUTE, job), 0);
	}
	assert_int_equal(jobhost_request_level(bed->host, "network", MINUTE, "job:3"), 0);
	assert_int_equal(jobhost_request_level(bed->host, "kernels", MINUTE, "job:64"), -ENOSPC);
	clock_advance(&bed->clock, 2 * MINUTE);
	settle(bed);
	assert_int_equal(jobhost_request_level(bed->host, "kernels", MINUTE, "job:64"), 0);
	for (int n = 0; n < 63; n++) {
		snprintf(job, sizeof(job), "job:%d", n);
		assert_int_equal(jobhost_request_level(bed->host, "kernels", MINUTE, job), 0);
	}
	// Cancels the request.
	assert_int_equal(jobhost_request_level(bed->host, "default", MINUTE, ""), 0);
}

UNIT_GROUP(jobhost_level) {
#define LEVEL_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		LEVEL_TEST(an_order_reaches_the_jobs_it_names_and_no_others),
		LEVEL_TEST(the_newest_order_holds_and_ends),
		LEVEL_TEST(the_end_of_an_order_needs_no_agent),
		LEVEL_TEST(a_process_that_comes_later_is_asked_at_its_greeting),
		LEVEL_TEST(what_an_earlier_agent_asked_for_is_taken_back),
		LEVEL_TEST(a_word_that_the_job_wrote_itself_is_put_right),
		LEVEL_TEST(a_page_that_cannot_be_written_is_read_all_the_same),
		LEVEL_TEST(orders_that_cannot_be_are_refused),
	};

	return cmocka_run_group_tests_name("jobhost_level", tests, NULL, NULL);
}
