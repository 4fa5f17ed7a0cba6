// SPDX-License-Identifier: BSD-3-Clause
// The overlay's connections as the protocol core sees them. The control thread runs this. The
// transport owns its table of channels and their sockets.
#include "net/channel.h"

#include <lib/container.h>
#include <lib/must.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// Return the first channel of a list, if it was there before this round began.
static struct channel *list_next_of_round(const struct channel_list *list) {
	struct channel *channel = TAILQ_FIRST(list);

	if (channel == NULL || channel->round == channel->transport->round)
		return NULL;
	return channel;
}

static void on_flush(struct loop_job *job) {
	struct transport *transport = container_of(job, struct transport, flush_job);
	struct channel *channel;

	transport_enter(transport);
	transport->round++;
	while ((channel = list_next_of_round(&transport->flush)) != NULL) {
		TAILQ_REMOVE(&transport->flush, channel, in_flush);
		channel->will_flush = false;
		channel_flush(channel);
	}
	transport_exit(transport);
}

static void on_failed(struct loop_job *job) {
	struct transport *transport = container_of(job, struct transport, failed_job);
	struct channel *channel;

	transport_enter(transport);
	transport->round++;
	while ((channel = list_next_of_round(&transport->failed)) != NULL)
		channel_fail(channel, channel->cause);
	transport_exit(transport);
}

static int copy_text(const char **text) {
	if (*text == NULL)
		return 0;
	*text = strdup(*text);
	return *text != NULL ? 0 : -ENOMEM;
}

static int copy_config(struct transport *transport, const struct transport_config *config) {
	int err;

	transport->config = *config;
	transport->config.keys = seal_keys_get(config->keys);
	// The order matters: if a copy fails, none of the caller's strings may be taken for ours.
	transport->config.interface = NULL;
	err = copy_text(&transport->config.cluster);
	if (err == 0) {
		transport->config.interface = config->interface;
		err = copy_text(&transport->config.interface);
	}
	return err;
}

static int transport_make_tables(struct transport *transport) {
	const struct transport_config *config = &transport->config;
	uint32_t buckets = 16;

	while (buckets < config->conns_max)
		buckets *= 2;
	transport->bucket_mask = buckets - 1;
	transport->buckets = calloc(buckets, sizeof(*transport->buckets));
	// Channels with a handle, as many in a soft close, and strangers. Unused entries are never
	// touched.
	transport->channel_max = 2 * config->conns_max + config->proving_max;
	transport->channels = calloc(transport->channel_max, sizeof(*transport->channels));
	if (transport->buckets == NULL || transport->channels == NULL)
		return -ENOMEM;
	return admission_create(
		config->proving_per_source, config->accepts_per_source_per_s, &transport->admission
	);
}

// Refuse to listen without a key where other machines can connect. Returns 0 or -EPERM.
static int check_listen_address(
	const struct transport_config *config,
	const struct sock_addr *listen,
	char ret_detail[static 256]
) {
	char text[SOCK_ADDR_TEXT_BYTES];

	if (!seal_keys_is_keyless(config->keys) || sock_addr_is_loopback(listen))
		return 0;
	sock_addr_format(listen, text);
	snprintf(
		ret_detail, 256,
		"an agent without a key may listen on loopback only, not on %s: set [overlay] key",
		text
	);
	return -EPERM;
}

int transport_create(
	struct loop *loop,
	const struct transport_config *config,
	const struct transport_ops *ops,
	void *ops_ctx,
	char ret_detail[static 256],
	struct transport **ret_transport
) {
	struct transport *transport;
	int err;

	must(config->conns_max > 0 && config->conns_max <= TRANSPORT_CONNS_MAX);
	must(config->proving_max > 0 && config->proving_max <= TRANSPORT_CONNS_MAX);
	err = check_listen_address(config, &config->listen, ret_detail);
	if (err != 0)
		return err;
	snprintf(ret_detail, 256, "out of memory");
	transport = calloc(1, sizeof(*transport));
	if (transport == NULL)
		return -ENOMEM;
	transport->loop = loop;
	transport->listener.reserve_fd = transport->owner_query_fd = -1;
	transport->flush_job.run = on_flush;
	transport->failed_job.run = on_failed;
	TAILQ_INIT(&transport->free);
	TAILQ_INIT(&transport->strangers);
	TAILQ_INIT(&transport->live);
	TAILQ_INIT(&transport->closing);
	TAILQ_INIT(&transport->failed);
	TAILQ_INIT(&transport->flush);
	transport->ops = *ops;
	transport->ops_ctx = ops_ctx;
	err = copy_config(transport, config);
	if (err == 0)
		err = transport_make_tables(transport);
	if (err == 0)
		err = listener_open(transport, ret_detail);
	if (err != 0) {
		transport_destroy(transport);
		return err;
	}
	dial_open_owners(transport);
	*ret_transport = transport;
	return 0;
}

struct transport *transport_destroy(struct transport *transport) {
	if (transport == NULL)
		return NULL;
	transport_stop_accepting(transport);
	for (uint32_t n = 0; n < transport->channel_count; n++) {
		if (transport->channels[n].state != CHANNEL_FREE)
			channel_end(&transport->channels[n]);
	}
	closed_ports_end(transport);
	loop_undefer(transport->loop, &transport->flush_job);
	loop_undefer(transport->loop, &transport->failed_job);
	loop_timer_cancel(transport->loop, &transport->revoke_timer);
	transport->destroyed = true;
	if (transport->depth > 0)
		return NULL; // transport_exit() frees the rest
	if (transport->owner_query_fd >= 0)
		close(transport->owner_query_fd);
	admission_destroy(transport->admission);
	seal_keys_put(transport->config.keys);
	free((char *)transport->config.cluster);
	free((char *)transport->config.interface);
	free(transport->buckets);
	free(transport->channels);
	free(transport);
	return NULL;
}

int transport_rebind(
	struct transport *transport,
	const struct sock_addr *listen,
	const char *interface,
	char ret_detail[static 256]
) {
	struct transport_config *config = &transport->config;
	struct sock_addr before = config->listen;
	int err;

	err = check_listen_address(config, listen, ret_detail);
	if (err != 0)
		return err;
	snprintf(ret_detail, 256, "out of memory");
	err = copy_text(&interface);
	if (err != 0)
		return err;
	config->listen = *listen;
	err = listener_open(transport, ret_detail);
	if (err != 0) {
		config->listen = before;
		free((char *)interface);
		return err;
	}
	free((char *)config->interface);
	config->interface = interface;
	config->source = sock_addr_is_any(listen) ? (struct sock_addr){0} : *listen;
	config->source.port = 0;
	return 0;
}

void transport_rekey(struct transport *transport, const struct seal_keys *keys) {
	const struct seal_keys *before = transport->config.keys;

	transport->config.keys = seal_keys_get(keys);
	seal_keys_put(before);
	revoke_soon(transport, loop_now_ns(transport->loop));
}

struct sock_addr transport_address(const struct transport *transport) {
	return transport->listener.address;
}

void transport_open(struct transport *transport, uint32_t conn, const struct sock_addr *to) {
	struct channel *channel = channel_allocate(transport, to);

	channel_set_handle(channel, conn);
	channel_dial(channel);
}

void transport_local_address(
	const struct transport *transport, uint32_t conn, struct sock_addr *ret_address
) {
	const struct channel *channel = channel_find(transport, conn);
	struct sockaddr_storage storage;
	socklen_t length = sizeof(storage);

	if (channel != NULL && channel->source.fd >= 0 &&
	    getsockname(channel->source.fd, (struct sockaddr *)&storage, &length) == 0)
		(void)sock_addr_from_sockaddr((struct sockaddr *)&storage, length, ret_address);
}

int transport_send(struct transport *transport, uint32_t conn, const void *frame, size_t size) {
	struct channel *channel = channel_find(transport, conn);

	if (channel == NULL || channel->state != CHANNEL_OPEN)
		return -ENOTCONN;
	return channel_queue_frame(channel, frame, size);
}

void transport_close(struct transport *transport, uint32_t conn, enum ras_close how) {
	struct channel *channel = channel_find(transport, conn);

	if (channel == NULL)
		return;
	if (how == RAS_CLOSE_SOFT && channel->state == CHANNEL_OPEN)
		channel_close_softly(channel);
	else
		channel_end(channel);
}

uint32_t transport_soft_close_count(const struct transport *transport) {
	return transport->counters.closing;
}

const struct transport_last_failures *transport_last_failures(const struct transport *transport) {
	return &transport->trouble;
}

const struct transport_counters *transport_counters(const struct transport *transport) {
	return &transport->counters;
}
