// SPDX-License-Identifier: BSD-3-Clause
// Tests with several processes, each with its own device. The children execute this program again,
// because a device does not survive a plain fork.
#include "bed.h"

#include <support/cmocka.h>

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN 4
#define ADDITIONS 500

static int read_all(int fd, void *bytes, size_t size) {
	for (size_t done = 0; done < size;) {
		ssize_t count = read(fd, (char *)bytes + done, size - done);

		if (count <= 0)
			return -1;
		done += (size_t)count;
	}
	return 0;
}

static int write_all(int fd, const void *bytes, size_t size) {
	return write(fd, bytes, size) == (ssize_t)size ? 0 : -1;
}

// Open a device and connect it to the parent.
static struct ibv_qp *greet_parent(struct bed_end *end, struct bed_address *ret_to) {
	struct bed_address own;
	struct ibv_qp *qp;

	bed_open(end, "soft0");
	qp = bed_qp(end);
	bed_receive(end, qp, 0, 0, 8);
	own = bed_address(end, qp);
	if (write_all(STDOUT_FILENO, &own, sizeof(own)) < 0 ||
	    read_all(STDIN_FILENO, ret_to, sizeof(*ret_to)) < 0)
		_exit(2);
	bed_connect(qp, ret_to);
	return qp;
}

// Exit as soon as a message was received, without destroying anything.
static void leave(void) {
	struct bed_address to;
	struct bed_end end;

	(void)greet_parent(&end, &to);
	exit(bed_poll(end.cq).status == IBV_WC_SUCCESS ? 0 : 3);
}

// Increment a number repeatedly and report the value found each time. No other process may find the
// same value.
static void add(void) {
	static uint64_t found[ADDITIONS];
	struct bed_address to;
	struct bed_end end;
	struct ibv_qp *qp = greet_parent(&end, &to);

	for (size_t n = 0; n < ADDITIONS; n++) {
		bed_post(
			&end, qp, &to,
			&(struct bed_request
			){.opcode = IBV_WR_ATOMIC_FETCH_AND_ADD, .length = 8, .compare_add = 1}
		);
		if (bed_poll(end.cq).status != IBV_WC_SUCCESS)
			_exit(3);
		memcpy(&found[n], end.memory, sizeof(found[n]));
	}
	if (write_all(STDOUT_FILENO, found, sizeof(found)) < 0)
		_exit(2);
	ibv_destroy_qp(qp);
	bed_close(&end);
	_exit(0);
}

struct child {
	pid_t pid;
	int to, from;
	struct ibv_qp *qp;
};

static void start(struct child *child, const char *role) {
	char *argv[] = {(char[]){"processes_test"}, strdup(role), NULL};
	posix_spawn_file_actions_t actions;
	int in[2], out[2];

	assert_int_equal(pipe2(in, O_CLOEXEC), 0);
	assert_int_equal(pipe2(out, O_CLOEXEC), 0);
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, in[0], STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, out[1], STDOUT_FILENO);
	assert_int_equal(
		posix_spawn(&child->pid, "/proc/self/exe", &actions, NULL, argv, environ), 0
	);
	free(argv[1]);
	posix_spawn_file_actions_destroy(&actions);
	close(in[0]);
	close(out[1]);
	child->to = in[1];
	child->from = out[0];
}

static struct bed_address greet(struct bed_end *end, struct child *child) {
	struct bed_address own, to;

	child->qp = bed_qp(end);
	own = bed_address(end, child->qp);
	assert_int_equal(read_all(child->from, &to, sizeof(to)), 0);
	bed_connect(child->qp, &to);
	assert_int_equal(write_all(child->to, &own, sizeof(own)), 0);
	return to;
}

static void part(struct child *child) {
	int status;

	assert_int_equal(waitpid(child->pid, &status, 0), child->pid);
	assert_int_equal(status, 0);
	close(child->to);
	close(child->from);
	assert_int_equal(ibv_destroy_qp(child->qp), 0);
}

static void additions_by_several_processes_are_all_counted_once(void **state) {
	static bool seen[CHILDREN * ADDITIONS];
	struct child children[CHILDREN];
	struct bed_end end;
	uint64_t total;

	(void)state;
	bed_open(&end, "soft0");
	for (int n = 0; n < CHILDREN; n++)
		start(&children[n], "add");
	for (int n = 0; n < CHILDREN; n++)
		(void)greet(&end, &children[n]);
	// No thread polls here: the device responds on its own while this process reads its pipes.
	for (int n = 0; n < CHILDREN; n++) {
		uint64_t found[ADDITIONS];

		assert_int_equal(read_all(children[n].from, found, sizeof(found)), 0);
		for (size_t at = 0; at < ADDITIONS; at++) {
			assert_in_range(found[at], 0, CHILDREN * ADDITIONS - 1);
			assert_false(seen[found[at]]);
			seen[found[at]] = true;
		}
		part(&children[n]);
	}
	memcpy(&total, end.memory, sizeof(total));
	assert_int_equal(total, CHILDREN * ADDITIONS);
	bed_close(&end);
}

static void what_a_process_received_is_acknowledged_though_it_ends_at_once(void **state) {
	struct bed_end end;

	(void)state;
	bed_open(&end, "soft0");
	for (int n = 0; n < CHILDREN; n++) {
		struct child child;
		struct bed_address to;

		start(&child, "leave");
		to = greet(&end, &child);
		bed_post(
			&end, child.qp, &to,
			&(struct bed_request){.opcode = IBV_WR_SEND, .length = 8}
		);
		assert_int_equal(bed_poll(end.cq).status, IBV_WC_SUCCESS);
		part(&child);
	}
	bed_close(&end);
}

int main(int argc, char **argv) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(additions_by_several_processes_are_all_counted_once),
		cmocka_unit_test(what_a_process_received_is_acknowledged_though_it_ends_at_once),
	};

	if (argc == 2 && strcmp(argv[1], "add") == 0)
		add();
	if (argc == 2 && strcmp(argv[1], "leave") == 0)
		leave();
	// A process that has exited retransmits nothing, so with packet loss its last message may
	// be missing.
	if (argc == 2 && strcmp(argv[1], "lossy") == 0)
		cmocka_set_test_filter("additions*");
	return cmocka_run_group_tests(tests, NULL, NULL);
}
