// SPDX-License-Identifier: BSD-3-Clause
// Messages between the processes of a mesh, in frames of <channel.h>.
//
//	process			lead
//	JOIN		->		rank, host
//			<-	SERVE	order, plan: wait for a client
//	LISTENS		->		order, port
//			<-	PLAY	order, plan, address: be the client
//	READY		->		order: ready, waits for the other flows
//			<-	GO	order: transfer now
//	RESULT, SERVED	->		order; or FAILED with the reason
//			<-	STOP	order: abort it
//			<-	END
//
// Orders have numbers; an answer to an old order is dropped. All messages are untrusted.
#pragma once

#include "mesh/mesh.h"
#include "run/channel.h"

#include <lib/wire.h>

struct mesh_join {
	char version[32];
	uint32_t rank, count;
	struct mesh_node node;
};

#define MESH_PROCESSOR_ANY UINT32_MAX

struct mesh_order {
	uint32_t number;
	uint32_t place; // index among the allowed processors; MESH_PROCESSOR_ANY: free choice
	struct sock_addr server; // PLAY only
	bool waits_for_go;	 // PLAY only: send READY and wait for GO before the transfer
	struct plan plan;
};

struct mesh_answer {
	uint32_t order;
	uint32_t port;		  // LISTENS only
	char why[MESH_WHY_BYTES]; // FAILED only
	// RESULT only.
	char device[DEVICE_NAME_MAX + 1], their_device[DEVICE_NAME_MAX + 1];
	double taus[MESH_QUANTILES];
	struct histogram *kept; // owned by the receiver
};

// Send a message. Returns 0, or -errno with the reason in `why`.
int mesh_send_join(struct channel *channel, const struct mesh_join *join, struct lab_why *why);
int mesh_send_order(
	struct channel *channel,
	enum channel_kind kind,
	const struct mesh_order *order,
	struct lab_why *why
);
int mesh_send_answer(
	struct channel *channel,
	enum channel_kind kind,
	const struct mesh_answer *answer,
	struct lab_why *why
);

// Decode a message. Returns 0, or -EBADMSG with the reason in `why`.
int mesh_read_join(
	const struct channel_message *message, struct mesh_join *ret_join, struct lab_why *why
);
int mesh_read_order(
	const struct channel_message *message, struct mesh_order *ret_order, struct lab_why *why
);
int mesh_read_answer(
	const struct channel_message *message, struct mesh_answer *ret_answer, struct lab_why *why
);
