// SPDX-License-Identifier: BSD-3-Clause
// Compares the tables of two members by digests and exchanges the differences.
#include "member/sync.h"

#include "core/core.h"

#include <errno.h>

#define SYNC_BUSY_NS RAS_NS_PER_SEC
// A comparison normally waits until both digests were unchanged for sync_ns, since updates may be
// on their way. An agent that has much to learn may see new digests for minutes. So a comparison
// also starts after UNSETTLED_SYNC_FACTOR * sync_ns of difference.
#define UNSETTLED_SYNC_FACTOR 8

void sync_digest_received(struct ras *ras, struct link *link, uint64_t digest) {
	uint64_t own = peers_digest(&ras->peers);
	uint8_t frame[1 + PEERS_RANGES * sizeof(uint64_t)];
	struct wire_writer writer;

	if (digest == own) {
		link->agreed_ns = ras->observed_ns;
		link->agreed_digest = own;
		link->differs_ns = RAS_NEVER;
		link->unequal_ns = RAS_NEVER;
		return;
	}
	if (link->unequal_ns == RAS_NEVER)
		link->unequal_ns = ras->observed_ns;
	if (link->differs_ns == RAS_NEVER || digest != link->peer_digest ||
	    own != link->own_digest) {
		link->differs_ns = ras->observed_ns;
		link->peer_digest = digest;
		link->own_digest = own;
	}
	if ((ras->observed_ns - link->differs_ns < ras->profile->sync_ns &&
	     ras->observed_ns - link->unequal_ns < UNSETTLED_SYNC_FACTOR * ras->profile->sync_ns) ||
	    ras->observed_ns - link->synced_ns < ras->profile->sync_gap_ns ||
	    ras->observed_ns < ras->sync.busy_ns)
		return;
	ras_emit(ras, RAS_EVENT_DIVERGED, link->slot, RAS_CAUSE_NONE, 0);

	// Send our digests, which starts a comparison.
	ras->counters.syncs++;
	ras->sync.busy_ns = ras->observed_ns + SYNC_BUSY_NS;
	link->synced_ns = ras->observed_ns;
	link->unequal_ns = RAS_NEVER;
	wire_writer_init(&writer, frame, sizeof(frame));
	wire_put_u8(&writer, MESSAGE_DIGESTS);
	for (uint32_t range = 0; range < PEERS_RANGES; range++)
		wire_put_u64(&writer, ras->peers.ranges[range]);
	link_send(ras, link, frame, wire_writer_used(&writer));
}

static void brief_begin(struct ras *ras, struct wire_writer *writer, uint64_t mask, uint8_t flags) {
	wire_writer_init(writer, ras->scratch, RAS_FRAME_MAX);
	message_brief_begin(mask, flags, writer);
}

static uint8_t entry_death_weight(const struct peer_entry *entry) {
	return entry->state == RAS_DEAD ? peers_death_weight(entry->cause, entry->weight) : 0;
}

static void brief_send(struct ras *ras, struct link *link, uint64_t mask) {
	struct wire_writer writer;

	brief_begin(ras, &writer, mask, MESSAGE_BRIEF_FIRST);
	for (uint32_t slot = 0; slot < ras->peers.entry_count; slot++) {
		const struct peer_entry *entry = ras_entry(ras, slot);

		if (entry->record == NULL || !(mask >> peers_digest_range(entry->record->id) & 1))
			continue;
		if (wire_writer_used(&writer) + MESSAGE_BRIEF_BYTES > RAS_FRAME_MAX) {
			link_send(ras, link, ras->scratch, wire_writer_used(&writer));
			brief_begin(ras, &writer, mask, 0);
		}
		message_brief_encode(
			&(struct message_brief){
				.id = entry->record->id,
				.incarnation = entry->incarnation,
				.record_digest = entry->record->digest,
				.maint = entry->maint,
				.state = peer_is_member(entry) ? RAS_ALIVE : entry->state,
				.weight = entry_death_weight(entry),
			},
			&writer
		);
	}
	ras->scratch[MESSAGE_BRIEF_FLAGS_AT] |= MESSAGE_BRIEF_LAST;
	link_send(ras, link, ras->scratch, wire_writer_used(&writer));
}

int sync_digests_received(struct ras *ras, struct link *link, struct wire_reader *reader) {
	uint64_t mask = 0;

	for (uint32_t range = 0; range < PEERS_RANGES; range++) {
		if (wire_get_u64(reader) != ras->peers.ranges[range])
			mask |= UINT64_C(1) << range;
	}
	if (!wire_reader_ok(reader))
		return wire_reader_error(reader);
	// At most one brief is sent on a link in each half sync_gap_ns.
	if (mask != 0 && ras->observed_ns - link->briefed_ns >= ras->profile->sync_gap_ns / 2) {
		link->briefed_ns = ras->observed_ns;
		brief_send(ras, link, mask);
	}
	return 0;
}

// Collects updates that the peer lacks or holds in an older state, in as few frames as possible.
struct reply {
	struct ras *ras;
	struct link *link;
	struct wire_writer writer;
};

static void reply_end(struct reply *reply) {
	size_t size = wire_writer_used(&reply->writer);

	if (size > 1)
		link_send(reply->ras, reply->link, reply->ras->scratch, size);
	news_frame_begin(reply->ras, &reply->writer);
}

static void reply_add(struct reply *reply, uint32_t slot) {
	struct peer_news news;

	peers_news_fill(&reply->ras->peers, slot, &news);
	if (wire_writer_used(&reply->writer) + message_news_bytes(&news) > RAS_FRAME_MAX)
		reply_end(reply);
	message_news_encode(&news, &reply->writer);
}

// Compare the life in a brief with our entry. Returns <0 if the brief is older, 0 if equal, >0 if
// newer.
static int brief_life_compare(const struct peer_entry *entry, const struct message_brief *brief) {
	enum ras_state state = peer_is_member(entry) ? RAS_ALIVE : (enum ras_state)entry->state;

	if (brief->incarnation != entry->incarnation)
		return brief->incarnation > entry->incarnation ? 1 : -1;
	if (brief->state != state)
		return brief->state > state ? 1 : -1;
	if (state == RAS_DEAD && brief->weight != entry_death_weight(entry))
		return brief->weight > entry_death_weight(entry) ? 1 : -1;
	return 0;
}

static bool is_same_start(const struct peer_entry *entry, const struct message_brief *brief) {
	return ras_incarnation_start(brief->incarnation) ==
	       ras_incarnation_start(entry->incarnation);
}

// Life, record and maintenance switch are merged separately, so each side may have a newer part of
// the same peer. Both predicates below can be true for one entry.
static bool brief_is_newer(const struct peer_entry *entry, const struct message_brief *brief) {
	return brief_life_compare(entry, brief) > 0 || brief->maint > entry->maint ||
	       (is_same_start(entry, brief) && brief->record_digest > entry->record->digest);
}

static bool brief_is_older(const struct peer_entry *entry, const struct message_brief *brief) {
	return brief_life_compare(entry, brief) < 0 || brief->maint < entry->maint ||
	       (is_same_start(entry, brief) && brief->record_digest < entry->record->digest);
}

#define PULLS_MAX 2048

struct pulls {
	uint32_t count;
	uint64_t ids[PULLS_MAX];
};

// Apply the parts of a brief that is newer than our entry, or add its record to the pulls. This may
// send other frames from the scratch buffer, so replies are built in a second pass.
static void brief_apply_newer(
	struct ras *ras, struct link *link, struct pulls *pulls, const struct message_brief *brief
) {
	struct peer_news news = {
		.id = brief->id,
		.incarnation = brief->incarnation,
		.state = brief->state,
		.maint = brief->maint,
	};
	uint32_t slot = peers_find(&ras->peers, brief->id);
	bool is_new = hearsay_name_is_new(ras, brief->id, brief->state, brief->incarnation);
	bool applied;

	if (message_state_is_foreign(brief->state))
		return;
	if (slot != RAS_NO_SLOT && !brief_is_newer(ras_entry(ras, slot), brief))
		return;
	if (brief->id != ras->self_id && slot == RAS_NO_SLOT)
		applied = brief->state != RAS_ALIVE; // the death of an unknown peer is ignored
	else
		// The witnesses of a death and the signature of a departure are not in a brief. The
		// record of a new name is pulled, since the name needs a proof.
		applied = !is_new &&
			  (brief->id == ras->self_id ||
			   (brief->state == RAS_ALIVE &&
			    ras_entry(ras, slot)->record->digest == brief->record_digest)) &&
			  membership_apply(ras, &news, link);
	if (!applied && pulls->count < PULLS_MAX)
		pulls->ids[pulls->count++] = brief->id;
}

// Send the members that the peer did not list, once it has listed whole ranges.
static void unlisted_members_reply(struct reply *reply, uint64_t mask) {
	struct ras *ras = reply->ras;

	for (uint32_t slot = 0; slot < ras->peers.entry_count; slot++) {
		struct peer_entry *entry = ras_entry(ras, slot);

		if (entry->record == NULL)
			continue;
		if ((mask >> peers_digest_range(entry->record->id) & 1) != 0 &&
		    peer_is_member(entry) && (entry->flags & PEER_LISTED) == 0)
			reply_add(reply, slot);
		entry->flags &= (uint8_t)~PEER_LISTED;
	}
}

int sync_brief_received(struct ras *ras, struct link *link, struct wire_reader *reader) {
	struct reply reply = {.ras = ras, .link = link};
	struct pulls pulls = {.count = 0};
	struct message_brief_head head;
	struct message_brief brief;
	struct wire_reader again;
	int err = message_brief_head_decode(reader, &head);

	if (err != 0)
		return err;
	again = *reader;
	while ((err = message_brief_decode(reader, head.entry_bytes, &brief)) == 0 && link->used)
		brief_apply_newer(ras, link, &pulls, &brief);
	if (!link->used)
		return 0; // a brief ended the sender's membership and dropped the link
	if (err != -ENODATA)
		return err;
	for (uint32_t slot = 0;
	     (head.flags & MESSAGE_BRIEF_FIRST) != 0 && slot < ras->peers.entry_count; slot++)
		ras_entry(ras, slot)->flags &= (uint8_t)~PEER_LISTED;

	// Reply with each local entry that is newer than the brief that the peer sent of it. Skip
	// briefs with an unknown state, because they cannot be compared.
	news_frame_begin(ras, &reply.writer);
	while (message_brief_decode(&again, head.entry_bytes, &brief) == 0) {
		uint32_t slot = peers_find(&ras->peers, brief.id);

		if (slot == RAS_NO_SLOT)
			continue;
		ras_entry(ras, slot)->flags |= PEER_LISTED;
		if (!message_state_is_foreign(brief.state) &&
		    brief_is_older(ras_entry(ras, slot), &brief))
			reply_add(&reply, slot);
	}
	if ((head.flags & MESSAGE_BRIEF_LAST) != 0)
		unlisted_members_reply(&reply, head.mask);
	reply_end(&reply);
	if (pulls.count > 0)
		sync_pull_send(ras, link, pulls.ids, pulls.count);
	return 0;
}

void sync_pull_send(struct ras *ras, struct link *link, const uint64_t *ids, uint32_t count) {
	struct wire_writer writer;

	wire_writer_init(&writer, ras->scratch, RAS_FRAME_MAX);
	wire_put_u8(&writer, MESSAGE_PULL);
	for (uint32_t n = 0; n < count; n++)
		wire_put_u64(&writer, ids[n]);
	link_send(ras, link, ras->scratch, wire_writer_used(&writer));
}

int sync_pull_received(struct ras *ras, struct link *link, struct wire_reader *reader) {
	struct reply reply = {.ras = ras, .link = link};

	news_frame_begin(ras, &reply.writer);
	while (wire_reader_left(reader) > 0 && wire_reader_ok(reader)) {
		uint32_t slot = peers_find(&ras->peers, wire_get_u64(reader));

		if (slot != RAS_NO_SLOT)
			reply_add(&reply, slot);
	}
	reply_end(&reply);
	return wire_reader_error(reader);
}
