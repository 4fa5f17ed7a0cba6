// SPDX-License-Identifier: BSD-3-Clause
// Runs the protocol core on the loop: connects it to sockets, clocks, disk and other parts of the
// agent.
#include "overlay/inside.h"

#include <lib/container.h>
#include <lib/log.h>
#include <lib/must.h>
#include <lib/wire.h>

#include <sodium.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define HISTORY_EVENTS 4096
#define PROVING_MAX 1024 // connections that have not proven the key yet
#define PROVING_PER_SOURCE 64
#define ACCEPTS_PER_SOURCE_PER_S 256
#define WALL_CLOCK_NS (10 * RAS_NS_PER_SEC) // a changed clock is noticed within this time

static void *core_memory_allocate(void *ctx, size_t size) {
	(void)ctx;
	return calloc(1, size);
}

static void core_memory_release(void *ctx, void *memory, size_t size) {
	(void)ctx;
	(void)size;
	free(memory);
}

// Operations of the core.

static void op_open(void *ctx, uint32_t conn, const struct sock_addr *to) {
	struct overlay *overlay = ctx;

	overlay_tcp_reach_begin(overlay, conn, to);
	transport_open(overlay->transport, conn, to);
}

static int op_send(void *ctx, uint32_t conn, const void *frame, size_t size) {
	struct overlay *overlay = ctx;
	int err = transport_send(overlay->transport, conn, frame, size);

	// Until the core learns that the connection ended, the end looks like a full queue.
	return err == 0 ? 0 : -EAGAIN;
}

static void op_close(void *ctx, uint32_t conn, enum ras_close how) {
	struct overlay *overlay = ctx;

	transport_close(overlay->transport, conn, how);
}

static void op_wake(void *ctx, uint64_t at_ns) {
	struct overlay *overlay = ctx;

	if (at_ns == RAS_NEVER)
		loop_timer_cancel(overlay->loop, &overlay->wake);
	else if (loop_timer_set(overlay->loop, &overlay->wake, at_ns) != 0)
		log_event(LOG_LEVEL_ERROR, "timer_failed", log_errno("error", ENOMEM));
}

static void op_event(void *ctx, const struct ras_event *event) {
	struct overlay *overlay = ctx;
	const char *outer = overlay->text;
	struct state_event kept = {.event = *event};
	char words[STATE_TEXT_BYTES] = "";
	const char *text;

	// Describe the events whose numbers are for machines only.
	if (event->kind == RAS_EVENT_JOIN_DROPPED)
		overlay_dropped_words(overlay, event, words);
	else if (event->kind == RAS_EVENT_ADDRESS_OTHER)
		overlay_stranger_words(overlay, event->peer, event->value, &event->other, words);
	else if (event->kind == RAS_EVENT_CONFLICT)
		overlay_conflict_words(overlay, event, words);
	else if (event->kind == RAS_EVENT_FORGED)
		overlay_forged_words(overlay, event, words);
	else if (event->kind == RAS_EVENT_KEY_CHANGED || event->kind == RAS_EVENT_KEY_REFUSED)
		overlay_key_words(overlay, event, words);
	if (words[0] != '\0') {
		overlay->text = words;
		overlay->text_kind = event->kind;
	}
	text = overlay_note_text(overlay, event);
	overlay_note_store(overlay, event);
	if (!event->quiet)
		overlay_log_event(overlay, event);
	if (overlay->state != NULL && !event->quiet) {
		snprintf(kept.text, sizeof(kept.text), "%s", text != NULL ? text : "");
		kept.realtime_ns = overlay_realtime_ns(overlay, event->at_ns);
		state_journal(overlay->state, &kept);
		// Our start counter may have changed with these events.
		if (event->kind == RAS_EVENT_JOIN_DONE || event->kind == RAS_EVENT_DECLARED_DEAD ||
		    event->kind == RAS_EVENT_ADDRESS_CHANGED)
			loop_defer(overlay->loop, &overlay->store_start);
	}
	overlay_reach_event(overlay, event);
	overlay_remember_event(overlay, event);
	overlay_maintenance_event(overlay, event);
	overlay_mistakes_event(overlay, event);
	for (struct overlay_listener *listener = overlay->listeners; listener != NULL;) {
		struct overlay_listener *next = listener->next;

		listener->event(listener, event);
		listener = next;
	}
	overlay->text = outer;
}

// The core may report an event in the middle of a change, so a job reads the start counter later.
static void store_start(struct loop_job *job) {
	struct overlay *overlay = container_of(job, struct overlay, store_start);
	uint64_t start = ras_incarnation_start(ras_self_incarnation(overlay->ras));

	if (start != state_start(overlay->state))
		state_save_start(overlay->state, start);
}

static int op_deliver(void *ctx, const struct ras_relay_delivery *delivery) {
	struct overlay *overlay = ctx;

	switch (delivery->port) {
	case OVERLAY_PORT_PING:
		return 0; // accepting the message is the answer to an echo
	case OVERLAY_PORT_QUESTION:
		return overlay_call_deliver(overlay, delivery);
	case OVERLAY_PORT_MAINTENANCE:
		return overlay_maintenance_deliver(overlay, delivery->payload, delivery->size);
	default:
		return overlay_port_deliver(overlay, delivery);
	}
}

static void op_report(void *ctx, const struct ras_relay_report *report) {
	struct overlay *overlay = ctx;

	if (!overlay_ping_report(overlay, report) && !overlay_port_report(overlay, report))
		overlay_call_report(overlay, report);
}

static int op_transfer_take(void *ctx, const struct ras_transfer_segment *segment) {
	return segment->port == OVERLAY_PORT_ANSWER ? overlay_call_receive(ctx, segment) : -ENOENT;
}

static void op_notice(void *ctx, uint64_t origin, uint32_t kind, const void *payload, size_t size) {
	struct overlay *overlay = ctx;

	for (uint32_t n = 0; n < OVERLAY_NOTICE_CONSUMERS; n++) {
		const struct overlay_notice_consumer *consumer = &overlay->notices[n];

		if (consumer->fn == NULL || consumer->kind != kind)
			continue;
		consumer->fn(consumer->ctx, origin, payload, size);
		return;
	}
	// The notice belongs to a newer version. It has no consumer here.
	log_event(
		LOG_LEVEL_DEBUG, "notice_ignored", log_u64("kind", kind), log_u64("origin", origin),
		log_u64("bytes", size)
	);
}

static void
op_sign(void *ctx, const void *bytes, size_t size, uint8_t ret_signature[static RAS_SIGNATURE_BYTES]
) {
	const struct overlay *overlay = ctx;

	agent_key_sign(overlay->key, bytes, size, ret_signature);
}

static bool op_verify(
	void *ctx,
	const uint8_t key[static RAS_KEY_BYTES],
	const void *bytes,
	size_t size,
	const uint8_t signature[static RAS_SIGNATURE_BYTES]
) {
	(void)ctx;
	return agent_key_verify(key, bytes, size, signature);
}

// Our own record is the only one that this agent makes.
static void record_sign(
	void *ctx,
	const uint8_t key[static RAS_KEY_BYTES],
	const void *bytes,
	size_t size,
	uint8_t ret_signature[static RAS_SIGNATURE_BYTES]
) {
	(void)key;
	op_sign(ctx, bytes, size, ret_signature);
}

static const struct ras_ops core_ops = {
	.open = op_open,
	.send = op_send,
	.close = op_close,
	.wake = op_wake,
	.event = op_event,
	.deliver = op_deliver,
	.report = op_report,
	.transfer_read = overlay_call_read,
	.transfer_take = op_transfer_take,
	.transfer_ended = overlay_call_ended,
	.contribute = overlay_contribute,
	.collected = overlay_collected,
	.notice = op_notice,
	.who = overlay_reach_identified,
	.sign = op_sign,
	.verify = op_verify,
};

// Events of the sockets.

static int on_accepted(void *ctx, const struct sock_addr *from, uint32_t *ret_conn) {
	struct overlay *overlay = ctx;

	if (!overlay->started)
		return -EMFILE; // nobody joins through us before our own join begins
	return ras_conn_accepted(overlay->ras, overlay_now_ns(overlay), from, ret_conn);
}

static void on_opened(void *ctx, uint32_t conn) {
	struct overlay *overlay = ctx;

	overlay_tcp_reach_opened(overlay, conn);
	ras_conn_opened(overlay->ras, overlay_now_ns(overlay), conn);
}

static void on_frame(void *ctx, uint32_t conn, const void *frame, size_t size) {
	struct overlay *overlay = ctx;

	ras_conn_frame(overlay->ras, overlay_now_ns(overlay), conn, frame, size);
}

static void on_writable(void *ctx, uint32_t conn) {
	struct overlay *overlay = ctx;

	ras_conn_writable(overlay->ras, overlay_now_ns(overlay), conn);
}

static void on_ended(void *ctx, uint32_t conn, enum ras_cause cause) {
	struct overlay *overlay = ctx;

	overlay_tcp_reach_ended(overlay, conn, cause);
	ras_conn_ended(overlay->ras, overlay_now_ns(overlay), conn, cause);
}

static const struct transport_ops socket_ops = {
	.accepted = on_accepted,
	.opened = on_opened,
	.frame = on_frame,
	.writable = on_writable,
	.ended = on_ended,
	.kernel_asked = overlay_tcp_reach_kernel,
};

// Lifecycle.

// Give the core the time of day, which it compares with its peers. The core has no clock itself.
static void on_wall_clock_timer(struct loop_timer *timer, uint64_t now_ns) {
	struct overlay *overlay = container_of(timer, struct overlay, wall);
	uint64_t clock_ns = overlay_now_ns(overlay);

	ras_set_wall_clock(
		overlay->ras, clock_ns, (uint64_t)overlay_realtime_ns(overlay, clock_ns)
	);
	if (loop_timer_set(overlay->loop, timer, now_ns + WALL_CLOCK_NS) != 0)
		log_event(LOG_LEVEL_WARN, "wall_clock_untold", log_errno("error", ENOMEM));
}

static void overlay_tick(struct loop_timer *timer, uint64_t now_ns) {
	struct overlay *overlay = container_of(timer, struct overlay, wake);

	(void)now_ns;
	ras_tick(overlay->ras, overlay_now_ns(overlay));
}

static int
overlay_open_transport(struct overlay *overlay, const struct overlay_config *config, char *detail) {
	const struct ras_profile *profile = config->profile;
	struct transport_config transport = {
		.keys = config->keys,
		.cluster = config->cluster,
		.listen = config->listen,
		.source = config->listen,
		.interface = config->interface,
		// Both together are shorter than the core's limit, so it learns which of them took
		// too long.
		.connect_ns = profile->connect_ns * 9 / 20,
		.proof_ns = profile->connect_ns * 9 / 20,
		.stuck_ns = profile->stuck_ns,
		.close_ns = profile->close_ns,
		.conns_max = config->conns_max,
		.proving_max = PROVING_MAX,
		.proving_per_source = PROVING_PER_SOURCE,
		.accepts_per_source_per_s = ACCEPTS_PER_SOURCE_PER_S,
	};

	transport.source.port = 0;
	if (sock_addr_is_any(&transport.source))
		transport.source = (struct sock_addr){0};
	return transport_create(
		overlay->loop, &transport, &socket_ops, overlay, detail, &overlay->transport
	);
}

static int
overlay_open_core(struct overlay *overlay, const struct overlay_config *config, char *detail) {
	struct ras_config core = {
		.profile = config->profile,
		.cluster = config->cluster,
		.self = config->self,
		.history_events = HISTORY_EVENTS,
		.conns_max = config->conns_max,
	};
	const struct ras_signer signer = {
		.ctx = overlay,
		.cluster = config->cluster,
		.sign = record_sign,
		.verify = op_verify,
	};
	int err;

	randombytes_buf(&core.random_seed, sizeof(core.random_seed));
	memcpy(core.self.key, agent_key_public(overlay->key), sizeof(core.self.key));
	if (overlay->state != NULL)
		core.self.start = state_start(overlay->state);
	if (core.self.addresses[0].port == 0)
		core.self.addresses[0].port = transport_address(overlay->transport).port;
	err = ras_interner_create(&overlay->memory, &overlay->interner);
	if (err == 0)
		ras_interner_set_signer(overlay->interner, &signer);
	if (err == 0)
		err = ras_create(
			&core, &overlay->memory, overlay->interner, &core_ops, overlay,
			&overlay->ras
		);
	if (err != 0)
		snprintf(
			detail, 256, "cannot set up the protocol core for node %s: %s",
			core.self.name, strerrordesc_np(-err)
		);
	return err;
}

int overlay_create(
	struct loop *loop,
	const struct overlay_config *config,
	char ret_detail[static 256],
	struct overlay **ret_overlay
) {
	struct overlay *overlay = calloc(1, sizeof(*overlay));
	int err;

	must(sodium_init() >= 0);
	if (overlay == NULL) {
		snprintf(ret_detail, 256, "out of memory");
		return -ENOMEM;
	}
	overlay->loop = loop;
	overlay->state = config->state;
	overlay->close_ns = config->profile->close_ns;
	overlay->memory = (struct ras_memory
	){.allocate = core_memory_allocate, .release = core_memory_release};
	overlay->wake.expired = overlay_tick;
	overlay->wall.expired = on_wall_clock_timer;
	overlay->store_start.run = store_start;
	overlay_ask_init(overlay);
	overlay_call_init(overlay);
	err = agent_key_open(config->key_directory, config->keys, ret_detail, &overlay->key);
	if (err == 0)
		err = overlay_open_transport(overlay, config, ret_detail);
	if (err == 0)
		err = overlay_open_core(overlay, config, ret_detail);
	if (err == 0)
		err = overlay_remember_start(overlay, config->cluster, config->self.name);
	if (err == 0)
		err = overlay_maintenance_start(overlay);
	if (err != 0) {
		overlay_destroy(overlay);
		return err;
	}
	*ret_overlay = overlay;
	return 0;
}

struct overlay *overlay_destroy(struct overlay *overlay) {
	if (overlay == NULL)
		return NULL;
	if (overlay->ras != NULL) {
		overlay_ask_fini(overlay);
		overlay_ping_fini(overlay);
		overlay_port_fini(overlay);
		overlay_reach_stop(overlay);
		overlay_reach_stop_serving(overlay);
		overlay_call_fini(overlay);
	}
	loop_timer_cancel(overlay->loop, &overlay->wake);
	loop_timer_cancel(overlay->loop, &overlay->wall);
	overlay_incidents_stop(overlay);
	overlay_remember_fini(overlay);
	overlay_maintenance_fini(overlay);
	overlay_mistakes_stop(overlay);
	loop_timer_cancel(overlay->loop, &overlay->leave_end);
	loop_undefer(overlay->loop, &overlay->store_start);
	ras_destroy(overlay->ras);
	transport_destroy(overlay->transport);
	overlay_roster_fini(overlay);
	ras_interner_destroy(overlay->interner);
	agent_key_close(overlay->key);
	free(overlay);
	return NULL;
}

static void overlay_begin(struct overlay *overlay) {
	overlay->started = true;
	ras_start(overlay->ras, overlay_now_ns(overlay));
	on_wall_clock_timer(&overlay->wall, loop_now_ns(overlay->loop));
	overlay_incidents_start(overlay);
}

void overlay_join(struct overlay *overlay, const struct sock_addr *seeds, uint32_t count) {
	struct sock_addr plain[RAS_SEEDS_MAX];
	int err = count > RAS_SEEDS_MAX ? -EINVAL : 0;

	// Remove scope ids, which are local to this machine and not part of announced addresses. A
	// dialled link-local address gets ours; with it we would not recognize our own address.
	for (uint32_t n = 0; n < count && err == 0; n++) {
		plain[n] = seeds[n];
		plain[n].scope_id = 0;
	}
	if (err == 0)
		err = ras_set_seeds(overlay->ras, plain, count);
	if (err != 0)
		log_event(LOG_LEVEL_ERROR, "join_addresses_lost", log_errno("error", err));
	if (!overlay->started)
		overlay_begin(overlay);
}

void overlay_join_remembered(struct overlay *overlay) {
	if (overlay->started)
		return;
	ras_set_seeds_unresolved(overlay->ras);
	overlay_begin(overlay);
}

static void leave_ended(struct loop_timer *timer, uint64_t now_ns) {
	struct overlay *overlay = container_of(timer, struct overlay, leave_end);

	(void)now_ns;
	overlay->left(overlay->left_ctx);
}

// Check again soon whether everything was delivered.
static void on_leave_check(struct loop_timer *timer, uint64_t now_ns) {
	struct overlay *overlay = container_of(timer, struct overlay, leave_end);
	// A node that never began to join has nobody to say goodbye to.
	bool gone = !overlay->started || ras_is_shut_down(overlay->ras);
	uint32_t closing = transport_soft_close_count(overlay->transport);

	if (gone && closing == 0) {
		leave_ended(timer, now_ns);
		return;
	}
	if (now_ns < overlay->leave_by_ns &&
	    loop_timer_set(overlay->loop, timer, now_ns + 5 * RAS_NS_PER_MS) == 0)
		return;
	log_event(
		LOG_LEVEL_WARN, "goodbye_unheard", log_bool("said", gone),
		log_u64("connections", closing)
	);
	leave_ended(timer, now_ns);
}

void overlay_leave(struct overlay *overlay, void (*done)(void *ctx), void *ctx) {
	uint64_t now_ns;

	overlay->left = done;
	overlay->left_ctx = ctx;
	overlay_reach_stop(overlay);
	overlay_remember_end(overlay);
	overlay_maintenance_end(overlay);
	// Read the time here, because the calls above advance the time of the core.
	now_ns = overlay_now_ns(overlay);
	overlay->leave_by_ns = now_ns + overlay->close_ns;
	transport_stop_accepting(overlay->transport);
	if (overlay->started)
		ras_leave(overlay->ras, now_ns);
	overlay->leave_end.expired = on_leave_check;
	if (loop_timer_set(overlay->loop, &overlay->leave_end, now_ns) != 0)
		done(ctx);
}

int overlay_change_address(
	struct overlay *overlay,
	const struct sock_addr *listen,
	const char *interface,
	const struct sock_addr *told,
	char ret_detail[static 256]
) {
	struct sock_addr plain = *told, now = transport_address(overlay->transport);
	int err;

	ret_detail[0] = '\0';
	// The overlay listens there already if only the announcement failed last time.
	if (!sock_addr_equal(&now, listen)) {
		err = transport_rebind(overlay->transport, listen, interface, ret_detail);
		if (err != 0)
			return err;
	}
	if (plain.port == 0)
		plain.port = transport_address(overlay->transport).port;
	plain.scope_id = 0;
	err = ras_set_own_address(overlay->ras, overlay_now_ns(overlay), &plain);
	if (err == 0)
		overlay_reach_ask_again(overlay);
	else
		snprintf(
			ret_detail, 256,
			"the agent listens on the new address, but cannot announce it yet"
		);
	return err;
}

void overlay_address_restored(struct overlay *overlay) {
	ras_own_address_restored(overlay->ras, overlay_now_ns(overlay));
	overlay_reach_ask_again(overlay);
}

void overlay_use_keys(struct overlay *overlay, const struct seal_keys *keys) {
	transport_rekey(overlay->transport, keys);
}

// State and requests.

const struct ras *overlay_ras(const struct overlay *overlay) {
	return overlay->ras;
}

uint64_t overlay_now_ns(const struct overlay *overlay) {
	return loop_clock_ns(overlay->loop);
}

const struct transport *overlay_transport(const struct overlay *overlay) {
	return overlay->transport;
}

struct sock_addr overlay_address(const struct overlay *overlay) {
	return transport_address(overlay->transport);
}

const struct state *overlay_state(const struct overlay *overlay) {
	return overlay->state;
}

int64_t overlay_realtime_ns(const struct overlay *overlay, uint64_t now_ns) {
	struct timespec now;
	int64_t realtime_ns;

	clock_gettime(CLOCK_REALTIME, &now);
	realtime_ns = (int64_t)now.tv_sec * (int64_t)RAS_NS_PER_SEC + now.tv_nsec;
	return realtime_ns + ((int64_t)now_ns - (int64_t)overlay_now_ns(overlay));
}

void overlay_listen(struct overlay *overlay, struct overlay_listener *listener) {
	listener->next = overlay->listeners;
	overlay->listeners = listener;
}

void overlay_unlisten(struct overlay *overlay, struct overlay_listener *listener) {
	struct overlay_listener **at = &overlay->listeners;

	while (*at != NULL && *at != listener)
		at = &(*at)->next;
	if (*at != NULL)
		*at = listener->next;
}

int overlay_report_peer(
	struct overlay *overlay, uint64_t subject, uint32_t uid, const char *reason
) {
	struct ras_evidence evidence = {
		.source = RAS_SOURCE_REPORT,
		.observer = ras_self_id(overlay->ras),
		.subject = subject,
	};
	const struct ras_event note = {
		.kind = RAS_EVENT_REPORTED,
		.cause = RAS_CAUSE_REPORT,
		.peer = subject,
		.value = uid,
	};
	int err = ras_evidence(overlay->ras, overlay_now_ns(overlay), &evidence);

	if (err == 0)
		err = overlay_note(overlay, &note, reason);
	return err;
}

int overlay_add_evidence(struct overlay *overlay, uint64_t subject, bool alive, uint64_t age_ns) {
	const struct ras_evidence evidence = {
		.source = RAS_SOURCE_DATA_PLANE,
		.observer = ras_self_id(overlay->ras),
		.subject = subject,
		.alive = alive,
		.age_ns = age_ns,
	};

	return ras_evidence(overlay->ras, overlay_now_ns(overlay), &evidence);
}

int overlay_forget_peer(struct overlay *overlay, uint64_t peer) {
	return ras_forget(overlay->ras, overlay_now_ns(overlay), peer);
}

uint32_t overlay_forget_unreachable(struct overlay *overlay) {
	return ras_forget_unreachable(overlay->ras, overlay_now_ns(overlay));
}
