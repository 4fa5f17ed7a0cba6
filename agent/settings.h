// SPDX-License-Identifier: BSD-3-Clause
// The settings of tocsind as values. The table in config_schema.c fills each member and explains
// it; lib/config owns the memory. An enum lists its choices in their order.
#pragma once

#include <control/checks.h>
#include <lib/config.h>
#include <lib/log.h>

struct device_section {
	const char *section; // "device mlx5_0"
	uint32_t port, traffic_class, service_level, timeout, retry, rnr_retry, min_rnr_timer;
	int32_t gid_index, pkey_index;
	uint32_t mtu; // index into the choices
	const char *wire, *address, *faults, *expect_rate;
};

struct check_section {
	const char *section; // "check disk"
	const char *command, *user;
	enum check_convention convention;
	uint64_t interval_ns, timeout_ns;
	uint32_t confirm, clear;
};

struct agent_settings {
	struct {
		const char *name, *host, *state_directory;
		uint64_t journal_size_bytes;
		struct config_list device;
	} node;
	struct {
		const char *cluster, *join, *expect, *listen, *advertise, *interface, *key;
		uint32_t profile; // index into the choices
		uint32_t connections;
	} overlay;
	struct {
		const char *cores;
		bool pin, huge_pages, lock_memory;
		struct config_list idle;
		uint64_t window_ns, memory_bytes;
	} worker;
	struct {
		bool enabled, rotation, gpu;
		uint64_t interval_ns, bytes;
		uint32_t packets;
	} probe;
	struct {
		const char *listen, *socket, *group;
		uint32_t connections;
		uint64_t idle_ns;
	} client;
	struct {
		bool enabled;
		const char *socket, *nccl_ras;
		uint32_t processes, per_user, keep;
		uint64_t keep_for_ns, waiting_ns, stuck_ns, stuck_busy_ns;
	} job;
	struct {
		uint64_t confirm_ns, interval_ns, webhook_timeout_ns;
		uint64_t memory_limit_bytes, disk_free_bytes;
		uint32_t drain_rate, drain_out; // percent
		bool act;
		const char *topology, *webhook, *webhook_user;
		struct config_list off;
	} health;
	struct {
		uint64_t size_bytes, interval_ns;
	} history;
	struct {
		const char *listen;
		struct config_list allow;
	} http;
	struct {
		enum log_level level;
	} log;
	// In the order of the file; NULL ends them.
	const struct device_section *devices[CONFIG_SECTIONS_MAX + 1];
	const struct check_section *checks[CONFIG_SECTIONS_MAX + 1];
};
