// SPDX-License-Identifier: BSD-3-Clause
// Proof of the key on a connected socket. Exchanges the messages of <seal.h>, one step each time
// the socket is ready. Never reads a byte beyond the next message.
//
// Each kind of failure has its own cause. SILENT: nothing was received in time. PROOF: no valid
// proof came in time, or the other side rejected ours. VERSION: no common version. PROTOCOL:
// nonsense from a holder of the key. Other causes come from the socket.
#include "net/channel.h"

#include <lib/log.h>
#include <lib/must.h>
#include <lib/stream.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#define LOG_INTERVAL_NS (10 * RAS_NS_PER_SEC) // interval of log lines about one address

// Return whether a failure may be logged. A peer with a wrong key tries again every few seconds,
// for days. *ret_suppressed is the number of failures since the last line.
static bool proof_may_log(const struct channel *channel, uint64_t *ret_suppressed) {
	struct transport *transport = channel->transport;
	struct sock_addr peer = channel->peer;
	uint64_t now_ns = loop_now_ns(transport->loop);
	struct proof_log_entry *said = NULL, *oldest = &transport->said[0];

	if (!channel->outgoing)
		peer.port = 0;
	for (size_t n = 0; n < PROOF_LOG_ENTRIES_MAX && said == NULL; n++) {
		if (sock_addr_equal(&transport->said[n].peer, &peer))
			said = &transport->said[n];
		else if (transport->said[n].again_ns < oldest->again_ns)
			oldest = &transport->said[n];
	}
	if (said == NULL) { // a new address gets the entry that is due for longest
		said = oldest;
		*said = (struct proof_log_entry){.peer = peer};
	}
	if (now_ns < said->again_ns) {
		said->suppressed++;
		return false;
	}
	*ret_suppressed = said->suppressed;
	said->suppressed = 0;
	said->again_ns = now_ns + LOG_INTERVAL_NS;
	return true;
}

// End the channel, because the message of the other side is no proof.
static void proof_refuse(struct channel *channel, int err) {
	struct transport_counters *counters = &channel->transport->counters;
	struct transport_last_failures *trouble = &channel->transport->trouble;
	uint64_t now_ns = loop_now_ns(channel->transport->loop);
	char peer[SOCK_ADDR_TEXT_BYTES], key[SEAL_KEY_ID_TEXT_BYTES];
	uint8_t version_min, version_max;
	enum ras_cause cause;
	uint64_t suppressed;

	counters->proof_failures++;
	counters->proof_unknown_key += err == -ENOKEY;
	if (!channel->outgoing) {
		if (now_ns - trouble->stranger_ns > TRANSPORT_STRANGERS_NS)
			trouble->strangers = 0;
		trouble->strangers++;
		trouble->stranger = channel->peer;
		trouble->stranger_ns = now_ns;
	}
	if (proof_may_log(channel, &suppressed)) {
		sock_addr_format(&channel->peer, peer);
		seal_key_id(&channel->seal, key);
		seal_peer_versions(&channel->seal, &version_min, &version_max);
		log_event(
			LOG_LEVEL_WARN, "proof_failed", log_str("peer", peer),
			log_bool("outgoing", channel->outgoing), log_errno("error", err),
			log_str("key", key), log_u64("peer_version_min", version_min),
			log_u64("peer_version_max", version_max), log_u64("suppressed", suppressed)
		);
	}
	if (err == -ENOKEY || err == -EACCES)
		cause = RAS_CAUSE_PROOF;
	else if (err == -EPROTO)
		cause = RAS_CAUSE_VERSION;
	else
		cause = ras_cause_of_errno(err);
	channel_fail(channel, cause);
}

static void proof_fail_own(struct channel *channel, int err) {
	channel->transport->counters.proof_failures++;
	channel_fail(channel, ras_cause_of_errno(err));
}

static void proof_succeed(struct channel *channel, const struct seal_reply *last) {
	struct transport *transport = channel->transport;
	uint32_t life = channel->life, conn;
	int err = -ENOMEM;

	channel->buffers = malloc(sizeof(*channel->buffers));
	if (channel->buffers != NULL)
		transport->counters.buffer_bytes += sizeof(*channel->buffers);
	// Until now the channel was served with the clients. From now on the overlay depends on it.
	if (channel->buffers != NULL)
		err = channel_attach(channel, channel->source.fd, LOOP_OVERLAY, EPOLLIN);
	if (err == 0)
		err = channel_set_deadline(channel, UINT64_MAX);
	if (err != 0) {
		proof_fail_own(channel, err);
		return;
	}
	transport->counters.proofs++;
	channel_enter_state(channel, CHANNEL_OPEN);
	revoke_if_key_removed(channel); // our keys may have changed since it began
	if (last->size > 0)
		channel_queue_bytes(channel, last->bytes, last->size);
	if (channel->outgoing) {
		transport->trouble.failed = (struct sock_addr){0};
		transport->ops.opened(transport->ops_ctx, channel->conn);
		return;
	}
	err = transport->ops.accepted(transport->ops_ctx, &channel->peer, &conn);
	if (channel->life != life) // the callback ended the channel
		return;
	if (err == 0)
		channel_set_handle(channel, conn);
	else
		channel_end(channel);
}

static void send_message(struct channel *channel) {
	struct seal_reply *message = &channel->message;
	ssize_t n;

	n = stream_send(
		channel->source.fd, message->bytes + channel->message_done,
		message->size - channel->message_done
	);
	if (n < 0 && n != -EAGAIN) {
		proof_fail_own(channel, (int)n);
		return;
	}
	if (n > 0) {
		channel->message_done += (size_t)n;
		channel->transport->counters.bytes_sent += (uint64_t)n;
	}
	channel->message_out = channel->message_done < message->size;
	if (!channel->message_out)
		channel->message_done = 0;
	loop_set_events(&channel->source, channel->message_out ? EPOLLOUT : EPOLLIN);
}

static void take_message(struct channel *channel, size_t size) {
	struct seal_reply reply = {0};
	int err = seal_receive(&channel->seal, channel->message.bytes, size, &reply);

	if (err != 0) {
		// A holder of the key gets the reason. The reply fits into any socket.
		if (reply.size > 0)
			stream_send(channel->source.fd, reply.bytes, reply.size);
		proof_refuse(channel, err);
		return;
	}
	if (seal_proven(&channel->seal)) {
		proof_succeed(channel, &reply);
		return;
	}
	channel->message_done = 0;
	channel->message = reply;
	channel->message_out = true;
	send_message(channel);
}

static void receive_message(struct channel *channel) {
	size_t wanted = seal_wanted_bytes(&channel->seal);
	char peer[SOCK_ADDR_TEXT_BYTES], key[SEAL_KEY_ID_TEXT_BYTES];
	uint64_t suppressed;
	ssize_t n;

	must(wanted > channel->message_done && wanted <= sizeof(channel->message.bytes));
	n = stream_receive(
		channel->source.fd, channel->message.bytes + channel->message_done,
		wanted - channel->message_done
	);
	if (n == -EAGAIN)
		return;
	if (n < 0) {
		proof_fail_own(channel, (int)n);
		return;
	}
	if (n == 0) {
		channel->transport->counters.proof_failures++;
		// A stranger gets no reply. So the only sign of a wrong key is that the other side
		// hangs up.
		if (channel->outgoing && proof_may_log(channel, &suppressed)) {
			sock_addr_format(&channel->peer, peer);
			seal_key_id(&channel->seal, key);
			log_event(
				LOG_LEVEL_WARN, "proof_not_taken", log_str("peer", peer),
				log_str("key", key),
				log_str("likely",
					"the peer has another key or another cluster name"),
				log_u64("suppressed", suppressed)
			);
		}
		channel_fail(channel, RAS_CAUSE_PROOF);
		return;
	}
	channel->heard = true;
	channel->transport->counters.bytes_received += (uint64_t)n;
	channel->message_done += (size_t)n;
	if (channel->message_done == wanted)
		take_message(channel, wanted);
}

void proof_begin(struct channel *channel) {
	struct transport *transport = channel->transport;
	const struct transport_config *config = &transport->config;

	channel_enter_state(channel, CHANNEL_PROVING);
	seal_init(
		&channel->seal, config->keys, channel->outgoing ? SEAL_CONNECTS : SEAL_ACCEPTS,
		config->cluster
	);
	if (channel_set_deadline(channel, config->proof_ns) != 0) {
		proof_fail_own(channel, -ENOMEM);
		return;
	}
	if (!channel->outgoing)
		return;
	seal_begin(&channel->seal, &channel->message);
	channel->message_out = true;
	send_message(channel);
}

void proof_ready(struct channel *channel) {
	if (channel->message_out)
		send_message(channel);
	else
		receive_message(channel);
}

void proof_timed_out(struct channel *channel) {
	channel->transport->counters.proof_timeouts++;
	if (channel->outgoing)
		channel_fail(channel, channel->heard ? RAS_CAUSE_PROOF : RAS_CAUSE_SILENT);
	else
		channel_abort(channel);
}
