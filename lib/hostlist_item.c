// SPDX-License-Identifier: BSD-3-Clause
// One item of a hostlist, with its ranges.
#include "hostlist_item.h"

#include <lib/must.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

// One error of an item: the errno, and the words that follow the quoted item.
struct fault {
	int err;
	const char *sentence;
};

static const struct fault fault_empty = {
	-EINVAL, "is an empty item: a name such as node7 or node[01-16] is needed"};
static const struct fault fault_byte = {
	-EINVAL, "has an invalid character: letters, digits, '-', '_' and '.' are allowed"};
static const struct fault fault_nested = {-EINVAL, "has a bracket inside a bracket"};
static const struct fault fault_open = {-EINVAL, "has no closing ]"};
static const struct fault fault_closing = {-EINVAL, "has a ] without a ["};
static const struct fault fault_brackets = {-EINVAL, "has more than 8 brackets"};
static const struct fault fault_range = {
	-EINVAL, "has a range that is neither NUMBER nor NUMBER-NUMBER"};
static const struct fault fault_backwards = {-EINVAL, "has a range that runs backwards"};
static const struct fault fault_digits = {-ERANGE, "has a number of more than 18 digits"};
static const struct fault fault_long = {-ENAMETOOLONG, "makes names of more than 253 bytes"};

static_assert(HOSTLIST_BRACKETS_MAX == 8, "said by fault_brackets");
static_assert(HOSTLIST_DIGITS_MAX == 18, "said by fault_digits");
static_assert(HOSTLIST_NAME_LENGTH_MAX == 253, "said by fault_long");

static bool is_digit(char byte) {
	return byte >= '0' && byte <= '9';
}

bool hostlist_is_name_byte(char byte) {
	return is_digit(byte) || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
	       byte == '-' || byte == '_' || byte == '.';
}

uint32_t hostlist_digit_count(uint64_t value) {
	uint32_t count = 1;

	for (; value >= 10; value /= 10)
		count++;
	return count;
}

static uint32_t max_u32(uint32_t a, uint32_t b) {
	return a > b ? a : b;
}

static const struct fault *
number_read(const char **at, const char *end, uint64_t *ret_value, uint32_t *ret_width) {
	const char *start = *at;
	uint64_t value = 0;

	for (; *at < end && is_digit(**at); (*at)++) {
		if (*at - start == HOSTLIST_DIGITS_MAX)
			return &fault_digits;
		value = 10 * value + (uint64_t)(**at - '0');
	}
	if (*at == start)
		return &fault_range;
	*ret_value = value;
	*ret_width = (uint32_t)(*at - start);
	return NULL;
}

// Read one range and move *at past the range and its terminator, a comma or the bracket at `end`.
// After the bracket, *at is beyond `end`. After a comma it is not, and another range must follow.
static const struct fault *
range_read(const char **at, const char *end, struct hostlist_range *ret_range) {
	struct hostlist_range range;
	const struct fault *fault;
	uint32_t high_width;

	fault = number_read(at, end, &range.low, &range.width);
	if (fault != NULL)
		return fault;
	range.high = range.low;
	if (*at < end && **at == '-') {
		(*at)++;
		fault = number_read(at, end, &range.high, &high_width);
		if (fault != NULL)
			return fault;
	}
	if (range.high < range.low)
		return &fault_backwards;
	if (*at < end && **at != ',')
		return &fault_range;
	(*at)++;
	*ret_range = range;
	return NULL;
}

// Set the field to its first number.
static void field_rewind(struct hostlist_field *field) {
	if (field->ranges == NULL)
		return;
	field->next = field->ranges;
	must(range_read(&field->next, field->ranges_end, &field->range) == NULL);
	field->value = field->range.low;
}

// Check every range of a bracket, count its numbers and find the longest.
static const struct fault *
field_check(const struct hostlist_field *field, struct hostlist_item *item) {
	const char *at = field->ranges;
	const struct fault *fault;
	struct hostlist_range range;
	uint32_t digits_max = 0;
	uint64_t count = 0;

	while (at <= field->ranges_end) {
		fault = range_read(&at, field->ranges_end, &range);
		if (fault != NULL)
			return fault;
		digits_max = max_u32(digits_max, range.width);
		digits_max = max_u32(digits_max, hostlist_digit_count(range.high));
		if (__builtin_add_overflow(count, range.high - range.low + 1, &count))
			count = UINT64_MAX;
	}
	if (__builtin_mul_overflow(item->count, count, &item->count))
		item->count = UINT64_MAX;
	item->name_length_max += digits_max;
	return NULL;
}

// Read the next literal and bracket of the text. A field without a bracket is the last.
static const struct fault *
field_read(const char **at, const char *end, struct hostlist_field *ret_field) {
	struct hostlist_field field = {.literal = *at};
	const char *closing;

	while (*at < end && hostlist_is_name_byte(**at))
		(*at)++;
	field.literal_length = (size_t)(*at - field.literal);
	if (*at < end && **at == ']')
		return &fault_closing;
	if (*at < end && **at != '[')
		return &fault_byte;
	if (*at < end) {
		field.ranges = *at + 1;
		closing = memchr(field.ranges, ']', (size_t)(end - field.ranges));
		field.ranges_end = closing == NULL ? end : closing;
		if (memchr(field.ranges, '[', (size_t)(field.ranges_end - field.ranges)) != NULL)
			return &fault_nested;
		if (closing == NULL)
			return &fault_open;
		*at = closing + 1;
	}
	*ret_field = field;
	return NULL;
}

static const struct fault *item_split(const char *text, size_t length, struct hostlist_item *item) {
	const char *end = text + length;
	const char *at = text;
	const struct fault *fault;
	struct hostlist_field *field;

	if (length == 0)
		return &fault_empty;
	do {
		field = &item->fields[item->field_count++];
		fault = field_read(&at, end, field);
		if (fault != NULL)
			return fault;
		item->name_length_max += field->literal_length;
		if (field->ranges == NULL)
			break;
		if (item->field_count > HOSTLIST_BRACKETS_MAX)
			return &fault_brackets;
		fault = field_check(field, item);
		if (fault != NULL)
			return fault;
		field_rewind(field);
	} while (at < end);
	return item->name_length_max > HOSTLIST_NAME_LENGTH_MAX ? &fault_long : NULL;
}

int hostlist_item_read(
	const char *text, size_t length, struct parse_error *error, struct hostlist_item *ret_item
) {
	struct hostlist_item item = {.count = 1};
	const struct fault *fault = item_split(text, length, &item);

	if (fault != NULL)
		return parse_fail(error, fault->err, text, length, "%s", fault->sentence);
	*ret_item = item;
	return 0;
}

size_t hostlist_item_write(const struct hostlist_item *item, char *name) {
	size_t used = 0;

	for (uint32_t i = 0; i < item->field_count; i++) {
		const struct hostlist_field *field = &item->fields[i];
		uint32_t digits;
		uint64_t value;

		memcpy(name + used, field->literal, field->literal_length);
		used += field->literal_length;
		if (field->ranges == NULL)
			continue;
		value = field->value;
		digits = max_u32(hostlist_digit_count(value), field->range.width);
		for (uint32_t n = digits; n > 0; n--) {
			name[used + n - 1] = (char)('0' + value % 10);
			value /= 10;
		}
		used += digits;
	}
	return used;
}

bool hostlist_item_step(struct hostlist_item *item) {
	for (uint32_t i = item->field_count; i > 0; i--) {
		struct hostlist_field *field = &item->fields[i - 1];

		if (field->ranges == NULL)
			continue;
		if (field->value < field->range.high) {
			field->value++;
			return true;
		}
		if (field->next <= field->ranges_end) {
			must(range_read(&field->next, field->ranges_end, &field->range) == NULL);
			field->value = field->range.low;
			return true;
		}
		field_rewind(field);
	}
	return false;
}
