// SPDX-License-Identifier: BSD-3-Clause
// The chained plugin. It is loaded as NCCL loads plugins, and gets the same calls with its own
// handles. It uses the newest interface version that it shares with NCCL. Versions 4 to 7 can be
// converted downwards; versions 1 to 3 cannot.
#pragma once

#include "bridge.h"

// Open the chained plugin. Returns false if none is configured, or if it is unusable, which is
// logged in NCCL's log.
bool chain_open(int version);
void chain_close(void);
// In a fork() child: drop the state, which belongs to the parent.
void chain_reset_in_child(void);
bool chain_is_open(void);
int chain_mask(void);

void chain_comm_begin(void **ret_context, const struct bridge_identity *identity);
void chain_comm_end(void *context);
// parent and parent_group are the chained plugin's own handles. *ret_handle is NULL if it does not
// want the event.
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
