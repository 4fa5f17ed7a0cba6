// SPDX-License-Identifier: BSD-3-Clause
// The agent's side of jobs: real processes and memory, a socket of its own, a clock that is turned.
#include "control/jobhost/jobhost_bed.h"

#include <tocsin/job.h>

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>

// A process of its own that holds a rank, by the real library; it does what it is told by letters
// on a pipe, and answers each with one.
struct child {
	pid_t pid;
	int order, answer;
};

struct member {
	struct tocsin_job *job;
	struct tocsin_comm *comm;
};

static struct member member_open(struct bed *bed, uint32_t rank, uint32_t size) {
	struct tocsin_job_config job = {
		.struct_size = sizeof(job),
		.socket_path = bed->path,
		.job_id = "test:1",
		.flags = TOCSIN_JOB_NO_THREAD,
	};
	struct tocsin_comm_config comm;
	struct member member;

	assert_int_equal(tocsin_job_open(&job, &member.job), 0);
	tocsin_comm_config_init(&comm);
	comm.comm_hash = 77;
	comm.size = size;
	comm.rank = rank;
	comm.flags = TOCSIN_COMM_ABORTS | TOCSIN_COMM_TIMES;
	comm.name = "test";
	assert_int_equal(tocsin_comm_register(member.job, &comm, &member.comm), 0);
	return member;
}

static bool is_known(const struct member *member) {
	return tocsin_comm_state(member->comm, NULL, 0) == TOCSIN_JOB_CONNECTED;
}

static void member_connect(struct bed *bed, struct member *member) {
	for (int n = 0; n < TURNS_MAX && !is_known(member); n++) {
		assert_int_equal(tocsin_job_poll(member->job), 0);
		turn(bed, 1);
	}
	assert_true(is_known(member));
}

static void member_close(struct bed *bed, struct member *member) {
	tocsin_job_close(member->job);
	settle(bed);
}

static void say_much(const struct member *member) {
	struct tocsin_comm_config config;
	struct tocsin_comm *comm;

	tocsin_comm_config_init(&config);
	config.size = 1;
	for (uint64_t n = 0; n < 60; n++) {
		config.comm_hash = 1000 + n;
		(void)tocsin_comm_register(member->job, &config, &comm);
	}
	(void)tocsin_job_poll(member->job);
}

static void child_main(struct bed *bed, uint32_t rank, uid_t uid, int order, int answer) {
	struct member member;
	char letter;

	if (uid != 0 && setuid(uid) != 0)
		_exit(9);
	member = member_open(bed, rank, 4);
	while (!is_known(&member)) {
		struct pollfd wait = {.fd = -1};

		(void)tocsin_job_poll(member.job);
		(void)poll(&wait, 1, 1);
	}
	(void)!write(answer, "k", 1);
	for (;;) {
		struct pollfd wait = {.fd = order, .events = POLLIN};

		(void)tocsin_job_poll(member.job);
		if (poll(&wait, 1, 1) == 0)
			continue;
		if (read(order, &letter, 1) != 1)
			_exit(0);
		switch (letter) {
		case 'c': // count
			tocsin_comm_launched(member.comm, TOCSIN_ALL_REDUCE, 5, 7, -1);
			break;
		case 'f': // finalize
			(void)tocsin_comm_mark(member.comm, TOCSIN_MARK_FINALIZED, 1);
			break;
		case 'l': // leave
			tocsin_job_close(member.job);
			break;
		case 'm': // say more than is read in a turn, and leave
			say_much(&member);
			tocsin_job_close(member.job);
			break;
		case 'u': // give the communicator back, and say so to nobody
			tocsin_comm_unregister(member.comm);
			break;
		default:
			_exit(letter);
		}
		(void)!write(answer, &letter, 1);
		if (letter == 'l' || letter == 'm' || letter == 'u')
			_exit(0);
	}
}

static struct child child_start(struct bed *bed, uint32_t rank, uid_t uid) {
	struct child child;
	int order[2], answer[2];
	char letter;
	ssize_t got = -1;

	assert_int_equal(pipe(order), 0);
	assert_int_equal(pipe2(answer, O_NONBLOCK), 0);
	child.pid = fork();
	assert_true(child.pid >= 0);
	if (child.pid == 0) {
		// Of the agent, which is its parent here, it keeps nothing open.
		for (int fd = 3; fd < 256; fd++)
			if (fd != order[0] && fd != answer[1])
				close(fd);
		child_main(bed, rank, uid, order[0], answer[1]);
	}
	close(order[0]);
	close(answer[1]);
	child.order = order[1];
	child.answer = answer[0];
	for (int n = 0; n < TURNS_MAX && got != 1; n++) {
		turn(bed, 1);
		got = read(child.answer, &letter, 1);
	}
	assert_int_equal(got, 1);
	return child;
}

static void child_do(struct child *child, char letter) {
	struct pollfd wait = {.fd = child->answer, .events = POLLIN};
	char answer;

	assert_int_equal(write(child->order, &letter, 1), 1);
	assert_int_equal(poll(&wait, 1, 10000), 1);
	assert_int_equal(read(child->answer, &answer, 1), 1);
}

// Ends by the signal, or by itself; until the agent knows it.
static void child_end(struct bed *bed, struct child *child, int signal) {
	uint64_t exits = jobhost_counters(bed->host)->exits;
	uint32_t processes = jobhost_counters(bed->host)->processes;
	int status;

	if (signal != 0)
		assert_int_equal(kill(child->pid, signal), 0);
	close(child->order);
	close(child->answer);
	for (int n = 0; n < TURNS_MAX && jobhost_counters(bed->host)->exits == exits &&
			jobhost_counters(bed->host)->processes == processes;
	     n++)
		turn(bed, 1);
	assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
	settle(bed);
}

// The next event, if there is one.
static bool next_event(struct bed *bed, struct member *member, struct tocsin_event *ret_event) {
	settle(bed);
	(void)tocsin_job_poll(member->job);
	return tocsin_job_next_event(member->job, ret_event) == 0;
}

static bool is_zombie(pid_t pid) {
	siginfo_t end = {0};

	return waitid(P_PID, (id_t)pid, &end, WEXITED | WNOWAIT | WNOHANG) == 0 &&
	       end.si_pid == pid;
}

static struct tocsin_failed_set failed_of(struct member *member, uint32_t ranks[static 4]) {
	struct tocsin_failed_set set = {.struct_size = sizeof(set)};

	assert_int_equal(tocsin_comm_failed(member->comm, &set, ranks, 4), 0);
	return set;
}

static void a_member_that_is_killed_is_told_to_who_survives(void **state) {
	struct bed *bed = *state;
	struct member self = member_open(bed, 0, 4);
	struct child child;
	struct tocsin_event event;
	struct tocsin_failed_set set;
	uint32_t ranks[4];

	member_connect(bed, &self);
	child = child_start(bed, 3, 0);
	assert_false(tocsin_comm_should_abort(self.comm));
	assert_false(next_event(bed, &self, &event));
	child_end(bed, &child, SIGKILL);
	assert_true(next_event(bed, &self, &event));
	assert_int_equal(event.kind, TOCSIN_PEER_GONE);
	assert_int_equal(event.rank, 3);
	assert_non_null(strstr(event.text, "signal 9"));
	assert_true(tocsin_comm_should_abort(self.comm));
	set = failed_of(&self, ranks);
	assert_int_equal(set.agreement, TOCSIN_AGREED);
	assert_int_equal(set.count, 1);
	assert_int_equal(ranks[0], 3);
	assert_int_equal(set.view, event.view);
	assert_int_equal(tocsin_comm_wait_failed(self.comm, 0, 0), 0);
	assert_true(next_event(bed, &self, &event));
	assert_int_equal(event.kind, TOCSIN_COMM_SHOULD_ABORT);
	assert_false(next_event(bed, &self, &event));
	member_close(bed, &self);
}

static int parent_open(struct bed *bed) {
	const struct job_parent parent = {
		.head = {JOB_SOCKET_MAGIC, JOB_SOCKET_VERSION, JOB_PARENT}};
	int fd = raw_connect(bed);

	raw_send(fd, &parent, sizeof(parent), -1);
	settle(bed);
	return fd;
}

static void parent_says(struct bed *bed, int fd, uint32_t cause, int value) {
	const struct job_exited exited = {
		.head = {JOB_SOCKET_MAGIC, JOB_SOCKET_VERSION, JOB_EXITED},
		.cause = cause,
		.value = value,
	};

	raw_send(fd, &exited, sizeof(exited), -1);
	settle(bed);
}

static void kill_and_turn(struct bed *bed, const struct child *child) {
	assert_int_equal(kill(child->pid, SIGKILL), 0);
	for (int n = 0; n < 100; n++)
		turn(bed, 1);
}

static void a_parent_says_how_its_child_ended(void **state) {
	struct bed *bed = *state;
	struct member self = member_open(bed, 0, 4);
	int parent = parent_open(bed);
	struct child child;
	struct tocsin_event event;

	member_connect(bed, &self);
	child = child_start(bed, 3, 0);
	kill_and_turn(bed, &child);
	assert_false(next_event(bed, &self, &event)); // its parent is waited for
	parent_says(bed, parent, JOB_EXIT_MEMORY, SIGKILL);
	child_end(bed, &child, 0);
	assert_true(next_event(bed, &self, &event));
	assert_int_equal(event.kind, TOCSIN_PEER_GONE);
	assert_non_null(strstr(event.text, "want of memory"));
	close(parent);
	member_close(bed, &self);
}

static void a_parent_that_says_nothing_is_waited_for_a_moment(void **state) {
	struct bed *bed = *state;

	for (int closes = 0; closes < 2; closes++) {
		struct member self = member_open(bed, 0, 4);
		int parent = parent_open(bed);
		struct child child;
		struct tocsin_event event;

		member_connect(bed, &self);
		child = child_start(bed, 3, 0);
		kill_and_turn(bed, &child);
		assert_false(next_event(bed, &self, &event));
		if (closes == 1)
			close(parent);
		else
			clock_advance(&bed->clock, SECOND);
		child_end(bed, &child, 0);
		assert_true(next_event(bed, &self, &event));
		assert_non_null(strstr(event.text, "signal 9"));
		if (closes == 0)
			close(parent);
		member_close(bed, &self);
		look_again(bed);
	}
}

static void who_is_no_parent_is_not_believed(void **state) {
	struct bed *bed = *state;
	struct member self = member_open(bed, 0, 4);
	struct child child;
	struct tocsin_event event;
	int stranger[2], fd;
	char letter;
	pid_t pid;

	member_connect(bed, &self);
	child = child_start(bed, 3, 0);
	fd = raw_connect(bed);
	parent_says(bed, fd, JOB_EXIT_MEMORY, SIGKILL); // without a greeting
	close(fd);
	assert_int_equal(pipe(stranger), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		const struct job_parent parent = {
			.head = {JOB_SOCKET_MAGIC, JOB_SOCKET_VERSION, JOB_PARENT}};
		const struct job_exited exited = {
			.head = {JOB_SOCKET_MAGIC, JOB_SOCKET_VERSION, JOB_EXITED},
			.cause = JOB_EXIT_MEMORY,
			.value = SIGKILL,
		};

		fd = raw_connect(bed);
		raw_send(fd, &parent, sizeof(parent), -1);
		raw_send(fd, &exited, sizeof(exited), -1);
		(void)!write(stranger[1], "d", 1);
		for (;;)
			pause();
	}
	assert_int_equal(read(stranger[0], &letter, 1), 1);
	settle(bed);
	child_end(bed, &child, SIGKILL);
	assert_true(next_event(bed, &self, &event));
	assert_non_null(strstr(event.text, "signal 9"));
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	close(stranger[0]);
	close(stranger[1]);
	member_close(bed, &self);
}

// A callback that does not return until it is told.
struct slow_callback {
	atomic_bool began, over; // set with release, read with acquire by the other thread
};

static void wait_in_callback(void *context, const struct tocsin_event *event) {
	struct slow_callback *slow = context;

	(void)event;
	atomic_store_explicit(&slow->began, true, memory_order_release);
	while (!atomic_load_explicit(&slow->over, memory_order_acquire))
		(void)poll(NULL, 0, 1);
}

static void a_child_waits_for_no_callback_of_its_parent(void **state) {
	struct bed *bed = *state;
	struct slow_callback slow = {false, false};
	struct tocsin_job_config config = {
		.struct_size = sizeof(config),
		.socket_path = bed->path,
		.event = wait_in_callback,
		.event_context = &slow,
	};
	struct child child = child_start(bed, 2, 0);
	struct tocsin_comm_config comm_config;
	struct tocsin_comm *comm;
	struct tocsin_job *job;
	int status;
	pid_t forked;

	assert_int_equal(tocsin_job_open(&config, &job), 0);
	tocsin_comm_config_init(&comm_config);
	comm_config.comm_hash = 77;
	comm_config.size = 4;
	comm_config.rank = 1;
	assert_int_equal(tocsin_comm_register(job, &comm_config, &comm), 0);
	for (int n = 0; n < TURNS_MAX && jobhost_count(bed->host) < 2; n++)
		turn(bed, 1);
	assert_int_equal(jobhost_count(bed->host), 2);
	child_end(bed, &child, SIGKILL);
	for (int n = 0; n < TURNS_MAX && !atomic_load_explicit(&slow.began, memory_order_acquire);
	     n++)
		turn(bed, 1);
	assert_true(atomic_load_explicit(&slow.began, memory_order_acquire));
	forked = fork();
	assert_true(forked >= 0);
	if (forked == 0) {
		alarm(10);
		tocsin_comm_unregister(comm);
		tocsin_job_close(job);
		_exit(0);
	}
	assert_int_equal(waitpid(forked, &status, 0), forked);
	assert_int_equal(status, 0);
	atomic_store_explicit(&slow.over, true, memory_order_release);
	tocsin_comm_unregister(comm);
	tocsin_job_close(job);
	settle(bed);
}

static void who_leaves_or_has_finalized_is_not_gone(void **state) {
	static const char letters[] = "lf";
	struct bed *bed = *state;
	struct member self = member_open(bed, 0, 4);
	struct tocsin_event event;

	member_connect(bed, &self);
	for (size_t n = 0; n < strlen(letters); n++) {
		struct child child = child_start(bed, 1, 0);

		child_do(&child, letters[n]);
		child_end(bed, &child, letters[n] == 'f' ? SIGKILL : 0);
		assert_false(next_event(bed, &self, &event));
	}
	assert_false(tocsin_comm_should_abort(self.comm));
	member_close(bed, &self);
}

// Its last words lie in the socket still when its end is seen, or the page alone has them.
static void who_leaves_while_the_agent_is_busy_is_not_gone(void **state) {
	static const char letters[] = "mu";
	struct bed *bed = *state;
	struct member self = member_open(bed, 0, 4);
	struct tocsin_event event;

	member_connect(bed, &self);
	for (size_t n = 0; n < strlen(letters); n++) {
		struct child child = child_start(bed, 1, 0);

		look_again(bed);
		child_do(&child, letters[n]);
		while (!is_zombie(child.pid))
			(void)poll(NULL, 0, 1);
		child_end(bed, &child, 0);
		assert_false(next_event(bed, &self, &event));
	}
	assert_false(tocsin_comm_should_abort(self.comm));
	assert_int_equal(jobhost_counters(bed->host)->gone, 0);
	member_close(bed, &self);
}

// The kernel tells of what was unread before it gives what was said.
static void who_leaves_without_reading_all_is_not_gone(void **state) {
	struct bed *bed = *state;
	struct member self = member_open(bed, 0, 4), other = member_open(bed, 1, 4);
	struct child child;
	struct tocsin_event event;

	member_connect(bed, &self);
	member_connect(bed, &other);
	child = child_start(bed, 3, 0);
	child_end(bed, &child, SIGKILL);
	tocsin_job_close(other.job); // which has not read that 3 is gone
	settle(bed);
	assert_int_equal(jobhost_counters(bed->host)->ranks, 1);
	while (next_event(bed, &self, &event))
		assert_int_not_equal(event.rank, 1);
	member_close(bed, &self);
}

static void who_restarts_the_agent_tells_nobody_gone_and_forgets_nobody(void **state) {
	struct bed *bed = *state;
	struct member self = member_open(bed, 0, 4);
	struct child first, second;
	struct tocsin_event event;
	struct tocsin_failed_set before, after;
	uint32_t ranks[4];

	member_connect(bed, &self);
	first = child_start(bed, 1, 0);
	second = child_start(bed, 2, 0);
	child_end(bed, &first, SIGKILL);
	while (next_event(bed, &self, &event)) {
	}
	before = failed_of(&self, ranks);
	assert_int_equal(before.count, 1);

	jobhost_destroy(bed->host);
	(void)tocsin_job_poll(self.job);
	assert_int_equal(failed_of(&self, ranks).agreement, TOCSIN_UNDECIDED);
	host_start(bed);
	member_connect(bed, &self);
	assert_false(next_event(bed, &self, &event));
	for (int n = 0; n < TURNS_MAX && jobhost_count(bed->host) < 2; n++)
		turn(bed, 1);
	settle(bed);
	child_end(bed, &second, SIGKILL);
	assert_true(next_event(bed, &self, &event));
	assert_int_equal(event.rank, 2);
	after = failed_of(&self, ranks);
	assert_true(after.view > before.view);
	assert_int_equal(after.agreement, TOCSIN_AGREED);
	assert_int_equal(after.count, 2);
	assert_int_equal(ranks[0], 1);
	assert_int_equal(ranks[1], 2);
	member_close(bed, &self);
}

static struct jobs_rank_report report_of(struct bed *bed, uint32_t rank) {
	struct jobs_rank_report report;

	for (uint32_t n = 0; jobhost_at(bed->host, n, &report) == 0; n++)
		if (report.rank == rank)
			return report;
	fail_msg("no report of rank %u", rank);
	return report;
}

static void the_evidence_of_who_was_killed_stays_and_is_bounded(void **state) {
	struct bed *bed = *state;
	struct jobs_rank_report report;

	for (uint32_t n = 0; n < 6; n++) {
		struct child child = child_start(bed, 2, 0);

		child_do(&child, 'c');
		child_do(&child, 'c');
		child_end(bed, &child, SIGKILL);
	}
	report = report_of(bed, 2);
	assert_int_equal(report.launched, 2);
	assert_int_equal(report.launched_of[JOBS_ALL_REDUCE], 2);
	assert_int_equal(report.signature_count, 2);
	assert_int_equal(report.signatures[1].seq, 2);
	assert_int_equal(report.signatures[1].count, 5);
	assert_int_equal(report.process_state, JOBS_PROCESS_EXITED);
	assert_int_equal(report.exit_cause, JOBS_EXIT_SIGNAL);
	assert_int_equal(report.exit_value, SIGKILL);
	assert_string_equal(report.job_id, "test:1");
	assert_int_equal(jobhost_count(bed->host), bed->config.keep_max);
	clock_advance(&bed->clock, bed->config.keep_ns);
	settle(bed);
	assert_int_equal(jobhost_count(bed->host), 0);
}

static void a_real_time_signal_is_told_by_its_number(void **state) {
	struct bed *bed = *state;
	struct member self = member_open(bed, 0, 4);
	struct child child;
	struct tocsin_event event;

	member_connect(bed, &self);
	child = child_start(bed, 3, 0);
	child_end(bed, &child, SIGRTMIN + 3);
	assert_true(next_event(bed, &self, &event));
	assert_non_null(strstr(event.text, "(a real-time signal)"));
	member_close(bed, &self);
}

static void a_user_with_many_dead_leaves_others_their_evidence(void **state) {
	struct bed *bed = *state;
	struct jobs_rank_report report;
	uint32_t of_other = 0;

	if (geteuid() != 0)
		skip();
	for (uint32_t n = 0; n < 8; n++) {
		struct child child = child_start(bed, 2, n < 2 ? 12345 : 0);

		child_end(bed, &child, SIGKILL);
	}
	assert_int_equal(jobhost_count(bed->host), bed->config.keep_max);
	for (uint32_t n = 0; jobhost_at(bed->host, n, &report) == 0; n++)
		of_other += report.uid == 12345;
	assert_int_equal(of_other, bed->config.keep_max / 2);
}

static void another_users_communicator_of_the_same_key_is_another_one(void **state) {
	struct bed *bed = *state;
	struct member self;
	struct child child;
	struct tocsin_event event;

	if (geteuid() != 0)
		skip();
	self = member_open(bed, 0, 4);
	member_connect(bed, &self);
	child = child_start(bed, 1, 65534);
	child_end(bed, &child, SIGKILL);
	assert_int_equal(jobhost_counters(bed->host)->exits, 1);
	assert_false(next_event(bed, &self, &event));
	assert_false(tocsin_comm_should_abort(self.comm));
	member_close(bed, &self);
}

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
		uint64_t late; // of the start time
		uint16_t kind; // of the answer
		const char *reason;
	} rows[] = {
		{PASS_GOOD, 1, 0, JOB_WELCOME, ""},
		{PASS_NOTHING, 1, 0, JOB_REFUSED, "no memory"},
		{PASS_SMALL, 1, 0, JOB_REFUSED, "size"},
		{PASS_LARGE, 1, 0, JOB_REFUSED, "size"},
		{PASS_UNSEALED, 1, 0, JOB_REFUSED, "sealed"},
		{PASS_GROWING, 1, 0, JOB_REFUSED, "sealed"},
		{PASS_FILE, 1, 0, JOB_REFUSED, "no memory file"},
		{PASS_PIPE, 1, 0, JOB_REFUSED, "no memory file"},
		{PASS_GOOD, 2, 0, JOB_REFUSED, "version 2"},
		{PASS_GOOD, 0, 0, JOB_REFUSED, "version 0"},
		{PASS_GOOD, 1, 1, JOB_REFUSED, "another time"},
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
		{5, 8, 8, "below the size"},  {1, 8, 2, "used already"},
		{6, 8, 1, "held by process"}, // one rank twice
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
		assert_int_equal(jobhost_count(bed->host), 1);
	}
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
		assert_int_equal(recv(fd, reason, sizeof(reason), 0), 0); // and closed
		close(fd);
	}
	close(page);
	settle(bed);
}

// What a hostile thread does to its page while the agent looks.
struct vandal {
	int page;
	_Atomic uint64_t *words;
	atomic_bool over;
};

static void *scribble(void *context) {
	struct vandal *vandal = context;
	uint64_t random = 88172645463325252u;

	while (!atomic_load_explicit(&vandal->over, memory_order_acquire)) {
		for (int n = 0; n < 5000; n++) {
			random ^= random << 13;
			random ^= random >> 7;
			random ^= random << 17;
			// Often the number of the communicator, so that rows count.
			atomic_store_explicit(
				&vandal->words[random % (JOB_PAGE_BYTES / 8)],
				random % 3 == 0 ? 1 : random, memory_order_relaxed
			);
		}
		(void)fallocate(
			vandal->page, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
			(off_t)(random % 70) * 4096, 8192
		);
	}
	return NULL;
}

static bool is_whole(const struct jobs_rank_report *report) {
	bool whole = report->completed <= report->started && report->started <= report->launched &&
		     report->signature_count <= JOBS_SIGNATURES;

	for (uint32_t n = 0; n < JOBS_KINDS; n++)
		whole = whole && report->completed_of[n] <= report->started_of[n] &&
			report->started_of[n] <= report->launched_of[n];
	for (uint32_t n = 0; n < report->signature_count; n++)
		whole = whole && report->signatures[n].kind < JOBS_KINDS;
	return whole;
}

static void nonsense_and_holes_in_a_page_hurt_its_own_report_alone(void **state) {
	struct bed *bed = *state;
	int page = memory(JOB_PAGE_BYTES, SEALS), fd = raw_greet(bed, page);
	struct job_register good = good_register(1);
	struct vandal vandal = {.page = page};
	struct member honest = member_open(bed, 0, 4);
	pthread_t thread;

	raw_send(fd, &good, sizeof(good), -1);
	member_connect(bed, &honest);
	tocsin_comm_launched(honest.comm, TOCSIN_BARRIER, 0, 0, -1);
	vandal.words = mmap(NULL, JOB_PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, page, 0);
	assert_true(vandal.words != MAP_FAILED);
	assert_int_equal(pthread_create(&thread, NULL, scribble, &vandal), 0);
	for (int n = 0; n < 200; n++) {
		struct jobs_rank_report report;

		look_again(bed);
		report = report_of(bed, 1);
		assert_true(is_whole(&report));
		assert_int_equal(report_of(bed, 0).launched, 1);
	}
	atomic_store_explicit(&vandal.over, true, memory_order_release);
	pthread_join(thread, NULL);
	munmap(vandal.words, JOB_PAGE_BYTES);
	close(fd);
	close(page);
	member_close(bed, &honest);
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
	assert_int_equal(jobhost_count(bed->host), 0);
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

static void waits_are_from_start_to_completion(void **state) {
	struct bed *bed = *state;
	struct member self = member_open(bed, 0, 4);
	struct jobs_rank_report report;

	member_connect(bed, &self);
	for (int n = 0; n < 40; n++) {
		tocsin_comm_launched(self.comm, TOCSIN_ALL_REDUCE, 1, 7, -1);
		tocsin_comm_started(self.comm, TOCSIN_ALL_REDUCE);
		if (n < 39)
			tocsin_comm_completed(self.comm, TOCSIN_ALL_REDUCE);
	}
	look_again(bed);
	report = report_of(bed, 0);
	assert_int_equal(report.launched, 40);
	assert_int_equal(report.started, 40);
	assert_int_equal(report.completed, 39);
	assert_int_equal(report.signature_count, JOBS_SIGNATURES);
	assert_int_equal(report.signatures[JOBS_SIGNATURES - 1].seq, 40);
	assert_true(report.signatures[JOBS_SIGNATURES - 1].waited_ns == JOBS_NOT_TAKEN);
	assert_true(report.signatures[JOBS_SIGNATURES - 2].waited_ns < 10 * SECOND);
	assert_int_equal(report.process_state, JOBS_PROCESS_RUNNING);
	assert_int_equal(report.pid, getpid());
	member_close(bed, &self);
}

int main(void) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_member_that_is_killed_is_told_to_who_survives, setup, teardown
		),
		cmocka_unit_test_setup_teardown(a_parent_says_how_its_child_ended, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_parent_that_says_nothing_is_waited_for_a_moment, setup, teardown
		),
		cmocka_unit_test_setup_teardown(who_is_no_parent_is_not_believed, setup, teardown),
		cmocka_unit_test_setup_teardown(
			a_child_waits_for_no_callback_of_its_parent, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			who_leaves_or_has_finalized_is_not_gone, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			who_leaves_while_the_agent_is_busy_is_not_gone, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			who_leaves_without_reading_all_is_not_gone, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			who_restarts_the_agent_tells_nobody_gone_and_forgets_nobody, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			the_evidence_of_who_was_killed_stays_and_is_bounded, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			a_real_time_signal_is_told_by_its_number, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			a_user_with_many_dead_leaves_others_their_evidence, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			another_users_communicator_of_the_same_key_is_another_one, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			a_greeting_that_is_not_right_is_refused_with_its_reason, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			a_communicator_that_cannot_be_is_refused_and_the_others_stay, setup,
			teardown
		),
		cmocka_unit_test_setup_teardown(
			packets_without_sense_end_the_connection_and_leave_nothing, setup, teardown
		),
		cmocka_unit_test_setup_teardown(
			nonsense_and_holes_in_a_page_hurt_its_own_report_alone, setup, teardown
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
			waits_are_from_start_to_completion, setup, teardown
		),
	};

	return cmocka_run_group_tests_name("jobhost", tests, NULL, NULL);
}
