// SPDX-License-Identifier: BSD-3-Clause
// Reads links in a keeper: first the list of devices, then one device after the other. So a hanging
// device is known by name.
#include "checks/builtin_inside.h"

#include <lib/container.h>
#include <lib/show.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SYSFS "/sys/class/infiniband"

// Owned by the keeper, and may outlive the checks.
struct call {
	char root[256];
	char device[CHECKS_NAME_MAX]; // "": read the list
	struct link_device_list list;
	struct link_port ports[LINK_DEVICE_PORTS_MAX];
	uint32_t count;
	congestion_ethtool_fn *ethtool;
	struct congestion_read reads[LINK_DEVICE_PORTS_MAX];
	uint32_t read_count;
};

static int sysfs_read_call(void *arg) {
	struct call *call = arg;

	if (call->device[0] == '\0')
		link_list_devices(call->root, &call->list);
	else
		call->count = link_read_device(call->root, call->device, call->ports);
	if (call->device[0] != '\0')
		congestion_read_device(
			call->root, call->device, call->ethtool, call->reads, &call->read_count
		);
	return 0;
}

static void links_read_next(struct builtin_links *links, const char *device) {
	const struct checks_config *config = &links->builtin->checks->config;
	struct keeper_call call = {.call = sysfs_read_call, .drop = free};
	struct call *arg = calloc(1, sizeof(*arg));

	if (arg == NULL)
		return; // the next read may find memory
	snprintf(arg->root, sizeof(arg->root), "%s", config->sysfs != NULL ? config->sysfs : SYSFS);
	snprintf(arg->device, sizeof(arg->device), "%s", device);
	arg->ethtool = config->ethtool != NULL ? config->ethtool : congestion_ethtool;
	call.arg = arg;
	if (keeper_run(links->keeper, &call, &links->request) != 0)
		free(arg);
}

static void sysfs_read_ended(struct keeper_request *request, void *arg, int result) {
	static const enum builtin_check places[LINK_FINDING_COUNT] = {
		[LINK_STATE] = BUILTIN_LINKS,
		[LINK_RATE] = BUILTIN_RATES,
		[LINK_ERRORS] = BUILTIN_ERRORS};
	struct builtin_links *links = container_of(request, struct builtin_links, request);
	struct builtin_checks *builtin = links->builtin;
	struct link_finding findings[LINK_FINDING_COUNT];
	const struct call *call = arg;
	uint64_t now_ns;

	(void)result;
	if (!links->reading) {
		links->list = call->list;
		links->reading = true;
	} else {
		for (uint32_t n = 0; n < call->count && links->count < LINK_PORTS_MAX; n++)
			links->ports[links->count++] = call->ports[n];
		for (uint32_t n = 0;
		     n < call->read_count && links->read_count < CONGESTION_PORTS_MAX; n++)
			links->reads[links->read_count++] = call->reads[n];
		links->next++;
	}
	if (links->next < links->list.count) {
		links_read_next(links, links->list.names[links->next]);
		return;
	}
	// All devices have been read, so the findings have the time of this moment.
	now_ns = loop_clock_ns(builtin->checks->config.loop);
	link_judge(&links->book, links->ports, links->count, &builtin->settings, now_ns, findings);
	for (uint32_t n = 0; n < LINK_FINDING_COUNT; n++)
		builtin_check_result(
			builtin, places[n], findings[n].level, findings[n].evidence,
			now_ns - links->began_ns
		);
	congestion_judge(&links->congestion, links->reads, links->read_count, now_ns, &findings[0]);
	builtin_check_result(
		builtin, BUILTIN_PAUSES, findings[0].level, findings[0].evidence,
		now_ns - links->began_ns
	);
}

int builtin_links_start(struct builtin_links *links, struct builtin_checks *builtin) {
	const struct keeper_ops ops = {.totals = builtin->checks->config.keepers};

	links->builtin = builtin;
	links->request.ended = sysfs_read_ended;
	return keeper_create(builtin->checks->config.loop, "tocsin-sysfs", &ops, &links->keeper);
}

void builtin_links_stop(struct builtin_links *links) {
	links->keeper = keeper_destroy(links->keeper);
}

void builtin_links_start_read(struct builtin_links *links) {
	if (links->request.job != NULL)
		return;
	links->reading = false;
	links->next = links->count = links->read_count = 0;
	links->began_ns = loop_clock_ns(links->builtin->checks->config.loop);
	links_read_next(links, "");
}

bool builtin_links_describe_hang(const struct builtin_links *links, char *text, size_t size) {
	char gone[SHOW_BYTES];

	if (!keeper_is_stuck(links->keeper))
		return false;
	show_duration(keeper_busy_ns(links->keeper), gone);
	if (links->reading)
		snprintf(
			text, size, "reading counters of %.24s has hung for %.16s",
			links->list.names[links->next], gone
		);
	else
		snprintf(text, size, "listing RDMA devices in /sys has hung for %.16s", gone);
	return true;
}
