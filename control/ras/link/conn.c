// SPDX-License-Identifier: BSD-3-Clause
// Sessions: the table of connections, the messages allowed in each stage, and how connections end.
#include "link/conn.h"

#include "core/core.h"

#include <errno.h>
#include <string.h>

#define CONN_INDEX_MASK ((1u << CONN_INDEX_BITS) - 1)

void conns_fini(struct ras *ras) {
	struct conns *conns = &ras->conns;

	for (uint32_t n = 0; n < conns->count; n++)
		memory_release(&ras->memory, conns->table[n], sizeof(**conns->table));
	memory_release(&ras->memory, conns->table, conns->capacity * sizeof(struct conn *));
	*conns = (struct conns){0};
}

// Memory is returned at once: a seed has a thousand connections for some seconds and a dozen later.
void conns_reap(struct ras *ras) {
	struct conns *conns = &ras->conns;

	for (uint32_t n = 0; conns->freed > 0 && n < conns->count; n++) {
		if (conns->table[n] == NULL || conns->table[n]->stage != CONN_FREE)
			continue;
		memory_release(&ras->memory, conns->table[n], sizeof(**conns->table));
		conns->table[n] = NULL;
		conns->freed--;
	}
	while (conns->count > 0 && conns->table[conns->count - 1] == NULL)
		conns->count--;
}

void conns_close_without_link(struct ras *ras) {
	for (uint32_t n = 0; n < ras->conns.count; n++) {
		struct conn *conn = ras->conns.table[n];

		if (conn != NULL && conn->stage != CONN_FREE && conn->link == NULL)
			conn_close(ras, conn, RAS_CLOSE_SOFT);
	}
}

struct conn *conn_find(const struct ras *ras, uint32_t handle) {
	uint32_t index = handle & CONN_INDEX_MASK;
	struct conn *conn;

	if (index >= ras->conns.count)
		return NULL;
	conn = ras->conns.table[index];
	return conn != NULL && conn->handle == handle && conn->stage != CONN_FREE ? conn : NULL;
}

static struct conn *conn_create(struct ras *ras) {
	struct conns *conns = &ras->conns;
	uint32_t place = 0;
	struct conn *conn;

	if (conns->open >= ras->conns_max)
		return NULL;
	while (place < conns->count && conns->table[place] != NULL)
		place++;
	if (place == conns->count) {
		if (conns->count == CONNS_MAX ||
		    memory_grow(
			    &ras->memory, (void **)&conns->table, &conns->capacity,
			    conns->count + 1, sizeof(struct conn *)
		    ) != 0)
			return NULL;
		conns->table[conns->count++] = NULL;
	}
	conn = memory_allocate(&ras->memory, sizeof(*conn));
	if (conn == NULL)
		return NULL;
	// A new generation keeps late inputs for the last user of the index from the new one. No
	// handle is 0.
	conns->generation += 1u << CONN_INDEX_BITS;
	if (conns->generation == 0)
		conns->generation = 1u << CONN_INDEX_BITS;
	*conn = (struct conn){
		.handle = place | conns->generation,
		.opened_ns = ras->observed_ns,
		.deadline_ns = RAS_NEVER,
	};
	conns->table[place] = conn;
	conns->open++;
	return conn;
}

static void conn_release(struct ras *ras, struct conn *conn) {
	conn->stage = CONN_FREE;
	conn->link = NULL;
	ras->conns.open--;
	ras->conns.freed++;
}

void conn_stage(struct ras *ras, struct conn *conn, enum conn_stage stage, uint64_t limit_ns) {
	conn->stage = stage;
	conn->deadline_ns = limit_ns == RAS_NEVER ? RAS_NEVER : ras->observed_ns + limit_ns;
	if (conn->deadline_ns < ras->conns.deadline_ns)
		ras->conns.deadline_ns = conn->deadline_ns;
	ras_wake_at(ras, conn->deadline_ns);
}

void conn_set_deadline(struct ras *ras, struct conn *conn, uint64_t limit_ns) {
	conn_stage(ras, conn, conn->stage, limit_ns);
}

static struct conn *conn_create_outgoing(struct ras *ras, const struct sock_addr *address) {
	struct conn *conn = conn_create(ras);

	if (conn == NULL) {
		ras->counters.conns_refused++;
		return NULL;
	}
	conn->outgoing = true;
	conn->address = *address;
	return conn;
}

static void conn_dial(struct ras *ras, struct conn *conn) {
	conn_stage(ras, conn, CONN_CONNECTING, ras->profile->connect_ns);
	ras->ops.open(ras->ops_ctx, conn->handle, &conn->address);
}

struct conn *conn_open(struct ras *ras, const struct sock_addr *address, struct link *link) {
	struct conn *conn = conn_create_outgoing(ras, address);

	if (conn == NULL)
		return NULL;
	conn->join = link == NULL;
	conn->link = link;
	conn_dial(ras, conn);
	return conn;
}

struct conn *conn_open_identity_query(struct ras *ras, const struct ras_record *record) {
	struct conn *conn = conn_create_outgoing(ras, &record->address);

	if (conn == NULL)
		return NULL;
	conn->who = record->id;
	conn_dial(ras, conn);
	return conn;
}

void conn_close(struct ras *ras, struct conn *conn, enum ras_close how) {
	must(conn->stage != CONN_FREE);
	ras->ops.close(ras->ops_ctx, conn->handle, how);
	conn_release(ras, conn);
}

int conn_send(struct ras *ras, struct conn *conn, const void *frame, size_t size) {
	int err = conn->blocked ? -EAGAIN : ras->ops.send(ras->ops_ctx, conn->handle, frame, size);

	if (err != 0) {
		conn->blocked = true;
		return -EAGAIN;
	}
	ras->counters.frames_sent++;
	ras->counters.bytes_sent += size;
	if (conn->link != NULL) {
		conn->link->sent_frames++;
		conn->link->sent_bytes += size;
	}
	return 0;
}

void conn_abort(struct ras *ras, struct conn *conn, enum ras_close how, enum ras_cause cause) {
	struct link *link = conn->link;

	if (conn->join)
		join_conn_ended(ras, conn, cause);
	if (conn->who != 0)
		who_conn_ended(ras, conn, cause);
	ras->ops.close(ras->ops_ctx, conn->handle, how);
	conn_release(ras, conn);
	if (link != NULL)
		link_conn_ended(ras, link, conn, cause);
}

int ras_conn_accepted(
	struct ras *ras, uint64_t now_ns, const struct sock_addr *from, uint32_t *ret_conn
) {
	struct conn *conn;

	ras_enter(ras, now_ns);
	conn = ras->leaving ? NULL : conn_create(ras);
	if (conn == NULL) {
		ras->counters.conns_refused++;
		ras_exit(ras);
		return -EMFILE;
	}
	conn->address = *from;
	conn_stage(ras, conn, CONN_INIT_WAIT, ras->profile->init_ns);
	*ret_conn = conn->handle;
	ras_exit(ras);
	return 0;
}

void conn_ack_fill(const struct ras *ras, struct message_init_ack *ret_ack) {
	const struct peer_entry *self = ras_self(ras);

	*ret_ack = (struct message_init_ack){
		.flags = ras->joined ? MESSAGE_ACK_MEMBER : 0,
		.version = ras->versions.max,
		.version_min = ras->versions.min,
		.record = self->record->encoding,
		.record_size = self->record->size,
		.incarnation = self->incarnation,
		.digest = peers_digest(&ras->peers),
	};
}

static void init_send(struct ras *ras, struct conn *conn) {
	const struct peer_entry *self = ras_self(ras);
	struct message_init init = {
		.flags = ras->joined ? MESSAGE_INIT_MEMBER : 0,
		.version_min = ras->versions.min,
		.version_max = ras->versions.max,
		.cluster = ras->cluster,
		.record = self->record->encoding,
		.record_size = self->record->size,
		.incarnation = self->incarnation,
		.digest = peers_digest(&ras->peers),
	};
	struct wire_writer writer;

	if (conn->who != 0) {
		init.flags |= MESSAGE_INIT_IDENTIFY;
	} else if (conn->join) {
		init.flags |= MESSAGE_INIT_JOIN;
	} else {
		const struct peer_entry *entry = ras_entry(ras, conn->link->slot);

		init.uses = conn->link->mine;
		init.sought = conn->link->peer;
		init.your_state = (uint8_t)peer_state_to_report(entry, &init.your_incarnation);
	}
	wire_writer_init(&writer, ras->scratch, RAS_FRAME_MAX);
	must(message_init_encode(&init, &writer) == 0);
	conn_stage(ras, conn, CONN_INIT_SENT, ras->profile->init_ns);
	conn_send(ras, conn, ras->scratch, wire_writer_used(&writer));
}

void ras_conn_opened(struct ras *ras, uint64_t now_ns, uint32_t handle) {
	struct conn *conn;

	ras_enter(ras, now_ns);
	conn = conn_find(ras, handle);
	if (conn != NULL && conn->stage == CONN_CONNECTING)
		init_send(ras, conn);
	ras_exit(ras);
}

void ras_conn_ended(struct ras *ras, uint64_t now_ns, uint32_t handle, enum ras_cause cause) {
	// Only for the peer of a link is the host known, which EXITED requires.
	enum ras_cause plain = cause == RAS_CAUSE_EXITED ? RAS_CAUSE_REFUSED : cause;
	struct conn *conn;

	ras_enter(ras, now_ns);
	conn = conn_find(ras, handle);
	if (conn != NULL) {
		struct link *link = conn->link;

		if (conn->join)
			join_conn_ended(ras, conn, plain);
		if (conn->who != 0)
			who_conn_ended(ras, conn, plain);
		conn_release(ras, conn);
		if (link != NULL)
			link_conn_ended(ras, link, conn, cause);
	}
	ras_exit(ras);
}

void ras_conn_writable(struct ras *ras, uint64_t now_ns, uint32_t handle) {
	struct conn *conn;

	ras_enter(ras, now_ns);
	conn = conn_find(ras, handle);
	if (conn != NULL) {
		conn->blocked = false;
		if (conn->stage == CONN_JOIN_READY)
			join_send_table(ras, conn);
		else if (conn->link != NULL && conn->link->current == conn)
			link_flush(ras, conn->link);
	}
	ras_exit(ras);
}

static int frame_received(struct ras *ras, struct conn *conn, const uint8_t *frame, size_t size) {
	struct wire_reader reader;
	uint8_t type;

	if (size == 0 || size > RAS_FRAME_MAX)
		return -EMSGSIZE;
	wire_reader_init(&reader, frame, size);
	type = wire_get_u8(&reader);
	switch (conn->stage) {
	case CONN_INIT_WAIT:
		return type == MESSAGE_INIT ? conn_init_received(ras, conn, &reader) : -EPROTO;
	case CONN_INIT_SENT:
		return type == MESSAGE_INIT_ACK ? conn_ack_received(ras, conn, &reader) : -EPROTO;
	case CONN_JOIN_READY:
		return join_frame_received(ras, conn, frame, size);
	case CONN_READY:
		if (ras->leaving)
			return 0; // only our LEAVE is still to be sent
		conn->link->received_frames++;
		conn->link->received_bytes += size;
		link_heard(ras, conn->link);
		return parts_frame_received(ras, conn->link, frame, size);
	case CONN_FREE:
	case CONN_CONNECTING:
		break;
	}
	return -EPROTO;
}

void ras_conn_frame(
	struct ras *ras, uint64_t now_ns, uint32_t handle, const void *frame, size_t size
) {
	struct conn *conn;

	ras_enter(ras, now_ns);
	conn = conn_find(ras, handle);
	if (conn != NULL) {
		ras->counters.frames_received++;
		ras->counters.bytes_received += size;
		if (frame_received(ras, conn, frame, size) != 0) {
			ras->counters.frames_malformed++;
			// Handling the frame may have closed the connection.
			if (conn->handle == handle && conn->stage != CONN_FREE)
				conn_abort(ras, conn, RAS_CLOSE_HARD, RAS_CAUSE_PROTOCOL);
		}
	}
	ras_exit(ras);
}

void conns_tick(struct ras *ras) {
	uint64_t next = RAS_NEVER;

	if (ras->conns.deadline_ns > ras->observed_ns) {
		ras_wake_at(ras, ras->conns.deadline_ns);
		return;
	}
	ras->conns.deadline_ns = RAS_NEVER;
	for (uint32_t n = 0; n < ras->conns.count; n++) {
		struct conn *conn = ras->conns.table[n];

		if (conn == NULL || conn->stage == CONN_FREE)
			continue;
		if (conn->deadline_ns <= ras->observed_ns)
			conn_abort(ras, conn, RAS_CLOSE_HARD, RAS_CAUSE_TIMEOUT);
		else if (conn->deadline_ns < next)
			next = conn->deadline_ns;
	}
	// A failure may have started a stage with an earlier deadline.
	if (next < ras->conns.deadline_ns)
		ras->conns.deadline_ns = next;
	ras_wake_at(ras, ras->conns.deadline_ns);
}
