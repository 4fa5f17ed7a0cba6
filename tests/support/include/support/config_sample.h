// SPDX-License-Identifier: BSD-3-Clause
// A table of configuration keys with every type and kind of section, for tests of lib/config.
#pragma once

#include <lib/config.h>

#include <errno.h>
#include <string.h>

#define SAMPLE_NS_PER_MS 1000000

static const char *const sample_policies[] = {"adaptive", "spin", "event", NULL};

// Stands for a syntax check of a caller: rejects upper case.
static inline int sample_check_lower(const char *text, size_t length, struct parse_error *error) {
	for (size_t i = 0; i < length; i++) {
		if (text[i] >= 'A' && text[i] <= 'Z')
			return parse_fail(error, -EINVAL, text, length, "has upper case");
	}
	return 0;
}

static const struct config_key sample_keys[] = {
	{
		.section = "node",
		.name = "name",
		.type = CONFIG_STRING,
		.max = 64,
		.initial = "",
		.help = "The name of this node.",
	},
	{
		.section = "node",
		.name = "join",
		.type = CONFIG_STRING,
		.max = 1000,
		.check = config_check_hostlist,
		.allowed = "a hostlist such as node[001-128]",
		.initial = "",
		.reloadable = true,
		.help = "Whom to join.",
	},
	{
		.section = "node",
		.name = "cores",
		.type = CONFIG_STRING,
		.max = 1000,
		.check = config_check_cpu_set,
		.allowed = "processors such as 0-3,8",
		.initial = "",
		.help = "Where to run.",
	},
	{
		.section = "probe",
		.name = "enabled",
		.type = CONFIG_BOOL,
		.initial = "yes",
		.reloadable = true,
		.help = "Whether to probe at all.",
	},
	{
		.section = "probe",
		.name = "interval",
		.type = CONFIG_DURATION,
		.min = 10 * SAMPLE_NS_PER_MS,
		.max = INT64_C(3600000) * SAMPLE_NS_PER_MS,
		.initial = "1s",
		.reloadable = true,
		.help = "Time between two probes.",
	},
	{
		.section = "probe",
		.name = "deadline",
		.type = CONFIG_DURATION,
		.min = 0,
		.max = INT64_C(3600000) * SAMPLE_NS_PER_MS,
		.initial = "500ms",
		.reloadable = true,
		.help = "When a probe is lost.",
	},
	{
		.section = "probe",
		.name = "size",
		.type = CONFIG_SIZE,
		.min = 8,
		.max = 65536,
		.initial = "4KiB",
		.help = ".Bytes - of a probe\\message.",
	},
	{
		.section = "probe",
		.name = "policy",
		.type = CONFIG_ENUM,
		.choices = sample_policies,
		.initial = "adaptive",
		.help = "How to wait.",
	},
	{
		.section = "probe",
		.name = "tags",
		.type = CONFIG_LIST,
		.max = 3,
		.check = sample_check_lower,
		.initial = "a, b",
		.reloadable = true,
		.help = "What to call it.",
	},
	{
		.section = "device NAME",
		.name = "gid_index",
		.type = CONFIG_INT,
		.min = -1,
		.max = 255,
		.initial = "-1",
		.help = "Which address to use.",
	},
	{
		.section = "check NAME",
		.name = "command",
		.type = CONFIG_STRING,
		.min = 1,
		.max = 200,
		.reloadable = true,
		.help = "What to run.",
	},
};

// Reject keys of one section that contradict each other.
static inline void sample_find_conflicts(const struct config *config, struct config_load *load) {
	if (!config_key_is_valid(load, "probe", "deadline") ||
	    !config_key_is_valid(load, "probe", "interval"))
		return;
	if (config_get_duration_ns(config, "probe", "deadline") >
	    config_get_duration_ns(config, "probe", "interval"))
		config_reject_key(load, "probe", "deadline", "must not be longer than interval");
}

static const struct config_schema sample_schema = {
	.keys = sample_keys,
	.key_count = sizeof(sample_keys) / sizeof(sample_keys[0]),
	.conflict = sample_find_conflicts,
};
