// SPDX-License-Identifier: BSD-3-Clause
// Helper to run programs in the guest.
#pragma once

#include <support/cmocka.h>

#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define WORDS_MAX 15

extern char **environ;

// Run a program that must succeed, and return its output, truncated to `size`.
static inline void run_and_hear(const char *const *words, char *said, size_t size) {
	posix_spawn_file_actions_t actions;
	char *arguments[WORDS_MAX + 1] = {NULL};
	size_t length = 0, count = 0;
	int ends[2], status;
	ssize_t got;
	pid_t pid;

	while (words[count] != NULL && count < WORDS_MAX)
		count++;
	// posix_spawn does not write to the strings
	memcpy(arguments, words, count * sizeof(arguments[0]));
	assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
	assert_int_equal(posix_spawn_file_actions_init(&actions), 0);
	assert_int_equal(posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO), 0);
	assert_int_equal(posix_spawnp(&pid, words[0], &actions, NULL, arguments, environ), 0);
	posix_spawn_file_actions_destroy(&actions);
	close(ends[1]);
	while (length < size - 1 && (got = read(ends[0], said + length, size - 1 - length)) > 0)
		length += (size_t)got;
	said[length] = '\0';
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}
