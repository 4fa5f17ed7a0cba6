// SPDX-License-Identifier: BSD-3-Clause
// Loads the next plugin and passes events on to it.
#include "chain.h"

#include "fields.h"
#include "loader_symbols.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static struct {
	void *library;
	const struct nccl_profiler *next; // NULL: no chained plugin
	int version;			  // interface version of the chained plugin
	// mask of the chained plugin, which may store to it at any time
	int mask;
} chain;

// Add the types that NCCL also sends with a mask: the ancestors of each type.
static uint32_t add_ancestor_types(uint32_t mask) {
	if ((mask & NCCL_KERNEL_PHASE) != 0)
		mask |= NCCL_KERNEL_CH;
	if ((mask & NCCL_NET_PLUGIN) != 0)
		mask |= NCCL_PROXY_STEP;
	if ((mask & NCCL_PROXY_STEP) != 0)
		mask |= NCCL_PROXY_OP;
	if ((mask & (NCCL_CE_SYNC | NCCL_CE_BATCH)) != 0)
		mask |= NCCL_CE_COLL;
	if ((mask & NCCL_CE_COLL) != 0)
		mask |= NCCL_COLL_API;
	if ((mask & (NCCL_PROXY_OP | NCCL_KERNEL_CH)) != 0)
		mask |= NCCL_COLL | NCCL_P2P;
	if ((mask & NCCL_COLL) != 0)
		mask |= NCCL_GROUP | NCCL_COLL_API;
	if ((mask & NCCL_P2P) != 0)
		mask |= NCCL_GROUP | NCCL_P2P_API;
	if ((mask & (NCCL_COLL_API | NCCL_P2P_API | NCCL_KERNEL_LAUNCH | NCCL_GROUP)) != 0)
		mask |= NCCL_GROUP_API;
	return mask;
}

static const struct nccl_profiler *find_profiler(void *library, int version, int *ret_version) {
	// Versions 1 to 3 cannot be converted, so search only that version; see chain.h.
	int lowest = version >= 4 ? 4 : version;

	for (int try = version; try >= lowest; try--) {
		char name[32];
		const struct nccl_profiler *table;

		snprintf(name, sizeof(name), "ncclProfiler_v%d", try);
		table = dlsym(library, name);
		if (table != NULL) {
			*ret_version = try;
			return table;
		}
	}
	return NULL;
}

bool chain_open(int version) {
	const char *path = bridge_environment_value("TOCSIN_NCCL_PROFILER_NEXT");

	if (path == NULL)
		return false;
	chain.library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (chain.library == NULL) {
		// NOLINTNEXTLINE(concurrency-mt-unsafe): each thread has its own
		bridge_log_once(BRIDGE_LOGGED_NEXT, "TOCSIN_NCCL_PROFILER_NEXT: %s", dlerror());
		return false;
	}
	chain.mask = 0;
	chain.next = find_profiler(chain.library, version, &chain.version);
	if (chain.next != NULL && chain.next->stop != bridge_own_stop())
		return true;
	bridge_log_once(
		BRIDGE_LOGGED_NEXT,
		chain.next != NULL
			? "TOCSIN_NCCL_PROFILER_NEXT=%s is Tocsin's own plugin"
			: "TOCSIN_NCCL_PROFILER_NEXT=%s has no profiler version of this NCCL",
		path
	);
	chain_close();
	return false;
}

void chain_close(void) {
	if (chain.library != NULL)
		dlclose(chain.library);
	chain_reset_in_child();
}

void chain_reset_in_child(void) {
	chain.library = NULL;
	chain.next = NULL;
}

bool chain_is_open(void) {
	return chain.next != NULL;
}

int chain_mask(void) {
	if (chain.next == NULL)
		return 0;
	return __atomic_load_n(&chain.mask, __ATOMIC_RELAXED) & (int)nccl_types_in(chain.version);
}

void chain_comm_begin(void **ret_context, const struct bridge_identity *identity) {
	int err;

	*ret_context = NULL;
	if (chain.version <= 3)
		err = chain.next->init_1(ret_context, &chain.mask);
	else if (chain.version == 4)
		err = chain.next->init_4(
			ret_context, &chain.mask, identity->name, identity->hash, identity->nodes,
			identity->size, identity->rank, identity->logger
		);
	else
		err = chain.next->init_5(
			ret_context, identity->hash, &chain.mask, identity->name, identity->nodes,
			identity->size, identity->rank, identity->logger
		);
	if (err != 0) {
		bridge_log_once(
			BRIDGE_LOGGED_NEXT, "the chained plugin refuses a communicator: %d", err
		);
		*ret_context = NULL;
	}
}

void chain_comm_end(void *context) {
	if (context != NULL)
		(void)chain.next->finalize(context);
}

void chain_start(
	int version,
	void *context,
	void **ret_handle,
	const struct nccl_descriptor *descriptor,
	void *parent,
	void *parent_group
) {
	uint32_t type = descriptor_type(version, descriptor);
	uint32_t wanted = add_ancestor_types((uint32_t)chain_mask()) & nccl_types_in(chain.version);
	struct nccl_descriptor copy = {0};

	*ret_handle = NULL;
	if ((type & wanted) == 0)
		return;
	memcpy(&copy, descriptor, nccl_descriptor_bytes(version));
	copy.type = type;
	copy.parent = parent;
	if (version >= 5 && type == NCCL_COLL)
		copy.coll_4.parent_group = parent_group;
	if (version >= 5 && type == NCCL_P2P)
		copy.p2p_4.parent_group = parent_group;
	// In version 4 the group is the parent of an operation.
	if (version >= 5 && chain.version == 4 && (type == NCCL_COLL || type == NCCL_P2P))
		copy.parent = parent_group;
	(void)chain.next->start(context, ret_handle, &copy);
}

void chain_stop(void *handle) {
	if (handle != NULL && chain.next != NULL)
		(void)chain.next->stop(handle);
}

void chain_state(void *handle, int state, const union nccl_state_arguments *arguments) {
	static const uint8_t last[NCCL_VERSION_LAST + 1] = {0, 18, 18, 22, 22, 24, 30, 31};

	if (handle != NULL && chain.next != NULL && state <= last[chain.version])
		(void)chain.next->state(handle, state, arguments);
}
