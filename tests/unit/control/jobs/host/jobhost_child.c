// SPDX-License-Identifier: BSD-3-Clause
#include "control/jobs/host/jobhost_child.h"

#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

struct member member_open(struct bed *bed, uint32_t rank, uint32_t size) {
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
	comm.flags = TOCSIN_COMM_ABORTS | TOCSIN_COMM_BLOCKS | TOCSIN_COMM_TIMES;
	comm.name = "test";
	assert_int_equal(tocsin_comm_register(member.job, &comm, &member.comm), 0);
	return member;
}

static bool is_known(const struct member *member) {
	return tocsin_comm_state(member->comm, NULL, 0) == TOCSIN_JOB_CONNECTED;
}

void member_connect(struct bed *bed, struct member *member) {
	for (int n = 0; n < TURNS_MAX && !is_known(member); n++) {
		assert_int_equal(tocsin_job_poll(member->job), 0);
		turn(bed, 1);
	}
	assert_true(is_known(member));
}

void member_close(struct bed *bed, struct member *member) {
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

// Descriptor that wait_for_end() reads. It is not on the stack of the main thread, which ends.
static int end_order;

// Keep the process alive until the test closes the pipe.
static void *wait_for_end(void *context) {
	char letter;

	(void)context;
	(void)!read(end_order, &letter, 1);
	_exit(0);
}

static void child_main(struct bed *bed, uint32_t rank, uid_t uid, int order, int answer) {
	struct member member;
	pthread_t thread;
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
		case 'm': // send more than is read in one turn, and leave
			say_much(&member);
			tocsin_job_close(member.job);
			break;
		case 't': // end the main thread alone
			end_order = order;
			if (pthread_create(&thread, NULL, wait_for_end, NULL) != 0)
				_exit(9);
			break;
		case 'u': // free the communicator without telling the agent
			tocsin_comm_unregister(member.comm);
			break;
		default:
			_exit(letter);
		}
		(void)!write(answer, &letter, 1);
		if (letter == 't')
			pthread_exit(NULL);
		if (letter == 'l' || letter == 'm' || letter == 'u')
			_exit(0);
	}
}

struct child child_start(struct bed *bed, uint32_t rank, uid_t uid) {
	struct child child;
	int order[2], answer[2];
	char letter;
	ssize_t got = -1;

	assert_int_equal(pipe(order), 0);
	assert_int_equal(pipe2(answer, O_NONBLOCK), 0);
	child.pid = fork();
	assert_true(child.pid >= 0);
	if (child.pid == 0) {
		// Close everything inherited from the agent, which is the parent here.
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

void child_do(struct child *child, char letter) {
	struct pollfd wait = {.fd = child->answer, .events = POLLIN};
	char answer;

	assert_int_equal(write(child->order, &letter, 1), 1);
	assert_int_equal(poll(&wait, 1, 10000), 1);
	assert_int_equal(read(child->answer, &answer, 1), 1);
}

void child_end(struct bed *bed, struct child *child, int signal) {
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

bool next_event(struct bed *bed, struct member *member, struct tocsin_event *ret_event) {
	settle(bed);
	(void)tocsin_job_poll(member->job);
	return tocsin_job_next_event(member->job, ret_event) == 0;
}
