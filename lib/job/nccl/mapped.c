// SPDX-License-Identifier: BSD-3-Clause
// Table that maps our handles to those of this plugin and of the chained plugin.
#include "mapped.h"

#include "chain.h"
#include "fields.h"
#include "handle.h"
#include "record.h"

#include <string.h>
#include <sys/mman.h>

// A slot is reused after SLOT_COUNT events, unless it is still open: 3 MiB, allocated on first
// touch.
#define SLOT_COUNT 65536u
#define OPEN_PASSED_MAX 256u // open slots skipped by one search

struct slot {
	uint32_t generation; // 0: never used
	bool is_open;
	void *own, *next;
	uint64_t event; // number of the event in the recording
};

static struct {
	struct bridge_lock lock;
	struct slot *slots; // NULL: closed
	uint32_t at;
	uint64_t events;
} table;

void mapped_open(int version) {
	bool chained = chain_open(version);
	bool recorded = record_open(version, bridge.logger);
	void *slots;

	if (!chained && !recorded)
		return;
	slots =
		mmap(NULL, SLOT_COUNT * sizeof(struct slot), PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (slots == MAP_FAILED) {
		chain_close();
		record_close();
		return;
	}
	bridge_lock_acquire(&table.lock);
	table.slots = slots;
	table.at = 0;
	table.events = 0;
	bridge_lock_release(&table.lock);
	atomic_store_explicit(&bridge.is_mapped, true, memory_order_relaxed);
}

void mapped_close(void) {
	struct slot *slots;

	atomic_store_explicit(&bridge.is_mapped, false, memory_order_relaxed);
	bridge_lock_acquire(&table.lock);
	slots = table.slots;
	table.slots = NULL;
	record_close();
	bridge_lock_release(&table.lock);
	if (slots != NULL)
		munmap(slots, SLOT_COUNT * sizeof(struct slot));
	chain_close();
}

void mapped_reset_in_child(void) {
	// the holder does not exist in the child
	atomic_store_explicit(&table.lock.held, 0, memory_order_relaxed);
	atomic_store_explicit(&bridge.is_mapped, false, memory_order_relaxed);
	record_close();
	if (table.slots != NULL)
		munmap(table.slots, SLOT_COUNT * sizeof(struct slot));
	table.slots = NULL;
	chain_reset_in_child();
}

int mapped_mask(void) {
	return chain_mask() | record_mask();
}

void mapped_comm_begin(struct bridge_comm *comm, const struct bridge_identity *identity) {
	if (chain_is_open())
		chain_comm_begin(&comm->next_context, identity);
	bridge_lock_acquire(&table.lock);
	record_init(
		comm->index, identity,
		bridge_level_mask(bridge.level, comm->version, bridge.is_sampling) | mapped_mask()
	);
	bridge_lock_release(&table.lock);
}

void mapped_comm_end(struct bridge_comm *comm) {
	if (chain_is_open())
		chain_comm_end(comm->next_context);
	bridge_lock_acquire(&table.lock);
	record_finalize(comm->index);
	bridge_lock_release(&table.lock);
}

// The caller holds table.lock. Returns NULL if the handle is invalid, or its slot was reused.
static struct slot *slot_find(const void *raw) {
	struct handle handle;
	struct slot *slot;
	uint32_t at;

	if (table.slots == NULL || !handle_unpack(raw, &handle) || handle.class != HANDLE_MAPPED)
		return NULL;
	at = handle.part | handle.comm << 7 | handle.generation << 14;
	if (at >= SLOT_COUNT)
		return NULL;
	slot = &table.slots[at];
	return slot->generation != 0 &&
			       (slot->generation & HANDLE_OPERATION_MASK) == handle.operation
		       ? slot
		       : NULL;
}

static struct slot *allocate_slot(void **ret_handle) {
	struct handle handle;
	struct slot *slot;

	for (uint32_t passed = 0; passed < OPEN_PASSED_MAX; passed++) {
		table.at = (table.at + 1) % SLOT_COUNT;
		if (!table.slots[table.at].is_open)
			break;
	}
	slot = &table.slots[table.at];
	slot->generation++;
	if ((slot->generation & HANDLE_OPERATION_MASK) == 0)
		slot->generation = 1;
	slot->is_open = true;
	slot->own = slot->next = NULL;
	slot->event = ++table.events;
	handle = (struct handle){
		.class = HANDLE_MAPPED,
		.comm = table.at >> 7 & 127,
		.generation = table.at >> 14 & 255,
		.operation = slot->generation & HANDLE_OPERATION_MASK,
		.part = table.at & 127,
	};
	*ret_handle = handle_pack(&handle);
	return slot;
}

// Handles and event number behind a parent's handle; a handle of another process is kept unchanged.
struct parent {
	void *own, *next;
	uint64_t event;
};

static struct parent resolve_parent(void *raw) {
	const struct slot *slot = slot_find(raw);

	if (slot != NULL)
		return (struct parent){slot->own, slot->next, slot->event};
	return (struct parent){raw, raw, 0};
}

int mapped_start(
	int version, void *context, void **ret_handle, const struct nccl_descriptor *descriptor
) {
	uint32_t type = descriptor_type(version, descriptor);
	struct bridge_comm *comm = bridge_comm_find(context);
	struct parent parent, group = {0};
	struct record_parents recorded;
	struct nccl_descriptor copy = {0};
	struct slot *slot;
	void *own = NULL, *next = NULL;

	*ret_handle = NULL;
	if (!bridge_is_own_process())
		return 0;
	bridge_lock_acquire(&table.lock);
	parent = resolve_parent(descriptor->parent);
	if (version >= 5 && (type == NCCL_COLL || type == NCCL_P2P))
		group = resolve_parent(
			type == NCCL_COLL ? descriptor->coll_4.parent_group
					  : descriptor->p2p_4.parent_group
		);
	bridge_lock_release(&table.lock);
	memcpy(&copy, descriptor, nccl_descriptor_bytes(version));
	copy.parent = parent.own;
	(void)event_start(version, context, &own, &copy);
	if (chain_is_open())
		chain_start(
			version, comm != NULL ? comm->next_context : NULL, &next, descriptor,
			parent.next, group.next
		);
	bridge_lock_acquire(&table.lock);
	if (table.slots != NULL && (own != NULL || next != NULL || record_is_open())) {
		slot = allocate_slot(ret_handle);
		slot->own = own;
		slot->next = next;
		recorded = (struct record_parents){parent.event, group.event};
		record_start(
			slot->event, comm != NULL ? comm->index : -1, version, descriptor, &recorded
		);
	}
	bridge_lock_release(&table.lock);
	return 0;
}

int mapped_stop(void *handle) {
	struct slot *slot;
	void *own = NULL, *next = NULL;

	if (!bridge_is_own_process())
		return 0;
	bridge_lock_acquire(&table.lock);
	slot = slot_find(handle);
	if (slot != NULL) {
		record_stop(slot->event);
		if (slot->is_open) {
			own = slot->own;
			next = slot->next;
		}
		slot->is_open = false;
	}
	bridge_lock_release(&table.lock);
	(void)event_stop(own);
	chain_stop(next);
	return 0;
}

int mapped_state(void *handle, int state, const union nccl_state_arguments *arguments) {
	struct slot *slot;
	void *next = NULL;

	if (!bridge_is_own_process())
		return 0;
	bridge_lock_acquire(&table.lock);
	slot = slot_find(handle);
	if (slot != NULL && slot->is_open) {
		record_state(slot->event, state, arguments);
		next = slot->next;
	}
	bridge_lock_release(&table.lock);
	chain_state(next, state, arguments);
	return 0;
}
