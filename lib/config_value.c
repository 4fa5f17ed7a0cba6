// SPDX-License-Identifier: BSD-3-Clause
// One value of a configuration: parsing, comparison, and a description of what a key accepts.
#include "config_impl.h"

#include <lib/config.h>
#include <lib/cpu_set.h>
#include <lib/hostlist.h>
#include <lib/must.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int parse_enum(
	const struct config_key *key,
	const char *text,
	struct parse_error *error,
	uint32_t *ret_choice
) {
	char allowed[PARSE_ERROR_BYTES / 2];

	for (uint32_t i = 0; key->choices[i] != NULL; i++) {
		if (strcmp(text, key->choices[i]) == 0) {
			*ret_choice = i;
			return 0;
		}
	}
	config_key_describe(key, allowed, sizeof(allowed));
	return parse_fail(error, -EINVAL, text, strlen(text), "is not %s", allowed);
}

// Check the length of a string or the item count of a list; `what` names the unit.
static int check_count(
	const struct config_key *key,
	const char *text,
	size_t count,
	const char *what,
	struct parse_error *error
) {
	if (count >= (size_t)key->min && count <= (size_t)key->max)
		return 0;
	return parse_fail(error, -ERANGE, text, strlen(text), "has %zu %s", count, what);
}

static bool is_blank(char byte) {
	return byte == ' ' || byte == '\t';
}

// Split the text at its commas, in place, and trim blanks from each item.
static void split_items(char *text, char **items) {
	size_t count = 0;

	while (text != NULL) {
		char *next = strchr(text, ',');
		char *end = next != NULL ? next : text + strlen(text);

		while (is_blank(*text))
			text++;
		while (end > text && is_blank(end[-1]))
			end--;
		*end = '\0';
		items[count++] = text;
		text = next != NULL ? next + 1 : NULL;
	}
}

static int check_items(
	const struct config_key *key,
	const char *text,
	char *const *items,
	size_t count,
	struct parse_error *error
) {
	for (size_t i = 0; i < count; i++) {
		int err = 0;

		if (items[i][0] == '\0')
			return parse_fail(error, -EINVAL, text, strlen(text), "has an empty item");
		if (key->check != NULL)
			err = key->check(items[i], strlen(items[i]), error);
		if (err != 0)
			return err;
	}
	return 0;
}

// Replace the list; its items and their text are one block.
static int parse_list(
	const struct config_key *key,
	const char *text,
	struct parse_error *error,
	struct config_list *list
) {
	size_t count = text[0] != '\0' ? 1 : 0, items_size;
	char **items;
	char *copy;
	int err;

	for (const char *at = text; *at != '\0'; at++)
		count += *at == ',';
	items_size = count * sizeof(char *);
	err = check_count(key, text, count, "items", error);
	if (err != 0)
		return err;
	items = malloc(items_size + strlen(text) + 1); // array of pointers, followed by the text
	if (items == NULL)
		return -ENOMEM;
	copy = memcpy((char *)items + items_size, text, strlen(text) + 1);
	if (count > 0)
		split_items(copy, items);
	err = check_items(key, text, items, count, error);
	if (err != 0) {
		free(items);
		return err;
	}
	free((void *)list->items);
	*list = (struct config_list){.items = (const char *const *)items, .count = count};
	return 0;
}

static int parse_typed(
	const struct config_key *key, const char *text, struct parse_error *error, void *member
) {
	uint64_t min = (uint64_t)key->min;
	uint64_t max = (uint64_t)key->max;
	size_t length = strlen(text);
	int64_t number;
	int err;

	switch (key->type) {
	case CONFIG_BOOL:
		return parse_bool(text, length, error, member);
	case CONFIG_INT:
		err = parse_i64(text, length, key->min, key->max, error, &number);
		if (err == 0)
			*(int32_t *)member = (int32_t)number;
		return err;
	case CONFIG_DURATION:
		return parse_duration_ns(text, length, min, max, error, member);
	case CONFIG_SIZE:
		return parse_size_bytes(text, length, min, max, error, member);
	case CONFIG_STRING:
		err = check_count(key, text, length, "bytes", error);
		return err != 0 || key->check == NULL ? err : key->check(text, length, error);
	case CONFIG_ENUM:
		return parse_enum(key, text, error, member);
	case CONFIG_LIST:
		return parse_list(key, text, error, member);
	}
	must(key->type <= CONFIG_LIST);
	return -EINVAL;
}

int config_value_parse(
	const struct config_key *key,
	const char *text,
	struct parse_error *error,
	struct config_value *value,
	void *settings
) {
	void *member = config_member(settings, key->offset);
	char *copy = strdup(text);
	int err;

	if (copy == NULL)
		return -ENOMEM;
	err = parse_typed(key, text, error, member);
	if (err != 0) {
		free(copy);
		return err;
	}
	free(value->text);
	value->text = copy;
	if (key->type == CONFIG_STRING)
		*(const char **)member = copy;
	return 0;
}

void config_value_fini(const struct config_key *key, struct config_value *value, void *settings) {
	struct config_list *list = config_member(settings, key->offset);

	if (key->type == CONFIG_LIST)
		free((void *)list->items);
	free(value->text);
}

static bool
values_are_equal(const struct config_key *key, const void *member, const void *against) {
	const struct config_list *list = member, *list_against = against;

	switch (key->type) {
	case CONFIG_BOOL:
		return *(const bool *)member == *(const bool *)against;
	case CONFIG_INT:
	case CONFIG_ENUM:
		return *(const uint32_t *)member == *(const uint32_t *)against;
	case CONFIG_DURATION:
	case CONFIG_SIZE:
		return *(const uint64_t *)member == *(const uint64_t *)against;
	case CONFIG_STRING:
		return strcmp(*(const char *const *)member, *(const char *const *)against) == 0;
	case CONFIG_LIST:
		if (list->count != list_against->count)
			return false;
		for (size_t i = 0; i < list->count; i++) {
			if (strcmp(list->items[i], list_against->items[i]) != 0)
				return false;
		}
		return true;
	}
	return false;
}

bool config_member_equal(const struct config_key *key, const void *settings, const void *other) {
	return values_are_equal(
		key, (const char *)settings + key->offset, (const char *)other + key->offset
	);
}

bool config_member_is_default(const struct config_key *key, const void *settings) {
	const char *text = key->initial != NULL ? key->initial : "";
	union {
		bool truth;
		uint32_t number;
		uint64_t amount;
		const char *string;
		struct config_list list;
	} value = {.list = {.items = NULL}};
	bool is_default;

	if (key->type == CONFIG_STRING)
		value.string = text;
	else if (parse_typed(key, text, NULL, &value) != 0)
		return false;
	is_default = values_are_equal(key, (const char *)settings + key->offset, &value);
	if (key->type == CONFIG_LIST)
		free((void *)value.list.items);
	return is_default;
}

static void describe_amount(
	const char *what,
	void (*format)(uint64_t value, char text[static PARSE_TEXT_BYTES]),
	const struct config_key *key,
	char *text,
	size_t text_size
) {
	char min[PARSE_TEXT_BYTES];
	char max[PARSE_TEXT_BYTES];

	format((uint64_t)key->min, min);
	format((uint64_t)key->max, max);
	snprintf(text, text_size, "a %s from %s to %s", what, min, max);
}

static void
describe_count(const char *what, const struct config_key *key, char *text, size_t text_size) {
	if (key->min == 0)
		snprintf(text, text_size, "up to %lld %s", (long long)key->max, what);
	else
		snprintf(
			text, text_size, "%lld to %lld %s", (long long)key->min,
			(long long)key->max, what
		);
}

void config_key_describe(const struct config_key *key, char *text, size_t text_size) {
	size_t used;

	if (key->allowed != NULL) {
		snprintf(text, text_size, "%s", key->allowed);
		return;
	}
	switch (key->type) {
	case CONFIG_BOOL:
		snprintf(text, text_size, "yes or no");
		break;
	case CONFIG_INT:
		snprintf(
			text, text_size, "a number from %lld to %lld", (long long)key->min,
			(long long)key->max
		);
		break;
	case CONFIG_DURATION:
		describe_amount("duration", format_duration_ns, key, text, text_size);
		break;
	case CONFIG_SIZE:
		describe_amount("size", format_size_bytes, key, text, text_size);
		break;
	case CONFIG_STRING:
		describe_count("bytes of text", key, text, text_size);
		break;
	case CONFIG_ENUM:
		used = (size_t)snprintf(text, text_size, "one of");
		for (size_t i = 0; key->choices[i] != NULL && used < text_size; i++)
			used += (size_t)snprintf(
				text + used, text_size - used, "%s %s", i > 0 ? "," : "",
				key->choices[i]
			);
		break;
	case CONFIG_LIST:
		describe_count("items separated by commas", key, text, text_size);
		break;
	}
}

// The value stays text; its users parse it again.
int config_check_hostlist(const char *text, size_t length, struct parse_error *error) {
	struct hostlist *list = NULL;
	int err;

	if (length == 0) // the key's min decides whether empty text is allowed
		return 0;
	err = hostlist_expand(text, length, CONFIG_HOSTLIST_COUNT_MAX, error, &list);
	hostlist_destroy(list);
	return err;
}

int config_check_cpu_set(const char *text, size_t length, struct parse_error *error) {
	struct cpu_set set;

	return length == 0 ? 0 : cpu_set_parse(text, length, error, &set);
}
