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

struct sample_device {
	const char *section;
	int32_t gid_index;
	const char *rate;
};

struct sample_check {
	const char *section, *command;
};

struct sample_settings {
	struct {
		const char *name, *join, *cores;
	} node;
	struct {
		bool enabled;
		uint64_t interval_ns, deadline_ns, size_bytes;
		uint32_t policy;
		struct config_list tags;
	} probe;
	const struct sample_device *devices[CONFIG_SECTIONS_MAX + 1];
	const struct sample_check *checks[CONFIG_SECTIONS_MAX + 1];
};

static const struct config_named sample_named[] = {
	{"device NAME", sizeof(struct sample_device), offsetof(struct sample_settings, devices)},
	{"check NAME", sizeof(struct sample_check), offsetof(struct sample_settings, checks)},
	{NULL, 0, 0},
};

// clang-format off
// NOLINTBEGIN(bugprone-macro-parentheses): a path of members
#define SAMPLE(section, key, type, member) \
	#section, #key, CONFIG_AT(type, struct sample_settings, section.member)
// NOLINTEND(bugprone-macro-parentheses)
#define SAMPLE_NAMED(section, key, type) \
	#section " NAME", #key, CONFIG_AT(type, struct sample_##section, key)
// clang-format on

static const struct config_key sample_keys[] = {
	{
		SAMPLE(node, name, STRING, name),
		.max = 64,
		.initial = "",
		.help = "The name of this node.",
	},
	{
		SAMPLE(node, join, STRING, join),
		.max = 1000,
		.check = config_check_hostlist,
		.allowed = "a hostlist such as node[001-128]",
		.initial = "",
		.reloadable = true,
		.help = "Whom to join.",
	},
	{
		SAMPLE(node, cores, STRING, cores),
		.max = 1000,
		.check = config_check_cpu_set,
		.allowed = "processors such as 0-3,8",
		.initial = "",
		.help = "Where to run.",
	},
	{
		SAMPLE(probe, enabled, BOOL, enabled),
		.initial = "yes",
		.reloadable = true,
		.help = "Whether to probe at all.",
	},
	{
		SAMPLE(probe, interval, DURATION, interval_ns),
		.min = 10 * SAMPLE_NS_PER_MS,
		.max = INT64_C(3600000) * SAMPLE_NS_PER_MS,
		.initial = "1s",
		.reloadable = true,
		.help = "Time between two probes.",
	},
	{
		SAMPLE(probe, deadline, DURATION, deadline_ns),
		.min = 0,
		.max = INT64_C(3600000) * SAMPLE_NS_PER_MS,
		.initial = "500ms",
		.reloadable = true,
		.help = "When a probe is lost.",
	},
	{
		SAMPLE(probe, size, SIZE, size_bytes),
		.min = 8,
		.max = 65536,
		.initial = "4KiB",
		.help = ".Bytes - of a probe\\message.",
	},
	{
		SAMPLE(probe, policy, ENUM, policy),
		.choices = sample_policies,
		.initial = "adaptive",
		.help = "How to wait.",
	},
	{
		SAMPLE(probe, tags, LIST, tags),
		.max = 3,
		.check = sample_check_lower,
		.initial = "a, b",
		.reloadable = true,
		.help = "What to call it.",
	},
	{
		SAMPLE_NAMED(device, gid_index, INT),
		.min = -1,
		.max = 255,
		.initial = "-1",
		.help = "Which address to use.",
	},
	{
		SAMPLE_NAMED(device, rate, STRING),
		.max = 16,
		.initial = "",
		.reloadable = true,
		.help = "The rate of the port.",
	},
	{
		SAMPLE_NAMED(check, command, STRING),
		.min = 1,
		.max = 200,
		.reloadable = true,
		.help = "What to run.",
	},
};

// Reject keys of one section that contradict each other.
static inline void sample_find_conflicts(const struct config *config, struct config_load *load) {
	const struct sample_settings *settings = config_settings(config);

	if (!config_key_is_valid(load, &settings->probe.deadline_ns) ||
	    !config_key_is_valid(load, &settings->probe.interval_ns))
		return;
	if (settings->probe.deadline_ns > settings->probe.interval_ns)
		config_reject_key(
			load, &settings->probe.deadline_ns, "must not be longer than interval"
		);
}

static const struct config_schema sample_schema = {
	.keys = sample_keys,
	.key_count = sizeof(sample_keys) / sizeof(sample_keys[0]),
	.named = sample_named,
	.settings_size = sizeof(struct sample_settings),
	.conflict = sample_find_conflicts,
};
