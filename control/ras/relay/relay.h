// SPDX-License-Identifier: BSD-3-Clause
// Relay: messages to any agent over several links. This is its interface for the rest of the core.
//
// A node forwards a message over the good link whose peer is nearest to the destination in the
// ring. Ties go to the lowest id. Each hop must lead nearer, except for one detour, and no hop goes
// straight back. So every route ends. The hop limit only protects against tables that disagree. A
// transit node keeps no state of a message: it copies the frame, patches the fixed header and
// forwards the message.
#pragma once

#include "core/message.h"

#include <ras/relay.h>

struct link;

// Ports of the core itself, below RAS_RELAY_PORT_MIN.
enum relay_port {
	RELAY_PORT_CONFIRM = 1, // question whether a peer is seen, and its answer; sent once
	RELAY_PORT_TRANSFER,	// segments and credits; acknowledged like messages of users
};

int relay_create(struct ras *ras); // -ENOMEM
void relay_destroy(struct ras *ras);

// Send a message once to the current start of a peer: no retry, no report, no order. A link that
// reconnects may deliver it twice. A message without a route or without room is counted and
// dropped. `size` is limited by the class.
void relay_send_once(
	struct ras *ras,
	uint32_t slot,
	enum relay_port port,
	enum ras_relay_class rank,
	const void *payload,
	size_t size
);

// Send a message of the core to one of its own ports. Like ras_relay_send() it is acknowledged,
// retried, and ordered if requested. Its end is reported to ras_relay_report().
int relay_send_own(
	struct ras *ras, const struct ras_relay_message *message, uint64_t *ret_message_id
);
// Cancel a message, as ras_relay_cancel(). Does nothing if the message has ended.
void relay_cancel_own(struct ras *ras, uint64_t message_id);

// Deliver an acknowledged message, and report the end of an own one. core.c passes both to a module
// of the core or to the user, by the port.
int ras_relay_deliver(struct ras *ras, const struct ras_relay_delivery *delivery);
void ras_relay_report(struct ras *ras, uint32_t port, const struct ras_relay_report *report);

// Deliver a message that was sent once (core.c). If the reader ends with an error, the message is
// counted as UNDECODABLE.
void ras_relay_deliver_once(
	struct ras *ras, uint64_t source, uint32_t port, struct wire_reader *reader
);

// Process a whole MESSAGE_RELAY frame, including its type byte. Returns 0, or -EBADMSG if no agent
// sends such a frame: then the caller closes the connection.
int relay_frame_received(struct ras *ras, struct link *link, const uint8_t *frame, size_t size);

// Send queued messages over a link that takes frames again, as many as it takes.
void relay_link_flush(struct ras *ras, struct link *link);
// Reroute the messages queued for a link that is about to be closed, or is delayed from now on.
// link_is_good() must be false for the link already.
void relay_link_lost(struct ras *ras, struct link *link);
// End all messages to a peer that died, left or started again. Not to be called for refutations.
void relay_peer_changed(struct ras *ras, uint32_t slot);
// End our sent messages as expired, because our own start has changed. They may have been
// delivered, and a retry would be taken for a new message.
void relay_self_restarted(struct ras *ras);

void relay_tick(struct ras *ras);
// Return when relay_tick() has work, or RAS_NEVER.
uint64_t relay_next_ns(const struct ras *ras);
// Prefetch the memory that relay_next_ns() reads.
void relay_prefetch(const struct ras *ras);

// Return the hop limit in a ring of `members`: the longest regular way, plus room for the detour
// and for slightly different tables.
uint32_t relay_hops_max(uint32_t members, bool long_rings);
