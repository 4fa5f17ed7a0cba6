// SPDX-License-Identifier: BSD-3-Clause
// Devices that appear after the start: they become rails, and the software device that was their
// fallback is retired.
//
// An index in fabric->nics is never used again, because pairs, paths and baselines refer to it.
#include "fabric/inside.h"
#include "fabric/probing.h"

#include <lib/log.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static bool
device_is_known(const struct fabric *fabric, const char *name, uint64_t guid, uint8_t port) {
	for (uint32_t n = 0; n < fabric->nic_count; n++) {
		const struct nic *nic = &fabric->nics[n];

		if (strcmp(nic->config.name, name) == 0 || strcmp(nic->open_name, name) == 0)
			return true;
		// The GUID is known: this is the same device under another name, unless it is
		// another port.
		if (guid != 0 && nic->guid == guid &&
		    (port == 0 || nic->config.settings.port == 0 ||
		     nic->config.settings.port == port))
			return true;
	}
	return false;
}

int fabric_add_device(
	struct fabric *fabric, const struct fabric_device *device, uint64_t guid, uint32_t pair_max
) {
	struct nic *nic = &fabric->nics[fabric->nic_count];
	int err = 0;

	if (fabric->stopping)
		return -EAGAIN;
	if (device_is_known(fabric, device->name, guid, device->settings.port))
		return -EEXIST;
	if (fabric->nic_count == FABRIC_DEVICES_MAX)
		return -ENOSPC;
	if (fabric->config.device_count == 0) {
		err = fabric->config.probe.on ? probing_create(fabric) : 0;
		if (err == 0)
			fabric_start_pulse(fabric);
	}
	if (err == 0)
		fabric->config.device_count++; // probing has started, even if this device fails
	if (err == 0)
		err = fabric_nic_init(fabric, nic, fabric->nic_count, device);
	if (err != 0)
		return err;
	nic->config.announce_after_open = true; // announced when it is open
	fabric->config.pair_max = pair_max;
	fabric->nic_count++;
	nic_open(nic);
	return 0;
}

static void nic_retire(struct nic *nic, const struct nic *successor) {
	struct fabric *fabric = nic->fabric;
	char why[DEVICE_NAME_MAX + 32];

	snprintf(why, sizeof(why), "replaced by %s", successor->config.name);
	log_event(
		LOG_LEVEL_INFO, "rdma_device_retired", log_str("device", nic->config.name),
		log_str("reason", why)
	);
	nic->retired = nic->tried = true;
	if (nic->open)
		nic_mark_lost(nic, why);
	else
		pairing_device_state(
			fabric->pairing, loop_clock_ns(fabric->loop), nic->number,
			PAIRING_DEVICE_LOST, why
		);
	rails_own_changed(fabric);
	neighbours_update_soon(fabric);
}

void nic_retire_fallbacks(const struct nic *nic) {
	struct fabric *fabric = nic->fabric;

	if (nic->config.is_fallback)
		return;
	for (uint32_t n = 0; n < fabric->nic_count; n++) {
		if (fabric->nics[n].config.is_fallback && !fabric->nics[n].retired)
			nic_retire(&fabric->nics[n], nic);
	}
}
