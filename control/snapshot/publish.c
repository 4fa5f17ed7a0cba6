// SPDX-License-Identifier: BSD-3-Clause
// Copies peers from the core's table to the one that readers see. Run and owned by the control
// thread.
#include <control/publish.h>
#include <lib/log.h>
#include <lib/must.h>
#include <lib/rcu_thread.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MARK_WORDS (PEER_TABLE_SLOTS_MAX / 64)
// A reader that was quiescent more recently is working, so the log does not name it.
#define STALL_NS (100 * RAS_NS_PER_MS)

static_assert(
	PEER_UNKNOWN == (int)RAS_UNKNOWN && PEER_ALIVE == (int)RAS_ALIVE &&
		PEER_SUSPECT == (int)RAS_SUSPECT && PEER_UNREACHABLE == (int)RAS_UNREACHABLE &&
		PEER_DEAD == (int)RAS_DEAD && PEER_LEFT == (int)RAS_LEFT,
	"readers know the core's states under names of their own"
);
static_assert(PEER_NAME_MAX == RAS_NAME_MAX, "names fit");
static_assert(PEER_OBSERVERS_MAX == RAS_OBSERVERS_MAX, "observers fit");
static_assert(PEER_TABLE_SLOTS_MAX >= RAS_PEERS_MAX, "slots fit");

struct publish {
	const struct ras *ras;
	struct peer_table *table;
	struct ras_view published; // view of the last published version
	struct ras_view walked;	   // view at the start of the walk
	uint32_t walk_slot;	   // next slot of the walk
	uint32_t walk_end;
	uint64_t due_ns; // earliest time of the next publication
	bool marked;
	bool unpublished; // rows have changed since the last version
	uint64_t marks[MARK_WORDS];
};

static bool view_equals(const struct ras_view *a, const struct ras_view *b) {
	return a->number == b->number && a->digest == b->digest && a->alive == b->alive &&
	       a->suspect == b->suspect && a->unreachable == b->unreachable && a->dead == b->dead &&
	       a->left == b->left && a->joined == b->joined && a->brake == b->brake;
}

static void mark_slot(struct publish *publish, uint32_t slot) {
	publish->marks[slot / 64] |= UINT64_C(1) << slot % 64;
	publish->marked = true;
}

int publish_create(
	const struct ras *ras,
	struct peer_table *table,
	uint64_t now_ns,
	struct publish **ret_publish
) {
	struct publish *publish = calloc(1, sizeof(*publish));

	if (publish == NULL)
		return -ENOMEM;
	publish->ras = ras;
	publish->table = table;
	publish->due_ns = now_ns;
	// A number that no view has: the first call publishes, and walks over all slots.
	publish->published.number = UINT64_MAX;
	publish->walked.number = UINT64_MAX;
	*ret_publish = publish;
	return 0;
}

struct publish *publish_destroy(struct publish *publish) {
	free(publish);
	return NULL;
}

void publish_mark_peer(struct publish *publish, uint64_t peer) {
	const struct peer_row *row;
	struct ras_peer found;

	if (ras_peer_find(publish->ras, peer, &found) == 0)
		mark_slot(publish, found.slot);
	// A forgotten peer still has its slot in the table. This thread is the only writer, so
	// it may read the table outside of an RCU read section (without rcu_thread_online()).
	row = peer_snapshot_find(peer_table_snapshot(publish->table), peer);
	if (row != NULL)
		mark_slot(publish, row->slot);
}

static bool row_equals(const struct peer_row *a, const struct peer_row *b) {
	return a->id == b->id && a->incarnation == b->incarnation && a->since_ns == b->since_ns &&
	       sock_addr_equal(&a->address, &b->address) && a->state == b->state &&
	       a->cause == b->cause && a->sole == b->sole && a->maint == b->maint &&
	       a->observer_count == b->observer_count &&
	       memcmp(a->observers, b->observers, sizeof(a->observers)) == 0 &&
	       strcmp(a->name, b->name) == 0 && strcmp(a->host, b->host) == 0;
}

// Update one slot of the next version. Returns 0 or -ENOMEM.
static int refresh_slot(struct publish *publish, uint32_t slot) {
	const struct peer_row *newest = peer_table_next_row(publish->table, slot);
	const struct ras_record *record;
	struct ras_peer peer;
	struct peer_row row;

	if (ras_peer_at(publish->ras, slot, &peer) != 0) {
		publish->unpublished |= newest != NULL;
		return peer_table_clear(publish->table, slot);
	}
	record = peer.record;
	row = (struct peer_row){
		.id = record->id,
		.incarnation = peer.incarnation,
		.first_incarnation = ras_incarnation(ras_incarnation_start(peer.incarnation), 0),
		.since_ns = peer.since_ns,
		.address = record->address,
		.slot = peer.slot,
		.state = (uint8_t)peer.state,
		.cause = (uint8_t)peer.cause,
		.sole = peer.sole,
		.maint = peer.maint,
		.ended = peer.state == RAS_LEFT ||
			 (peer.state == RAS_DEAD && !ras_cause_is_silence(peer.cause)),
		.name_length = record->name_length,
		.host_length = record->host_length,
		.observer_count = (uint8_t)peer.observer_count,
	};
	must(record->name_length <= PEER_NAME_MAX && record->host_length <= PEER_NAME_MAX);
	memcpy(row.name, record->name, record->name_length);
	memcpy(row.host, record->host, record->host_length);
	memcpy(row.observers, peer.observers, sizeof(row.observers));
	if (newest != NULL && row_equals(newest, &row))
		return 0;
	publish->unpublished = true;
	return peer_table_set(publish->table, &row);
}

static int refresh_marked(struct publish *publish) {
	for (uint32_t word = 0; word < MARK_WORDS; word++) {
		while (publish->marks[word] != 0) {
			uint32_t bit = (uint32_t)__builtin_ctzll(publish->marks[word]);
			int err = refresh_slot(publish, word * 64 + bit);

			if (err != 0)
				return err;
			publish->marks[word] &= publish->marks[word] - 1;
		}
	}
	publish->marked = false;
	return 0;
}

// Walk over the next slots. A new walk starts when the last one is complete and the view has
// changed.
static int table_walk(struct publish *publish, const struct ras_view *view) {
	uint32_t slots_max = peer_snapshot_view(peer_table_snapshot(publish->table))->slots_max;

	if (publish->walk_slot >= publish->walk_end && !view_equals(view, &publish->walked)) {
		publish->walked = *view;
		publish->walk_slot = 0;
		publish->walk_end = view->slots_max > slots_max ? view->slots_max : slots_max;
	}
	for (uint32_t n = 0; n < PUBLISH_WALK_SLOTS; n++) {
		int err;

		if (publish->walk_slot >= publish->walk_end)
			break;
		err = refresh_slot(publish, publish->walk_slot);
		if (err != 0)
			return err;
		publish->walk_slot++;
	}
	return 0;
}

static bool walk_pending(const struct publish *publish, const struct ras_view *view) {
	return publish->walk_slot < publish->walk_end || !view_equals(view, &publish->walked);
}

static int publish_version(struct publish *publish, const struct ras_view *view, uint64_t now_ns) {
	const struct peer_view version = {
		.number = view->number,
		.digest = view->digest,
		.at_ns = now_ns,
		.alive = view->alive,
		.suspect = view->suspect,
		.unreachable = view->unreachable,
		.dead = view->dead,
		.left = view->left,
		.joined = view->joined,
		.brake = view->brake,
	};
	int err;

	rcu_thread_online(now_ns);
	err = peer_table_publish(publish->table, &version);
	rcu_thread_offline();
	if (err != 0)
		return err;
	publish->published = *view;
	publish->unpublished = false;
	return 0;
}

uint64_t publish_changed_peers(struct publish *publish, uint64_t now_ns) {
	struct rcu_thread_stall stall = {.name = "none"};
	struct ras_view view;
	int err;

	ras_view(publish->ras, &view);
	if (!publish->marked && !publish->unpublished && !walk_pending(publish, &view) &&
	    view_equals(&view, &publish->published))
		return RAS_NEVER;
	if (now_ns < publish->due_ns)
		return publish->due_ns;
	publish->due_ns = now_ns + PUBLISH_INTERVAL_NS;
	err = refresh_marked(publish);
	if (err == 0)
		err = table_walk(publish, &view);
	if (err == 0 && (publish->unpublished || !view_equals(&view, &publish->published)))
		err = publish_version(publish, &view, now_ns);
	if (err != 0) {
		rcu_thread_find_stalled(STALL_NS, now_ns, &stall);
		log_event(
			LOG_LEVEL_WARN, "publish_failed", log_errno("error", err),
			log_str("stalled_reader", stall.name), log_u64("quiet_ns", stall.quiet_ns),
			log_str("action", "retry")
		);
	}
	if (err != 0 || walk_pending(publish, &view))
		return publish->due_ns;
	return RAS_NEVER;
}
