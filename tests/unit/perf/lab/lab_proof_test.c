// SPDX-License-Identifier: BSD-3-Clause
#include "run/proof.h"
#include "run/token.h"

#include <lib/wire.h>
#include <support/cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define TOKEN "0123456789abcdef0123456789abcdef"
#define OTHER "0123456789abcdef0123456789abcdee"

// One complete handshake; a test changes a byte of one message.
struct talk {
	struct proof_secrets secrets[2]; // of the client, of the server
	struct proof ends[2];
	uint8_t bytes[4][PROOF_MESSAGE_BYTES]; // KNOCK, CHALLENGE, PROOF, PROVEN
	size_t sizes[4];
};

static void talk_begin(struct talk *talk, const char *client, const char *server) {
	memset(talk, 0, sizeof(*talk));
	assert_int_equal(proof_init(), 0);
	if (client != NULL)
		proof_add_token(&talk->secrets[0], client);
	proof_add_token(&talk->secrets[1], server);
}

static struct channel_message message_of(const struct talk *talk, int n) {
	static const enum channel_kind kinds[] = {
		CHANNEL_KNOCK, CHANNEL_CHALLENGE, CHANNEL_PROOF, CHANNEL_PROVEN};

	return (struct channel_message
	){.kind = kinds[n], .bytes = talk->bytes[n], .size = talk->sizes[n]};
}

// Play a handshake in which a byte of one message is changed on its way. changed -1: none. Returns
// whether both ends accepted the proof.
static bool talk_play(struct talk *talk, int changed, size_t at, enum proof_answer *ret_answer) {
	struct channel_message message;
	struct wire_writer writer;

	wire_writer_init(&writer, talk->bytes[0], PROOF_MESSAGE_BYTES);
	proof_knock(&talk->ends[0], &talk->secrets[0], &writer);
	talk->sizes[0] = wire_writer_used(&writer);
	talk->bytes[0][at] ^= changed == 0;
	message = message_of(talk, 0);
	wire_writer_init(&writer, talk->bytes[1], PROOF_MESSAGE_BYTES);
	if (proof_challenge(&talk->ends[1], &talk->secrets[1], &message, &writer, ret_answer) != 0)
		return false;
	talk->sizes[1] = wire_writer_used(&writer);
	talk->bytes[1][at] ^= changed == 1;
	message = message_of(talk, 1);
	if (proof_read_challenge(&talk->ends[0], &talk->secrets[0], &message, ret_answer) != 0 ||
	    *ret_answer != PROOF_ANSWER_PROVE)
		return false;
	talk->sizes[2] = talk->sizes[3] = PROOF_MARK_BYTES;
	proof_make_mark(&talk->ends[0], PROOF_CLIENT, talk->bytes[2]);
	talk->bytes[2][at % PROOF_MARK_BYTES] ^= changed == 2;
	message = message_of(talk, 2);
	if (!proof_mark_is_valid(&talk->ends[1], PROOF_CLIENT, &message))
		return false;
	proof_make_mark(&talk->ends[1], PROOF_SERVER, talk->bytes[3]);
	talk->bytes[3][at % PROOF_MARK_BYTES] ^= changed == 3;
	message = message_of(talk, 3);
	return proof_mark_is_valid(&talk->ends[0], PROOF_SERVER, &message);
}

static void both_ends_of_one_token_prove_it(void **state) {
	enum proof_answer answer;
	struct talk talk;

	(void)state;
	talk_begin(&talk, TOKEN, TOKEN);
	assert_true(talk_play(&talk, -1, 0, &answer));
}

static void each_changed_byte_of_each_message_ends_the_proof(void **state) {
	struct talk whole;
	enum proof_answer answer;

	(void)state;
	talk_begin(&whole, TOKEN, TOKEN);
	assert_true(talk_play(&whole, -1, 0, &answer));
	for (int message = 0; message < 4; message++) {
		for (size_t at = 0; at < whole.sizes[message]; at++) {
			struct talk talk;

			talk_begin(&talk, TOKEN, TOKEN);
			assert_false(talk_play(&talk, message, at, &answer));
		}
	}
}

static void secrets_are_wiped(void **state) {
	static const struct proof_secrets none;
	char token[TOKEN_BYTES] = TOKEN;
	struct proof_secrets secrets = {.open = true, .source = "a file"};

	(void)state;
	proof_add_token(&secrets, token);
	proof_secrets_wipe(&secrets);
	assert_memory_equal(&secrets, &none, sizeof(none));
	token_wipe(&token);
	for (size_t n = 0; n < sizeof(token); n++)
		assert_int_equal(token[n], 0);
}

static void a_shortened_or_longer_message_is_refused(void **state) {
	struct channel_message message;
	uint8_t bytes[PROOF_MESSAGE_BYTES];
	struct wire_writer writer;
	enum proof_answer answer;
	struct talk talk;

	(void)state;
	talk_begin(&talk, TOKEN, TOKEN);
	assert_true(talk_play(&talk, -1, 0, &answer));
	for (size_t size = 0; size < PROOF_MESSAGE_BYTES; size++) {
		message = message_of(&talk, 0);
		message.size = size;
		wire_writer_init(&writer, bytes, sizeof(bytes));
		assert_int_equal(
			proof_challenge(
				&talk.ends[1], &talk.secrets[1], &message, &writer, &answer
			),
			size == talk.sizes[0] ? 0 : -EBADMSG
		);
		message = message_of(&talk, 1);
		message.size = size;
		assert_int_equal(
			proof_read_challenge(&talk.ends[0], &talk.secrets[0], &message, &answer),
			size == talk.sizes[1] ? 0 : -EBADMSG
		);
		message = message_of(&talk, 2);
		message.size = size;
		if (size != PROOF_MARK_BYTES)
			assert_false(proof_mark_is_valid(&talk.ends[1], PROOF_CLIENT, &message));
	}
}

static void the_mark_of_the_other_role_is_refused(void **state) {
	struct channel_message message;
	enum proof_answer answer;
	struct talk talk;

	(void)state;
	talk_begin(&talk, TOKEN, TOKEN);
	assert_true(talk_play(&talk, -1, 0, &answer));
	message = message_of(&talk, 2);
	message.kind = CHANNEL_PROVEN;
	assert_false(proof_mark_is_valid(&talk.ends[0], PROOF_SERVER, &message));
	message = message_of(&talk, 3);
	message.kind = CHANNEL_PROOF;
	assert_false(proof_mark_is_valid(&talk.ends[1], PROOF_CLIENT, &message));
}

static void the_mark_of_another_connection_is_refused(void **state) {
	struct channel_message message;
	struct talk first, second;
	enum proof_answer answer;

	(void)state;
	talk_begin(&first, TOKEN, TOKEN);
	talk_begin(&second, TOKEN, TOKEN);
	assert_true(talk_play(&first, -1, 0, &answer));
	assert_true(talk_play(&second, -1, 0, &answer));
	for (int n = 2; n < 4; n++) {
		message = message_of(&first, n);
		assert_false(proof_mark_is_valid(
			&second.ends[n == 2], n == 2 ? PROOF_CLIENT : PROOF_SERVER, &message
		));
	}
}

static void without_a_common_secret_only_an_open_server_serves(void **state) {
	static const char *const clients[] = {OTHER, NULL};

	(void)state;
	for (size_t n = 0; n < 2; n++) {
		for (int open = 0; open < 2; open++) {
			enum proof_answer answer;
			struct talk talk;

			talk_begin(&talk, clients[n], TOKEN);
			talk.secrets[1].open = open == 1;
			assert_false(talk_play(&talk, -1, 0, &answer));
			assert_int_equal(
				answer, open == 1 ? PROOF_ANSWER_OPEN : PROOF_ANSWER_UNKNOWN
			);
		}
	}
}

static void the_key_of_a_cluster_proves_as_well(void **state) {
	struct seal_key key = {.secret = {1, 2, 3}};
	enum proof_answer answer;
	struct talk talk;

	(void)state;
	talk_begin(&talk, OTHER, TOKEN);
	proof_add_key(&talk.secrets[0], &key);
	proof_add_key(&talk.secrets[1], &key);
	assert_true(talk_play(&talk, -1, 0, &answer));
	assert_ptr_equal(talk.ends[1].secret, &talk.secrets[1].list[1]);
	assert_memory_not_equal(talk.secrets[1].list[1].secret, key.secret, SEAL_SECRET_BYTES);
}

static void a_server_may_not_name_a_secret_that_was_not_offered(void **state) {
	struct channel_message message;
	enum proof_answer answer;
	struct talk talk;

	(void)state;
	talk_begin(&talk, TOKEN, TOKEN);
	assert_true(talk_play(&talk, -1, 0, &answer));
	memset(&talk.secrets[0], 0, sizeof(talk.secrets[0]));
	proof_add_token(&talk.secrets[0], OTHER);
	message = message_of(&talk, 1);
	assert_int_equal(
		proof_read_challenge(&talk.ends[0], &talk.secrets[0], &message, &answer), -EBADMSG
	);
}

static char directory[] = "/tmp/tocsin-lab-proof-XXXXXX";

static int directory_make(void **state) {
	(void)state;
	memcpy(strstr(directory, "proof-") + 6, "XXXXXX", 6);
	return mkdtemp(directory) != NULL && unsetenv(TOKEN_ENVIRONMENT) == 0 &&
			       setenv("XDG_RUNTIME_DIR", directory, 1) == 0
		       ? 0
		       : -1;
}

static int directory_remove(void **state) {
	char path[128];

	(void)state;
	snprintf(path, sizeof(path), "%s/tocsin-perf", directory);
	(void)rmdir(path);
	return rmdir(directory);
}

static void a_file_of_a_token_is_for_its_user_only(void **state) {
	char path[128], token[TOKEN_BYTES] = "none";
	struct lab_why why = {.text = ""};
	struct stat status;

	(void)state;
	snprintf(path, sizeof(path), "%s/token", directory);
	assert_int_equal(token_file_read(path, token, &why), -ENOENT);
	why.text[0] = '\0';
	assert_int_equal(token_file_write(path, TOKEN, &why), 0);
	assert_int_equal(stat(path, &status), 0);
	assert_int_equal(status.st_mode & ALLPERMS, 0600);
	assert_int_equal(token_file_write(path, OTHER, &why), 0); // replaced
	assert_int_equal(token_file_read(path, token, &why), 0);
	assert_string_equal(token, OTHER);
	assert_int_equal(chmod(path, 0640), 0);
	assert_int_equal(token_file_read(path, token, &why), -EPERM);
	assert_non_null(strstr(why.text, "mode 0640"));
	unlink(path);
}

static void texts_that_are_no_token_are_refused_and_not_quoted(void **state) {
	static const char *const texts[] = {
		"", "short", "0123456789abcdef0123456789abcde",
		"0123456789abcdef 123456789abcdef0"};
	char path[128], token[TOKEN_BYTES] = "none", large[2 * TOKEN_BYTES];

	(void)state;
	snprintf(path, sizeof(path), "%s/token", directory);
	memset(large, 'a', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	for (size_t n = 0; n <= sizeof(texts) / sizeof(texts[0]); n++) {
		struct lab_why why = {.text = ""};
		const char *text = n < sizeof(texts) / sizeof(texts[0]) ? texts[n] : large;

		assert_int_equal(token_file_write(path, text, &why), 0);
		assert_int_equal(token_file_read(path, token, &why), -EINVAL);
		assert_string_equal(token, "none");
		assert_non_null(strstr(why.text, "has no token"));
		assert_true(text[0] == '\0' || strstr(why.text, text) == NULL);
	}
	unlink(path);
}

static void a_server_replaces_no_file_but_an_empty_one_or_a_token(void **state) {
	char path[128], link[128], text[TOKEN_BYTES];
	struct lab_why why = {.text = ""};
	FILE *file;

	(void)state;
	snprintf(path, sizeof(path), "%s/token", directory);
	snprintf(link, sizeof(link), "%s/link", directory);
	assert_int_equal(token_file_replace(path, TOKEN, &why), 0);
	assert_int_equal(token_file_replace(path, OTHER, &why), 0);
	assert_int_equal(truncate(path, 0), 0); // as mktemp(1) makes it
	assert_int_equal(token_file_replace(path, TOKEN, &why), 0);
	assert_int_equal(symlink(path, link), 0);
	assert_int_equal(token_file_replace(link, OTHER, &why), -EEXIST);
	assert_non_null(strstr(why.text, "not a regular file"));
	assert_int_equal(token_file_read(path, text, &why), 0);
	assert_string_equal(text, TOKEN);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs("tocsin-key-1 00\n", file);
	assert_int_equal(fclose(file), 0);
	why.text[0] = '\0';
	assert_int_equal(token_file_replace(path, OTHER, &why), -EEXIST);
	assert_non_null(strstr(why.text, "has no token"));
	unlink(link);
	unlink(path);
}

// The secrets of a client of a server on this machine. Returns their number without the cluster's.
static uint32_t local_secrets(uint16_t port, struct proof_secrets *secrets) {
	const struct lab_access access = {.key_file = NULL};
	struct sock_addr server = {.family = SOCK_ADDR_V4, .port = port, .address = {127, 0, 0, 1}};
	struct lab_why why = {.text = ""};

	assert_int_equal(access_begin_client(&access, &server, secrets, &why), 0);
	return secrets->source[0] != '\0';
}

static void a_client_on_this_machine_finds_what_its_server_published(void **state) {
	const struct sock_addr any = {.family = SOCK_ADDR_V6, .port = 4711};
	const struct sock_addr far = {
		.family = SOCK_ADDR_V4, .port = 4712, .address = {192, 0, 2, 1}};
	struct lab_why why = {.text = ""};
	struct proof_secrets secrets, expected = {.count = 0};
	char path[128];

	(void)state;
	assert_int_equal(token_publish(&any, TOKEN, &why), 0);
	assert_int_equal(token_publish(&far, TOKEN, &why), 0);
	assert_int_equal(local_secrets(4711, &secrets), 1);
	proof_add_token(&expected, TOKEN);
	assert_memory_equal(secrets.list[0].id, expected.list[0].id, SEAL_KEY_ID_BYTES);
	assert_false(secrets.token_required);
	assert_int_equal(local_secrets(4712, &secrets), 0);
	token_unpublish(&any, OTHER); // the file of another server stays
	assert_int_equal(local_secrets(4711, &secrets), 1);

	// A directory that others may write to is not trusted.
	snprintf(path, sizeof(path), "%s/tocsin-perf", directory);
	assert_int_equal(chmod(path, 0770), 0);
	assert_int_equal(local_secrets(4711, &secrets), 0);
	assert_int_equal(chmod(path, 0700), 0);
	token_unpublish(&any, TOKEN);
	assert_int_equal(local_secrets(4711, &secrets), 0);
}

static void the_environment_replaces_the_random_token_of_a_server(void **state) {
	const struct lab_access access = {.key_file = NULL};
	struct lab_why why = {.text = ""};
	struct proof_secrets secrets;
	char token[TOKEN_BYTES], again[TOKEN_BYTES];
	bool is_new;

	(void)state;
	assert_int_equal(access_begin_server(&access, &secrets, token, &is_new, &why), 0);
	assert_true(is_new);
	assert_int_equal(token_check(token, "it", &why), 0);
	assert_int_equal(access_begin_server(&access, &secrets, again, &is_new, &why), 0);
	assert_string_not_equal(token, again);
	assert_int_equal(setenv(TOKEN_ENVIRONMENT, OTHER, 1), 0);
	assert_int_equal(access_begin_server(&access, &secrets, token, &is_new, &why), 0);
	assert_false(is_new);
	assert_string_equal(token, OTHER);
	assert_int_equal(setenv(TOKEN_ENVIRONMENT, "short", 1), 0);
	assert_int_equal(access_begin_server(&access, &secrets, token, &is_new, &why), -EINVAL);
	assert_non_null(strstr(why.text, TOKEN_ENVIRONMENT));
	assert_string_equal(token, OTHER); // untouched
	assert_int_equal(unsetenv(TOKEN_ENVIRONMENT), 0);
}

UNIT_GROUP(lab_proof) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(both_ends_of_one_token_prove_it),
		cmocka_unit_test(secrets_are_wiped),
		cmocka_unit_test(each_changed_byte_of_each_message_ends_the_proof),
		cmocka_unit_test(a_shortened_or_longer_message_is_refused),
		cmocka_unit_test(the_mark_of_the_other_role_is_refused),
		cmocka_unit_test(the_mark_of_another_connection_is_refused),
		cmocka_unit_test(without_a_common_secret_only_an_open_server_serves),
		cmocka_unit_test(the_key_of_a_cluster_proves_as_well),
		cmocka_unit_test(a_server_may_not_name_a_secret_that_was_not_offered),
		cmocka_unit_test(a_file_of_a_token_is_for_its_user_only),
		cmocka_unit_test(a_server_replaces_no_file_but_an_empty_one_or_a_token),
		cmocka_unit_test(texts_that_are_no_token_are_refused_and_not_quoted),
		cmocka_unit_test(a_client_on_this_machine_finds_what_its_server_published),
		cmocka_unit_test(the_environment_replaces_the_random_token_of_a_server),
	};

	return cmocka_run_group_tests(tests, directory_make, directory_remove);
}
