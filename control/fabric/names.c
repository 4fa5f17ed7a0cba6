// SPDX-License-Identifier: BSD-3-Clause
// Names of the states of devices and of GPU memory.
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

const char *fabric_gpu_state_name(enum fabric_gpu_state state) {
	static const char *const names[FABRIC_GPU_STATE_COUNT] = {
		[FABRIC_GPU_NONE] = "none",   [FABRIC_GPU_AWAITED] = "awaited",
		[FABRIC_GPU_SHOWN] = "shown", [FABRIC_GPU_MISSING] = "missing",
		[FABRIC_GPU_STUCK] = "stuck",
	};

	must(state < FABRIC_GPU_STATE_COUNT);
	return names[state];
}

const char *fabric_gpu_seen_name(enum fabric_gpu_seen seen) {
	static const char *const names[FABRIC_GPU_SEEN_COUNT] = {
		[FABRIC_GPU_UNSEEN] = "unseen",	  [FABRIC_GPU_GOOD] = "good",
		[FABRIC_GPU_SLOW] = "slow",	  [FABRIC_GPU_SILENT] = "silent",
		[FABRIC_GPU_REFUSED] = "refused", [FABRIC_GPU_WRONG] = "wrong",
	};

	must(seen < FABRIC_GPU_SEEN_COUNT);
	return names[seen];
}
