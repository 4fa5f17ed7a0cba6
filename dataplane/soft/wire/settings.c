// SPDX-License-Identifier: BSD-3-Clause
// Parses the settings of software devices.
#include <dataplane/soft_settings.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define NAME_CHARACTERS              \
	"abcdefghijklmnopqrstuvwxyz" \
	"ABCDEFGHIJKLMNOPQRSTUVWXYZ" \
	"0123456789_-."

const char *const soft_setting_variables[SOFT_SETTING_COUNT] = {
	[SOFT_SETTING_NAME] = "TOCSIN_SOFT_NAME",
	[SOFT_SETTING_WIRE] = "TOCSIN_SOFT_WIRE",
	[SOFT_SETTING_ADDRESS] = "TOCSIN_SOFT_ADDRESS",
	[SOFT_SETTING_FAULTS] = "TOCSIN_SOFT_FAULTS",
};

static const char *text_or_default(const char *text, const char *otherwise) {
	return text == NULL || text[0] == '\0' ? otherwise : text;
}

static int read_names(
	const char *text,
	struct parse_error *error,
	struct soft_config *configs,
	uint32_t *ret_count
) {
	uint32_t count = 0;

	for (const char *at = text;; at++) {
		size_t length = strcspn(at, ",");

		if (count == SOFT_DEVICES_MAX)
			return parse_fail(
				error, -ERANGE, text, strlen(text),
				"names too many devices; at most %d are allowed", SOFT_DEVICES_MAX
			);
		if (length == 0 || length > SOFT_NAME_MAX || strspn(at, NAME_CHARACTERS) < length)
			return parse_fail(
				error, -EINVAL, at, length,
				"is not a device name; use 1 to %d letters, digits, _, - and ., and "
				"commas between several names",
				SOFT_NAME_MAX
			);
		for (uint32_t n = 0; n < count; n++) {
			if (strlen(configs[n].name) == length &&
			    memcmp(configs[n].name, at, length) == 0)
				return parse_fail(error, -EINVAL, at, length, "is given twice");
		}
		memcpy(configs[count].name, at, length);
		configs[count].name[length] = '\0';
		count++;
		at += length;
		if (*at == '\0')
			break;
	}
	*ret_count = count;
	return 0;
}

static int read_wire(
	const char *text, struct parse_error *error, struct soft_config *configs, uint32_t count
) {
	size_t length = strlen(text);
	enum soft_wire_kind kind;
	char args[SOFT_WIRE_ARGS_MAX + 1];
	int err = soft_wire_parse(text, length, error, &kind, args);

	if (err != 0)
		return err;
	if (kind == SOFT_WIRE_MEMORY)
		return parse_fail(
			error, -EINVAL, text, length,
			"connects only devices of one process; use udp or dpdk:DEVARGS"
		);
	if (kind == SOFT_WIRE_DPDK && count > 1)
		return parse_fail(
			error, -EINVAL, text, length,
			"is one port, but %u devices are named; use udp for several devices", count
		);
	for (uint32_t n = 0; n < count; n++) {
		configs[n].wire = kind;
		memcpy(configs[n].wire_args, args, sizeof(args));
	}
	return 0;
}

static int read_addresses(
	const char *text, struct parse_error *error, struct soft_config *configs, uint32_t count
) {
	const char *at = text;

	for (uint32_t n = 0; n < count; n++) {
		size_t length = strcspn(at, ",");
		bool ends = at[length] == '\0';
		int err = soft_address_parse(at, length, error, &configs[n].address);

		if (err != 0)
			return err;
		for (uint32_t other = 0; other < n; other++) {
			if (sock_addr_equal(&configs[other].address, &configs[n].address))
				return parse_fail(error, -EINVAL, at, length, "is given twice");
		}
		if (ends != (n + 1 == count))
			return parse_fail(
				error, -EINVAL, text, strlen(text),
				"does not have one address per device; the number of devices is %u",
				count
			);
		at += length + 1;
	}
	return 0;
}

static int read_faults(
	const char *text, struct parse_error *error, struct soft_config *configs, uint32_t count
) {
	struct soft_faults faults;
	int err = soft_faults_parse(text, strlen(text), error, &faults);

	for (uint32_t n = 0; n < count && err == 0; n++)
		configs[n].faults = faults;
	return err;
}

// Read one setting; each depends on those before it.
static int read_setting(
	enum soft_setting setting,
	const char *text,
	struct parse_error *error,
	struct soft_config *configs,
	uint32_t *count
) {
	switch (setting) {
	case SOFT_SETTING_NAME:
		return read_names(text_or_default(text, "soft0"), error, configs, count);
	case SOFT_SETTING_WIRE:
		return read_wire(text_or_default(text, "udp"), error, configs, *count);
	case SOFT_SETTING_ADDRESS:
		if (text != NULL && text[0] != '\0')
			return read_addresses(text, error, configs, *count);
		// There is no text to quote, so parse_fail() does not fit.
		if (configs[0].wire == SOFT_WIRE_DPDK) {
			snprintf(
				error->text, sizeof(error->text),
				"must be given: a DPDK port has no address of its own"
			);
			return -EINVAL;
		}
		for (uint32_t n = 0; n < *count; n++)
			configs[n].address_any = true;
		return 0;
	case SOFT_SETTING_FAULTS:
		if (text != NULL && text[0] != '\0')
			return read_faults(text, error, configs, *count);
		return 0;
	case SOFT_SETTING_COUNT:
		break;
	}
	return -EINVAL;
}

int soft_settings_read(
	const char *const texts[static SOFT_SETTING_COUNT],
	struct parse_error *ret_error,
	enum soft_setting *ret_wrong,
	struct soft_config ret_configs[static SOFT_DEVICES_MAX],
	uint32_t *ret_count
) {
	struct soft_config configs[SOFT_DEVICES_MAX] = {0};
	uint32_t count = 0;

	for (int setting = 0; setting < SOFT_SETTING_COUNT; setting++) {
		int err = read_setting(
			(enum soft_setting)setting, texts[setting], ret_error, configs, &count
		);

		if (err != 0) {
			*ret_wrong = (enum soft_setting)setting;
			return err;
		}
	}
	memcpy(ret_configs, configs, sizeof(configs));
	*ret_count = count;
	return 0;
}
