// SPDX-License-Identifier: BSD-3-Clause
// Parses "loss=1%,delay=50us±20us,seed=7" into faults. Pure; the text is user input.
#include <dataplane/soft.h>

#include <errno.h>
#include <stddef.h>
#include <string.h>

// Longer delays are unrealistic: queue pairs report an error by then.
#define DELAY_MAX_NS UINT64_C(1000000000)
#define PPM_MAX 1000000
#define FAULT_NAMES "loss, delay, reorder, dup, corrupt, large, to or seed"

struct item {
	const char *text; // "loss=1%"
	size_t length;
	const char *value; // "1%"
	size_t value_length;
};

typedef int
item_parse(const struct item *item, struct parse_error *ret_error, struct soft_faults *faults);

static int
parse_delay(const struct item *item, struct parse_error *ret_error, struct soft_faults *faults) {
	static const char *const signs[] = {"±", "+-"};
	size_t before = item->value_length;
	size_t sign = 0;
	int err;

	for (size_t i = 0; i < sizeof(signs) / sizeof(signs[0]) && sign == 0; i++) {
		const char *at =
			memmem(item->value, item->value_length, signs[i], strlen(signs[i]));

		if (at != NULL) {
			before = (size_t)(at - item->value);
			sign = strlen(signs[i]);
		}
	}
	err = parse_duration_ns(item->value, before, 0, DELAY_MAX_NS, ret_error, &faults->delay_ns);
	if (err != 0 || sign == 0)
		return err;
	// The jitter is at most the delay, because no packet can arrive before it was sent.
	return parse_duration_ns(
		item->value + before + sign, item->value_length - before - sign, 0,
		faults->delay_ns, ret_error, &faults->jitter_ns
	);
}

static int
parse_to(const struct item *item, struct parse_error *ret_error, struct soft_faults *faults) {
	return soft_address_parse(item->value, item->value_length, ret_error, &faults->to);
}

static int
parse_seed(const struct item *item, struct parse_error *ret_error, struct soft_faults *faults) {
	return parse_u64(item->value, item->value_length, 0, UINT64_MAX, ret_error, &faults->seed);
}

// parse NULL: a percentage, stored in ppm at this offset of struct soft_faults.
static const struct {
	const char *name, *example;
	item_parse *parse;
	size_t ppm_offset;
} kinds[] = {
	{"loss", "1%", NULL, offsetof(struct soft_faults, loss_ppm)},
	{"delay", "50us±20us", parse_delay, 0},
	{"reorder", "2%", NULL, offsetof(struct soft_faults, reorder_ppm)},
	{"dup", "0.5%", NULL, offsetof(struct soft_faults, duplicate_ppm)},
	{"corrupt", "0.1%", NULL, offsetof(struct soft_faults, corrupt_ppm)},
	{"large", "100%", NULL, offsetof(struct soft_faults, large_ppm)},
	{"to", "192.0.2.7", parse_to, 0},
	{"seed", "7", parse_seed, 0},
};

#define KINDS (sizeof(kinds) / sizeof(kinds[0]))

static int parse_item(
	struct item *item,
	bool seen[static KINDS],
	struct parse_error *ret_error,
	struct soft_faults *faults
) {
	const char *equals = memchr(item->text, '=', item->length);
	size_t name = equals != NULL ? (size_t)(equals - item->text) : item->length;
	size_t kind = 0;
	struct parse_error why;
	uint64_t ppm;
	int err;

	while (kind < KINDS && (strlen(kinds[kind].name) != name ||
				memcmp(kinds[kind].name, item->text, name) != 0))
		kind++;
	if (kind == KINDS)
		return parse_fail(
			ret_error, -EINVAL, item->text, item->length,
			"is not a fault; use " FAULT_NAMES ", for example loss=1%%"
		);
	if (equals == NULL)
		return parse_fail(
			ret_error, -EINVAL, item->text, item->length,
			"has no value; write for example %s=%s", kinds[kind].name,
			kinds[kind].example
		);
	if (seen[kind])
		return parse_fail(
			ret_error, -EINVAL, item->text, item->length,
			"repeats a fault; each fault is allowed once"
		);
	seen[kind] = true;
	item->value = equals + 1;
	item->value_length = item->length - name - 1;
	if (kinds[kind].parse != NULL) {
		err = kinds[kind].parse(item, &why, faults);
	} else {
		err = parse_percent_ppm(item->value, item->value_length, 0, PPM_MAX, &why, &ppm);
		if (err == 0)
			*(uint32_t *)(void *)((char *)faults + kinds[kind].ppm_offset) =
				(uint32_t)ppm;
	}
	if (err == 0)
		return 0;
	return parse_fail(
		ret_error, -EINVAL, item->text, item->length, "has an invalid value: %s", why.text
	);
}

int soft_faults_parse(
	const char *text,
	size_t length,
	struct parse_error *ret_error,
	struct soft_faults *ret_faults
) {
	struct soft_faults faults = {0};
	bool seen[KINDS] = {false};
	int err;

	for (size_t at = 0; length > 0 && at <= length;) {
		const char *comma = memchr(text + at, ',', length - at);
		struct item item = {.text = text + at, .length = length - at};

		if (comma != NULL)
			item.length = (size_t)(comma - item.text);
		err = parse_item(&item, seen, ret_error, &faults);
		if (err != 0)
			return err;
		at += item.length + 1;
	}
	faults.any = faults.loss_ppm > 0 || faults.large_ppm > 0 || faults.reorder_ppm > 0 ||
		     faults.duplicate_ppm > 0 || faults.corrupt_ppm > 0 || faults.delay_ns > 0;
	*ret_faults = faults;
	return 0;
}
