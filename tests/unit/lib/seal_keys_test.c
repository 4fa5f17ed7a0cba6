// SPDX-License-Identifier: BSD-3-Clause

#include <lib/scoped.h>
#include <lib/seal_secret.h>
#include <support/cases.h>
#include <support/cmocka.h>

#include <sodium.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#define ONE "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define TWO "FEDCBA9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define THREE "1111111111111111111111111111111111111111111111111111111111111111"
#define ZEROS "0000000000000000000000000000000000000000000000000000000000000000"
#define STRANGER 12345 // a uid that is neither root nor the test's own
#define PATH_BYTES 128

// Directory of this test.
static char place[PATH_BYTES];

static int setup_place(void **state) {
	(void)state;
	snprintf(place, sizeof(place), "/tmp/seal_keys_test.XXXXXX");
	return mkdtemp(place) == NULL ? -1 : 0;
}

static void remove_in(const char *directory) {
	scoped_dir DIR *dir = opendir(directory);
	const struct dirent *entry;

	if (dir == NULL)
		return;
	while ((entry = readdir(dir)) != NULL) {
		if (unlinkat(dirfd(dir), entry->d_name, 0) != 0)
			unlinkat(dirfd(dir), entry->d_name, AT_REMOVEDIR);
	}
}

static int teardown_place(void **state) {
	char below[PATH_BYTES + 8];

	(void)state;
	snprintf(below, sizeof(below), "%s/open", place);
	remove_in(below);
	remove_in(place);
	return rmdir(place);
}

static const char *path_of(const char *name) {
	static char path[2 * PATH_BYTES];

	snprintf(path, sizeof(path), "%s/%s", place, name);
	return path;
}

static void write_file(const char *name, const char *text, size_t size, mode_t mode) {
	int fd;

	unlink(path_of(name)); // the mode may forbid even the owner to write
	fd = open(path_of(name), O_WRONLY | O_CREAT | O_EXCL, 0600);
	assert_return_code(fd, errno);
	assert_int_equal(write(fd, text, size), size);
	assert_return_code(fchmod(fd, mode), errno);
	close(fd);
}

static size_t read_file(const char *name, char *text, size_t capacity) {
	scoped_fd int fd = open(path_of(name), O_RDONLY);
	ssize_t size = -1;

	assert_return_code(fd, errno);
	size = read(fd, text, capacity - 1);
	assert_return_code(size, errno);
	text[size] = '\0';
	return (size_t)size;
}

static uint32_t count_files(void) {
	scoped_dir DIR *dir = opendir(place);
	uint32_t count = 0;

	assert_non_null(dir);
	while (readdir(dir) != NULL)
		count++;
	return count - 2; // without the directory itself and its parent
}

static void expect_refused(const char *name, int err, const char *words) {
	const struct seal_keys *keys = NULL;
	char detail[SEAL_KEYS_DETAIL_BYTES] = "";

	assert_int_equal(seal_keys_load(path_of(name), detail, &keys), err);
	assert_null(keys);
	assert_non_null(strstr(detail, place)); // the text names the path
	if (strstr(detail, words) == NULL)
		fail_msg("%s, not %s", detail, words);
}

struct good_row {
	const char *text;
	const char *secrets[SEAL_KEYS_MAX]; // NULL: no such key
};

static const struct good_row good_rows[] = {
	{"tocsin-key-1 " ONE "\n", {ONE, NULL}},
	{"tocsin-key-1 " ONE, {ONE, NULL}},
	{"\t tocsin-key-1 \t " ONE " \t\r\n", {ONE, NULL}},
	{"# comment\n\n  # another\r\ntocsin-key-1 " ONE "\n#tocsin-key-1 " TWO "\n", {ONE, NULL}},
	{"tocsin-key-1 " ONE "\ntocsin-key-1 " TWO "\n", {ONE, TWO}},
	{"tocsin-key-1 " TWO "\n\n\ntocsin-key-1 " ONE, {TWO, ONE}},
	{"# \xff\xfe bytes of any kind\ntocsin-key-1 " ONE, {ONE, NULL}},
};

static void expect_secret(const struct seal_keys *keys, uint32_t n, const char *hexadecimal) {
	uint8_t secret[SEAL_SECRET_BYTES];

	assert_int_equal(
		sodium_hex2bin(
			secret, sizeof(secret), hexadecimal, strlen(hexadecimal), NULL, NULL, NULL
		),
		0
	);
	assert_memory_equal(keys->keys[n].secret, secret, sizeof(secret));
}

static void one_or_two_keys_are_read_in_their_order(void **state) {
	char detail[SEAL_KEYS_DETAIL_BYTES];
	const struct seal_keys *keys;

	(void)state;
	for (size_t n = 0; n < COUNT_OF(good_rows); n++) {
		const struct good_row *row = &good_rows[n];

		if (seal_keys_parse(row->text, strlen(row->text), detail, &keys) != 0)
			fail_msg("row %zu: %s", n, detail);
		assert_int_equal(seal_keys_count(keys), row->secrets[1] == NULL ? 1 : 2);
		for (uint32_t key = 0; key < seal_keys_count(keys); key++)
			expect_secret(keys, key, row->secrets[key]);
		assert_false(seal_keys_is_keyless(keys));
		seal_keys_put(keys);
	}
}

struct bad_row {
	const char *text;
	size_t length;
	const char *words;
};

static const struct bad_row bad_rows[] = {
	{TEXT(""), "the file has no key"},
	{TEXT("\n \n# tocsin-key-1 " ONE "\n"), "the file has no key"},
	{TEXT(ONE), "line 1: neither a comment"},
	{TEXT("\n\n" ONE "\n"), "line 3: neither a comment"},
	{TEXT("tocsin-key-2 " ONE), "line 1: neither a comment"},
	{TEXT("Tocsin-key-1 " ONE), "line 1: neither a comment"},
	{TEXT("tocsin-key-"), "line 1: neither a comment"},
	{TEXT("\xef\xbb\xbftocsin-key-1 " ONE), "line 1: neither a comment"},
	{TEXT("tocsin-key-1"),
	 "line 1: tocsin-key-1 must be followed by a blank and exactly 64 hexadecimal"},
	{TEXT("tocsin-key-1" ONE), "line 1: tocsin-key-1 must be"},
	{TEXT("tocsin-key-1 " ONE "0"), "line 1: tocsin-key-1 must be"},
	{TEXT("tocsin-key-1 0" ONE), "line 1: tocsin-key-1 must be"},
	{TEXT("tocsin-key-1 0x" ONE), "line 1: tocsin-key-1 must be"},
	{TEXT("tocsin-key-1 12"), "line 1: tocsin-key-1 must be"},
	{TEXT("tocsin-key-1 g123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"),
	 "line 1: tocsin-key-1 must be"},
	{TEXT("tocsin-key-1 " ONE " # mine"), "line 1: tocsin-key-1 must be"},
	{TEXT("tocsin-key-1 " ONE "\0"), "line 1: tocsin-key-1 must be"},
	{TEXT("tocsin-key-1\0" ONE), "line 1: tocsin-key-1 must be"},
	{TEXT("\0tocsin-key-1 " ONE), "line 1: neither a comment"},
	{TEXT("tocsin-key-1 " ZEROS), "line 1: the key is all zeros"},
	{TEXT("tocsin-key-1 " ONE "\ntocsin-key-1 " ONE),
	 "line 2: this key is the same as the first key"},
	{TEXT("tocsin-key-1 " ONE "\ntocsin-key-1 " TWO "\ntocsin-key-1 " THREE "\n"),
	 "line 3: this is a third key; a key file has at most 2 keys"},
	{TEXT("tocsin-key-1 " ONE "\nrubbish"), "line 2: neither a comment"},
};

static void a_wrong_text_is_refused_with_its_line_and_without_its_bytes(void **state) {
	(void)state;
	for (size_t n = 0; n < COUNT_OF(bad_rows); n++) {
		const struct bad_row *row = &bad_rows[n];
		char detail[SEAL_KEYS_DETAIL_BYTES] = "";
		const struct seal_keys *keys = NULL;

		assert_int_equal(seal_keys_parse(row->text, row->length, detail, &keys), -EINVAL);
		assert_null(keys);
		if (strstr(detail, row->words) == NULL)
			fail_msg("row %zu: %s, not %s", n, detail, row->words);
		assert_null(strstr(detail, "123456789abcdef"));
	}
}

static void what_is_formatted_is_read_as_the_same_keys(void **state) {
	const struct seal_keys *one, *two, *back;
	char detail[SEAL_KEYS_DETAIL_BYTES];
	char text[SEAL_KEYS_TEXT_BYTES];
	char id[SEAL_KEY_ID_TEXT_BYTES];

	(void)state;
	assert_int_equal(seal_keys_create_random(&one), 0);
	assert_int_equal(seal_keys_create_step(one, SEAL_KEYS_ADD, &two), 0);
	seal_keys_format(two, text);
	assert_int_equal(seal_keys_parse(text, strlen(text), detail, &back), 0);
	assert_int_equal(back->count, 2);
	assert_memory_equal(back->keys, two->keys, sizeof(two->keys));
	seal_keys_id(two, 1, id);
	assert_non_null(strstr(text, id)); // lets an administrator compare files
	seal_keys_put(one);
	seal_keys_put(two);
	seal_keys_put(back);
}

static void an_id_follows_from_its_key_and_is_no_part_of_it(void **state) {
	const char *text = "tocsin-key-1 " ONE "\ntocsin-key-1 " TWO;
	char detail[SEAL_KEYS_DETAIL_BYTES];
	char id[SEAL_KEY_ID_TEXT_BYTES], other[SEAL_KEY_ID_TEXT_BYTES];
	const struct seal_keys *keys, *same;

	(void)state;
	assert_int_equal(seal_keys_parse(text, strlen(text), detail, &keys), 0);
	assert_int_equal(seal_keys_parse(text, strlen("tocsin-key-1 " ONE), detail, &same), 0);
	seal_keys_id(keys, 0, id);
	assert_string_equal(id, "8876059faf61e103");
	assert_null(strstr(ONE, id)); // BLAKE2b, as computed by python3 hashlib
	seal_keys_id(same, 0, other);
	assert_string_equal(id, other);
	seal_keys_id(keys, 1, other);
	assert_string_not_equal(id, other);
	seal_keys_put(keys);
	seal_keys_put(same);
}

static void a_step_of_a_replacement_that_makes_no_sense_is_refused(void **state) {
	const struct seal_keys *one, *two, *none = NULL;

	(void)state;
	assert_int_equal(seal_keys_create_random(&one), 0);
	assert_int_equal(seal_keys_create_step(one, SEAL_KEYS_SWAP, &none), -ENOENT);
	assert_int_equal(seal_keys_create_step(one, SEAL_KEYS_DROP, &none), -ENOENT);
	assert_int_equal(seal_keys_create_step(one, SEAL_KEYS_ADD, &two), 0);
	assert_int_equal(seal_keys_create_step(two, SEAL_KEYS_ADD, &none), -EEXIST);
	assert_null(none);
	seal_keys_put(one);
	seal_keys_put(two);
}

static void a_replacement_adds_swaps_and_drops(void **state) {
	const struct seal_keys *old, *added, *swapped, *dropped;

	(void)state;
	assert_int_equal(seal_keys_create_random(&old), 0);
	assert_int_equal(seal_keys_create_step(old, SEAL_KEYS_ADD, &added), 0);
	assert_int_equal(seal_keys_create_step(added, SEAL_KEYS_SWAP, &swapped), 0);
	assert_int_equal(seal_keys_create_step(swapped, SEAL_KEYS_DROP, &dropped), 0);
	assert_memory_equal(&added->keys[0], &old->keys[0], sizeof(struct seal_key));
	assert_memory_not_equal(added->keys[1].secret, old->keys[0].secret, SEAL_SECRET_BYTES);
	assert_memory_equal(&swapped->keys[0], &added->keys[1], sizeof(struct seal_key));
	assert_memory_equal(&swapped->keys[1], &old->keys[0], sizeof(struct seal_key));
	assert_int_equal(dropped->count, 1);
	assert_memory_equal(&dropped->keys[0], &added->keys[1], sizeof(struct seal_key));
	seal_keys_put(old);
	seal_keys_put(added);
	seal_keys_put(swapped);
	seal_keys_put(dropped);
}

static void keys_live_until_the_last_reference_is_put(void **state) {
	const struct seal_keys *keys;

	(void)state;
	assert_int_equal(seal_keys_create_random(&keys), 0);
	assert_ptr_equal(seal_keys_get(keys), keys);
	assert_null(seal_keys_put(keys));
	assert_int_equal(seal_keys_count(keys), 1);
	assert_null(seal_keys_put(keys));
	assert_null(seal_keys_put(NULL));
}

static void keyless_keys_follow_from_the_name_and_say_what_they_are(void **state) {
	const struct seal_keys *keys, *same, *other;

	(void)state;
	assert_int_equal(seal_keys_create_keyless("alps", &keys), 0);
	assert_int_equal(seal_keys_create_keyless("alps", &same), 0);
	assert_int_equal(seal_keys_create_keyless("alps2", &other), 0);
	assert_true(seal_keys_is_keyless(keys));
	assert_memory_equal(keys->keys, same->keys, sizeof(keys->keys));
	assert_memory_not_equal(keys->keys[0].id, other->keys[0].id, SEAL_KEY_ID_BYTES);
	seal_keys_put(keys);
	seal_keys_put(same);
	seal_keys_put(other);
}

static void a_file_of_mode_0600_or_0400_is_loaded_through_a_link_as_well(void **state) {
	static const mode_t modes[] = {0600, 0400};
	char detail[SEAL_KEYS_DETAIL_BYTES];
	const struct seal_keys *keys;

	(void)state;
	assert_return_code(symlink("key", path_of("link")), errno);
	for (size_t n = 0; n < COUNT_OF(modes); n++) {
		write_file("key", TEXT("tocsin-key-1 " ONE "\n"), modes[n]);
		assert_int_equal(seal_keys_load(path_of("key"), detail, &keys), 0);
		expect_secret(keys, 0, ONE);
		seal_keys_put(keys);
		assert_int_equal(seal_keys_load(path_of("link"), detail, &keys), 0);
		seal_keys_put(keys);
		assert_return_code(unlink(path_of("key")), errno);
	}
}

static void a_file_that_others_could_read_or_write_is_refused(void **state) {
	static const mode_t modes[] = {0640, 0604, 0644, 0620, 0602, 0610,  0601, 0700,
				       0500, 0200, 0000, 0660, 0666, 04600, 01600};
	char words[32];

	(void)state;
	for (size_t n = 0; n < COUNT_OF(modes); n++) {
		if ((modes[n] & S_IRUSR) == 0 && geteuid() != 0)
			continue; // cannot be opened at all
		write_file("key", TEXT("tocsin-key-1 " ONE "\n"), modes[n]);
		snprintf(words, sizeof(words), "mode %04o; it must be 0600", modes[n]);
		expect_refused("key", -EPERM, words);
	}
}

static void a_file_of_another_user_is_refused(void **state) {
	(void)state;
	if (geteuid() != 0)
		skip(); // only root can change a file's owner
	write_file("key", TEXT("tocsin-key-1 " ONE "\n"), 0600);
	assert_return_code(chown(path_of("key"), STRANGER, 0), errno);
	expect_refused("key", -EPERM, "belongs to user 12345; it must belong to root");
}

static void what_is_no_regular_file_is_refused(void **state) {
	(void)state;
	assert_return_code(mkdir(path_of("open"), 0700), errno);
	expect_refused("open", -EPERM, "not a regular file");
	assert_return_code(mkfifo(path_of("pipe"), 0600), errno);
	expect_refused("pipe", -EPERM, "not a regular file");
	expect_refused("nowhere", -ENOENT, "cannot open it as user ");
	assert_return_code(symlink("nowhere", path_of("dangling")), errno);
	expect_refused("dangling", -ENOENT, "No such file");
	assert_return_code(symlink("circle", path_of("circle")), errno);
	expect_refused("circle", -ELOOP, "Too many levels of symbolic links");
}

static void a_file_where_others_may_write_is_refused_and_a_link_there_too(void **state) {
	static const mode_t open_modes[] = {0770, 0777, 0722, 0720};

	(void)state;
	assert_return_code(mkdir(path_of("open"), 0700), errno);
	write_file("open/key", TEXT("tocsin-key-1 " ONE "\n"), 0600);
	assert_return_code(symlink("open/key", path_of("link")), errno);
	for (size_t n = 0; n < COUNT_OF(open_modes); n++) {
		assert_return_code(chmod(path_of("open"), open_modes[n]), errno);
		expect_refused("open/key", -EPERM, "other users can write to this directory");
		expect_refused("link", -EPERM, "other users can write to this directory");
	}
	// As in /tmp: other users may add files, but cannot replace files of others.
	assert_return_code(chmod(path_of("open"), 01777), errno);
	expect_refused("open/nowhere", -ENOENT, "No such file");
	if (geteuid() == 0) {
		assert_return_code(chmod(path_of("open"), 0755), errno);
		assert_return_code(chown(path_of("open"), STRANGER, 0), errno);
		expect_refused("open/key", -EPERM, "this directory belongs to user 12345");
	}
}

static void a_file_is_held_to_its_size(void **state) {
	char text[SEAL_KEYS_FILE_BYTES_MAX + 1];
	char detail[SEAL_KEYS_DETAIL_BYTES];
	const struct seal_keys *keys;

	(void)state;
	memset(text, '\n', sizeof(text));
	memcpy(text, TEXT("tocsin-key-1 " ONE));
	write_file("key", text, sizeof(text) - 1, 0600);
	assert_int_equal(seal_keys_load(path_of("key"), detail, &keys), 0);
	seal_keys_put(keys);
	write_file("key", text, sizeof(text), 0600);
	expect_refused("key", -EFBIG, "4097 bytes; a key file has at most 4096");
}

static void a_wrong_file_is_refused_with_path_and_line(void **state) {
	(void)state;
	write_file("key", TEXT("# mine\n" ONE "\n"), 0600);
	expect_refused("key", -EINVAL, "key\": line 2: neither a comment");
	write_file("key", TEXT(""), 0600);
	expect_refused("key", -EINVAL, "key\": the file has no key");
}

static void expect_not_written(const char *path, int err, const char *words) {
	const struct seal_keys *keys;
	char detail[SEAL_KEYS_DETAIL_BYTES] = "";

	assert_int_equal(seal_keys_create_random(&keys), 0);
	assert_int_equal(seal_keys_write_new(path, keys, detail), err);
	if (strstr(detail, words) == NULL)
		fail_msg("%s, not %s", detail, words);
	seal_keys_put(keys);
}

static void a_new_file_has_mode_0600_whatever_the_umask_and_is_loaded(void **state) {
	char detail[SEAL_KEYS_DETAIL_BYTES];
	const struct seal_keys *keys, *back;
	struct stat status;
	mode_t before = umask(0777);

	(void)state;
	assert_int_equal(seal_keys_create_random(&keys), 0);
	assert_int_equal(seal_keys_write_new(path_of("key"), keys, detail), 0);
	umask(before);
	assert_return_code(stat(path_of("key"), &status), errno);
	assert_int_equal(status.st_mode & ALLPERMS, 0600);
	assert_int_equal(seal_keys_load(path_of("key"), detail, &back), 0);
	assert_memory_equal(keys->keys, back->keys, sizeof(keys->keys));
	seal_keys_put(keys);
	seal_keys_put(back);
}

static void a_new_file_never_takes_the_place_of_another(void **state) {
	char text[32];

	(void)state;
	write_file("key", TEXT("precious"), 0600);
	assert_return_code(symlink("elsewhere", path_of("dangling")), errno);
	expect_not_written(path_of("key"), -EEXIST, "cannot create it: File exists");
	expect_not_written(path_of("dangling"), -EEXIST, "cannot create it: File exists");
	assert_int_equal(read_file("key", text, sizeof(text)), 8);
	assert_string_equal(text, "precious");
	assert_int_equal(count_files(), 2);
}

static void a_new_file_needs_a_directory_that_is_ours(void **state) {
	(void)state;
	expect_not_written(path_of("none/key"), -ENOENT, "cannot find its directory");
	expect_not_written(path_of(""), -EINVAL, "this is not a file name");
	expect_not_written("", -EINVAL, "this is not a file name");
	assert_return_code(mkdir(path_of("open"), 0700), errno);
	assert_return_code(chmod(path_of("open"), 0777), errno);
	expect_not_written(path_of("open/key"), -EPERM, "other users can write to this directory");
	assert_int_equal(count_files(), 1);
}

// Simulate a full disk for this process: no file may grow.
static void let_files_grow(bool grow) {
	struct rlimit limit;

	assert_return_code(getrlimit(RLIMIT_FSIZE, &limit), errno);
	limit.rlim_cur = grow ? limit.rlim_max : 16;
	assert_return_code(setrlimit(RLIMIT_FSIZE, &limit), errno);
	signal(SIGXFSZ, grow ? SIG_DFL : SIG_IGN);
}

static void a_write_that_fails_leaves_nothing_behind(void **state) {
	char detail[SEAL_KEYS_DETAIL_BYTES] = "";
	const struct seal_keys *keys;
	char text[32];

	(void)state;
	write_file("old", TEXT("tocsin-key-1"), 0600);
	assert_int_equal(seal_keys_create_random(&keys), 0);
	let_files_grow(false);
	assert_int_equal(seal_keys_write_new(path_of("key"), keys, detail), -EFBIG);
	assert_int_equal(seal_keys_rewrite(path_of("old"), keys, detail), -EFBIG);
	let_files_grow(true);
	assert_non_null(strstr(detail, "cannot replace it: File too large"));
	assert_int_equal(read_file("old", text, sizeof(text)), strlen("tocsin-key-1"));
	assert_int_equal(count_files(), 1);
	seal_keys_put(keys);
}

static void a_rewritten_file_keeps_mode_and_owner_and_its_link(void **state) {
	uid_t owner = geteuid() == 0 ? 0 : geteuid();
	char detail[SEAL_KEYS_DETAIL_BYTES];
	const struct seal_keys *keys, *back;
	struct stat status;

	(void)state;
	write_file("key", TEXT("tocsin-key-1 " ONE "\n"), 0400);
	if (geteuid() == 0)
		assert_return_code(chown(path_of("key"), 0, STRANGER), errno);
	assert_return_code(symlink("key", path_of("link")), errno);
	assert_int_equal(seal_keys_create_random(&keys), 0);
	assert_int_equal(seal_keys_rewrite(path_of("link"), keys, detail), 0);
	assert_return_code(lstat(path_of("key"), &status), errno);
	assert_int_equal(status.st_mode, S_IFREG | 0400);
	assert_int_equal(status.st_uid, owner);
	if (geteuid() == 0)
		assert_int_equal(status.st_gid, STRANGER);
	assert_return_code(lstat(path_of("link"), &status), errno);
	assert_true(S_ISLNK(status.st_mode));
	assert_int_equal(seal_keys_load(path_of("link"), detail, &back), 0);
	assert_memory_equal(keys->keys, back->keys, sizeof(keys->keys));
	assert_int_equal(count_files(), 2);
	seal_keys_put(keys);
	seal_keys_put(back);
}

static void a_file_that_would_not_be_loaded_is_not_rewritten(void **state) {
	char detail[SEAL_KEYS_DETAIL_BYTES] = "";
	const struct seal_keys *keys;

	(void)state;
	assert_int_equal(seal_keys_create_random(&keys), 0);
	write_file("key", TEXT("tocsin-key-1 " ONE "\n"), 0644);
	assert_int_equal(seal_keys_rewrite(path_of("key"), keys, detail), -EPERM);
	assert_non_null(strstr(detail, "mode 0644"));
	assert_int_equal(seal_keys_rewrite(path_of("none"), keys, detail), -ENOENT);
	assert_int_equal(count_files(), 1);
	seal_keys_put(keys);
}

#define in_place(test) cmocka_unit_test_setup_teardown(test, setup_place, teardown_place)

UNIT_GROUP(seal_keys) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_or_two_keys_are_read_in_their_order),
		cmocka_unit_test(a_wrong_text_is_refused_with_its_line_and_without_its_bytes),
		cmocka_unit_test(what_is_formatted_is_read_as_the_same_keys),
		cmocka_unit_test(an_id_follows_from_its_key_and_is_no_part_of_it),
		cmocka_unit_test(a_step_of_a_replacement_that_makes_no_sense_is_refused),
		cmocka_unit_test(a_replacement_adds_swaps_and_drops),
		cmocka_unit_test(keys_live_until_the_last_reference_is_put),
		cmocka_unit_test(keyless_keys_follow_from_the_name_and_say_what_they_are),
		in_place(a_file_of_mode_0600_or_0400_is_loaded_through_a_link_as_well),
		in_place(a_file_that_others_could_read_or_write_is_refused),
		in_place(a_file_of_another_user_is_refused),
		in_place(what_is_no_regular_file_is_refused),
		in_place(a_file_where_others_may_write_is_refused_and_a_link_there_too),
		in_place(a_file_is_held_to_its_size),
		in_place(a_wrong_file_is_refused_with_path_and_line),
		in_place(a_new_file_has_mode_0600_whatever_the_umask_and_is_loaded),
		in_place(a_new_file_never_takes_the_place_of_another),
		in_place(a_new_file_needs_a_directory_that_is_ours),
		in_place(a_write_that_fails_leaves_nothing_behind),
		in_place(a_rewritten_file_keeps_mode_and_owner_and_its_link),
		in_place(a_file_that_would_not_be_loaded_is_not_rewritten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
