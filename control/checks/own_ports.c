// SPDX-License-Identifier: BSD-3-Clause
// Whether the devices that the agent measures with can be used. It is they that jobs use: without
// them the node has no fabric, and says so before anybody else can.
#include "checks/own_inside.h"

#include <stdio.h>

// Somebody who moves a cable, or a port that trains anew, is through by then.
#define PORT_DOWN_NS UINT64_C(1000000000)

// One that hangs is the drivers' check's, and one that was never open was never there.
static bool is_down(const struct fabric_device_view *view) {
	return view->opened > 0 && view->state != FABRIC_DEVICE_UP &&
	       view->state != FABRIC_DEVICE_STUCK && view->reason[0] != '\0';
}

static uint32_t ports_down(struct own_checks *own, char *evidence) {
	const struct fabric_calls *calls = own->checks->config.fabric_calls;
	const struct fabric *fabric = own->checks->config.fabric;
	uint64_t now_ns = loop_clock_ns(own->checks->config.loop);
	uint32_t devices = fabric != NULL ? calls->device_count(fabric) : 0, count = 0;
	char text[VERDICT_EVIDENCE_MAX / 2];

	evidence[0] = '\0';
	for (uint32_t n = 0; n < devices && n < FABRIC_DEVICES_MAX; n++) {
		struct fabric_device_view view;

		calls->device_at(fabric, n, &view);
		if (!is_down(&view)) {
			own->down_ns[n] = 0;
			continue;
		}
		if (own->down_ns[n] == 0)
			own->down_ns[n] = now_ns;
		if (now_ns - own->down_ns[n] < PORT_DOWN_NS)
			continue;
		snprintf(text, sizeof(text), "%.24s: %.50s", view.name, view.reason);
		own_add(evidence, &count, text);
	}
	return count;
}

void own_look_at_ports(struct own_checks *own, bool due) {
	char evidence[VERDICT_EVIDENCE_MAX + 1];
	uint32_t count = ports_down(own, evidence);
	enum check_level level = count > 0 ? CHECK_CRITICAL : CHECK_OK;

	if (!due && level == own->all[OWN_PORTS].level)
		return;
	// What was held against its link need not wait for two intervals.
	if (level == CHECK_OK && own->all[OWN_PORTS].level == CHECK_CRITICAL)
		own->link_looks = OWN_LINK_LOOKS;
	own_result(own, OWN_PORTS, level, count > 0 ? evidence : "all devices can be used", 0);
}
