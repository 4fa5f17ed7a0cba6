// SPDX-License-Identifier: BSD-3-Clause
// Checks for strings whose syntax lib knows. The value stays text: who uses it reads it again.
#include <lib/config.h>
#include <lib/cpu_set.h>
#include <lib/hostlist.h>

int config_check_hostlist(const char *text, size_t length, struct parse_error *error) {
	struct hostlist *list = NULL;
	int err;

	if (length == 0) // whether that is allowed is for the key's bounds to say
		return 0;
	err = hostlist_expand(text, length, CONFIG_HOSTLIST_COUNT_MAX, error, &list);
	hostlist_destroy(list);
	return err;
}

int config_check_cpu_set(const char *text, size_t length, struct parse_error *error) {
	struct cpu_set set;

	return length == 0 ? 0 : cpu_set_parse(text, length, error, &set);
}
