// SPDX-License-Identifier: BSD-3-Clause
// Malicious users of the job socket.
#include "control/jobs/host/jobhost_bed.h"

#include <tocsin/job.h>

#include <linux/fuse.h>
#include <linux/sched.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

static void an_empty_packet_leaves_no_descriptor_behind(void **state) {
	struct bed *bed = *state;
	int page = memory(JOB_PAGE_BYTES, SEALS);

	for (int n = 0; n < 8; n++) {
		int fd = raw_connect(bed);

		raw_send(fd, "", 0, page);
		settle(bed);
		close(fd);
	}
	close(page);
	settle(bed); // teardown counts descriptors
}

// A file with a slow server: it answers requests for the open file only after `refused`, or after
// a limit.
struct slow_file {
	int device;
	atomic_bool refused; // set by the test with release, read by the server with acquire
	bool waited;	     // the limit was reached
};

static void fuse_reply(int device, uint64_t unique, const void *body, size_t size) {
	char answer[sizeof(struct fuse_out_header) + 256] = "";
	struct fuse_out_header head = {(uint32_t)(sizeof(head) + size), 0, unique};

	memcpy(answer, &head, sizeof(head));
	if (size > 0)
		memcpy(answer + sizeof(head), body, size);
	(void)!write(device, answer, sizeof(head) + size);
}

static void fuse_hold(struct slow_file *file) {
	for (int n = 0; n < TURNS_MAX; n++) {
		if (atomic_load_explicit(&file->refused, memory_order_acquire))
			return;
		(void)poll(NULL, 0, 1);
	}
	file->waited = true;
}

// The root is a file. Returns when the file system is unmounted.
static void *fuse_serve(void *context) {
	struct slow_file *file = context;
	static const struct fuse_init_out init = {
		.major = FUSE_KERNEL_VERSION, .minor = 19, .max_write = 4096};
	static const struct fuse_attr_out attributes = {.attr = {.ino = 1, .mode = S_IFREG | 0644}};
	static const struct fuse_open_out open_file = {.fh = 1};
	_Alignas(uint64_t) char request[65536];
	bool is_open = false;

	while (read(file->device, request, sizeof(request)) > 0) {
		struct fuse_in_header head;

		memcpy(&head, request, sizeof(head));
		if (is_open && (head.opcode == FUSE_GETATTR || head.opcode == FUSE_FLUSH))
			fuse_hold(file);
		is_open = is_open || head.opcode == FUSE_OPEN;
		if (head.opcode == FUSE_INIT)
			fuse_reply(file->device, head.unique, &init, sizeof(init));
		else if (head.opcode == FUSE_GETATTR)
			fuse_reply(file->device, head.unique, &attributes, sizeof(attributes));
		else if (head.opcode == FUSE_OPEN)
			fuse_reply(file->device, head.unique, &open_file, sizeof(open_file));
		else
			fuse_reply(file->device, head.unique, NULL, 0);
	}
	return NULL;
}

// Returns false if FUSE is not available here.
static bool fuse_mount(struct slow_file *file, const char *path) {
	char options[64];
	int place = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);

	assert_true(place >= 0);
	close(place);
	file->device = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	if (file->device < 0)
		return false;
	snprintf(
		options, sizeof(options), "fd=%d,rootmode=100644,user_id=0,group_id=0", file->device
	);
	if (mount("slow", path, "fuse", MS_NOSUID | MS_NODEV, options) == 0)
		return true;
	close(file->device);
	return false;
}

static void a_file_whose_server_is_silent_does_not_stop_the_agent(void **state) {
	struct bed *bed = *state;
	const struct job_hello hello = good_hello();
	struct slow_file file = {.device = -1};
	char path[64], reason[JOB_REASON_BYTES];
	pthread_t server;
	int fd, slow;

	snprintf(path, sizeof(path), "%s/slow", bed->directory);
	if (!fuse_mount(&file, path)) {
		unlink(path);
		skip();
	}
	assert_int_equal(pthread_create(&server, NULL, fuse_serve, &file), 0);
	slow = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(slow >= 0);
	fd = raw_connect(bed);
	raw_send(fd, &hello, sizeof(hello), slow);
	assert_int_equal(raw_answer(bed, fd, reason), JOB_REFUSED);
	atomic_store_explicit(&file.refused, true, memory_order_release);
	close(slow);
	close(fd);
	assert_int_equal(umount2(path, MNT_DETACH), 0);
	assert_int_equal(pthread_join(server, NULL), 0);
	close(file.device);
	unlink(path);
	assert_false(file.waited);
}

static void who_only_connects_leaves_room_for_other_users(void **state) {
	struct bed *bed = *state;
	int fds[100];
	uint32_t held = 0;

	for (size_t n = 0; n < COUNT_OF(fds); n++) {
		fds[n] = raw_connect(bed);
		settle(bed);
	}
	for (size_t n = 0; n < COUNT_OF(fds); n++) {
		char byte;

		held += recv(fds[n], &byte, 1, 0) < 0;
		close(fds[n]);
	}
	assert_true(held >= bed->config.per_user_max);
	assert_true(held < bed->config.processes_max);
	settle(bed);
}

static void raw_register(struct bed *bed, int fd, const struct job_register *told) {
	char reason[JOB_REASON_BYTES];

	raw_send(fd, told, sizeof(*told), -1);
	assert_int_equal(raw_answer(bed, fd, reason), JOB_REGISTERED);
	assert_int_equal(raw_answer(bed, fd, reason), JOB_FAILED);
}

// Send a report of lost ranks as if from the job: `count` ranks from `first` on, in several
// packets, optionally in reverse order.
static void raw_return(struct bed *bed, int fd, uint32_t count, bool backwards) {
	struct job_failed said = {
		.head = {JOB_SOCKET_MAGIC, JOB_SOCKET_VERSION, JOB_FAILED},
		.comm = 1,
		.view = 5,
		.total = count,
		.count = JOB_FAILED_MAX,
	};

	for (uint32_t n = 0; n < count / JOB_FAILED_MAX; n++) {
		said.first = (backwards ? count / JOB_FAILED_MAX - 1 - n : n) * JOB_FAILED_MAX;
		for (uint32_t at = 0; at < JOB_FAILED_MAX; at++)
			said.ranks[at] = 10 + said.first + at;
		raw_send(fd, &said, sizeof(said), -1);
		turn(bed, 0);
	}
	settle(bed);
}

static void who_reads_late_that_a_thousand_are_gone_stays_connected(void **state) {
	struct bed *bed = *state;
	int page = memory(JOB_PAGE_BYTES, SEALS), fd = raw_greet(bed, page);
	struct job_register told = good_register(1);
	char packet[sizeof(struct job_failed)];
	uint32_t heard = 0;

	told.size = 4096;
	raw_register(bed, fd, &told);
	raw_return(bed, fd, 4 * JOB_FAILED_MAX, false);
	raw_send(fd, &told, sizeof(told), -1); // registers again, so the report starts again
	for (int n = 0; n < 200; n++) {
		settle(bed);
		while (recv(fd, packet, sizeof(packet), 0) > 0)
			heard++;
		assert_int_equal(errno, EAGAIN);
	}
	assert_true(heard > 8);
	close(fd);
	close(page);
	settle(bed);
}

static void a_job_that_says_all_are_gone_fills_a_bounded_set(void **state) {
	struct bed *bed = *state;
	int page = memory(JOB_PAGE_BYTES, SEALS), fd = raw_greet(bed, page);
	struct job_register told = good_register(1);

	told.size = JOB_COMM_SIZE_MAX;
	raw_register(bed, fd, &told);
	raw_return(bed, fd, 400 * JOB_FAILED_MAX, true);
	assert_int_equal(jobhost_counters(bed->host)->gone, 65536);
	close(fd);
	close(page);
	settle(bed);
}

static void what_one_job_says_floods_the_cluster_within_a_limit(void **state) {
	struct bed *bed = *state;
	int page = memory(JOB_PAGE_BYTES, SEALS), fd = raw_greet(bed, page);
	struct job_register told = good_register(1);

	told.size = JOB_COMM_SIZE_MAX;
	raw_register(bed, fd, &told);
	// Parts in this order restore no number, so the agent tells all others each rank.
	raw_return(bed, fd, 40 * JOB_FAILED_MAX, true);
	for (int n = 0; n < 4; n++)
		look_again(bed);
	assert_true(jobhost_counters(bed->host)->notices >= 1024);
	assert_true(jobhost_counters(bed->host)->notices <= 1024 + 4 * 256);
	close(fd);
	close(page);
	settle(bed);
}

// Return how many ranks of the agreed set with the number 5 the agent sends to the job.
static uint32_t ranks_agreed_again(struct bed *bed, bool backwards) {
	int page = memory(JOB_PAGE_BYTES, SEALS), fd = raw_greet(bed, page);
	struct job_register told = good_register(1);
	struct job_failed part;
	uint32_t ranks = 0;
	ssize_t size;

	told.size = 4096;
	raw_register(bed, fd, &told);
	raw_return(bed, fd, 3 * JOB_FAILED_MAX, backwards);
	for (int n = 0; n < 200; n++) {
		settle(bed);
		while ((size = recv(fd, &part, sizeof(part), 0)) > 0) {
			if (size != (ssize_t)sizeof(part) || part.head.kind != JOB_FAILED ||
			    part.view != 5)
				continue;
			assert_int_equal(part.agreement, TOCSIN_AGREED);
			assert_int_equal(part.total, 3 * JOB_FAILED_MAX);
			assert_int_equal(part.first, ranks);
			for (uint32_t at = 0; at < part.count; at++)
				assert_int_equal(part.ranks[at], 10 + part.first + at);
			ranks += part.count;
		}
	}
	assert_int_equal(jobhost_counters(bed->host)->gone, 3 * JOB_FAILED_MAX);
	close(fd);
	close(page);
	settle(bed);
	return ranks;
}

static void a_set_that_is_returned_in_parts_keeps_its_number(void **state) {
	assert_int_equal(ranks_agreed_again(*state, false), 3 * JOB_FAILED_MAX);
}

static void a_set_whose_parts_come_backwards_gets_no_number(void **state) {
	assert_int_equal(ranks_agreed_again(*state, true), 0);
}

static void a_returned_set_without_order_ends_the_connection(void **state) {
	static const uint32_t sets[][2] = {{3, 2}, {3, 3}, {3, 8}};
	struct bed *bed = *state;
	int page = memory(JOB_PAGE_BYTES, SEALS);

	for (size_t n = 0; n < COUNT_OF(sets); n++) {
		int fd = raw_greet(bed, page);
		struct job_register told = good_register(1);
		struct job_failed said = {
			.head = {JOB_SOCKET_MAGIC, JOB_SOCKET_VERSION, JOB_FAILED},
			.comm = 1,
			.view = 5,
			.total = 2,
			.count = 2,
			.ranks = {sets[n][0], sets[n][1]},
		};
		char reason[JOB_REASON_BYTES];

		raw_register(bed, fd, &told);
		raw_send(fd, &said, sizeof(said), -1);
		assert_int_equal(raw_answer(bed, fd, reason), JOB_REFUSED);
		assert_non_null(strstr(reason, "ascend"));
		assert_int_equal(jobhost_counters(bed->host)->gone, 0);
		close(fd);
	}
	close(page);
	settle(bed);
}

static void a_user_has_eight_ranks_for_each_process_it_may_have(void **state) {
	struct bed *bed = *state;
	int pages[3], fds[3];
	uint32_t refused = 0;

	for (size_t n = 0; n < COUNT_OF(fds); n++) {
		pages[n] = memory(JOB_PAGE_BYTES, SEALS);
		fds[n] = raw_greet(bed, pages[n]);
		for (uint32_t rank = 0; rank < 100; rank++) {
			struct job_register told = good_register(1 + rank);
			char reason[JOB_REASON_BYTES];

			told.comm_hash = 1000 * n + rank;
			raw_send(fds[n], &told, sizeof(told), -1);
			refused += raw_answer(bed, fds[n], reason) == JOB_REFUSED;
			while (raw_answer(bed, fds[n], reason) != 0) {
			}
		}
	}
	assert_int_equal(refused, 300 - 8 * bed->config.per_user_max);
	for (size_t n = 0; n < COUNT_OF(fds); n++) {
		close(fds[n]);
		close(pages[n]);
	}
	settle(bed);
}

static void what_was_given_back_while_disconnected_is_forgotten(void **state) {
	struct bed *bed = *state;
	int page = memory(JOB_PAGE_BYTES, SEALS), fd = raw_greet(bed, page);
	struct job_register told = good_register(1);
	const uint64_t number = 2;

	raw_register(bed, fd, &told);
	told.comm = number;
	told.comm_hash++;
	raw_register(bed, fd, &told);
	assert_int_equal(
		pwrite(page, &(uint32_t){1}, sizeof(uint32_t),
		       offsetof(struct job_page, head.slots_used)),
		sizeof(uint32_t)
	);
	assert_int_equal(
		pwrite(page, &number, sizeof(number), offsetof(struct job_page, launched)),
		sizeof(number)
	);
	close(fd);
	look_again(bed);
	assert_int_equal(ranks_shown(bed), 2);
	fd = raw_greet(bed, page);
	look_again(bed);
	assert_int_equal(ranks_shown(bed), 1); // the one that is in the page
	close(fd);
	close(page);
	settle(bed);
}

static uint64_t monotonic_ns(void) {
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * SECOND + (uint64_t)now.tv_nsec;
}

// A turn ends early only if there is work.
static void without_descriptors_the_loop_sleeps_and_then_goes_on(void **state) {
	struct bed *bed = *state;
	int page = memory(JOB_PAGE_BYTES, SEALS), fd;
	const struct job_hello hello = good_hello();
	char reason[JOB_REASON_BYTES];
	struct rlimit before, none;
	uint64_t began_ns;

	settle(bed);
	fd = raw_connect(bed);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	none = (struct rlimit){0, before.rlim_max};
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
	turn(bed, 0);
	began_ns = monotonic_ns();
	turn(bed, 50);
	turn(bed, 50);
	assert_true(monotonic_ns() - began_ns >= SECOND / 20);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	look_again(bed);
	raw_send(fd, &hello, sizeof(hello), page);
	assert_int_equal(raw_answer(bed, fd, reason), JOB_WELCOME);
	close(fd);
	close(page);
	settle(bed);
}

// Start a sleeping process of our user with this pid. Returns -1 if the pid cannot be chosen
// here.
static pid_t process_of_number(pid_t number) {
	struct clone_args how = {
		.exit_signal = SIGCHLD,
		.set_tid = (uint64_t)(uintptr_t)&number,
		.set_tid_size = 1,
	};
	pid_t pid = (pid_t)syscall(SYS_clone3, &how, sizeof(how));

	if (pid == 0) {
		(void)pause();
		_exit(0);
	}
	return pid;
}

static void a_socket_of_a_dead_process_follows_no_other_users_process(void **state) {
	struct bed *bed = *state;
	int page = memory(JOB_PAGE_BYTES, SEALS), status;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	struct job_hello hello = good_hello();
	char reason[JOB_REASON_BYTES] = "";
	pid_t dead = fork(), other;
	int answer;

	assert_true(dead >= 0);
	if (dead == 0) {
		struct sockaddr_un address = {.sun_family = AF_UNIX};

		memcpy(address.sun_path, bed->path, strlen(bed->path) + 1);
		_exit(setuid(65534) != 0 ||
		      connect(fd, (const struct sockaddr *)&address, sizeof(address)) != 0);
	}
	assert_int_equal(waitpid(dead, &status, 0), dead);
	other = status == 0 ? process_of_number(dead) : -1;
	if (other != dead) {
		close(fd);
		close(page);
		settle(bed);
		skip();
	}
	hello.start_time = start_time_of(other);
	raw_send(fd, &hello, sizeof(hello), page);
	answer = raw_answer(bed, fd, reason);
	assert_int_equal(kill(other, SIGKILL), 0);
	assert_int_equal(waitpid(other, &status, 0), other);
	assert_int_equal(answer, JOB_REFUSED);
	assert_non_null(strstr(reason, "does not belong to user 65534"));
	close(fd);
	close(page);
	settle(bed);
}

// The test itself holds the child's two sockets and memory, as a grandchild might.
static void who_has_ended_and_is_waited_for_is_greeted_no_more(void **state) {
	struct bed *bed = *state;
	const struct job_parent parent = {
		.head = {JOB_SOCKET_MAGIC, JOB_SOCKET_VERSION, JOB_PARENT}};
	const struct job_failed failed = {
		.head = {JOB_SOCKET_MAGIC, JOB_SOCKET_VERSION, JOB_FAILED}, .comm = 1, .view = 1};
	const struct job_register rank = good_register(1);
	struct job_hello hello = good_hello();
	int page = memory(JOB_PAGE_BYTES, SEALS), parent_fd = raw_connect(bed);
	char reason[JOB_REASON_BYTES];
	int fds[2], ready[2];
	pid_t pid;

	assert_int_equal(pipe2(ready, O_CLOEXEC), 0);
	for (int n = 0; n < 2; n++)
		fds[n] = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		struct sockaddr_un address = {.sun_family = AF_UNIX};

		memcpy(address.sun_path, bed->path, strlen(bed->path) + 1);
		for (int n = 0; n < 2; n++)
			if (connect(fds[n], (const struct sockaddr *)&address, sizeof(address)))
				_exit(1);
		(void)!write(ready[1], "c", 1);
		for (;;)
			(void)pause();
	}
	assert_int_equal(read(ready[0], reason, 1), 1);
	raw_send(parent_fd, &parent, sizeof(parent), -1);
	hello.start_time = start_time_of(pid);
	raw_send(fds[0], &hello, sizeof(hello), page);
	assert_int_equal(raw_answer(bed, fds[0], reason), JOB_WELCOME);
	raw_send(fds[0], &rank, sizeof(rank), -1);
	assert_int_equal(raw_answer(bed, fds[0], reason), JOB_REGISTERED);
	assert_int_equal(kill(pid, SIGKILL), 0);
	for (int n = 0; n < 100; n++)
		turn(bed, 1);
	raw_send(fds[1], &hello, sizeof(hello), page);
	settle(bed);
	look_again(bed); // the parent has not reported it, but it has ended
	raw_send(fds[1], &failed, sizeof(failed), -1);
	settle(bed);
	assert_int_equal(jobhost_counters(bed->host)->processes, 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	for (int n = 0; n < 2; n++) {
		close(fds[n]);
		close(ready[n]);
	}
	close(parent_fd);
	close(page);
	settle(bed);
}

UNIT_GROUP(jobhost_hostile) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			an_empty_packet_leaves_no_descriptor_behind, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			a_file_whose_server_is_silent_does_not_stop_the_agent, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			who_only_connects_leaves_room_for_other_users, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			who_reads_late_that_a_thousand_are_gone_stays_connected, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			a_job_that_says_all_are_gone_fills_a_bounded_set, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			what_one_job_says_floods_the_cluster_within_a_limit, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			a_set_that_is_returned_in_parts_keeps_its_number, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			a_set_whose_parts_come_backwards_gets_no_number, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			a_returned_set_without_order_ends_the_connection, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			a_user_has_eight_ranks_for_each_process_it_may_have, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			what_was_given_back_while_disconnected_is_forgotten, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			without_descriptors_the_loop_sleeps_and_then_goes_on, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			a_socket_of_a_dead_process_follows_no_other_users_process, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			who_has_ended_and_is_waited_for_is_greeted_no_more, setup, teardown
		),
	};

	return cmocka_run_group_tests_name("jobhost_hostile", tests, NULL, NULL);
}
