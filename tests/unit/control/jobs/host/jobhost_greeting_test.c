// SPDX-License-Identifier: BSD-3-Clause
// Connecting processes: rejected greetings and registrations, malformed packets, and floods.
#include "control/jobs/host/jobhost_bed.h"

#include <sys/wait.h>

enum passed {
	PASS_NOTHING,
	PASS_GOOD,
	PASS_SMALL,
	PASS_LARGE,
	PASS_UNSEALED,
	PASS_GROWING,
	PASS_FILE,
	PASS_PIPE,
};

static int passed_make(const struct bed *bed, enum passed passed) {
	int pipes[2];

	switch (passed) {
	case PASS_GOOD:
		return memory(JOB_PAGE_BYTES, SEALS);
	case PASS_SMALL:
		return memory(4096, SEALS);
	case PASS_LARGE:
		return memory(2 * JOB_PAGE_BYTES, SEALS);
	case PASS_UNSEALED:
		return memory(JOB_PAGE_BYTES, 0);
	case PASS_GROWING:
		return memory(JOB_PAGE_BYTES, F_SEAL_SEAL | F_SEAL_SHRINK);
	case PASS_FILE:
		return open(bed->directory, O_RDONLY | O_CLOEXEC);
	case PASS_PIPE:
		assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
		close(pipes[1]);
		return pipes[0];
	default:
		return -1;
	}
}

static void a_greeting_that_is_not_right_is_refused_with_its_reason(void **state) {
	static const struct {
		enum passed passed;
		uint16_t version;
		uint64_t late; // offset added to the start time
		uint16_t kind; // expected kind of the answer
		const char *reason;
	} rows[] = {
		{PASS_GOOD, 2, 0, JOB_WELCOME, ""},
		{PASS_NOTHING, 2, 0, JOB_REFUSED, "no memory file"},
		{PASS_SMALL, 2, 0, JOB_REFUSED, "size"},
		{PASS_LARGE, 2, 0, JOB_REFUSED, "size"},
		{PASS_UNSEALED, 2, 0, JOB_REFUSED, "sealed"},
		{PASS_GROWING, 2, 0, JOB_REFUSED, "sealed"},
		{PASS_FILE, 2, 0, JOB_REFUSED, "not a memory file"},
		{PASS_PIPE, 2, 0, JOB_REFUSED, "not a memory file"},
		{PASS_GOOD, 1, 0, JOB_REFUSED, "versions 2 to 1, this agent 2 to 2"},
		{PASS_GOOD, 2, 1, JOB_REFUSED, "another time"},
	};
	struct bed *bed = *state;

	for (size_t n = 0; n < COUNT_OF(rows); n++) {
		struct job_hello hello = good_hello();
		char reason[JOB_REASON_BYTES] = "";
		int fd = raw_connect(bed), passed = passed_make(bed, rows[n].passed);

		hello.head.version = rows[n].version;
		hello.start_time += rows[n].late;
		raw_send(fd, &hello, sizeof(hello), passed);
		assert_int_equal(raw_answer(bed, fd, reason), rows[n].kind);
		if (rows[n].kind == JOB_REFUSED)
			assert_non_null(strstr(reason, rows[n].reason));
		close(fd);
		if (passed >= 0)
			close(passed);
		settle(bed);
	}
}

static void a_communicator_that_cannot_be_is_refused_and_the_others_stay(void **state) {
	static const struct {
		uint64_t comm;
		uint32_t size, rank;
		const char *reason;
	} rows[] = {
		{0, 8, 1, "communicator 0"},  {5, 0, 0, "1048576"},
		{5, 1u << 31, 0, "1048576"},  {5, UINT32_MAX, UINT32_MAX - 1, "1048576"},
		{5, 8, 8, "below the size"},  {1, 8, 2, "uses this number already"},
		{6, 8, 1, "held by process"}, // the same rank twice
	};
	struct bed *bed = *state;
	int page = memory(JOB_PAGE_BYTES, SEALS), fd = raw_greet(bed, page);
	struct job_register good = good_register(1);
	char reason[JOB_REASON_BYTES];

	raw_send(fd, &good, sizeof(good), -1);
	assert_int_equal(raw_answer(bed, fd, reason), JOB_REGISTERED);
	assert_int_equal(raw_answer(bed, fd, reason), JOB_FAILED);
	for (size_t n = 0; n < COUNT_OF(rows); n++) {
		struct job_register bad = good_register(rows[n].comm);

		bad.size = rows[n].size;
		bad.rank = rows[n].rank;
		raw_send(fd, &bad, sizeof(bad), -1);
		assert_int_equal(raw_answer(bed, fd, reason), JOB_REFUSED);
		assert_non_null(strstr(reason, rows[n].reason));
		assert_int_equal(ranks_shown(bed), 1);
	}
	close(fd);
	close(page);
	settle(bed);
}

// After exec() the process has its pid, and another socket and memory.
static void a_program_replaced_by_exec_gives_its_rank_to_the_next_one(void **state) {
	struct bed *bed = *state;
	int page = memory(JOB_PAGE_BYTES, SEALS), fd = raw_greet(bed, page);
	int next_page = memory(JOB_PAGE_BYTES, SEALS), next_fd = raw_greet(bed, next_page);
	const struct job_register told = good_register(1);
	char reason[JOB_REASON_BYTES];

	raw_send(fd, &told, sizeof(told), -1);
	assert_int_equal(raw_answer(bed, fd, reason), JOB_REGISTERED);
	// While the first one is connected, the second one is another job of the same program.
	raw_send(next_fd, &told, sizeof(told), -1);
	assert_int_equal(raw_answer(bed, next_fd, reason), JOB_REFUSED);
	assert_non_null(strstr(reason, "held by process"));
	close(fd);
	settle(bed);
	raw_send(next_fd, &told, sizeof(told), -1);
	assert_int_equal(raw_answer(bed, next_fd, reason), JOB_REGISTERED);
	assert_int_equal(ranks_shown(bed), 1);
	assert_int_equal(jobhost_counters(bed->host)->gone, 0);
	close(next_fd);
	close(page);
	close(next_page);
	settle(bed);
}

static void the_newest_version_that_both_sides_speak_is_used(void **state) {
	static const struct {
		uint16_t min, max;
		int answer;
	} rows[] = {{2, 2, JOB_WELCOME}, {2, 7, JOB_WELCOME}, {0, 7, JOB_WELCOME},
		    {3, 7, JOB_REFUSED}, {3, 2, JOB_REFUSED}, {7, 65535, JOB_REFUSED}};
	struct bed *bed = *state;
	int page = memory(JOB_PAGE_BYTES, SEALS);

	for (size_t n = 0; n < COUNT_OF(rows); n++) {
		struct job_hello hello = good_hello();
		char reason[JOB_REASON_BYTES] = "";
		int fd = raw_connect(bed);

		hello.version_min = rows[n].min;
		hello.head.version = rows[n].max;
		raw_send(fd, &hello, sizeof(hello), page);
		assert_int_equal(raw_answer(bed, fd, reason), rows[n].answer);
		close(fd);
	}
	assert_int_equal(job_version_choose(1, 7), JOB_SOCKET_VERSION);
	assert_int_equal(job_version_choose(JOB_SOCKET_VERSION + 1, 7), 0);
	close(page);
	settle(bed);
}

// Version 1 had no versions in its HELLO, and no attempt.
static void a_library_of_version_1_is_refused_with_both_versions(void **state) {
	const struct {
		struct job_message_head head;
		uint64_t start_time, page_bytes;
		char job_id[JOB_ID_BYTES];
	} hello = {.head = {JOB_SOCKET_MAGIC, 1, JOB_HELLO}, .page_bytes = JOB_PAGE_BYTES};
	struct bed *bed = *state;
	int page = memory(JOB_PAGE_BYTES, SEALS), fd = raw_connect(bed);
	char reason[JOB_REASON_BYTES] = "";

	raw_send(fd, &hello, sizeof(hello), page);
	assert_int_equal(raw_answer(bed, fd, reason), JOB_REFUSED);
	assert_string_equal(reason, "libtocsin speaks versions 1 to 1, this agent 2 to 2");
	close(fd);
	close(page);
	settle(bed);
}

static void packets_without_sense_end_the_connection_and_leave_nothing(void **state) {
	static const char garbage[sizeof(struct job_failed) + 64] = "GET / HTTP/1.1\r\n";
	static const size_t sizes[] = {1, 7, 8, 9, 100, sizeof(struct job_failed), sizeof(garbage)};
	struct bed *bed = *state;
	int page = memory(JOB_PAGE_BYTES, SEALS);

	for (size_t n = 0; n < 2 * COUNT_OF(sizes); n++) {
		char reason[JOB_REASON_BYTES];
		int fd = n % 2 == 0 ? raw_connect(bed) : raw_greet(bed, page);
		struct job_message_head head = {
			JOB_SOCKET_MAGIC, JOB_SOCKET_VERSION, (uint16_t)(JOB_HELLO + n)};
		char packet[sizeof(garbage)];

		memcpy(packet, garbage, sizeof(packet));
		if (n >= COUNT_OF(sizes))
			memcpy(packet, &head, sizeof(head));
		raw_send(fd, packet, sizes[n / 2], page);
		assert_int_equal(raw_answer(bed, fd, reason), JOB_REFUSED);
		// The socket is closed afterwards.
		assert_int_equal(recv(fd, reason, sizeof(reason), 0), 0);
		close(fd);
	}
	close(page);
	settle(bed);
}

static void a_flood_of_registrations_leaves_nothing_behind(void **state) {
	struct bed *bed = *state;
	int page = memory(JOB_PAGE_BYTES, SEALS), fd = raw_greet(bed, page);
	char reason[JOB_REASON_BYTES];

	for (uint64_t n = 1; n <= 10000; n++) {
		struct job_register more = good_register(n);
		const struct job_unregister less = {
			{JOB_SOCKET_MAGIC, JOB_SOCKET_VERSION, JOB_UNREGISTER}, n};

		raw_send(fd, &more, sizeof(more), -1);
		raw_send(fd, &less, sizeof(less), -1);
		if (n % 16 == 0)
			while (raw_answer(bed, fd, reason) != 0) {
			}
	}
	settle(bed);
	assert_int_equal(ranks_shown(bed), 0);
	close(fd);
	close(page);
	settle(bed);
}

static void a_process_may_die_behind_each_line_of_its_greeting(void **state) {
	struct bed *bed = *state;

	for (int line = 0; line < 5; line++) {
		int page = memory(JOB_PAGE_BYTES, SEALS), status;
		pid_t child = fork();

		assert_true(child >= 0);
		if (child == 0) {
			struct job_hello hello = good_hello();
			struct job_register more = good_register(1);
			int fd = line > 0 ? raw_connect(bed) : -1;

			if (line > 1)
				raw_send(fd, &hello, sizeof(hello), page);
			if (line > 2)
				raw_send(fd, &more, sizeof(more), -1);
			if (line > 3)
				raw_send(fd, &more, 5, -1);
			_exit(0);
		}
		close(page);
		assert_int_equal(waitpid(child, &status, 0), child);
		for (int n = 0; n < 20; n++)
			look_again(bed);
		assert_int_equal(jobhost_counters(bed->host)->processes, 0);
	}
}

static void a_user_has_no_more_processes_than_allowed(void **state) {
	struct bed *bed = *state;
	int fds[33], pages[33];
	char reason[JOB_REASON_BYTES] = "";

	for (uint32_t n = 0; n < bed->config.per_user_max; n++) {
		pages[n] = memory(JOB_PAGE_BYTES, SEALS);
		fds[n] = raw_greet(bed, pages[n]);
	}
	for (uint32_t n = bed->config.per_user_max; n < 33; n++) {
		const struct job_hello hello = good_hello();

		pages[n] = memory(JOB_PAGE_BYTES, SEALS);
		fds[n] = raw_connect(bed);
		raw_send(fds[n], &hello, sizeof(hello), pages[n]);
		assert_int_equal(raw_answer(bed, fds[n], reason), JOB_REFUSED);
		assert_non_null(strstr(reason, "has 32 processes already"));
	}
	for (uint32_t n = 0; n < 33; n++) {
		close(fds[n]);
		close(pages[n]);
	}
	settle(bed);
}

static void who_connects_and_says_nothing_is_disconnected(void **state) {
	struct bed *bed = *state;
	int fd = raw_connect(bed);
	char byte;

	settle(bed);
	for (int n = 0; n < 9; n++)
		look_again(bed);
	assert_int_equal(recv(fd, &byte, 1, 0), -1);
	for (int n = 0; n < 3; n++)
		look_again(bed);
	assert_int_equal(recv(fd, &byte, 1, 0), 0);
	close(fd);
}

// Return a socket of another program that listens at the path of the agent.
static int listen_in_its_place(const struct bed *bed) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	memcpy(address.sun_path, bed->path, strlen(bed->path) + 1);
	assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(fd, 1), 0);
	return fd;
}

static void a_socket_file_that_is_removed_is_made_again(void **state) {
	struct bed *bed = *state;
	int page = memory(JOB_PAGE_BYTES, SEALS), other, first = raw_greet(bed, page), second;
	struct job_register told = good_register(1);
	struct stat before, after;
	char reason[JOB_REASON_BYTES];

	assert_int_equal(unlink(bed->path), 0);
	look_again(bed);
	second = raw_connect(bed);
	settle(bed);
	raw_send(first, &told, sizeof(told), -1);
	assert_int_equal(raw_answer(bed, first, reason), JOB_REGISTERED);
	// Another program that listens there is left alone; once it is gone its file is replaced.
	assert_int_equal(unlink(bed->path), 0);
	other = listen_in_its_place(bed);
	assert_int_equal(lstat(bed->path, &before), 0);
	look_again(bed);
	look_again(bed);
	assert_int_equal(lstat(bed->path, &after), 0);
	assert_int_equal(after.st_ino, before.st_ino);
	close(other);
	look_again(bed);
	close(second);
	close(first);
	first = raw_greet(bed, page);
	close(first);
	close(page);
	settle(bed);
}

UNIT_GROUP(jobhost_greeting) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_greeting_that_is_not_right_is_refused_with_its_reason, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			a_communicator_that_cannot_be_is_refused_and_the_others_stay, setup,
			teardown
		),
		cmocka_unit_test_setup_teardown(
			a_program_replaced_by_exec_gives_its_rank_to_the_next_one, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			the_newest_version_that_both_sides_speak_is_used, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			a_library_of_version_1_is_refused_with_both_versions, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			packets_without_sense_end_the_connection_and_leave_nothing, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			a_flood_of_registrations_leaves_nothing_behind, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			a_process_may_die_behind_each_line_of_its_greeting, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			a_user_has_no_more_processes_than_allowed, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			who_connects_and_says_nothing_is_disconnected, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			a_socket_file_that_is_removed_is_made_again, setup, teardown
		),
	};

	return cmocka_run_group_tests_name("jobhost_greeting", tests, NULL, NULL);
}
