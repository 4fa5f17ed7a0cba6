// SPDX-License-Identifier: BSD-3-Clause
// main() of every unit test program: runs the groups that UNIT_GROUP() made known.
//
// Each group runs in a process of its own, so that no group sees what another one left behind:
// threads, descriptors, EAL, a changed clock. The parent numbers the TAP lines of all groups anew
// and prints one plan at the end. With a filter that matches one group only, this group runs in
// the first process: a debugger needs no more.
#include <support/cmocka.h>

#include <errno.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <signal.h>
#include <unistd.h>

#define CANNOT_RUN 99 // exit status: the tests could not even be started

struct tap {
	unsigned int count;   // of all tests so far
	unsigned int failed;  // of all tests so far
	unsigned int planned; // of the group
	unsigned int ran;     // of the group
	unsigned int bad;     // failed tests of the group
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


// Print one line of a group, with the number that it has among the tests of all groups.
static void tap_line(struct tap *tap, const char *line) {
	bool bad = strncmp(line, "not ok ", 7) == 0;
	unsigned int planned;
	const char *rest;

	if (sscanf(line, "1..%u", &planned) == 1) {
		tap->planned += planned;
		return;
	}
	if (!bad && strncmp(line, "ok ", 3) != 0) {
		fputs(line, stdout);
		return;
	}
	rest = line + (bad ? 7 : 3);
	rest += strspn(rest, "0123456789");
	if (strncmp(rest, " # SKIP", 7) == 0)
		bad = false; // cmocka says "not ok" of a skipped test
	printf("%s %u%s", bad ? "not ok" : "ok", ++tap->count, rest);
	tap->ran++;
	tap->bad += bad;
	tap->failed += bad;
}

// Add a failure of its own where the end of the process says more than its lines do.
static void tap_end(struct tap *tap, const char *group, int status) {
	bool killed = WIFSIGNALED(status);
	int code = killed ? WTERMSIG(status) : WEXITSTATUS(status);

	if (!killed && tap->ran > 0 && tap->ran == tap->planned && (code == 0 || tap->bad > 0))
		return;
	printf("not ok %u - %s ended with %s %d after %u of %u tests\n", ++tap->count, group,
	       killed ? "signal" : "exit status", code, tap->ran, tap->planned);
	tap->failed++;
}

static int run_apart(struct tap *tap, const struct unit_group *group) {
	char *line = NULL;
	size_t size = 0;
	int ends[2], status;
	FILE *said;
	pid_t child;

	fflush(stdout);
	if (pipe(ends) != 0)
		return -errno;
	child = fork();
	if (child < 0)
		return -errno;
	if (child == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(ends[1], STDOUT_FILENO);
		close(ends[0]);
		close(ends[1]);
		exit(group->run()); // not _exit(): LeakSanitizer looks at the end
	}
	close(ends[1]);
	said = fdopen(ends[0], "r");
	if (said == NULL)
		return -errno;
	tap->planned = tap->ran = tap->bad = 0;
	printf("# %s\n", group->name);
	while (getline(&line, &size, said) > 0)
		tap_line(tap, line);
	free(line);
	fclose(said);
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	tap_end(tap, group->name, status);
	return 0;
}

static int run_all(const char *filter) {
	struct tap tap = {0};

	for (const struct unit_group *group = groups; group != NULL; group = group->next) {
		int err = is_chosen(group, filter) ? run_apart(&tap, group) : 0;

		if (err != 0) {
			fprintf(stderr, "%s: cannot be started: %s\n", group->name, strerror(-err));
			return CANNOT_RUN;
		}
	}
	printf("1..%u\n", tap.count);
	return tap.failed > 0;
}

static int usage(const char *program) {
	fprintf(stderr, "usage: %s [--list | --filter PATTERN]\n"
		"  PATTERN is a group or a shell pattern of groups; --list prints the groups\n",
		program);
	return 2;
}

int main(int argc, char **argv) {
	const char *filter = NULL;
	const struct unit_group *only = NULL;
	unsigned int chosen = 0;

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
			chosen++;
		}
	}
	if (chosen == 0) {
		fprintf(stderr, "%s: no group matches '%s'; --list prints them\n", argv[0], filter);
		return 2;
	}
	setenv("CMOCKA_MESSAGE_OUTPUT", "TAP", 0);
	return chosen == 1 ? only->run() : run_all(filter);
}
