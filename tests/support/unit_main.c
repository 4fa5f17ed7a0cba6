// SPDX-License-Identifier: BSD-3-Clause
// main() of every unit test program: runs the groups that UNIT_GROUP() made known.
//
// Each group runs in a process of its own, so that no group sees the threads, descriptors, EAL or
// clock of another one. The parent numbers the TAP lines of all groups, puts the group's name in
// front of each test, and prints one plan at the end. If the filter matches one group only, this
// group runs in the first process, so that a debugger need not follow a fork.
#include <support/cmocka.h>

#include <errno.h>
#include <fnmatch.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define CANNOT_RUN 99 // exit status: a group could not be started

struct tap {
	unsigned int count;   // tests printed so far, all groups
	unsigned int failed;  // failed tests, all groups
	unsigned int planned; // planned tests, current group
	unsigned int ran;     // tests printed, current group
	unsigned int bad;     // failed tests, current group
	char line[4096];      // unfinished line of the current group
	size_t length;	      // bytes of `line`
};

static struct unit_group *groups; // in the order of their names

void unit_group_add(struct unit_group *group) {
	struct unit_group **at = &groups;

	while (*at != NULL && strcmp((*at)->name, group->name) < 0)
		at = &(*at)->next;
	group->next = *at;
	*at = group;
}

static bool is_chosen(const struct unit_group *group, const char *filter) {
	return filter == NULL || fnmatch(filter, group->name, 0) == 0;
}

// Print the collected line of a group, with the number of the test among all groups.
static void tap_forward_line(struct tap *tap, const char *group) {
	bool bad = strncmp(tap->line, "not ok ", 7) == 0;
	unsigned int planned;
	const char *rest;

	tap->line[tap->length] = '\0';
	tap->length = 0;
	if (sscanf(tap->line, "1..%u", &planned) == 1) {
		tap->planned += planned;
		return;
	}
	if (!bad && strncmp(tap->line, "ok ", 3) != 0) {
		puts(tap->line);
		return;
	}
	rest = tap->line + (bad ? 7 : 3);
	rest += strspn(rest, "0123456789");
	if (strncmp(rest, " # SKIP", 7) == 0)
		bad = false; // cmocka prints "not ok" for a skipped test
	if (strncmp(rest, " - ", 3) == 0)
		printf("%s %u - %s: %s\n", bad ? "not ok" : "ok", ++tap->count, group, rest + 3);
	else
		printf("%s %u%s\n", bad ? "not ok" : "ok", ++tap->count, rest);
	tap->ran++;
	tap->bad += bad;
	tap->failed += bad;
}

static void tap_collect(struct tap *tap, const char *group, const char *bytes, size_t size) {
	for (size_t at = 0; at < size; at++) {
		if (bytes[at] != '\n')
			tap->line[tap->length++] = bytes[at];
		if (bytes[at] == '\n' || tap->length == sizeof(tap->line) - 1)
			tap_forward_line(tap, group);
	}
}

// Print one extra `not ok` if the group crashed, stopped before its plan, or failed without a
// `not ok` line.
static void tap_check_exit_status(struct tap *tap, const char *group, int status) {
	bool killed = WIFSIGNALED(status);
	int code = killed ? WTERMSIG(status) : WEXITSTATUS(status);

	if (tap->length > 0)
		tap_forward_line(tap, group);
	if (!killed && tap->ran > 0 && tap->ran == tap->planned && (code == 0 || tap->bad > 0))
		return;
	printf("not ok %u - %s ended with %s %d after %u of %u tests\n", ++tap->count, group,
	       killed ? "signal" : "exit status", code, tap->ran, tap->planned);
	tap->failed++;
}

// Forward the output of a group until end of file, or until its process has ended and the pipe is
// empty. Processes that the group left behind may keep the pipe open, so end of file may never
// come. Returns 0 or a negative errno.
static int forward_output(struct tap *tap, const char *group, int output, int process) {
	struct pollfd fds[] = {{.fd = output, .events = POLLIN}, {.fd = process, .events = POLLIN}};
	char bytes[4096];

	for (;;) {
		ssize_t size;

		if (poll(fds, 2, -1) < 0 && errno != EINTR)
			return -errno;
		if (fds[0].revents == 0) {
			if (fds[1].revents != 0)
				return 0;
			continue;
		}
		size = read(output, bytes, sizeof(bytes));
		if (size <= 0)
			return size < 0 && errno != EINTR ? -errno : 0;
		tap_collect(tap, group, bytes, (size_t)size);
	}
}

static int run_group_in_child(struct tap *tap, const struct unit_group *group) {
	int pipe_fds[2], process, status, err;
	pid_t child;

	fflush(stdout);
	if (pipe(pipe_fds) != 0)
		return -errno;
	child = fork();
	if (child < 0)
		return -errno;
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(pipe_fds[1], STDOUT_FILENO);
		close(pipe_fds[0]);
		close(pipe_fds[1]);
		exit(group->run()); // not _exit(): LeakSanitizer checks in an exit handler
	}
	close(pipe_fds[1]);
	process = pidfd_open(child, 0);
	if (process < 0)
		return -errno;
	tap->planned = tap->ran = tap->bad = 0;
	printf("# %s\n", group->name);
	err = forward_output(tap, group->name, pipe_fds[0], process);
	close(process);
	close(pipe_fds[0]);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (err == 0)
		tap_check_exit_status(tap, group->name, status);
	return err;
}

static int run_all(const char *filter) {
	static struct tap tap;

	setlinebuf(stdout); // a program that is killed has named the group that hangs
	for (const struct unit_group *group = groups; group != NULL; group = group->next) {
		int err = is_chosen(group, filter) ? run_group_in_child(&tap, group) : 0;

		if (err != 0) {
			fprintf(stderr, "group %s: cannot start it or read its output: %s\n",
				group->name, strerrorname_np(-err));
			return CANNOT_RUN;
		}
	}
	printf("1..%u\n", tap.count);
	return tap.failed > 0;
}

static int usage(const char *program) {
	fprintf(stderr,
		"usage: %s [--list | --filter PATTERN]\n"
		"  PATTERN is a group or a shell pattern of groups; --list prints all groups\n",
		program);
	return 2;
}

int main(int argc, char **argv) {
	const char *filter = NULL;
	const struct unit_group *only = NULL;
	unsigned int chosen_count = 0;

	if (argc == 2 && strcmp(argv[1], "--list") == 0) {
		for (only = groups; only != NULL; only = only->next)
			puts(only->name);
		return 0;
	}
	if (argc == 3 && strcmp(argv[1], "--filter") == 0)
		filter = argv[2];
	else if (argc != 1)
		return usage(argv[0]);
	for (const struct unit_group *group = groups; group != NULL; group = group->next) {
		if (is_chosen(group, filter)) {
			only = group;
			chosen_count++;
		}
	}
	if (chosen_count == 0) {
		fprintf(stderr, "%s: no group matches '%s'; --list prints all groups\n", argv[0],
			filter);
		return 2;
	}
	setenv("CMOCKA_MESSAGE_OUTPUT", "TAP", 0);
	return chosen_count == 1 ? only->run() : run_all(filter);
}
