// SPDX-License-Identifier: BSD-3-Clause
// Registers memory regions and frees each when it has no user any more.
#include "memory/memory_impl.h"

#include <lib/must.h>

#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define ALL_ACCESS (MEMORY_PEER_ACCESS | MEMORY_LOCAL_WRITES | MEMORY_UNSHARED)

uint64_t memory_page_bytes(void) {
	return (uint64_t)sysconf(_SC_PAGESIZE);
}

void memory_reason_add_clause(struct memory_reason *reason, const char *format, ...) {
	size_t room = MEMORY_REASON_MAX + 1 - reason->used;
	va_list arguments;
	int length;

	if (reason->used > 0 && room > 2) {
		memcpy(reason->text + reason->used, "; ", 3);
		reason->used += 2;
		room -= 2;
	}
	va_start(arguments, format);
	length = vsnprintf(reason->text + reason->used, room, format, arguments);
	va_end(arguments);
	if (length > 0)
		reason->used += (size_t)length < room ? (size_t)length : room - 1;
}

const char *memory_errno_name(int err) {
	const char *name = strerrorname_np(-err);

	return name != NULL ? name : "unknown error";
}

// A low limit of locked memory is the usual reason for ENOMEM, so name the limit.
static void
reason_add_refused(struct memory_reason *reason, const struct memory_source *source, int err) {
	const char *call = source->fd >= 0 ? "ibv_reg_dmabuf_mr" : "ibv_reg_mr";
	struct rlimit limit;

	if (err == -ENOMEM && source->fd < 0 && getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
	    limit.rlim_cur != RLIM_INFINITY)
		memory_reason_add_clause(
			reason,
			"%s: %s failed with ENOMEM; the limit of locked memory (ulimit -l) is "
			"%llu bytes",
			source->what, call, (unsigned long long)limit.rlim_cur
		);
	else
		memory_reason_add_clause(
			reason, "%s: %s failed with %s", source->what, call, memory_errno_name(err)
		);
}

static struct memory_view
region_view(struct memory_region *region, const struct memory_normal_request *wanted) {
	bool for_peers = (wanted->access & MEMORY_PEER_ACCESS) != 0;

	return (struct memory_view){
		.region = region,
		.device = region->registry->config.device,
		.address = wanted->address,
		.length = wanted->length,
		.wire_address = region->wire_address + (wanted->address - region->address),
		.local_key = region->mr->lkey,
		.remote_key = for_peers ? region->mr->rkey : 0,
		.host = wanted->kind != MEMORY_DEVICE,
	};
}

static int verbs_access(uint32_t access) {
	int flags = 0;

	if ((access & MEMORY_LOCAL_WRITES) != 0)
		flags |= IBV_ACCESS_LOCAL_WRITE;
	if ((access & MEMORY_PEER_READS) != 0)
		flags |= IBV_ACCESS_REMOTE_READ;
	if ((access & MEMORY_PEER_WRITES) != 0)
		flags |= IBV_ACCESS_REMOTE_WRITE;
	if ((access & MEMORY_PEER_ATOMICS) != 0)
		flags |= IBV_ACCESS_REMOTE_ATOMIC;
	return flags;
}

static int driver_register(
	const struct memory_registry *registry,
	const struct memory_source *source,
	int access,
	struct ibv_mr **ret_mr
) {
	struct ibv_pd *pd = device_pd(registry->config.device);
	struct verbs_dmabuf dmabuf = {
		.fd = source->fd,
		.offset = source->offset,
		.length = source->length,
		.iova = source->address,
	};

	void *pointer;

	if (source->fd >= 0)
		return registry->calls->reg_dmabuf_mr(pd, &dmabuf, access, ret_mr);
	static_assert(sizeof(pointer) == sizeof(source->address), "addresses are numbers");
	memcpy(&pointer, &source->address, sizeof(pointer));
	return registry->calls->reg_mr(pd, pointer, source->length, access, ret_mr);
}

int memory_region_add(
	struct memory_registry *registry,
	const struct memory_normal_request *wanted,
	const struct memory_source *source,
	struct memory_reason *reason,
	struct memory_region **ret_region
) {
	struct memory_region *region;
	int err = memory_index_reserve(registry);

	if (err != 0)
		return err;
	region = aligned_alloc(alignof(struct memory_region), sizeof(*region));
	if (region == NULL)
		return -ENOMEM;
	memset(region, 0, sizeof(*region));
	region->registry = registry;
	region->address = source->address;
	region->wire_address = source->address;
	region->length = source->length;
	region->access = wanted->access;
	region->allocation = wanted->allocation;
	region->owner = wanted->owner;
	atomic_init(&region->refs, 1);
	err = driver_register(registry, source, verbs_access(wanted->access), &region->mr);
	if (err != 0) {
		reason_add_refused(reason, source, err);
		free(region);
		return err;
	}
	if (region->owner.hold != NULL)
		region->owner.hold(region->owner.ctx);
	memory_index_add(registry, region);
	registry->counts.regions++;
	registry->counts.registered++;
	registry->counts.bytes += region->length;
	*ret_region = region;
	return 0;
}

// Register host memory. Whole pages can be shared with neighbouring ranges, but a peer must reach
// only the exact range.
static int register_host(
	struct memory_registry *registry,
	const struct memory_normal_request *wanted,
	struct memory_reason *reason,
	struct memory_region **ret_region
) {
	struct memory_source source = {
		.address = wanted->address,
		.length = wanted->length,
		.fd = -1,
		.what = wanted->kind == MEMORY_MANAGED ? "managed memory" : "host memory",
	};
	uint64_t page = memory_page_bytes();
	uint64_t slack = wanted->address % page;
	uint64_t whole = wanted->length + slack;

	if ((wanted->access & (MEMORY_PEER_ACCESS | MEMORY_UNSHARED)) == 0 &&
	    whole <= UINT64_MAX - page) {
		whole += (page - whole % page) % page;
		if (whole <= registry->config.region_bytes_max &&
		    whole - 1 <= UINT64_MAX - (wanted->address - slack)) {
			source.address -= slack;
			source.length = whole;
		}
	}
	return memory_region_add(registry, wanted, &source, reason, ret_region);
}

static int region_create(
	struct memory_registry *registry,
	const struct memory_normal_request *wanted,
	char *reason_text,
	struct memory_region **ret_region
) {
	struct memory_reason reason = {.text = reason_text};
	int err;

	if (wanted->kind == MEMORY_DEVICE)
		err = memory_register_device(registry, wanted, &reason, ret_region);
	else
		err = register_host(registry, wanted, &reason, ret_region);
	// Without a clause our own allocation failed, so the next try may succeed.
	if (err == 0 || reason.used == 0)
		return err;
	registry->counts.failed++;
	memory_failure_remember(registry, wanted, err, reason_text);
	return err;
}

static int reason_refuse(char *reason_text, int err, const char *format, ...)
	__attribute__((format(printf, 3, 4)));

static int reason_refuse(char *reason_text, int err, const char *format, ...) {
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(reason_text, MEMORY_REASON_MAX + 1, format, arguments);
	va_end(arguments);
	return err;
}

static int request_check(
	const struct memory_registry *registry, const struct memory_request *request, char *reason
) {
	const struct device_facts *facts = device_facts(registry->config.device);

	if (registry->closing)
		return reason_refuse(reason, -ESHUTDOWN, "%s is being closed", facts->name);
	if (request->length == 0)
		return reason_refuse(reason, -EINVAL, "a range of 0 bytes cannot be registered");
	if (request->length - 1 > UINT64_MAX - request->address)
		return reason_refuse(
			reason, -EINVAL, "%llu bytes at 0x%llx exceed the address space",
			(unsigned long long)request->length, (unsigned long long)request->address
		);
	if ((request->access & ~(uint32_t)ALL_ACCESS) != 0)
		return reason_refuse(
			reason, -EINVAL, "access 0x%x has unknown bits", request->access
		);
	if ((request->access & MEMORY_PEER_ATOMICS) != 0 && !facts->limits.atomics)
		return reason_refuse(reason, -EOPNOTSUPP, "%s has no atomics", facts->name);
	if (request->length > registry->config.region_bytes_max)
		return reason_refuse(
			reason, -EFBIG, "%llu bytes exceed the largest region of %s: %llu bytes",
			(unsigned long long)request->length, facts->name,
			(unsigned long long)registry->config.region_bytes_max
		);
	return 0;
}

static struct memory_normal_request
request_normalise(const struct memory_registry *registry, const struct memory_request *request) {
	struct memory_normal_request wanted = {
		.address = request->address,
		.length = request->length,
		.access = request->access,
		.kind = MEMORY_HOST,
	};
	struct cuda_memory_info memory;

	if ((wanted.access & (MEMORY_PEER_WRITES | MEMORY_PEER_ATOMICS)) != 0)
		wanted.access |= MEMORY_LOCAL_WRITES;
	if (request->owner != NULL)
		wanted.owner = *request->owner;
	if (registry->config.cuda == NULL ||
	    cuda_memory_info(registry->config.cuda, wanted.address, &memory) != 0)
		return wanted;
	if (memory.managed)
		wanted.kind = MEMORY_MANAGED;
	else if (memory.device)
		wanted.kind = MEMORY_DEVICE;
	wanted.allocation = wanted.kind == MEMORY_DEVICE ? memory.id : 0;
	return wanted;
}

static int registry_make_room(struct memory_registry *registry, char *reason) {
	if (registry->counts.regions < registry->config.regions_max)
		return 0;
	memory_deregister_dead(registry);
	if (registry->counts.regions < registry->config.regions_max)
		return 0;
	return reason_refuse(
		reason, -ENOSPC, "%s already has %u regions, the maximum",
		device_facts(registry->config.device)->name, registry->counts.regions
	);
}

int memory_view_get(
	struct memory_registry *registry,
	const struct memory_request *request,
	char ret_reason[static MEMORY_REASON_MAX + 1],
	struct memory_view *ret_view
) {
	const struct memory_failure *failure;
	struct memory_region *region;
	struct memory_normal_request wanted;
	int err = request_check(registry, request, ret_reason);

	if (err != 0)
		return err;
	wanted = request_normalise(registry, request);
	region = memory_index_find(registry, &wanted);
	if (region != NULL) {
		registry->counts.shared++;
		*ret_view = region_view(region, &wanted);
		return 0;
	}
	failure = memory_failure_find(registry, &wanted);
	if (failure != NULL) {
		registry->counts.remembered++;
		memcpy(ret_reason, failure->reason, sizeof(failure->reason));
		return failure->err;
	}
	err = registry_make_room(registry, ret_reason);
	if (err == 0)
		err = region_create(registry, &wanted, ret_reason, &region);
	if (err != 0)
		return err;
	*ret_view = region_view(region, &wanted);
	return 0;
}

int memory_view_get_dmabuf(
	struct memory_registry *registry,
	const struct memory_request *request,
	int fd,
	uint64_t offset,
	char ret_reason[static MEMORY_REASON_MAX + 1],
	struct memory_view *ret_view
) {
	const struct memory_source source = {
		.address = request->address,
		.length = request->length,
		.fd = fd,
		.offset = offset,
		.what = "dmabuf",
	};
	const struct memory_normal_request wanted = {
		.address = request->address,
		.length = request->length,
		.access = request->access | MEMORY_UNSHARED,
		.kind = MEMORY_DEVICE,
	};
	struct memory_reason reason = {.text = ret_reason};
	struct memory_region *region;
	int err = request_check(registry, request, ret_reason);

	if (err == 0)
		err = registry_make_room(registry, ret_reason);
	if (err == 0)
		err = memory_region_add(registry, &wanted, &source, &reason, &region);
	if (err != 0) {
		registry->counts.failed += reason.used > 0;
		return err;
	}
	*ret_view = region_view(region, &wanted);
	return 0;
}

int memory_deregister_dead(struct memory_registry *registry) {
	struct memory_region *stuck = registry->stuck;
	// Acquire pairs with the release in memory_view_put() in memory_fast.c.
	struct memory_region *dead =
		atomic_exchange_explicit(&registry->dead, NULL, memory_order_acquire);
	int first = 0;

	registry->stuck = NULL;
	while (stuck != NULL || dead != NULL) {
		struct memory_region *region = stuck != NULL ? stuck : dead;
		int err;

		if (stuck != NULL) {
			stuck = region->next_dead;
		} else {
			dead = region->next_dead;
			memory_index_remove(registry, region);
		}
		err = device_release_result(
			registry->config.device, registry->calls->dereg_mr(region->mr)
		);
		if (err != 0) {
			region->next_dead = registry->stuck;
			registry->stuck = region;
			first = first == 0 ? err : first;
			continue;
		}
		registry->counts.regions--;
		registry->counts.bytes -= region->length;
		if (region->owner.drop != NULL)
			region->owner.drop(region->owner.ctx);
		free(region);
	}
	return first;
}

int memory_registry_create(
	const struct memory_config *config, struct memory_registry **ret_registry
) {
	const struct device_limits *limits = &device_facts(config->device)->limits;
	struct memory_registry *registry =
		aligned_alloc(alignof(struct memory_registry), sizeof(*registry));
	struct memory_config *own;

	if (registry == NULL)
		return -ENOMEM;
	memset(registry, 0, sizeof(*registry));
	registry->failures = calloc(MEMORY_FAILURES_MAX, sizeof(*registry->failures));
	if (registry->failures == NULL) {
		free(registry);
		return -ENOMEM;
	}
	registry->config = *config;
	own = &registry->config;
	if (own->regions_max == 0 || own->regions_max > limits->regions_max)
		own->regions_max = limits->regions_max;
	if (own->region_bytes_max == 0 || own->region_bytes_max > limits->region_bytes_max)
		own->region_bytes_max = limits->region_bytes_max;
	if (own->modules_path == NULL)
		own->modules_path = "/proc/modules";
	own->device = device_get(config->device);
	registry->calls = device_calls(config->device);
	*ret_registry = registry;
	return 0;
}

struct memory_registry *memory_registry_destroy(struct memory_registry *registry) {
	if (registry == NULL)
		return NULL;
	registry->closing = true;
	memory_deregister_dead(registry);
	if (registry->counts.regions > 0)
		return registry;
	device_put(registry->config.device);
	free(registry->regions);
	free(registry->failures);
	free(registry);
	return NULL;
}

struct memory_counts memory_counts(const struct memory_registry *registry) {
	return registry->counts;
}
