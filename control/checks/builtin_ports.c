// SPDX-License-Identifier: BSD-3-Clause
// Check of the devices that the agent measures with. Jobs use the same devices: without them the
// node has no fabric. The node itself knows this first.
#include "checks/builtin_inside.h"

#include <stdio.h>

// A cable that is being moved, or a link that trains again, is up by then.
#define PORT_DOWN_NS UINT64_C(1000000000)

// Return whether the device is down. A hanging device belongs to the drivers check. A device that
// never opened is not missed.
static bool device_is_down(const struct fabric_device_view *view) {
	return view->opened > 0 && view->state != FABRIC_DEVICE_UP &&
	       view->state != FABRIC_DEVICE_STUCK && view->reason[0] != '\0';
}

void builtin_check_ports(struct builtin_checks *builtin, bool due) {
	const struct fabric_calls *calls = builtin->checks->config.fabric_calls;
	const struct fabric *fabric = builtin->checks->config.fabric;
	uint64_t now_ns = loop_clock_ns(builtin->checks->config.loop);
	uint32_t devices = fabric != NULL ? calls->device_count(fabric) : 0, count = 0;
	char evidence[VERDICT_EVIDENCE_MAX + 1] = "", text[VERDICT_EVIDENCE_MAX / 2];
	enum check_level level;

	for (uint32_t n = 0; n < devices && n < FABRIC_DEVICES_MAX; n++) {
		struct fabric_device_view view;

		calls->device_at(fabric, n, &view);
		if (!device_is_down(&view)) {
			builtin->down_ns[n] = 0;
			continue;
		}
		if (builtin->down_ns[n] == 0)
			builtin->down_ns[n] = now_ns;
		if (now_ns - builtin->down_ns[n] < PORT_DOWN_NS)
			continue;
		snprintf(text, sizeof(text), "%.24s: %.50s", view.name, view.reason);
		builtin_evidence_add(evidence, &count, text);
	}
	level = count > 0 ? CHECK_CRITICAL : CHECK_OK;
	if (!due && level == builtin->all[BUILTIN_PORTS].level)
		return;
	// Read the links soon, so that a link judged down before need not wait for two intervals.
	if (level == CHECK_OK && builtin->all[BUILTIN_PORTS].level == CHECK_CRITICAL)
		builtin->link_looks = BUILTIN_LINK_READS;
	builtin_check_result(
		builtin, BUILTIN_PORTS, level, count > 0 ? evidence : "all devices are usable", 0
	);
}
