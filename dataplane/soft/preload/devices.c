// SPDX-License-Identifier: BSD-3-Clause
// Software devices in the device list, and queries that need no open device.
#include "preload.h"

#include <dataplane/soft_settings.h>
#include <lib/error.h>

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

// Written once by devices_create(); count is written last.
static struct {
	struct ibv_device *devices[SOFT_DEVICES_MAX];
	struct soft_config configs[SOFT_DEVICES_MAX];
	// Release in devices_create(), acquire in devices_count(): a reader that sees the count
	// sees the devices.
	_Atomic uint32_t count;
} made;
static pthread_once_t once = PTHREAD_ONCE_INIT;

// Flush deferred acknowledgements at exit, for programs that end with open devices.
static void devices_flush_acks(void) {
	if (!preload_in_forked_child())
		soft_devices_flush_acks();
}

static void devices_create(void) {
	struct soft_config configs[SOFT_DEVICES_MAX];
	const char *texts[SOFT_SETTING_COUNT];
	struct parse_error error;
	enum soft_setting wrong;
	struct ibv_device **devices = NULL;
	uint32_t count, listed = 0;
	int err;

	for (int setting = 0; setting < SOFT_SETTING_COUNT; setting++)
		// NOLINTNEXTLINE(concurrency-mt-unsafe): what programs set is not this
		texts[setting] = getenv(soft_setting_variables[setting]);
	if (soft_settings_read(texts, &error, &wrong, configs, &count) != 0) {
		preload_print(
			"%s: %s; no software device is created", soft_setting_variables[wrong],
			error.text
		);
		return;
	}

	// Add the devices and look up their structs. On failure no device exists.
	err = preload_fork_prepare();
	if (err == 0 && atexit(devices_flush_acks) != 0)
		err = -ENOMEM;
	for (uint32_t n = 0; n < count && err == 0; n++)
		err = soft_device_add(&configs[n]);
	if (err == 0)
		err = verbs_calls_soft.device_list(&devices, &listed);
	if (err != 0) {
		preload_print(
			"%s: cannot create the software device: %s", configs[0].name,
			strerrordesc_np(-err)
		);
		return;
	}
	must(listed == count);
	memcpy(made.devices, devices, count * sizeof(struct ibv_device *));
	memcpy(made.configs, configs, count * sizeof(*made.configs));
	verbs_calls_soft.device_list_free(devices);
	atomic_store_explicit(&made.count, count, memory_order_release);
}

static uint32_t devices_count(void) {
	return atomic_load_explicit(&made.count, memory_order_acquire);
}

// Return the index in `made`; -1: not a software device.
static int device_index(const struct ibv_device *device) {
	uint32_t count = devices_count();

	for (uint32_t n = 0; n < count; n++) {
		if (made.devices[n] == device)
			return (int)n;
	}
	return -1;
}

bool preload_owns_device(const struct ibv_device *device) {
	return device_index(device) >= 0;
}

static uint32_t usable_count(void) {
	return PRELOAD_UNLESS_FORKED(0, devices_count());
}

bool preload_has_node(const char *name) {
	uint32_t count = usable_count();

	for (uint32_t n = 0; n < count; n++) {
		if (strcmp(made.devices[n]->dev_name, name) == 0 ||
		    strcmp(made.devices[n]->name, name) == 0)
			return true;
	}
	return false;
}

// A device list for programs. NULL ends it; the real list is stored in front, for freeing.
struct merged_list {
	struct ibv_device **real; // NULL: libibverbs returned none
	struct ibv_device *devices[];
};

// Without RDMA in the kernel libibverbs returns none and ENOSYS; software devices are listed
// anyway.
struct ibv_device **ibv_get_device_list(int *num_devices) {
	const size_t entry_bytes = sizeof(struct ibv_device *);
	int real_count = 0;
	struct ibv_device **real;
	struct merged_list *list;
	uint32_t count;
	int cancel_state;

	// A thread cancelled in here would leave devices that exist but are never listed.
	pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
	pthread_once(&once, devices_create);
	pthread_setcancelstate(cancel_state, NULL);
	real = REAL(ibv_get_device_list)(&real_count);
	if (real == NULL || real_count < 0)
		real_count = 0;
	count = usable_count();
	if (real == NULL && count == 0) {
		if (num_devices != NULL)
			*num_devices = 0;
		return NULL;
	}
	list = calloc(1, sizeof(*list) + (count + (uint32_t)real_count + 1) * entry_bytes);
	if (list == NULL) {
		if (real != NULL)
			REAL(ibv_free_device_list)(real);
		errno = ENOMEM;
		return NULL;
	}
	list->real = real;
	// Software devices come first: a program that uses the first device was started to get one.
	memcpy(list->devices, made.devices, count * entry_bytes);
	if (real_count > 0)
		memcpy(list->devices + count, real, (uint32_t)real_count * entry_bytes);
	while (list->devices[count] != NULL)
		count++;
	if (num_devices != NULL)
		*num_devices = (int)count;
	errno = 0; // clear libibverbs' errno, which some programs print regardless of the result
	return list->devices;
}

void ibv_free_device_list(struct ibv_device **devices) {
	struct merged_list *list;

	if (devices == NULL)
		return;
	list = (void *)((char *)devices - offsetof(struct merged_list, devices));
	if (list->real != NULL)
		REAL(ibv_free_device_list)(list->real);
	free(list);
}

const char *ibv_get_device_name(struct ibv_device *device) {
	return preload_owns_device(device) ? device->name : REAL(ibv_get_device_name)(device);
}

// Return the kernel's number of a device. Software devices have none, which libibverbs reports as
// -1.
int ibv_get_device_index(struct ibv_device *device) {
	return preload_owns_device(device) ? -1 : REAL(ibv_get_device_index)(device);
}

__be64 ibv_get_device_guid(struct ibv_device *device) {
	return preload_owns_device(device) ? soft_device_guid(device->name)
					   : REAL(ibv_get_device_guid)(device);
}

int preload_make_blocking(int fd) {
	int flags = fcntl(fd, F_GETFL);

	if (flags < 0 || fcntl(fd, F_SETFL, flags & ~O_NONBLOCK) < 0)
		return neg_errno();
	return 0;
}

static int open_registered(struct ibv_device *device, struct ibv_context **ret_context) {
	int err;

	preload_open_begin();
	err = verbs_calls_soft.open(device, ret_context);
	if (err == 0) {
		preload_set_extended_calls(*ret_context);
		err = preload_make_blocking((*ret_context)->async_fd);
		if (err == 0)
			err = preload_register_open(*ret_context);
		if (err != 0)
			(void)verbs_calls_soft.close(*ret_context);
	}
	preload_open_end();
	return err;
}

struct ibv_context *ibv_open_device(struct ibv_device *device) {
	int place = device_index(device);
	struct ibv_context *context = NULL;
	char reason[SOFT_REASON_MAX + 1] = "";
	int err;

	if (place < 0)
		return REAL(ibv_open_device)(device);
	if (preload_in_forked_child()) {
		preload_print(
			"%s: cannot open the device: this process was forked from one that has it "
			"open; call exec() first",
			device->name
		);
		errno = ENODEV;
		return NULL;
	}
	err = open_registered(device, &context);
	if (err == 0) {
		preload_report_opened(device, &made.configs[place]);
		return context;
	}
	soft_device_open_error(device->name, reason);
	preload_print(
		"%s: cannot open the device: %s", device->name,
		reason[0] == '\0' ? strerrordesc_np(-err) : reason
	);
	errno = -err;
	return NULL;
}

// The kernel frees objects that a program left on a real device. Here such objects keep the device
// open until the process ends. The result is 0 in both cases.
int ibv_close_device(struct ibv_context *context) {
	const char *name;

	if (!preload_owns_context(context))
		return REAL(ibv_close_device)(context);
	if (preload_in_forked_child())
		return 0;
	name = context->device->name;
	preload_open_begin();
	if (verbs_calls_soft.close(context) == 0)
		preload_unregister_open(context);
	preload_open_end();
	preload_report_closed(name);
	return 0;
}
