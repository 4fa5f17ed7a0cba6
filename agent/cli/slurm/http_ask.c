// SPDX-License-Identifier: BSD-3-Clause
// Sends HTTP requests with libcurl, which is loaded on first use.
#include "slurm/http_ask.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// libcurl's type checks are macros with the names of functions. The functions are called through
// pointers here, so the macros are disabled.
#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#undef curl_easy_setopt
#undef curl_easy_getinfo

struct library {
	__typeof__(&curl_global_init) global_init;
	__typeof__(&curl_easy_init) init;
	__typeof__(&curl_easy_setopt) set;
	__typeof__(&curl_easy_getinfo) get;
	__typeof__(&curl_easy_perform) perform;
	__typeof__(&curl_easy_strerror) words;
	__typeof__(&curl_easy_cleanup) cleanup;
	__typeof__(&curl_slist_append) append;
	__typeof__(&curl_slist_free_all) free_all;
};

// Load libcurl, in any of Debian's builds. It stays loaded for later requests of this single
// thread.
static const struct library *curl_load(void) {
	static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
	static struct library library;
	static bool loaded;
	static const struct {
		const char *name;
		void *place;
	} functions[] = {
		{"curl_global_init", &library.global_init}, {"curl_easy_init", &library.init},
		{"curl_easy_setopt", &library.set},	    {"curl_easy_getinfo", &library.get},
		{"curl_easy_perform", &library.perform},    {"curl_easy_strerror", &library.words},
		{"curl_easy_cleanup", &library.cleanup},    {"curl_slist_append", &library.append},
		{"curl_slist_free_all", &library.free_all},
	};

	for (size_t n = 0; !loaded && n < sizeof(names) / sizeof(names[0]); n++) {
		void *handle = dlopen(names[n], RTLD_NOW | RTLD_LOCAL);

		loaded = handle != NULL;
		for (size_t k = 0; loaded && k < sizeof(functions) / sizeof(functions[0]); k++) {
			void *function = dlsym(handle, functions[k].name);

			loaded = function != NULL;
			memcpy(functions[k].place, &function, sizeof(function));
		}
		loaded = loaded && library.global_init(CURL_GLOBAL_ALL) == CURLE_OK;
	}
	return loaded ? &library : NULL;
}

struct answer_buffer {
	struct http_answer answer;
	size_t capacity;
	bool too_large;
};

static size_t answer_receive(char *bytes, size_t one, size_t count, void *context) {
	struct answer_buffer *answer_buffer = context;
	size_t needed = answer_buffer->answer.size + count + 1;
	size_t capacity = answer_buffer->capacity > 0 ? answer_buffer->capacity : 65536;
	char *body;

	(void)one; // always 1
	if (needed > HTTP_ANSWER_BYTES_MAX) {
		answer_buffer->too_large = true;
		return 0;
	}
	while (capacity < needed)
		capacity *= 2;
	if (capacity != answer_buffer->capacity) {
		body = realloc(answer_buffer->answer.body, capacity);
		if (body == NULL)
			return 0;
		answer_buffer->answer.body = body;
		answer_buffer->capacity = capacity;
	}
	memcpy(answer_buffer->answer.body + answer_buffer->answer.size, bytes, count);
	answer_buffer->answer.size += count;
	answer_buffer->answer.body[answer_buffer->answer.size] = '\0';
	return count;
}

static void curl_set_options(
	const struct library *curl,
	CURL *easy,
	const struct http_question *question,
	struct curl_slist *headers,
	struct answer_buffer *answer_buffer
) {
	curl->set(easy, CURLOPT_URL, question->url);
	curl->set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl->set(easy, CURLOPT_PROXY, "");
	curl->set(easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl->set(easy, CURLOPT_NOSIGNAL, 1L);
	curl->set(easy, CURLOPT_TIMEOUT_MS, (long)(question->timeout_ns / 1000000));
	curl->set(easy, CURLOPT_HTTPHEADER, headers);
	curl->set(easy, CURLOPT_WRITEFUNCTION, answer_receive);
	curl->set(easy, CURLOPT_WRITEDATA, answer_buffer);
	if (question->unix_socket != NULL)
		curl->set(easy, CURLOPT_UNIX_SOCKET_PATH, question->unix_socket);
	if (question->body != NULL)
		curl->set(easy, CURLOPT_POSTFIELDS, question->body);
}

static int curl_perform(
	const struct library *curl,
	CURL *easy,
	char why[static HTTP_WHY_BYTES],
	struct answer_buffer *answer_buffer,
	struct http_answer *ret_answer
) {
	CURLcode code = curl->perform(easy);

	if (code == CURLE_OK)
		code = curl->get(easy, CURLINFO_RESPONSE_CODE, &answer_buffer->answer.status);
	if (code == CURLE_OK && answer_buffer->answer.body == NULL)
		answer_buffer->answer.body = strdup("");
	if (code == CURLE_OK && answer_buffer->answer.body == NULL)
		code = CURLE_OUT_OF_MEMORY;
	if (code != CURLE_OK) {
		free(answer_buffer->answer.body);
		if (answer_buffer->too_large) {
			snprintf(why, HTTP_WHY_BYTES, "the answer is too long");
			return -EFBIG;
		}
		snprintf(why, HTTP_WHY_BYTES, "%.160s", curl->words(code));
		return code == CURLE_OPERATION_TIMEDOUT ? -ETIMEDOUT : -EIO;
	}
	*ret_answer = answer_buffer->answer;
	return 0;
}

int http_ask(
	const struct http_question *question,
	char ret_why[static HTTP_WHY_BYTES],
	struct http_answer *ret_answer
) {
	const struct library *curl = curl_load();
	struct answer_buffer answer_buffer = {.capacity = 0};
	struct curl_slist *headers = NULL, *longer;
	CURL *easy;
	int err = -ENOMEM;

	if (curl == NULL) {
		snprintf(ret_why, HTTP_WHY_BYTES, "libcurl.so.4 is not installed");
		return -ENOENT;
	}
	snprintf(ret_why, HTTP_WHY_BYTES, "out of memory");
	easy = curl->init();
	for (size_t n = 0; easy != NULL && n < question->header_count; n++) {
		longer = curl->append(headers, question->headers[n]);
		if (longer == NULL)
			goto out;
		headers = longer;
	}
	if (easy != NULL) {
		curl_set_options(curl, easy, question, headers, &answer_buffer);
		err = curl_perform(curl, easy, ret_why, &answer_buffer, ret_answer);
	}
out:
	curl->free_all(headers);
	if (easy != NULL)
		curl->cleanup(easy);
	return err;
}
