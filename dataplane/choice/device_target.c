// SPDX-License-Identifier: BSD-3-Clause
// Parses and formats the setting that selects a device.
#include <dataplane/device_choice.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define NUMBER_MAX 4095 // more NUMA nodes or GPUs than any machine has

static const char allowed[] =
	"is not allowed: use auto, best, nic:NAME, cpu:N, cuda:N, soft or none";

// Whole words, and prefixes that end with a colon.
static const struct {
	const char *text;
	enum device_target_kind kind;
} words[] = {
	{"auto", DEVICE_TARGET_AUTO}, {"best", DEVICE_TARGET_BEST},  {"nic:", DEVICE_TARGET_NIC},
	{"cpu:", DEVICE_TARGET_CPU},  {"cuda:", DEVICE_TARGET_CUDA}, {"soft", DEVICE_TARGET_SOFT},
	{"none", DEVICE_TARGET_NONE},
};

// Check a device name by the kernel's rules; it is a directory name in /sys.
static bool is_device_name(const char *text, size_t length) {
	if (length == 0 || length > DEVICE_NAME_MAX)
		return false;
	for (size_t n = 0; n < length; n++) {
		if (text[n] <= ' ' || text[n] > '~' || text[n] == '/')
			return false;
	}
	return true;
}

static int parse_target_value(
	const char *text,
	size_t length,
	size_t used,
	struct parse_error *error,
	struct device_target *target
) {
	uint64_t number;
	int err;

	if (target->kind == DEVICE_TARGET_NIC) {
		if (!is_device_name(text + used, length - used))
			return parse_fail(
				error, -EINVAL, text, length,
				"is not allowed: nic: needs a device name of 1 to %d printable "
				"bytes without blank or /",
				DEVICE_NAME_MAX
			);
		memcpy(target->name, text + used, length - used);
		return 0;
	}
	err = parse_u64(text + used, length - used, 0, NUMBER_MAX, NULL, &number);
	if (err != 0)
		return parse_fail(
			error, err, text, length,
			"is not allowed: %.*s needs a number from 0 to %d", (int)used, text,
			NUMBER_MAX
		);
	target->number = (uint32_t)number;
	return 0;
}

int device_target_parse(
	const char *text, size_t length, struct parse_error *error, struct device_target *ret_target
) {
	struct device_target target = {0};
	int err = 0;

	for (size_t n = 0; n < sizeof(words) / sizeof(words[0]); n++) {
		size_t size = strlen(words[n].text);
		bool is_whole = words[n].text[size - 1] != ':';

		if (length < size || (is_whole && length != size) ||
		    memcmp(text, words[n].text, size) != 0)
			continue;
		target.kind = words[n].kind;
		if (!is_whole)
			err = parse_target_value(text, length, size, error, &target);
		if (err == 0)
			*ret_target = target;
		return err;
	}
	return parse_fail(error, -EINVAL, text, length, "%s", allowed);
}

void device_target_format(
	const struct device_target *target, char text[static DEVICE_TARGET_TEXT_BYTES]
) {
	const char *word = "?";

	for (size_t n = 0; n < sizeof(words) / sizeof(words[0]); n++) {
		if (words[n].kind == target->kind)
			word = words[n].text;
	}
	if (target->kind == DEVICE_TARGET_NIC)
		snprintf(text, DEVICE_TARGET_TEXT_BYTES, "%s%s", word, target->name);
	else if (target->kind == DEVICE_TARGET_CPU || target->kind == DEVICE_TARGET_CUDA)
		snprintf(text, DEVICE_TARGET_TEXT_BYTES, "%s%" PRIu32, word, target->number);
	else
		snprintf(text, DEVICE_TARGET_TEXT_BYTES, "%s", word);
}
