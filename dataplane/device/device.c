// SPDX-License-Identifier: BSD-3-Clause
// Finds and opens devices.
#include "device/device_impl.h"

#include <dataplane/device.h>
#include <lib/scoped.h>

#include <xxhash.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

// Return the reason why devices of this transport cannot have pairs, or NULL.
static const char *transport_refusal(enum ibv_transport_type transport) {
	switch (transport) {
	case IBV_TRANSPORT_IB:
		return NULL;
	case IBV_TRANSPORT_IWARP:
		return "iWARP: its queue pairs can be connected by rdma_cm only";
	case IBV_TRANSPORT_USNIC:
	case IBV_TRANSPORT_USNIC_UDP:
		return "usNIC: datagrams only, no reliable connections (RC)";
	case IBV_TRANSPORT_UNSPECIFIED:
		return "a transport of its vendor, such as EFA: no reliable connections (RC)";
	case IBV_TRANSPORT_UNKNOWN:
		break;
	}
	return "a transport that libibverbs does not know";
}

static void inspection_conclude(struct device_inspection *look) {
	look->facts->usable = look->refusal == 0;
	look->facts->awaits_port = look->refusal == -ENETDOWN;
}

// Inspect a device. It is opened only if it may be usable, and stays open: look->context. Returns
// 0, -ENOMEM or the driver's error; a missing capability is recorded as refusal.
static int inspect_device(struct device_inspection *look) {
	static const union ibv_gid none;
	const char *refusal = transport_refusal(look->device->transport_type);
	char reason[DEVICE_REASON_MAX + 1] = "";
	struct device_facts *facts = look->facts;
	int err;

	memset(facts, 0, sizeof(*facts));
	facts->port.gid_index = -1;
	facts->transport = look->device->transport_type;
	snprintf(facts->name, sizeof(facts->name), "%.*s", DEVICE_NAME_MAX, look->device->name);
	device_sysfs_inspect(look);
	if (strlen(look->device->name) > DEVICE_NAME_MAX)
		device_inspection_refuse(
			look, -ENOTSUP,
			"the name is longer than %d characters: rename the device with 'rdma dev "
			"set'",
			DEVICE_NAME_MAX
		);
	if (refusal != NULL)
		device_inspection_refuse(look, -ENOTSUP, "%s", refusal);
	if (look->refusal != 0)
		return 0;

	err = look->calls->open(look->device, &look->context);
	if (err != 0) {
		if (look->calls->open_reason != NULL)
			look->calls->open_reason(look->device, reason, sizeof(reason));
		if (reason[0] == '\0')
			return device_inspection_fail(look, err, "open");
		device_inspection_refuse(look, err, "%s", reason);
		return err;
	}
	err = device_limits_inspect(look);
	if (err != 0)
		return err;
	device_settings_inspect(look);
	err = device_port_inspect(look, look->settings->port, &none);
	if (err == 0)
		inspection_conclude(look);
	return err;
}

// List devices; a kernel without RDMA has none. *ret_devices may be NULL.
static int list_devices(
	const struct verbs_calls *calls, struct ibv_device ***ret_devices, uint32_t *ret_count
) {
	int err = calls->device_list(ret_devices, ret_count);

	if (err != -ENOSYS)
		return err;
	*ret_devices = NULL;
	*ret_count = 0;
	return 0;
}

static uint64_t device_list_guid(const struct verbs_calls *calls, struct ibv_device *device) {
	return calls->device_guid != NULL ? calls->device_guid(device) : 0;
}

// Return 0 for a GUID that several devices share (Soft-RoCE on VLANs of one interface): it
// identifies none.
static uint64_t guid_or_zero_if_shared(
	const struct verbs_calls *calls, struct ibv_device **devices, uint32_t count, uint64_t guid
) {
	uint32_t found = 0;

	for (uint32_t n = 0; n < count; n++)
		found += device_list_guid(calls, devices[n]) == guid;
	return found > 1 ? 0 : guid;
}

int device_list(
	const struct verbs_calls *calls,
	const struct device_settings *settings,
	struct device_facts **ret_facts,
	uint32_t *ret_count
) {
	scoped_mem struct device_facts *facts = NULL;
	struct ibv_device **devices;
	uint32_t count;
	int err = list_devices(calls, &devices, &count);

	if (err != 0)
		return err;
	facts = calloc(count + 1, sizeof(*facts)); // one more, so that an empty list is not NULL
	if (facts == NULL)
		err = -ENOMEM;
	for (uint32_t i = 0; i < count && err == 0; i++) {
		struct device_inspection look = {
			.calls = calls,
			.device = devices[i],
			.settings = settings != NULL ? settings : &device_settings_default,
			.facts = &facts[i],
		};

		err = inspect_device(&look);
		if (look.context != NULL)
			(void)calls->close(look.context);
		// Other errors concern this device only and are in its reason.
		if (err != -ENOMEM)
			err = 0;
		facts[i].guid = guid_or_zero_if_shared(calls, devices, count, facts[i].guid);
	}
	if (devices != NULL)
		calls->device_list_free(devices);
	if (err != 0)
		return err;
	*ret_facts = scoped_release_mem(&facts);
	*ret_count = count;
	return 0;
}

int device_list_digest(const struct verbs_calls *calls, uint64_t *ret_digest) {
	struct ibv_device **devices;
	uint64_t digest = 1;
	uint32_t count;
	int err = list_devices(calls, &devices, &count);

	if (err != 0)
		return err;
	for (uint32_t n = 0; n < count; n++)
		digest += XXH3_64bits_withSeed(
			devices[n]->name, strlen(devices[n]->name),
			device_list_guid(calls, devices[n])
		);
	if (devices != NULL)
		calls->device_list_free(devices);
	*ret_digest = digest;
	return 0;
}

// Return how well a device matches: 0 not at all, 1 by name, 2 by GUID, 3 by both. A device with
// this name but another GUID is a different device.
static int
device_match_score(struct ibv_device *device, uint64_t its_guid, const char *name, uint64_t guid) {
	bool named = strcmp(device->name, name) == 0;

	if (guid == 0 || its_guid == 0)
		return named ? 1 : 0;
	return its_guid == guid ? 2 + (named ? 1 : 0) : 0;
}

int device_find(
	const struct verbs_calls *calls,
	const char *name,
	uint64_t *guid,
	char ret_name[static DEVICE_NAME_MAX + 1]
) {
	struct ibv_device **devices;
	int best = 0, alike, err;
	uint32_t count;

	err = list_devices(calls, &devices, &count);
	if (err != 0)
		return err;
	*guid = guid_or_zero_if_shared(calls, devices, count, *guid);
	for (uint32_t n = 0; n < count; n++) {
		alike = device_match_score(
			devices[n],
			guid_or_zero_if_shared(
				calls, devices, count, device_list_guid(calls, devices[n])
			),
			name, *guid
		);
		if (alike <= best || strlen(devices[n]->name) > DEVICE_NAME_MAX)
			continue;
		best = alike;
		snprintf(ret_name, DEVICE_NAME_MAX + 1, "%s", devices[n]->name);
	}
	if (devices != NULL)
		calls->device_list_free(devices);
	return best > 0 ? 0 : -ENODEV;
}

int device_guid(const struct verbs_calls *calls, const char *name, uint64_t *ret_guid) {
	struct ibv_device **devices;
	uint64_t guid = 0;
	uint32_t count;
	int err = list_devices(calls, &devices, &count);

	if (err != 0)
		return err;
	err = -ENODEV;
	for (uint32_t n = 0; n < count && err != 0; n++) {
		if (strcmp(devices[n]->name, name) != 0)
			continue;
		guid = guid_or_zero_if_shared(
			calls, devices, count, device_list_guid(calls, devices[n])
		);
		err = 0;
	}
	if (devices != NULL)
		calls->device_list_free(devices);
	if (err == 0)
		*ret_guid = guid;
	return err;
}

static struct ibv_device *
device_find_in(struct ibv_device **devices, uint32_t count, const char *name, char *reason) {
	int length = snprintf(
		reason, DEVICE_REASON_MAX + 1, "no device '%.*s'; this machine has%s",
		DEVICE_NAME_MAX, name, count == 0 ? " no RDMA device" : ""
	);

	for (uint32_t i = 0; i < count; i++) {
		if (strcmp(devices[i]->name, name) == 0) {
			reason[0] = '\0'; // no reason, even if a later step fails
			return devices[i];
		}
		if (length <= DEVICE_REASON_MAX)
			length += snprintf(
				reason + length, DEVICE_REASON_MAX + 1 - (size_t)length, "%s%s",
				i == 0 ? " " : ", ", devices[i]->name
			);
	}
	return NULL;
}

static struct device *device_destroy(struct device *device) {
	if (device == NULL)
		return NULL;
	// Errors do not matter: the kernel frees everything with the context.
	if (device->pd != NULL)
		(void)device->calls->dealloc_pd(device->pd);
	if (device->context != NULL)
		(void)device->calls->close(device->context);
	free(device);
	return NULL;
}

static int open_found(struct ibv_device *found, struct device *device, char *reason) {
	struct device_inspection look = {
		.calls = device->calls,
		.device = found,
		.settings = &device->settings,
		.facts = &device->facts,
	};
	int err = inspect_device(&look);

	device->context = look.context;
	if (err == 0)
		err = look.refusal;
	if (err == 0) {
		err = device->calls->alloc_pd(device->context, &device->pd);
		if (err != 0)
			(void)device_inspection_fail(&look, err, "alloc_pd");
	}
	if (err != 0)
		memcpy(reason, device->facts.reason, sizeof(device->facts.reason));
	return err;
}

int device_open(
	const struct verbs_calls *calls,
	const char *name,
	const struct device_settings *settings,
	char ret_reason[static DEVICE_REASON_MAX + 1],
	struct device **ret_device
) {
	struct device *device = calloc(1, sizeof(*device));
	struct ibv_device **devices = NULL, *found;
	uint32_t count;
	int err;

	if (device == NULL)
		return device_format_reason(ret_reason, -ENOMEM, "out of memory");
	device->calls = calls;
	device->settings = settings != NULL ? *settings : device_settings_default;
	atomic_init(&device->references, 1);
	atomic_init(&device->lost, false);

	err = list_devices(calls, &devices, &count);
	if (err != 0) {
		device_destroy(device);
		return device_format_reason(
			ret_reason, err, "devices cannot be listed: %s", device_error_name(err)
		);
	}
	found = device_find_in(devices, count, name, ret_reason);
	err = found == NULL ? -ENODEV : open_found(found, device, ret_reason);
	if (err == 0)
		device->facts.guid =
			guid_or_zero_if_shared(calls, devices, count, device->facts.guid);
	if (devices != NULL)
		calls->device_list_free(devices);
	if (err != 0) {
		device_destroy(device);
		return err;
	}
	*ret_device = device;
	return 0;
}

struct device *device_get(struct device *device) {
	atomic_fetch_add_explicit(&device->references, 1, memory_order_relaxed);
	return device;
}

struct device *device_put(struct device *device) {
	// Release and acquire: all use of the device by other threads happens before its
	// destruction.
	if (device != NULL &&
	    atomic_fetch_sub_explicit(&device->references, 1, memory_order_acq_rel) == 1)
		device_destroy(device);
	return NULL;
}

void device_mark_lost(struct device *device) {
	// Relaxed: a keeper that does not see it yet retries later.
	atomic_store_explicit(&device->lost, true, memory_order_relaxed);
}

bool device_is_lost(const struct device *device) {
	return atomic_load_explicit(&device->lost, memory_order_relaxed);
}

int device_release_result(const struct device *device, int err) {
	return (err == -EIO || err == -ENODEV) && device_is_lost(device) ? 0 : err;
}

const struct verbs_calls *device_calls(const struct device *device) {
	return device->calls;
}

struct ibv_context *device_context(const struct device *device) {
	return device->context;
}

struct ibv_pd *device_pd(const struct device *device) {
	return device->pd;
}

const struct device_settings *device_settings(const struct device *device) {
	return &device->settings;
}

const struct device_facts *device_facts(const struct device *device) {
	return &device->facts;
}

int device_refresh(struct device *device, struct device_facts *ret_facts) {
	struct device_facts facts = device->facts;
	struct device_inspection look = {
		.calls = device->calls,
		.context = device->context,
		.settings = &device->settings,
		.facts = &facts,
		.port_count = facts.port.number, // other ports no longer matter
	};
	int err = device_port_inspect(&look, facts.port.number, &device->facts.port.gid);

	if (err != 0)
		return err;
	inspection_conclude(&look);
	*ret_facts = facts;
	return 0;
}
