// SPDX-License-Identifier: BSD-3-Clause
// The words for states of a device.
#include <control/fabric.h>
#include <lib/must.h>

static const char *const state_names[FABRIC_DEVICE_STATE_COUNT] = {
	[FABRIC_DEVICE_WAITING] = "waiting", [FABRIC_DEVICE_OPENING] = "opening",
	[FABRIC_DEVICE_UP] = "up",	     [FABRIC_DEVICE_DOWN] = "down",
	[FABRIC_DEVICE_CLOSING] = "closing", [FABRIC_DEVICE_STUCK] = "stuck",
};

const char *fabric_device_state_name(enum fabric_device_state state) {
	must(state < FABRIC_DEVICE_STATE_COUNT);
	return state_names[state];
}
