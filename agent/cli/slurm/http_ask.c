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

static bool find_all(void *handle, struct library *library) {
	const struct {
		const char *name;
		void *place;
	} functions[] = {
		{"curl_global_init", &library->global_init},
		{"curl_easy_init", &library->init},
		{"curl_easy_setopt", &library->set},
		{"curl_easy_getinfo", &library->get},
		{"curl_easy_perform", &library->perform},
		{"curl_easy_strerror", &library->words},
		{"curl_easy_cleanup", &library->cleanup},
		{"curl_slist_append", &library->append},
		{"curl_slist_free_all", &library->free_all},
	};

	for (size_t n = 0; n < sizeof(functions) / sizeof(functions[0]); n++) {
		void *function = dlsym(handle, functions[n].name);

		if (function == NULL)
			return false;
		memcpy(functions[n].place, &function, sizeof(function));
	}
	return true;
}

// Load libcurl, in any of Debian's builds. It stays loaded for later requests of this single
// thread.
static const struct library *curl_load(void) {
	static const char *const names[] = {"libcurl.so.4", "libcurl-gnutls.so.4"};
	static struct library library;
	static bool loaded;

	for (size_t n = 0; !loaded && n < sizeof(names) / sizeof(names[0]); n++) {
		void *handle = dlopen(names[n], RTLD_NOW | RTLD_LOCAL);

		loaded = handle != NULL && find_all(handle, &library) &&
			 library.global_init(CURL_GLOBAL_ALL) == CURLE_OK;
	}
	return loaded ? &library : NULL;
}

struct taking {
	struct http_answer answer;
	size_t capacity;
	bool too_large;
};

static size_t answer_receive(char *bytes, size_t one, size_t count, void *context) {
	struct taking *taking = context;
	size_t needed = taking->answer.size + count + 1;
	size_t capacity = taking->capacity > 0 ? taking->capacity : 65536;
	char *body;

	(void)one; // always 1
	if (needed > HTTP_ANSWER_BYTES_MAX) {
		taking->too_large = true;
		return 0;
	}
	while (capacity < needed)
		capacity *= 2;
	if (capacity != taking->capacity) {
		body = realloc(taking->answer.body, capacity);
		if (body == NULL)
			return 0;
		taking->answer.body = body;
		taking->capacity = capacity;
	}
	memcpy(taking->answer.body + taking->answer.size, bytes, count);
	taking->answer.size += count;
	taking->answer.body[taking->answer.size] = '\0';
	return count;
}

static void
set_up(const struct library *curl,
       CURL *easy,
       const struct http_question *question,
       struct curl_slist *headers,
       struct taking *taking) {
	curl->set(easy, CURLOPT_URL, question->url);
	curl->set(easy, CURLOPT_PROTOCOLS_STR, "http,https");
	curl->set(easy, CURLOPT_PROXY, "");
	curl->set(easy, CURLOPT_FOLLOWLOCATION, 0L);
	curl->set(easy, CURLOPT_NOSIGNAL, 1L);
	curl->set(easy, CURLOPT_TIMEOUT_MS, (long)(question->timeout_ns / 1000000));
	curl->set(easy, CURLOPT_HTTPHEADER, headers);
	curl->set(easy, CURLOPT_WRITEFUNCTION, answer_receive);
	curl->set(easy, CURLOPT_WRITEDATA, taking);
	if (question->unix_socket != NULL)
		curl->set(easy, CURLOPT_UNIX_SOCKET_PATH, question->unix_socket);
	if (question->body != NULL)
		curl->set(easy, CURLOPT_POSTFIELDS, question->body);
}

static int curl_fail(
	const struct library *curl, CURLcode code, bool too_large, char why[static HTTP_WHY_BYTES]
) {
	if (too_large) {
		snprintf(why, HTTP_WHY_BYTES, "its answer has no end");
		return -EFBIG;
	}
	snprintf(why, HTTP_WHY_BYTES, "%.160s", curl->words(code));
	return code == CURLE_OPERATION_TIMEDOUT ? -ETIMEDOUT : -EIO;
}

static int curl_perform(
	const struct library *curl,
	CURL *easy,
	char why[static HTTP_WHY_BYTES],
	struct taking *taking,
	struct http_answer *ret_answer
) {
	CURLcode code = curl->perform(easy);

	if (code == CURLE_OK)
		code = curl->get(easy, CURLINFO_RESPONSE_CODE, &taking->answer.status);
	if (code == CURLE_OK && taking->answer.body == NULL)
		taking->answer.body = strdup("");
	if (code == CURLE_OK && taking->answer.body == NULL)
		code = CURLE_OUT_OF_MEMORY;
	if (code != CURLE_OK) {
		free(taking->answer.body);
		return curl_fail(curl, code, taking->too_large, why);
	}
	*ret_answer = taking->answer;
	return 0;
}

int http_ask(
	const struct http_question *question,
	char ret_why[static HTTP_WHY_BYTES],
	struct http_answer *ret_answer
) {
	const struct library *curl = curl_load();
	struct taking taking = {.capacity = 0};
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
		set_up(curl, easy, question, headers, &taking);
		err = curl_perform(curl, easy, ret_why, &taking, ret_answer);
	}
out:
	curl->free_all(headers);
	if (easy != NULL)
		curl->cleanup(easy);
	return err;
}
