// SPDX-License-Identifier: BSD-3-Clause
// One question over HTTP by libcurl, which is loaded when it is needed first: with it each command
// would start in 18 ms instead of 2.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HTTP_WHY_BYTES 256
#define HTTP_ANSWER_BYTES_MAX ((size_t)64 << 20)

struct http_question {
	const char *url;	 // http:// or https://
	const char *unix_socket; // NULL: by the URL's host
	const char *body;	 // what is posted, JSON; NULL: it is a GET
	const char *const *headers;
	size_t header_count;
	uint64_t timeout_ns; // of the whole
};

struct http_answer {
	long status;
	char *body; // terminated; the caller's to free
	size_t size;
};

// 0 for an answer of any status. No redirect is followed and no proxy of the environment asked:
// what is sent may carry a token. -ENOENT: there is no libcurl; -EFBIG: an answer without end;
// -ETIMEDOUT; -EIO: anything else, in words.
int http_ask(
	const struct http_question *question,
	char ret_why[static HTTP_WHY_BYTES],
	struct http_answer *ret_answer
);
