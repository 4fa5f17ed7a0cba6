// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes hostlists. An expanded list must contain its own names, and compress to a text that
// expands to the same set.
#include <lib/hostlist.h>
#include <lib/must.h>
#include <lib/scoped.h>
#include <support/fuzz.h>

#include <stdlib.h>
#include <string.h>

#define COUNT_MAX 1000

static void check_same_set(const struct hostlist *a, const struct hostlist *b) {
	must(hostlist_count(a) == hostlist_count(b));
	for (uint32_t i = 0; i < hostlist_count(a); i++) {
		const char *name = hostlist_name(a, i);

		must(strlen(name) <= HOSTLIST_NAME_LENGTH_MAX);
		must(hostlist_contains(a, name, strlen(name)));
		must(hostlist_contains(b, name, strlen(name)));
	}
}

static char *compress(const struct hostlist *list) {
	uint32_t count = hostlist_count(list);
	const char **names = calloc((size_t)count + 1, sizeof(*names));
	char *text = NULL;

	must(names != NULL);
	for (uint32_t n = 0; n < count; n++)
		names[n] = hostlist_name(list, n);
	must(hostlist_compress(names, count, &text) == 0);
	free(names);
	return text;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	scoped_mem char *text = NULL;
	scoped_mem char *again = NULL;
	struct parse_error error;
	struct hostlist *list;
	struct hostlist *back;

	if (hostlist_expand((const char *)data, size, COUNT_MAX, &error, &list) != 0) {
		must(memchr(error.text, '\0', sizeof(error.text)) != NULL);
		return 0;
	}
	text = compress(list);
	must(hostlist_expand(text, strlen(text), COUNT_MAX, NULL, &back) == 0);
	check_same_set(list, back);
	again = compress(back);
	must(strcmp(text, again) == 0);
	hostlist_destroy(back);
	hostlist_destroy(list);
	return 0;
}
