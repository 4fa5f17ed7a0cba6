// SPDX-License-Identifier: BSD-3-Clause
// Ends connections that were proven with a key that is no longer ours. A node that holds only that
// key is no member any more, however long its connections would last.
//
// Members prove the new key at once. One connection is ended at a time, so the ring lacks only one
// link of an agent for a moment.
#include "net/channel.h"

#include <lib/container.h>
#include <lib/log.h>

#include <errno.h>
#include <string.h>

#define REVOKE_PAUSE_NS (250 * RAS_NS_PER_MS)

static bool channel_key_is_ours(const struct channel *channel, const struct seal_keys *keys) {
	char used[SEAL_KEY_ID_TEXT_BYTES], ours[SEAL_KEY_ID_TEXT_BYTES];

	seal_key_id(&channel->seal, used);
	for (uint32_t n = 0; n < seal_keys_count(keys); n++) {
		seal_keys_id(keys, n, ours);
		if (strcmp(used, ours) == 0)
			return true;
	}
	return false;
}

static void on_revoke_timer(struct loop_timer *timer, uint64_t now_ns) {
	struct transport *transport = container_of(timer, struct transport, revoke_timer);
	char peer[SOCK_ADDR_TEXT_BYTES];
	struct channel *channel;

	TAILQ_FOREACH(channel, &transport->live, in_list) {
		if (channel->state == CHANNEL_OPEN &&
		    !channel_key_is_ours(channel, transport->config.keys))
			break;
	}
	if (channel == NULL)
		return;
	sock_addr_format(&channel->peer, peer);
	log_event(
		LOG_LEVEL_INFO, "link_revoked", log_str("peer", peer),
		log_str("why", "the key of this connection is no longer in the key file")
	);
	transport->counters.revoked++;
	transport_enter(transport);
	channel_fail(channel, RAS_CAUSE_RESET);
	if (!transport->destroyed)
		revoke_soon(transport, now_ns + REVOKE_PAUSE_NS);
	transport_exit(transport);
}

void revoke_soon(struct transport *transport, uint64_t at_ns) {
	transport->revoke_timer.expired = on_revoke_timer;
	// Without memory for a timer the connections live until the next reload. The log tells the
	// operator.
	if (loop_timer_set(transport->loop, &transport->revoke_timer, at_ns) != 0)
		log_event(LOG_LEVEL_ERROR, "links_not_revoked", log_errno("error", ENOMEM));
}

void revoke_if_key_removed(struct channel *channel) {
	struct transport *transport = channel->transport;

	if (!channel_key_is_ours(channel, transport->config.keys))
		revoke_soon(transport, loop_now_ns(transport->loop));
}
