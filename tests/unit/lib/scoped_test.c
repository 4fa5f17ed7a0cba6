// SPDX-License-Identifier: BSD-3-Clause
#include <lib/scoped.h>
#include <support/cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>

static int is_open(int fd) {
	return fcntl(fd, F_GETFD) >= 0;
}

// Leave the block early through a return, as an error path does.
static int leave_with_open_fd(void) {
	scoped_fd int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

	assert_true(is_open(fd));
	return fd;
}

static void descriptor_is_closed_on_the_way_out(void **state) {
	(void)state;
	assert_false(is_open(leave_with_open_fd()));
}

static void descriptor_that_was_never_opened_is_left_alone(void **state) {
	(void)state;
	errno = 0;
	{
		scoped_fd int fd = -1;

		assert_int_equal(fd, -1);
	}
	assert_int_equal(errno, 0); // close(-1) would set EBADF
}

static void taken_descriptor_outlives_its_block(void **state) {
	int kept;

	(void)state;
	{
		scoped_fd int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);

		kept = scoped_release_fd(&fd);
		assert_int_equal(fd, -1);
	}
	assert_true(is_open(kept));
	assert_int_equal(close(kept), 0);
}

// The leak check of the asan build proves that the block frees the rest.
static void taken_memory_outlives_its_block_and_the_rest_is_freed(void **state) {
	char *kept;

	(void)state;
	{
		scoped_mem char *freed = strdup("freed");
		scoped_mem char *taken = strdup("taken");
		scoped_mem char *nothing = NULL;

		assert_non_null(freed);
		assert_null(nothing);
		kept = scoped_release_mem(&taken);
		assert_null(taken);
	}
	assert_string_equal(kept, "taken");
	free(kept);
}

static void file_and_directory_are_closed_on_the_way_out(void **state) {
	int file_fd;
	int dir_fd;

	(void)state;
	{
		scoped_file FILE *file = fopen("/dev/null", "re");
		scoped_dir DIR *dir = opendir("/");
		scoped_file FILE *no_file = NULL;
		scoped_dir DIR *no_dir = NULL;

		assert_null(no_file);
		assert_null(no_dir);
		assert_non_null(file);
		assert_non_null(dir);
		file_fd = fileno(file);
		dir_fd = dirfd(dir);
	}
	assert_false(is_open(file_fd));
	assert_false(is_open(dir_fd));
}

UNIT_GROUP(scoped) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(descriptor_is_closed_on_the_way_out),
		cmocka_unit_test(descriptor_that_was_never_opened_is_left_alone),
		cmocka_unit_test(taken_descriptor_outlives_its_block),
		cmocka_unit_test(taken_memory_outlives_its_block_and_the_rest_is_freed),
		cmocka_unit_test(file_and_directory_are_closed_on_the_way_out),
	};

	return cmocka_run_group_tests_name("scoped", tests, NULL, NULL);
}
