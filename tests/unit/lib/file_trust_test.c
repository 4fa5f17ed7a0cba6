// SPDX-License-Identifier: BSD-3-Clause
// Owners and modes of paths, and the users that they name.
#include <lib/file_trust.h>
#include <lib/user.h>
#include <support/cmocka.h>

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LONG_NAME "user-with-a-long-entry"
#define LONG_ID 4711

static size_t entry_bytes; // of the user LONG_NAME; 0: there is no such user

// Replaces the function of libc: one user has an entry of any length.
int getpwnam_r(
	const char *name, struct passwd *user, char *strings, size_t size, struct passwd **ret_user
) {
	int (*real)(const char *, struct passwd *, char *, size_t, struct passwd **);

	if (strcmp(name, LONG_NAME) != 0) {
		*(void **)&real = dlsym(RTLD_NEXT, "getpwnam_r");
		return real(name, user, strings, size, ret_user);
	}
	*ret_user = NULL;
	if (size < entry_bytes)
		return ERANGE;
	if (entry_bytes == 0)
		return 0;
	*user = (struct passwd){.pw_uid = LONG_ID};
	*ret_user = user;
	return 0;
}

static void user_with_a_long_entry_is_found(void **state) {
	static const size_t sizes[] = {1, 1024, 1025, 100000, 1 << 20};
	uid_t user;

	(void)state;
	for (size_t n = 0; n < sizeof(sizes) / sizeof(sizes[0]); n++) {
		entry_bytes = sizes[n];
		user = 0;
		assert_int_equal(user_find_id(LONG_NAME, &user), 0);
		assert_int_equal(user, LONG_ID);
	}
	assert_int_equal(user_find_id("root", &user), 0);
	assert_int_equal(user, 0);
}

static void user_without_an_entry_or_with_an_endless_one_is_not_found(void **state) {
	uid_t user = 1;

	(void)state;
	entry_bytes = 0;
	assert_int_equal(user_find_id(LONG_NAME, &user), -ENOENT);
	entry_bytes = SIZE_MAX;
	assert_int_equal(user_find_id(LONG_NAME, &user), -ERANGE);
	assert_int_equal(user, 1);
}

static void directories_of_root_alone_exclude_sticky_ones_and_those_of_the_caller(void **state) {
	const struct file_trust usual = {0}, root_only = {.root_only = true};
	char directory[] = "/tmp/file-trust-XXXXXX", path[64];
	char detail[FILE_TRUST_DETAIL_BYTES] = "";

	(void)state;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/file", directory);
	assert_int_equal(file_trust_check_directories(path, &usual, detail), 0);
	assert_int_equal(file_trust_check_directories(path, &root_only, detail), -EPERM);
	assert_non_null(strstr(detail, "/tmp"));
	assert_int_equal(file_trust_check_directories("/etc/passwd", &root_only, detail), 0);
	rmdir(directory);
}

static void file_of_root_alone_belongs_to_no_other_user(void **state) {
	const struct file_trust usual = {.user = LONG_ID};
	const struct file_trust root_only = {.user = LONG_ID, .root_only = true};
	struct stat status = {.st_mode = S_IFREG | 0600, .st_uid = LONG_ID};
	char detail[FILE_TRUST_DETAIL_BYTES] = "";

	(void)state;
	assert_int_equal(file_trust_check_owner("/f", &status, &usual, detail), 0);
	assert_int_equal(file_trust_check_owner("/f", &status, &root_only, detail), -EPERM);
	assert_non_null(strstr(detail, "belongs to user 4711; it must belong to root"));
	status.st_uid = 0;
	assert_int_equal(file_trust_check_owner("/f", &status, &root_only, detail), 0);
}

UNIT_GROUP(file_trust) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(user_with_a_long_entry_is_found),
		cmocka_unit_test(user_without_an_entry_or_with_an_endless_one_is_not_found),
		cmocka_unit_test(
			directories_of_root_alone_exclude_sticky_ones_and_those_of_the_caller
		),
		cmocka_unit_test(file_of_root_alone_belongs_to_no_other_user),
	};

	return cmocka_run_group_tests_name("file_trust", tests, NULL, NULL);
}
