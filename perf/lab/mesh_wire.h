// SPDX-License-Identifier: BSD-3-Clause
// What the processes of a mesh say to each other, in frames of <channel.h>.
//
//	process			lead
//	JOIN		->		who it is
//			<-	SERVE	order, plan: wait for a client
//	LISTENS		->		order, port
//			<-	PLAY	order, plan, address: be that client
//	RESULT, SERVED	->		order; or FAILED, why not
//			<-	STOP	order: leave it
//			<-	END
//
// An order is a number: what answers one that is over is dropped. All of it comes from outside.
#pragma once

#include "channel.h"
#include "mesh.h"

#include <lib/wire.h>

struct mesh_join {
	char version[32];
	uint32_t rank, count;
	struct mesh_node node;
};

#define MESH_PLACE_ANY UINT32_MAX

struct mesh_order {
	uint32_t number;
	uint32_t place; // which of the processors it may use; MESH_PLACE_ANY: its own choice
	struct sock_addr server; // of PLAY
	struct plan plan;
};

struct mesh_answer {
	uint32_t order;
	uint32_t port;		  // of LISTENS
	char why[MESH_WHY_BYTES]; // of FAILED
	// Of RESULT.
	char device[DEVICE_NAME_MAX + 1], their_device[DEVICE_NAME_MAX + 1];
	double taus[MESH_QUANTILES];
	struct histogram *kept; // the receiver's
};

// 0 or -errno with the reason.
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

// -EBADMSG with the reason: it is none.
int mesh_read_join(
	const struct channel_message *message, struct mesh_join *ret_join, struct lab_why *why
);
int mesh_read_order(
	const struct channel_message *message, struct mesh_order *ret_order, struct lab_why *why
);
int mesh_read_answer(
	const struct channel_message *message, struct mesh_answer *ret_answer, struct lab_why *why
);
