// SPDX-License-Identifier: BSD-3-Clause
// What expands must hold its own names, and compress to a text that expands to the same set.
#include <lib/hostlist.h>
#include <lib/must.h>
#include <lib/scoped.h>
#include <support/fuzz.h>

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
	must(hostlist_compress(hostlist_names(list), hostlist_count(list), &text) == 0);
	must(hostlist_expand(text, strlen(text), COUNT_MAX, NULL, &back) == 0);
	check_same_set(list, back);
	must(hostlist_compress(hostlist_names(back), hostlist_count(back), &again) == 0);
	must(strcmp(text, again) == 0);
	hostlist_destroy(back);
	hostlist_destroy(list);
	return 0;
}
