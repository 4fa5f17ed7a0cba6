// SPDX-License-Identifier: BSD-3-Clause
// Resources of a device that pairs need. The device's keeper creates and destroys them.
#include "fabric/inside.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int memory_view_register(
	struct nic_work *work,
	const void *memory,
	uint64_t length,
	uint32_t access,
	struct memory_view *ret_view
) {
	struct memory_request request = {
		.address = (uintptr_t)memory,
		.length = length,
		.access = access,
	};
	char reason[MEMORY_REASON_MAX + 1] = "";
	int err = memory_view_get(work->parts.registry, &request, reason, ret_view);

	if (err != 0)
		snprintf(work->reason, sizeof(work->reason), "%.*s", DEVICE_REASON_MAX, reason);
	return err;
}

// Destroy all existing parts in the required order. The lane must have no pairs.
static int nic_parts_destroy(struct nic_parts *parts) {
	int err = lane_destroy(parts->lane);

	if (err != 0)
		return err; // the device may still use the lane, so the parts below it stay
	parts->lane = NULL;
	if (parts->pulse.region != NULL)
		memory_view_put(&parts->pulse);
	if (parts->scratch.region != NULL)
		memory_view_put(&parts->scratch);
	if (parts->write_sink.region != NULL)
		memory_view_put(&parts->write_sink);
	if (parts->gpu.region != NULL)
		memory_view_put(&parts->gpu);
	parts->pulse.region = parts->scratch.region = parts->write_sink.region = NULL;
	parts->gpu.region = NULL;
	parts->registry = memory_registry_destroy(parts->registry);
	if (parts->registry != NULL)
		return -EBUSY; // a worker still holds a view, or the driver refused
	parts->device = device_put(parts->device);
	return 0;
}

// Read the pending events of a device that is being opened or closed, when nobody else reads them.
// Returns whether the device failed for good; then all its parts may be freed.
static bool device_reports_loss(struct device *device) {
	struct device_event event;
	int err;

	do {
		err = device_event(device, &event);
		if (err == 0 && event.kind == DEVICE_EVENT_FATAL)
			return true;
	} while (err == 0 || err == -EINTR);
	return err != -EAGAIN;
}

static int nic_parts_destroy_or_lose(struct nic_parts *parts) {
	int err = nic_parts_destroy(parts);

	if (err == 0 || parts->device == NULL || device_is_lost(parts->device) ||
	    !device_reports_loss(parts->device))
		return err;
	device_mark_lost(parts->device);
	return nic_parts_destroy(parts);
}

// Return the driver's name at configuration time. A rail of a further port has another name.
static const char *driver_name(const struct nic_work *work) {
	return work->config.device[0] != '\0' ? work->config.device : work->config.name;
}

// Find the device's current name by its GUID, or by its name at the last open.
static int device_name_find(struct nic_work *work, char ret_name[static DEVICE_NAME_MAX + 1]) {
	const char *name = work->open_name[0] != '\0' ? work->open_name : driver_name(work);

	return device_find(work->config.calls, name, &work->guid, ret_name);
}

// Find the device's current name. A device that was never open is found by its name. So is a
// replacement, unless another own device has that name now.
static int device_name_resolve(struct nic_work *work, char ret_name[static DEVICE_NAME_MAX + 1]) {
	uint64_t guid;

	if (device_name_find(work, ret_name) == 0)
		return 0;
	memcpy(ret_name, driver_name(work), DEVICE_NAME_MAX + 1);
	if (device_guid(work->config.calls, ret_name, &guid) != 0 || guid == 0)
		return 0;
	for (uint32_t n = 0; n < work->other_count; n++) {
		if (work->others[n] != guid)
			continue;
		snprintf(
			work->reason, sizeof(work->reason),
			"the device of this rail is gone, and '%s' is now another rail's device",
			ret_name
		);
		return -ENODEV;
	}
	return 0;
}

int nic_work_open(void *arg) {
	struct nic_work *work = arg;
	struct memory_config memory = {
		.clock = work->lane.clock,
		.failure_ns = FABRIC_MEMORY_FAILURE_NS,
	};
	struct nic_parts *parts = &work->parts;
	char name[DEVICE_NAME_MAX + 1];
	int err = device_name_resolve(work, name);

	if (err == 0)
		err = device_open(
			work->config.calls, name, &work->config.settings, work->reason,
			&parts->device
		);
	if (err != 0)
		return err;
	parts->facts = *device_facts(parts->device);
	work->lane.device = parts->device;
	memory.device = parts->device;
	err = memory_registry_create(&memory, &parts->registry);
	if (err == 0)
		err = memory_view_register(
			work, work->pulse, PULSE_BYTES, MEMORY_PEER_READS, &parts->pulse
		);
	if (err == 0)
		err = memory_view_register(
			work, work->scratch, FABRIC_SCRATCH_BYTES, MEMORY_LOCAL_WRITES,
			&parts->scratch
		);
	if (err == 0)
		err = memory_view_register(
			work, work->write_sink, WATCH_WRITE_SINK_BYTES, MEMORY_PEER_WRITES,
			&parts->write_sink
		);
	if (err == 0)
		err = lane_create(&work->lane, &parts->lane);
	if (err != 0)
		(void)nic_parts_destroy_or_lose(parts);
	return err;
}

int nic_work_close(void *arg) {
	struct nic_work *work = arg;

	return nic_parts_destroy_or_lose(&work->parts);
}

int nic_work_check_listed(void *arg) {
	struct nic_work *work = arg;
	char name[DEVICE_NAME_MAX + 1];

	return device_name_find(work, name);
}

int nic_work_refresh(void *arg) {
	struct nic_work *work = arg;

	return device_refresh(work->parts.device, &work->parts.facts);
}

// Register the GPU page. The page outlives the registration, and this thread needs no libcuda.
int nic_work_register_gpu(void *arg) {
	struct nic_work *work = arg;
	const struct gpu_page_facts *facts = gpu_page_facts(work->gpu);
	const struct memory_request request = {
		.address = facts->address,
		.length = GPU_PAGE_BYTES,
		.access = MEMORY_PEER_READS,
	};

	return memory_view_get_dmabuf(
		work->parts.registry, &request, facts->fd, 0, work->gpu_reason, &work->parts.gpu
	);
}

// Free the work, and close a device that was opened for nobody. If closing fails, the nic gets the
// parts back: it was left behind with its fabric, so nobody else uses it.
void nic_work_drop(void *arg) {
	struct nic_work *work = arg;

	if (!work->taken && nic_parts_destroy_or_lose(&work->parts) != 0)
		work->nic->parts = work->parts;
	free(work);
}
