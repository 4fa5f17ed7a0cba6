// SPDX-License-Identifier: BSD-3-Clause
// Slurm through slurmrestd: GET nodes/ and node/NAME, and POST node/NAME, available since v0.0.39.
// Answers come from another machine, so they are bounded and parsed. Anything not understood
// changes nothing.
#include "slurm/http_ask.h"
#include "slurm/slurm_way.h"

#include <lib/escape.h>
#include <lib/scoped.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define URL_BYTES 1024
#define TOKEN_BYTES 8192
#define HEADER_BYTES (TOKEN_BYTES + 32)
#define UNIX_PREFIX "unix:"
#define JWT_PREFIX "SLURM_JWT=" // prefix in the output of `scontrol token`

static int rest_set_error(const struct slurm_way *way, char *why, int err, const char *what) {
	snprintf(why, SLURM_WHY_BYTES, "%.80s: %.160s", way->place, what);
	return err;
}

// Return true if the token may stand in a header; a line end in it could add headers.
static bool token_is_valid(const char *token) {
	for (const char *at = token; *at != '\0'; at++) {
		if (*at <= ' ' || *at > '~')
			return false;
	}
	return token[0] != '\0';
}

static ssize_t
token_read_file(const char *path, char token[static TOKEN_BYTES], const char **ret_why) {
	scoped_fd int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct stat info;
	ssize_t got;

	*ret_why = NULL;
	if (fd < 0 || fstat(fd, &info) != 0) {
		*ret_why = strerrordesc_np(errno);
		return -errno;
	}
	if (!S_ISREG(info.st_mode))
		*ret_why = "it is not a regular file";
	else if ((info.st_mode & (S_IRWXG | S_IRWXO)) != 0)
		*ret_why = "other users may read it; its mode must be 0600";
	if (*ret_why != NULL)
		return -EPERM;
	got = read(fd, token, TOKEN_BYTES - 1);
	if (got < 0) {
		*ret_why = strerrordesc_np(errno);
		return -errno;
	}
	token[got] = '\0';
	token[strcspn(token, "\r\n")] = '\0';
	return got;
}

// Load the token for each request, because tokens expire and are replaced. The token is "" if none
// is set, which suffices where slurmrestd trusts a Unix socket. No error text contains any byte of
// the token.
static int token_load(const struct slurm_way *way, char token[static TOKEN_BYTES], char *ret_why) {
	const char *given = getenv("SLURM_JWT"); // NOLINT(concurrency-mt-unsafe): one thread
	const char *why;
	char words[160];
	size_t skipped;

	token[0] = '\0';
	if (way->token_file != NULL) {
		if (token_read_file(way->token_file, token, &why) < 0) {
			snprintf(words, sizeof(words), "%.90s: %s", way->token_file, why);
			return rest_set_error(way, ret_why, -EACCES, words);
		}
		skipped = strncmp(token, JWT_PREFIX, strlen(JWT_PREFIX)) == 0 ? strlen(JWT_PREFIX)
									      : 0;
		memmove(token, token + skipped, strlen(token + skipped) + 1);
	} else if (given != NULL && given[0] != '\0') {
		snprintf(token, TOKEN_BYTES, "%s", given);
	} else {
		return 0;
	}
	if (!token_is_valid(token))
		return rest_set_error(way, ret_why, -EINVAL, "the token is not valid");
	return 0;
}

// Find an entry of "errors" in an answer of any status. Returns false if there is none.
static bool answer_find_error(const json_t *answer, char words[static 160]) {
	static const char *const keys[] = {"description", "error"};
	const json_t *row = json_array_get(json_object_get(answer, "errors"), 0);
	char quoted[120];

	if (row == NULL)
		return false;
	snprintf(words, 160, "an error without a description");
	for (size_t n = 0; n < 2; n++) {
		const char *said = json_string_value(json_object_get(row, keys[n]));

		if (said == NULL || said[0] == '\0')
			continue;
		escape_quote(said, strlen(said), quoted, sizeof(quoted));
		snprintf(words, 160, "%s", quoted);
		return true;
	}
	return true;
}

static int answer_check(
	const struct slurm_way *way,
	const struct http_answer *got,
	const json_t *answer,
	bool posted,
	char *ret_why
) {
	char error[160] = "", words[240];
	const char *hint = "";

	if (answer_find_error(answer, error) || got->status != 200) {
		if (got->status == 401 || got->status == 403)
			hint = "; give a file with a valid token by --rest-token";
		else if (got->status == 405 && posted)
			hint = "; slurmrestd can change nodes since v0.0.39 (Slurm 23.02)";
		else if (got->status == 404)
			hint = "; give the version of its API by --rest-api";
		snprintf(
			words, sizeof(words), "HTTP status %ld%s%s%s", got->status,
			error[0] != '\0' ? ": " : "", error, hint
		);
		return rest_set_error(way, ret_why, -EREMOTEIO, words);
	}
	if (!json_is_object(answer))
		return rest_set_error(way, ret_why, -EBADMSG, "the answer is not a JSON object");
	return 0;
}

// Send a request; `what` is "nodes/" or "node/NAME". The caller releases *ret_answer.
static int rest_request(
	const struct slurm_way *way,
	const char *what,
	const char *body,
	char *ret_why,
	json_t **ret_answer
) {
	bool local = strncmp(way->place, UNIX_PREFIX, strlen(UNIX_PREFIX)) == 0;
	char url[URL_BYTES], token[TOKEN_BYTES], token_header[HEADER_BYTES], user_header[320];
	const char *headers[] = {"Content-Type: application/json", "Expect:", NULL, NULL};
	struct http_question question = {
		.url = url,
		.unix_socket = local ? way->place + strlen(UNIX_PREFIX) : NULL,
		.body = body,
		.headers = headers,
		.header_count = 2,
		.timeout_ns = way->timeout_ns,
	};
	char words[HTTP_WHY_BYTES];
	struct http_answer got;
	json_t *answer;
	int err = token_load(way, token, ret_why);

	if (err != 0)
		return err;
	snprintf(
		url, sizeof(url), "%s/slurm/%s/%s", local ? "http://localhost" : way->place,
		way->api, what
	);
	if (token[0] != '\0') {
		snprintf(token_header, sizeof(token_header), "X-SLURM-USER-TOKEN: %s", token);
		headers[question.header_count++] = token_header;
	}
	if (way->user != NULL) {
		snprintf(user_header, sizeof(user_header), "X-SLURM-USER-NAME: %s", way->user);
		headers[question.header_count++] = user_header;
	}
	err = http_ask(&question, words, &got);
	if (err != 0)
		return rest_set_error(way, ret_why, err, words);
	answer = json_loadb(got.body, got.size, 0, NULL);
	free(got.body);
	err = answer_check(way, &got, answer, body != NULL, ret_why);
	if (err == 0)
		*ret_answer = answer;
	else
		json_decref(answer);
	return err;
}

static int rest_read(
	struct slurm_way *way,
	const char *only,
	struct slurm_nodes *ret_nodes,
	char ret_why[static SLURM_WHY_BYTES]
) {
	char what[SLURM_NODE_MAX + 8];
	json_t *answer;
	int err;

	if (only != NULL && !slurm_name_is_plain(only))
		return rest_set_error(way, ret_why, -EINVAL, "the node name is not valid in Slurm");
	snprintf(
		what, sizeof(what), "%s%s", only != NULL ? "node/" : "nodes/",
		only != NULL ? only : ""
	);
	err = rest_request(way, what, NULL, ret_why, &answer);
	if (err != 0)
		return err;
	err = slurm_nodes_read(answer, ret_nodes);
	json_decref(answer);
	if (err != 0)
		return rest_set_error(
			way, ret_why, err,
			err == -ENOMEM ? "out of memory" : "the answer has no nodes"
		);
	return 0;
}

static int rest_update(
	struct slurm_way *way,
	const char *node,
	const char *reason,
	char ret_why[static SLURM_WHY_BYTES]
) {
	char what[SLURM_NODE_MAX + 8];
	json_t *change, *answer = NULL;
	scoped_mem char *body = NULL;
	int err;

	snprintf(what, sizeof(what), "node/%s", node);
	if (reason != NULL)
		change = json_pack("{s:[s],s:s}", "state", "DRAIN", "reason", reason);
	else
		change = json_pack("{s:[s]}", "state", "UNDRAIN");
	body = change != NULL ? json_dumps(change, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;
	json_decref(change);
	if (body == NULL)
		return rest_set_error(way, ret_why, -ENOMEM, "out of memory");
	err = rest_request(way, what, body, ret_why, &answer);
	json_decref(answer);
	return err;
}

const struct slurm_way_ops slurm_rest_ops = {rest_read, rest_update};
