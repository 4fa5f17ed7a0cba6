// SPDX-License-Identifier: BSD-3-Clause
#include <lib/error.h>
#include <lib/must.h>
#include <support/cmocka.h>

#include <dlfcn.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

// Run must(0) in a child whose stderr is the pipe. Fill `text` with its output and return its exit
// status.
static int child_must_fail(char *text, size_t text_size) {
	int ends[2];
	int status;
	size_t used = 0;
	ssize_t n;
	pid_t pid;

	assert_int_equal(pipe(ends), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		signal(SIGABRT, SIG_DFL);
		dup2(ends[1], STDERR_FILENO);
		close(ends[0]);
		must(1 + 1 == 3);
		_exit(0);
	}
	close(ends[1]);
	while (used + 1 < text_size && (n = read(ends[0], text + used, text_size - used - 1)) > 0)
		used += (size_t)n;
	text[used] = '\0';
	close(ends[0]);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status;
}

static void must_names_expression_place_and_backtrace_then_aborts(void **state) {
	char text[8192];
	int status;

	(void)state;
	status = child_must_fail(text, sizeof(text));
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	assert_non_null(strstr(text, "1 + 1 == 3"));
	assert_non_null(strstr(text, "must_test.c:"));
	assert_non_null(strstr(text, "child_must_fail"));
	assert_true(strchr(text, '\n')[1] != '\0'); // stack frames follow
}

static void unwinder_is_loaded_before_it_is_needed(void **state) {
	void *unwinder = dlopen("libgcc_s.so.1", RTLD_LAZY | RTLD_NOLOAD);

	(void)state;
	assert_non_null(unwinder);
	dlclose(unwinder);
}

static void must_that_holds_is_silent(void **state) {
	(void)state;
	must(1 + 1 == 2);
	must_debug(1 + 1 == 2);
}

static void neg_errno_never_reads_as_success(void **state) {
	(void)state;
	errno = ENOENT;
	assert_int_equal(neg_errno(), -ENOENT);
	errno = 0;
	assert_int_equal(neg_errno(), -EIO);
}

UNIT_GROUP(must) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(must_names_expression_place_and_backtrace_then_aborts),
		cmocka_unit_test(unwinder_is_loaded_before_it_is_needed),
		cmocka_unit_test(must_that_holds_is_silent),
		cmocka_unit_test(neg_errno_never_reads_as_success),
	};

	return cmocka_run_group_tests_name("must", tests, NULL, NULL);
}
