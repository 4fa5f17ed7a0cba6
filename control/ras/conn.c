// SPDX-License-Identifier: BSD-3-Clause
// Sessions. Two agents may connect to each other at once; both keep the connection that the
// lower in ring order opened. One exception: an INIT that comes on top of a connection that is
// ready and not brand new is from a peer that has lost it, whatever we still believe.
#include "conn.h"

#include "core.h"

#include <errno.h>
#include <string.h>

#define CONN_INDEX_MASK ((1u << CONN_INDEX_BITS) - 1)
#define CROSSING_NS RAS_NS_PER_SEC // connects younger than this may have crossed

void conns_fini(struct ras *ras) {
	struct conns *conns = &ras->conns;

	for (uint32_t n = 0; n < conns->count; n++)
		memory_release(&ras->memory, conns->table[n], sizeof(**conns->table));
	memory_release(&ras->memory, conns->table, conns->capacity * sizeof(struct conn *));
	*conns = (struct conns){0};
}

// A seed has a thousand of them for some seconds, and a dozen for the rest of its life.
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

void conns_leave(struct ras *ras) {
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

// A free place of the table; CONNS_MAX without memory.
static uint32_t place_take(struct ras *ras) {
	struct conns *conns = &ras->conns;

	for (uint32_t n = 0; n < conns->count; n++) {
		if (conns->table[n] == NULL)
			return n;
	}
	if (conns->count == CONNS_MAX ||
	    memory_grow(
		    &ras->memory, (void **)&conns->table, &conns->capacity, conns->count + 1,
		    sizeof(struct conn *)
	    ) != 0)
		return CONNS_MAX;
	conns->table[conns->count] = NULL;
	return conns->count++;
}

static struct conn *conn_take(struct ras *ras) {
	struct conns *conns = &ras->conns;
	uint32_t place;
	struct conn *conn;

	if (conns->open >= ras->conns_max)
		return NULL;
	place = place_take(ras);
	if (place == CONNS_MAX)
		return NULL;
	conn = memory_allocate(&ras->memory, sizeof(*conn));
	if (conn == NULL)
		return NULL;
	// A handle of a place's last user must not reach the next one; none is 0.
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

static void conn_stage(struct ras *ras, struct conn *conn, enum conn_stage stage, uint64_t limit) {
	conn->stage = stage;
	conn->deadline_ns = limit == RAS_NEVER ? RAS_NEVER : ras->observed_ns + limit;
	if (conn->deadline_ns < ras->conns.deadline_ns)
		ras->conns.deadline_ns = conn->deadline_ns;
	ras_wake_at(ras, conn->deadline_ns);
}

void conn_extend(struct ras *ras, struct conn *conn, uint64_t limit_ns) {
	conn_stage(ras, conn, conn->stage, limit_ns);
}

struct conn *conn_open(struct ras *ras, const struct sock_addr *address, struct link *link) {
	struct conn *conn = conn_take(ras);

	if (conn == NULL) {
		ras->counters.conns_refused++;
		return NULL;
	}
	conn->outgoing = true;
	conn->join = link == NULL;
	conn->link = link;
	conn->address = *address;
	conn_stage(ras, conn, CONN_CONNECTING, ras->profile->connect_ns);
	ras->ops.open(ras->ops_ctx, conn->handle, address);
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

// Tells owner and peer nothing more; the owner hears why.
static void
conn_failed(struct ras *ras, struct conn *conn, enum ras_close how, enum ras_cause cause) {
	struct link *link = conn->link;

	if (conn->join)
		join_ended(ras, conn, cause);
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
	conn = ras->leaving ? NULL : conn_take(ras);
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

void conn_init_fill(const struct ras *ras, struct message_init *ret_init) {
	const struct peer_entry *self = ras_self(ras);

	*ret_init = (struct message_init){
		.version_min = ras->version_min,
		.version_max = ras->version_max,
		.cluster = ras->cluster,
		.record = self->record->encoding,
		.record_size = self->record->size,
		.incarnation = self->incarnation,
		.digest = peers_digest(&ras->peers),
	};
}

void conn_ack_fill(const struct ras *ras, struct message_init_ack *ret_ack) {
	const struct peer_entry *self = ras_self(ras);

	*ret_ack = (struct message_init_ack){
		.version = ras->version_max,
		.record = self->record->encoding,
		.record_size = self->record->size,
		.incarnation = self->incarnation,
		.digest = peers_digest(&ras->peers),
	};
}

static void init_send(struct ras *ras, struct conn *conn) {
	struct message_init init;
	struct wire_writer writer;

	conn_init_fill(ras, &init);
	if (conn->join) {
		init.flags |= MESSAGE_INIT_JOIN;
	} else {
		const struct peer_entry *entry = ras_entry(ras, conn->link->slot);

		init.uses = conn->link->mine;
		init.your_state = entry->state;
		init.your_incarnation = entry->incarnation;
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
	struct conn *conn;

	ras_enter(ras, now_ns);
	conn = conn_find(ras, handle);
	if (conn != NULL) {
		struct link *link = conn->link;

		if (conn->join)
			join_ended(ras, conn, cause);
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
			join_writable(ras, conn);
		else if (conn->link != NULL && conn->link->current == conn)
			link_flush(ras, conn->link);
	}
	ras_exit(ras);
}

// The other side's answer to INIT.

static uint16_t version_common(const struct ras *ras, const struct message_init *init) {
	uint16_t highest =
		ras->version_max < init->version_max ? ras->version_max : init->version_max;
	uint16_t lowest =
		ras->version_min > init->version_min ? ras->version_min : init->version_min;

	return highest >= lowest ? highest : 0;
}

void conn_refuse(struct ras *ras, struct conn *conn, struct message_init_ack *ack) {
	struct wire_writer writer;

	ras->counters.inits_refused++;
	wire_writer_init(&writer, ras->scratch, RAS_FRAME_MAX);
	must(message_init_ack_encode(ack, &writer) == 0);
	conn_send(ras, conn, ras->scratch, wire_writer_used(&writer));
	conn_close(ras, conn, RAS_CLOSE_SOFT);
}

// A peer that came with INIT: its slot, or RAS_NO_SLOT with the reason to refuse it.
struct admission {
	uint32_t slot;
	enum ras_cause cause;
	// As we held it until then: it may have refuted its death before it heard of it.
	uint8_t held_state;
	uint64_t held_incarnation;
};

static void refuse(struct ras *ras, struct conn *conn, enum ras_cause cause) {
	struct message_init_ack ack;

	conn_ack_fill(ras, &ack);
	ack.refusal = (uint8_t)cause;
	conn_refuse(ras, conn, &ack);
}

// Its word has changed the table already: nobody else can tell it how it was held.
static void refuse_admitted(
	struct ras *ras, struct conn *conn, enum ras_cause cause, const struct admission *admission
) {
	struct message_init_ack ack;

	conn_ack_fill(ras, &ack);
	ack.refusal = (uint8_t)cause;
	ack.your_state = admission->held_state;
	ack.your_incarnation = admission->held_incarnation;
	conn_refuse(ras, conn, &ack);
}

// With the address of the one whom we hold for the owner of its name. At its own address that
// is itself, in a run it does not remember: it goes on past that one's start.
static void refuse_rival(struct ras *ras, struct conn *conn, const struct message_init *init) {
	struct message_init_ack ack;
	struct ras_record *record;
	uint32_t slot = RAS_NO_SLOT;

	conn_ack_fill(ras, &ack);
	ack.refusal = RAS_CAUSE_CONFLICT;
	if (ras_record_intern(ras->interner, init->record, init->record_size, &record) == 0) {
		slot = peers_find(&ras->peers, record->id);
		ras_record_put(ras->interner, record);
	}
	if (slot != RAS_NO_SLOT) {
		const struct peer_entry *holder = ras_entry(ras, slot);

		ack.redirects[ack.redirect_count++] = holder->record->address;
		ack.your_start = ras_incarnation_start(holder->incarnation) + 1;
	}
	conn_refuse(ras, conn, &ack);
}

// Which of two connections with one peer stays. True: the one that just sent INIT.
static bool init_wins(struct ras *ras, const struct link *link) {
	const struct ras_record *self = ras_self(ras)->record;
	bool we_are_lower = ras_record_compare(self, ras_entry(ras, link->slot)->record) < 0;

	if (link->current != NULL && link->current->outgoing && we_are_lower)
		return ras->observed_ns - link->current->opened_ns > CROSSING_NS;
	if (link->current != NULL)
		return true;
	return link->pending == NULL || !link->pending->outgoing || !we_are_lower;
}

static void ack_send(struct ras *ras, struct conn *conn, const struct admission *admission) {
	struct message_init_ack ack;
	struct wire_writer writer;

	conn_ack_fill(ras, &ack);
	ack.version = conn->version;
	ack.uses = conn->link->mine;
	ack.your_state = admission->held_state;
	ack.your_incarnation = admission->held_incarnation;
	wire_writer_init(&writer, ras->scratch, RAS_FRAME_MAX);
	must(message_init_ack_encode(&ack, &writer) == 0);
	conn_send(ras, conn, ras->scratch, wire_writer_used(&writer));
}

// The peer as INIT describes it may be new, a newer start, dead here, or not who it says.
static struct admission
peer_admit(struct ras *ras, const void *encoding, size_t size, uint64_t incarnation) {
	struct admission admission = {
		.slot = RAS_NO_SLOT,
		.cause = RAS_CAUSE_PROTOCOL,
		.held_state = RAS_ALIVE,
		.held_incarnation = incarnation,
	};
	struct peer_news news = {.incarnation = incarnation, .state = RAS_ALIVE};
	struct ras_record *record;
	uint32_t slot;

	if (ras_record_intern(ras->interner, encoding, size, &record) != 0)
		return admission;
	news.id = record->id;
	news.record = record;
	slot = peers_find(&ras->peers, record->id);
	if (record->id == ras->self_id || record->start != ras_incarnation_start(incarnation)) {
		admission.cause = RAS_CAUSE_CONFLICT;
	} else if (slot != RAS_NO_SLOT && ras_entry(ras, slot)->record != record &&
		   record->start <= ras_entry(ras, slot)->record->start) {
		// An old start that woke up late, or two that count alike.
		ras_emit(ras, RAS_EVENT_CONFLICT, slot, RAS_CAUSE_CONFLICT, record->start);
		admission.cause = RAS_CAUSE_CONFLICT;
	} else {
		if (slot != RAS_NO_SLOT) {
			admission.held_state = ras_entry(ras, slot)->state;
			admission.held_incarnation = ras_entry(ras, slot)->incarnation;
		}
		ras_apply(ras, &news, NULL);
		admission.slot = peers_find(&ras->peers, news.id);
		admission.cause = RAS_CAUSE_OWN_FAULT;
	}
	ras_record_put(ras->interner, record);
	return admission;
}

// How the other side holds us, or did.
static void held_heard(struct ras *ras, uint8_t state, uint64_t incarnation) {
	if (state == RAS_DEAD || state == RAS_LEFT)
		ras_declared_dead(ras, incarnation, RAS_CAUSE_DEATH);
}

static void init_accept(
	struct ras *ras,
	struct conn *conn,
	struct link *link,
	const struct message_init *init,
	const struct admission *admission
) {
	conn->link = link;
	if (link->pending != NULL)
		conn_close(ras, link->pending, RAS_CLOSE_HARD);
	link->pending = NULL;
	conn_stage(ras, conn, CONN_READY, RAS_NEVER);
	ack_send(ras, conn, admission);
	link_ready(ras, link, conn, init->uses);
	sync_heard(ras, link, init->digest);
	held_heard(ras, init->your_state, init->your_incarnation);
}

static void init_judge(struct ras *ras, struct conn *conn, const struct message_init *init) {
	struct admission admission;
	struct link *link;

	if (!ras->joined) {
		refuse(ras, conn, RAS_CAUSE_BUSY);
		return;
	}
	admission = peer_admit(ras, init->record, init->record_size, init->incarnation);
	if (admission.slot == RAS_NO_SLOT && admission.cause == RAS_CAUSE_CONFLICT) {
		refuse_rival(ras, conn, init);
		return;
	}
	if (admission.slot == RAS_NO_SLOT) {
		refuse(ras, conn, admission.cause);
		return;
	}
	link = link_find(ras, admission.slot);
	if (link != NULL && !init_wins(ras, link)) {
		refuse_admitted(ras, conn, RAS_CAUSE_DUPLICATE, &admission);
		return;
	}
	if (!ring_accepts(ras, link, init->uses)) {
		refuse_admitted(ras, conn, RAS_CAUSE_DEGREE, &admission);
		return;
	}
	if (link == NULL)
		link = link_want(ras, admission.slot, 0);
	if (link == NULL)
		refuse_admitted(ras, conn, RAS_CAUSE_OWN_FAULT, &admission);
	else
		init_accept(ras, conn, link, init, &admission);
}

static int init_received(struct ras *ras, struct conn *conn, struct wire_reader *reader) {
	struct message_init init;
	int err = message_init_decode(reader, &init);

	if (err != 0)
		return err;
	conn->version = version_common(ras, &init);
	if (init.cluster != ras->cluster) {
		refuse(ras, conn, RAS_CAUSE_CLUSTER);
	} else if (conn->version == 0) {
		refuse(ras, conn, RAS_CAUSE_VERSION);
	} else if ((init.flags & MESSAGE_INIT_JOIN) != 0) {
		conn->join = true;
		conn_stage(ras, conn, CONN_JOIN_READY, RAS_NEVER);
		join_serve(ras, conn, &init);
	} else {
		init_judge(ras, conn, &init);
	}
	return 0;
}

// Who refuses may be somebody else at the address of the one we look for.
static bool refused_by(struct ras *ras, const struct message_init_ack *ack, uint64_t peer) {
	struct ras_record *record;
	bool same;

	if (ras_record_intern(ras->interner, ack->record, ack->record_size, &record) != 0)
		return true; // what we cannot read is no evidence
	same = record->id == peer;
	ras_record_put(ras->interner, record);
	return same;
}

// Our name is another holder's there, or that of an earlier run of ours.
static void conflict_heard(struct ras *ras, const struct message_init_ack *ack) {
	if (ack->redirect_count == 0)
		return;
	if (!sock_addr_equal(&ack->redirects[0], &ras_self(ras)->record->address))
		join_rival(ras, &ack->redirects[0]);
	else if (ack->your_start > 0)
		ras_earlier_run(ras, ack->your_start - 1);
}

static int ack_received(struct ras *ras, struct conn *conn, struct wire_reader *reader) {
	struct link *link = conn->link;
	struct message_init_ack ack;
	uint32_t slot;
	int err = message_init_ack_decode(reader, &ack);

	if (err != 0)
		return err;
	if (conn->join) {
		conn_stage(ras, conn, CONN_JOIN_READY, ras->profile->init_ns);
		join_ack(ras, conn, &ack);
		return 0;
	}
	if (ack.refusal != RAS_CAUSE_NONE) {
		bool same = refused_by(ras, &ack, link->peer);

		conn_failed(ras, conn, RAS_CLOSE_SOFT, same ? ack.refusal : RAS_CAUSE_REFUSED);
		if (ack.refusal == RAS_CAUSE_CONFLICT)
			conflict_heard(ras, &ack);
		else if (same)
			held_heard(ras, ack.your_state, ack.your_incarnation);
		return 0;
	}
	slot = peer_admit(ras, ack.record, ack.record_size, ack.incarnation).slot;
	// A newer start than the one we looked for: with the old one its link went, and this
	// connection with it. The rebuild of the ring opens what the new start is needed for.
	if (conn->link != link)
		return 0;
	if (slot != link->slot) {
		// Somebody else lives at that address now: the one we look for does not.
		conn_failed(ras, conn, RAS_CLOSE_SOFT, RAS_CAUSE_REFUSED);
		return 0;
	}
	conn->version = ack.version;
	conn_stage(ras, conn, CONN_READY, RAS_NEVER);
	link_ready(ras, link, conn, ack.uses);
	sync_heard(ras, link, ack.digest);
	held_heard(ras, ack.your_state, ack.your_incarnation);
	return 0;
}

// What a link may carry once it is ready.
static int frame_dispatch(struct ras *ras, struct link *link, const uint8_t *frame, size_t size) {
	struct message_beat beat;
	struct wire_reader reader;
	int err;

	wire_reader_init(&reader, frame, size);
	switch (wire_get_u8(&reader)) {
	case MESSAGE_BEAT:
		err = message_beat_decode(&reader, &beat);
		if (err == 0)
			link_beat_heard(ras, link, &beat);
		return err;
	case MESSAGE_UPDATE:
		return news_take(ras, link, &reader);
	case MESSAGE_DIGESTS:
		return sync_digests(ras, link, &reader);
	case MESSAGE_BRIEF:
		return sync_brief(ras, link, &reader);
	case MESSAGE_PULL:
		return sync_pull(ras, link, &reader);
	case MESSAGE_NOTICE:
		return flood_notice(ras, link, frame, size);
	case MESSAGE_COLLECT:
		return collective_request(ras, link, &reader);
	case MESSAGE_COLLECTED:
		return collective_response(ras, link, &reader);
	case MESSAGE_COLLECT_CANCEL:
		return collective_cancelled(ras, link, &reader);
	case MESSAGE_RELAY:
		return relay_message(ras, link, frame, size);
	case MESSAGE_INIT:
	case MESSAGE_INIT_ACK:
		ras->counters.frames_unexpected++;
		return -EPROTO;
	default:
		ras->counters.frames_unknown++; // of a newer minor version
		return 0;
	}
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
		return type == MESSAGE_INIT ? init_received(ras, conn, &reader) : -EPROTO;
	case CONN_INIT_SENT:
		return type == MESSAGE_INIT_ACK ? ack_received(ras, conn, &reader) : -EPROTO;
	case CONN_JOIN_READY:
		return join_frame(ras, conn, frame, size);
	case CONN_READY:
		if (ras->leaving)
			return 0; // it waits for our goodbye to go out, and for nothing else
		conn->link->received_frames++;
		conn->link->received_bytes += size;
		link_heard(ras, conn->link);
		return frame_dispatch(ras, conn->link, frame, size);
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
			// It may have been closed while it was handled.
			if (conn->handle == handle && conn->stage != CONN_FREE)
				conn_failed(ras, conn, RAS_CLOSE_HARD, RAS_CAUSE_PROTOCOL);
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
			conn_failed(ras, conn, RAS_CLOSE_HARD, RAS_CAUSE_TIMEOUT);
		else if (conn->deadline_ns < next)
			next = conn->deadline_ns;
	}
	// A failure may have begun something with a deadline of its own.
	if (next < ras->conns.deadline_ns)
		ras->conns.deadline_ns = next;
	ras_wake_at(ras, ras->conns.deadline_ns);
}
