// SPDX-License-Identifier: BSD-3-Clause
// One HTTP request with libcurl. The library is loaded on first use: linked, it would slow the
// start of every command from 2 ms to 18 ms.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define HTTP_WHY_BYTES 256
#define HTTP_ANSWER_BYTES_MAX ((size_t)64 << 20)

struct http_question {
	const char *url;	 // http:// or https://
	const char *unix_socket; // NULL: connect to the host of the URL
	const char *body;	 // JSON body of a POST; NULL: GET
	const char *const *headers;
	size_t header_count;
	uint64_t timeout_ns; // timeout of the whole request
};

struct http_answer {
	long status;
	char *body; // terminated; freed by the caller
	size_t size;
};

// Send a request. Returns 0 for an answer of any HTTP status. Redirects are not followed and
// proxies of the environment are not used, because the request may carry a token. Errors set
// ret_why: -ENOENT without libcurl, -EFBIG for a too long answer, -ETIMEDOUT, -ENOMEM, or -EIO.
int http_ask(
	const struct http_question *question,
	char ret_why[static HTTP_WHY_BYTES],
	struct http_answer *ret_answer
);
