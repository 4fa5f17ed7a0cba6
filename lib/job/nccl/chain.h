// SPDX-License-Identifier: BSD-3-Clause
// The plugin behind this one. It is loaded as NCCL loads plugins, gets the same calls with handles
// of its own, and is asked in the newest version that it shares with NCCL: 4 to 7 convert into
// each other downwards, 1 to 3 only serve themselves.
#pragma once

#include "bridge.h"

// False: there is none (no name was given, or it cannot be used, which is said in NCCL's log).
bool chain_open(int version);
void chain_close(void);
// In a child of fork(): what is open belongs to the parent.
void chain_forget(void);
bool chain_is_open(void);
int chain_mask(void);

void chain_begin(void **ret_context, const struct bridge_identity *identity);
void chain_end(void *context);
// parent and parent_group are the next plugin's own handles. *ret_handle is NULL if it wants none.
void chain_start(
	int version,
	void *context,
	void **ret_handle,
	const struct nccl_descriptor *descriptor,
	void *parent,
	void *parent_group
);
void chain_stop(void *handle);
void chain_state(void *handle, int state, const union nccl_state_arguments *arguments);
