// SPDX-License-Identifier: BSD-3-Clause
// The key pair of an agent in its state directory.
#include <control/agent_key.h>
#include <lib/seal_keys.h>
#include <support/cmocka.h>
#include <support/tree.h>

#include <sodium.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define SPEED_ROUNDS 1000

static char place[64];
static char path[96];
static const struct seal_keys *cluster;

static int setup_place(void **state) {
	(void)state;
	assert_true(sodium_init() >= 0);
	snprintf(place, sizeof(place), "/tmp/agent_key_test.XXXXXX");
	if (mkdtemp(place) == NULL)
		return -1;
	snprintf(path, sizeof(path), "%s/agent.key", place);
	return seal_keys_create_random(&cluster);
}

static int teardown_place(void **state) {
	(void)state;
	cluster = seal_keys_put(cluster);
	return tree_remove(place);
}

static struct agent_key *key_open(const char *directory) {
	char detail[AGENT_KEY_DETAIL_BYTES] = "";
	struct agent_key *key = NULL;

	assert_int_equal(agent_key_open(directory, cluster, detail, &key), 0);
	return key;
}

static void key_is_made_at_the_first_start_and_is_the_same_after(void **state) {
	struct agent_key *first = key_open(place);
	struct agent_key *second = key_open(place);
	struct stat info;

	(void)state;
	assert_int_equal(stat(path, &info), 0);
	assert_int_equal(info.st_mode, S_IFREG | 0600);
	assert_memory_equal(agent_key_public(first), agent_key_public(second), AGENT_KEY_BYTES);
	agent_key_close(first);
	agent_key_close(second);
}

static void key_that_is_lost_or_has_no_directory_is_another_one(void **state) {
	struct agent_key *first = key_open(place);
	struct agent_key *second, *third;

	(void)state;
	assert_int_equal(unlink(path), 0);
	second = key_open(place);
	third = key_open(NULL);
	assert_memory_not_equal(agent_key_public(first), agent_key_public(second), AGENT_KEY_BYTES);
	assert_memory_not_equal(agent_key_public(second), agent_key_public(third), AGENT_KEY_BYTES);
	agent_key_close(first);
	agent_key_close(second);
	agent_key_close(third);
}

static void key_that_others_may_read_or_that_is_none_ends_the_start(void **state) {
	char detail[AGENT_KEY_DETAIL_BYTES] = "";
	struct agent_key *key = NULL;
	int fd;

	(void)state;
	agent_key_close(key_open(place));
	assert_int_equal(chmod(path, 0640), 0);
	assert_int_equal(agent_key_open(place, cluster, detail, &key), -EPERM);
	assert_non_null(strstr(detail, "mode 0640"));
	assert_int_equal(chmod(path, 0600), 0);
	fd = open(path, O_WRONLY | O_TRUNC);
	assert_int_equal(write(fd, "no key\n", 7), 7);
	close(fd);
	assert_int_equal(agent_key_open(place, cluster, detail, &key), -EINVAL);
	assert_non_null(strstr(detail, "remove it"));
	// A path that leads nowhere is no missing file, and no other key takes its name.
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink(path, path), 0);
	assert_int_equal(agent_key_open(place, cluster, detail, &key), -ELOOP);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("not-mounted/agent.key", path), 0);
	assert_int_equal(agent_key_open(place, cluster, detail, &key), -ENOLINK);
	assert_non_null(strstr(detail, "No such file"));
	assert_null(key);
}

static void key_of_the_cluster_is_not_the_key_of_an_agent(void **state) {
	char detail[AGENT_KEY_DETAIL_BYTES] = "";
	const struct seal_keys *two;
	struct agent_key *key = NULL;

	(void)state;
	assert_int_equal(seal_keys_create_step(cluster, SEAL_KEYS_ADD, &two), 0);
	assert_int_equal(seal_keys_write_new(path, cluster, detail), 0);
	seal_keys_put(cluster);
	cluster = two; // the agent must not have any of them
	assert_int_equal(agent_key_open(place, cluster, detail, &key), -EINVAL);
	assert_non_null(strstr(detail, "this is the cluster's key"));
	assert_null(key);
	assert_int_equal(access(path, F_OK), 0);
}

static void check_reports_an_unusable_key_file_and_creates_none(void **state) {
	char detail[AGENT_KEY_DETAIL_BYTES] = "";

	(void)state;
	assert_int_equal(agent_key_check(place, cluster, detail), 0);
	assert_int_not_equal(access(path, F_OK), 0);
	agent_key_close(key_open(place));
	assert_int_equal(agent_key_check(place, cluster, detail), 0);
	assert_string_equal(detail, "");
	assert_int_equal(chmod(path, 0644), 0);
	assert_int_equal(agent_key_check(place, cluster, detail), -EPERM);
	assert_non_null(strstr(detail, "mode 0644"));
}

static void half_a_key_of_a_crash_is_no_hindrance(void **state) {
	char half[128];
	int fd;

	(void)state;
	snprintf(half, sizeof(half), "%s.new", path);
	fd = open(half, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	close(fd);
	agent_key_close(key_open(place));
	assert_int_equal(access(path, F_OK), 0);
	assert_int_not_equal(access(half, F_OK), 0);
}

static double seconds_since(const struct timespec *begin) {
	struct timespec now;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
	return (double)(now.tv_sec - begin->tv_sec) + (double)(now.tv_nsec - begin->tv_nsec) / 1e9;
}

static void signature_is_valid_for_these_bytes_and_this_key_alone(void **state) {
	struct agent_key *key = key_open(NULL), *other = key_open(NULL);
	uint8_t signature[AGENT_KEY_SIGNATURE_BYTES], bytes[256] = {1, 2, 3};
	struct timespec begin;
	double sign_s;

	(void)state;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	for (uint32_t n = 0; n < SPEED_ROUNDS; n++)
		agent_key_sign(key, bytes, sizeof(bytes), signature);
	sign_s = seconds_since(&begin);
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
	for (uint32_t n = 0; n < SPEED_ROUNDS; n++)
		assert_true(agent_key_verify(agent_key_public(key), bytes, sizeof(bytes), signature)
		);
	print_message(
		"# %d signatures in %.1f ms, checked in %.1f ms of processor time\n", SPEED_ROUNDS,
		sign_s * 1e3, seconds_since(&begin) * 1e3
	);
	assert_false(agent_key_verify(agent_key_public(other), bytes, sizeof(bytes), signature));
	bytes[255] = 1;
	assert_false(agent_key_verify(agent_key_public(key), bytes, sizeof(bytes), signature));
	bytes[255] = 0;
	memset((uint8_t *)signature, 0, sizeof(signature));
	assert_false(agent_key_verify(agent_key_public(key), bytes, sizeof(bytes), signature));
	// The key of an agent without one signs nothing.
	assert_false(agent_key_verify((const uint8_t[AGENT_KEY_BYTES]){0}, bytes, 0, signature));
	agent_key_close(key);
	agent_key_close(other);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup_place, teardown_place)

UNIT_GROUP(agent_key) {
	const struct CMUnitTest tests[] = {
		TEST(key_is_made_at_the_first_start_and_is_the_same_after),
		TEST(key_that_is_lost_or_has_no_directory_is_another_one),
		TEST(key_that_others_may_read_or_that_is_none_ends_the_start),
		TEST(key_of_the_cluster_is_not_the_key_of_an_agent),
		TEST(check_reports_an_unusable_key_file_and_creates_none),
		TEST(half_a_key_of_a_crash_is_no_hindrance),
		TEST(signature_is_valid_for_these_bytes_and_this_key_alone),
	};

	return cmocka_run_group_tests_name("agent_key", tests, NULL, NULL);
}
