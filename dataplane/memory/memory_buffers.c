// SPDX-License-Identifier: BSD-3-Clause
// Registered buffers of users, found again by their identity.
#include <dataplane/memory_buffers.h>
#include <lib/must.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

struct entry {
	struct entry *next; // in its bucket
	struct memory_buffers *buffers;
	uint64_t id;
	uint32_t generation;
	bool leaving; // no longer to be found, waits for its deregistration
	struct memory_request request;
	struct memory_owner owner; // the caller's; hold NULL: none
	struct memory_owner own;   // what the registry tells when the region is gone
	struct memory_view view;
	struct memory_release *releases, **last_release;
};

struct memory_buffers {
	struct memory_registry *registry;
	uint32_t max, count, leaving;
	uint32_t generation;
	bool closing;
	uint32_t bucket_mask;
	struct entry **buckets;
};

// Ids may be counters or hashes.
static struct entry **bucket_of(const struct memory_buffers *buffers, uint64_t id) {
	uint64_t mixed = id * UINT64_C(0x9e3779b97f4a7c15);

	return &buffers->buckets[(mixed >> 32) & buffers->bucket_mask];
}

// Of one id there is at most one that is not leaving. generation 0: that one.
static struct entry *
entry_find(const struct memory_buffers *buffers, uint64_t id, uint32_t generation) {
	struct entry *entry = *bucket_of(buffers, id);

	for (; entry != NULL; entry = entry->next) {
		if (entry->id == id &&
		    (generation != 0 ? entry->generation == generation : !entry->leaving))
			return entry;
	}
	return NULL;
}

static void entry_unlink(struct entry *entry) {
	struct entry **place = bucket_of(entry->buffers, entry->id);

	while (*place != entry)
		place = &(*place)->next;
	*place = entry->next;
}

// The registry's words on the region of a buffer. The last one comes after the deregistration.

static void region_made(void *ctx) {
	const struct entry *entry = ctx;

	if (entry->owner.hold != NULL)
		entry->owner.hold(entry->owner.ctx);
}

static void region_gone(void *ctx) {
	struct entry *entry = ctx;
	struct memory_release *release = entry->releases;

	must(entry->leaving);
	entry_unlink(entry);
	entry->buffers->leaving--;
	if (entry->owner.drop != NULL)
		entry->owner.drop(entry->owner.ctx);
	free(entry);
	while (release != NULL) {
		struct memory_release *next = release->next;

		release->done(release);
		release = next;
	}
}

int memory_buffers_create(
	struct memory_registry *registry, uint32_t max, struct memory_buffers **ret_buffers
) {
	struct memory_buffers *buffers;
	uint32_t buckets = 16;

	if (max == 0)
		return -EINVAL;
	while (buckets < max && buckets < UINT32_C(1) << 16)
		buckets *= 2;
	buffers = calloc(1, sizeof(*buffers));
	if (buffers == NULL)
		return -ENOMEM;
	buffers->buckets = calloc(buckets, sizeof(struct entry *));
	if (buffers->buckets == NULL) {
		free(buffers);
		return -ENOMEM;
	}
	buffers->registry = registry;
	buffers->max = max;
	buffers->bucket_mask = buckets - 1;
	*ret_buffers = buffers;
	return 0;
}

static void entry_leave(struct entry *entry) {
	entry->leaving = true;
	entry->buffers->count--;
	entry->buffers->leaving++;
	memory_view_put(&entry->view);
}

struct memory_buffers *memory_buffers_destroy(struct memory_buffers *buffers) {
	if (buffers == NULL)
		return NULL;
	buffers->closing = true;
	for (uint32_t n = 0; n <= buffers->bucket_mask; n++) {
		for (struct entry *entry = buffers->buckets[n]; entry != NULL;
		     entry = entry->next) {
			if (!entry->leaving)
				entry_leave(entry);
		}
	}
	if (buffers->leaving > 0)
		return buffers;
	free(buffers->buckets);
	free(buffers);
	return NULL;
}

static bool same_request(const struct memory_request *one, const struct memory_request *other) {
	return one->address == other->address && one->length == other->length &&
	       one->access == other->access;
}

static bool same_owner(const struct entry *entry, const struct memory_owner *owner) {
	static const struct memory_owner none = {0};

	if (owner == NULL)
		owner = &none;
	return entry->owner.hold == owner->hold && entry->owner.drop == owner->drop &&
	       entry->owner.ctx == owner->ctx;
}

static struct memory_buffer buffer_of(const struct entry *entry) {
	return (struct memory_buffer
	){.id = entry->id, .generation = entry->generation, .view = entry->view};
}

static uint32_t generation_next(struct memory_buffers *buffers) {
	if (++buffers->generation == 0)
		buffers->generation = 1;
	return buffers->generation;
}

static int entry_add(
	struct memory_buffers *buffers,
	uint64_t id,
	const struct memory_request *request,
	char *reason,
	struct entry **ret_entry
) {
	struct entry *entry = calloc(1, sizeof(*entry));
	int err;

	if (entry == NULL)
		return -ENOMEM;
	entry->buffers = buffers;
	entry->id = id;
	entry->request = *request;
	entry->request.access |= MEMORY_ALONE;
	if (request->owner != NULL)
		entry->owner = *request->owner;
	entry->own = (struct memory_owner){region_made, region_gone, entry};
	entry->request.owner = &entry->own;
	entry->last_release = &entry->releases;
	err = memory_view_take(buffers->registry, &entry->request, reason, &entry->view);
	if (err != 0) {
		free(entry);
		return err;
	}
	entry->generation = generation_next(buffers);
	entry->next = *bucket_of(buffers, id);
	*bucket_of(buffers, id) = entry;
	buffers->count++;
	*ret_entry = entry;
	return 0;
}

int memory_buffers_register(
	struct memory_buffers *buffers,
	uint64_t id,
	const struct memory_request *request,
	char ret_reason[static MEMORY_REASON_MAX + 1],
	struct memory_buffer *ret_buffer
) {
	struct entry *entry = entry_find(buffers, id, 0);
	struct memory_request wanted = *request;
	int err;

	wanted.access |= MEMORY_ALONE;
	if (buffers->closing) {
		snprintf(ret_reason, MEMORY_REASON_MAX + 1, "no more buffers are taken");
		return -ESHUTDOWN;
	}
	if (entry != NULL &&
	    (!same_request(&entry->request, &wanted) || !same_owner(entry, request->owner))) {
		snprintf(
			ret_reason, MEMORY_REASON_MAX + 1,
			"buffer %llu is %llu bytes at 0x%llx with other use already",
			(unsigned long long)id, (unsigned long long)entry->request.length,
			(unsigned long long)entry->request.address
		);
		return -EEXIST;
	}
	if (entry == NULL && buffers->count + buffers->leaving >= buffers->max) {
		snprintf(
			ret_reason, MEMORY_REASON_MAX + 1,
			"there are %u buffers, as many as there may be",
			buffers->count + buffers->leaving
		);
		return -ENOSPC;
	}
	if (entry == NULL) {
		err = entry_add(buffers, id, request, ret_reason, &entry);
		if (err != 0)
			return err;
	}
	*ret_buffer = buffer_of(entry);
	return 0;
}

int memory_buffers_find(
	const struct memory_buffers *buffers,
	uint64_t id,
	uint32_t generation,
	struct memory_buffer *ret_buffer
) {
	const struct entry *entry = entry_find(buffers, id, 0);

	if (entry == NULL)
		return entry_find(buffers, id, generation) != NULL && generation != 0 ? -ESTALE
										      : -ENOENT;
	if (generation != 0 && entry->generation != generation)
		return -ESTALE;
	*ret_buffer = buffer_of(entry);
	return 0;
}

bool memory_buffers_release(
	struct memory_buffers *buffers,
	uint64_t id,
	uint32_t generation,
	struct memory_release *release
) {
	struct entry *entry = entry_find(buffers, id, generation);

	if (entry == NULL)
		return false;
	if (release != NULL) {
		release->id = id;
		release->generation = entry->generation;
		release->next = NULL;
		*entry->last_release = release;
		entry->last_release = &release->next;
	}
	if (!entry->leaving)
		entry_leave(entry);
	return true;
}

uint32_t memory_buffers_count(const struct memory_buffers *buffers) {
	return buffers->count;
}

uint32_t memory_buffers_leaving(const struct memory_buffers *buffers) {
	return buffers->leaving;
}
