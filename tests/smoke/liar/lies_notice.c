// SPDX-License-Identifier: BSD-3-Clause
// Lies told by notices, and by messages over several links. liars.py says what must hold against
// each.
#include "collect/collect_message.h"
#include "liar.h"
#include "relay/relay_packet.h"

#include <string.h>

#define JOBS_NOTICE_GONE 1
#define JOBS_NOTICE_AGREED 2
#define NOTICE_TIME_MAX_NS (INT64_MAX / 2) // largest time that is accepted; the receiver uses now
#define STARTS_AHEAD 16			   // as many as the agents of protocol 2 admitted
#define ID_START_SHIFT 32
#define RELAY_LIFE_US 5000000
#define RELAY_HOPS_LEFT 32

// The victim's check fails, says the victim.
static void tell_check(struct liar *liar) {
	uint8_t bytes[RAS_NOTICE_BYTES_MAX];
	size_t size = liar_payload_statement(liar->victim, bytes);

	liar_forge_notice(liar, liar_victim_latest_id(liar) + 1, LIAR_NOTICE_HEALTH, bytes, size);
}

// A notice of the victim with an id so far ahead that all its real ones look old.
static void tell_ids_ahead(struct liar *liar) {
	uint8_t bytes[RAS_NOTICE_BYTES_MAX];
	size_t size = liar_payload_statement(liar->victim, bytes);
	uint64_t start = ras_incarnation_start(liar_victim_entry(liar)->incarnation);

	liar_forge_notice(
		liar, (start + STARTS_AHEAD) << ID_START_SHIFT | liar->turn, LIAR_NOTICE_HEALTH,
		bytes, size
	);
	liar_forge_notice(
		liar, liar_victim_latest_id(liar) + 1000 + liar->turn, LIAR_NOTICE_HEALTH, bytes,
		size
	);
}

// The ranks of other agents are gone: one by one, and as a set that all agreed on.
static void tell_gone(struct liar *liar) {
	static const char cause[] = "its process ended";
	uint8_t bytes[128];
	struct wire_writer writer;
	uint32_t rank;

	if (!liar->has_comm || liar->comm_size == 0)
		return;
	rank = liar->turn % liar->comm_size;
	wire_writer_init(&writer, bytes, sizeof(bytes));
	wire_put_bytes(&writer, liar->comm_head, sizeof(liar->comm_head));
	wire_put_u64(&writer, NOTICE_TIME_MAX_NS);
	wire_put_u32(&writer, rank);
	wire_put_string(&writer, cause, strlen(cause));
	bytes[1] = JOBS_NOTICE_GONE;
	liar_send_notice(liar, LIAR_NOTICE_JOBS, bytes, wire_writer_used(&writer));

	wire_writer_init(&writer, bytes, sizeof(bytes));
	wire_put_bytes(&writer, liar->comm_head, sizeof(liar->comm_head));
	wire_put_u64(&writer, NOTICE_TIME_MAX_NS);
	wire_put_u64(&writer, UINT64_MAX / 2 + liar->turn); // number of the set
	wire_put_u32(&writer, rank);
	wire_put_string(&writer, cause, strlen(cause));
	wire_put_u16(&writer, 1); // one range of one rank
	wire_put_u32(&writer, rank);
	wire_put_u32(&writer, 1);
	bytes[1] = JOBS_NOTICE_AGREED;
	liar_send_notice(liar, LIAR_NOTICE_JOBS, bytes, wire_writer_used(&writer));
}

// All that the victim said before, once more.
static void tell_replay(struct liar *liar) {
	liar->replays = true;
	for (uint32_t n = 0; n < liar->kept_count; n++)
		liar_send_all(liar, liar->kept[n].frame, liar->kept[n].size);
	liar->replays = false;
}

// Make the first statement in a notice of the victim worse than the victim made it.
static bool change_notice(struct liar *liar, uint8_t *frame, size_t size) {
	struct collect_notice notice;
	struct wire_reader reader;

	wire_reader_init(&reader, frame, size);
	if (liar->replays || wire_get_u8(&reader) != MESSAGE_NOTICE ||
	    collect_notice_decode(&reader, &notice) != 0 || notice.origin != liar->victim ||
	    notice.kind != LIAR_NOTICE_HEALTH)
		return false;
	return liar_payload_worsen(
		liar->victim, frame + ((const uint8_t *)notice.payload - frame), notice.size
	);
}

// The victim may be drained.
static void tell_grant(struct liar *liar) {
	uint64_t start = ras_incarnation_start(liar_victim_entry(liar)->incarnation);
	uint8_t bytes[RAS_NOTICE_BYTES_MAX];

	if (liar->turn % LIAR_TURNS_PER_SECOND == 0)
		liar_send_notice(
			liar, LIAR_NOTICE_GRANTS, bytes,
			liar_payload_grant(liar->victim, start, bytes)
		);
}

// The liar cannot read the victim, nor reach it.
static void tell_paths(struct liar *liar) {
	uint64_t incarnation = liar_victim_entry(liar)->incarnation;
	uint8_t bytes[RAS_NOTICE_BYTES_MAX];

	if (liar->turn % LIAR_TURNS_PER_SECOND == 0)
		liar_send_notice(
			liar, LIAR_NOTICE_HEALTH, bytes,
			liar_payload_observation(
				liar->ras->self_id, liar->victim, incarnation, bytes
			)
		);
}

// An order to forget the victim, which lives.
static void tell_forget(struct liar *liar) {
	if (liar->turn % LIAR_TURNS_PER_SECOND != 0)
		return;
	ras_enter(liar->ras, liar->now_ns);
	flood_send_forget(liar->ras, liar->victim, liar_victim_entry(liar)->incarnation);
	ras_exit(liar->ras);
	liar->sent++;
}

// The result of a census: far more members than there are, then hardly any.
static void tell_census(struct liar *liar) {
	uint32_t members = peers_member_count(&liar->ras->peers);
	bool inflates = liar->turn / LIAR_TURNS_PER_SECOND % 2 == 0;
	uint64_t subjects[1] = {liar->victim};
	const struct census_result result = {
		.reached = inflates ? 1000 * members : 1,
		.members = inflates ? 1000 * members : members,
		.voters = inflates ? 1000 * members : 1,
		.electorate = inflates ? 1000 * members : members,
		.subject_count = 1,
		.subjects = subjects,
	};

	if (liar->turn % (LIAR_TURNS_PER_SECOND / 2) != 0)
		return;
	ras_enter(liar->ras, liar->now_ns);
	flood_send_census(liar->ras, &result);
	ras_exit(liar->ras);
	liar->sent++;
}

// The counts in answers to the censuses of others.
static bool change_census(struct liar *liar, uint8_t *frame, size_t size) {
	bool inflates = liar->turn / LIAR_TURNS_PER_SECOND % 2 == 0, changed = false;
	size_t at = COLLECTED_HEADER_BYTES;

	if (frame[0] != MESSAGE_COLLECTED)
		return false;
	while (at + COLLECT_ITEM_HEADER_BYTES <= size) {
		struct wire_reader reader;
		struct wire_writer writer;
		uint32_t item_size;

		wire_reader_init(&reader, frame + at + 1, sizeof(item_size));
		item_size = wire_get_u32(&reader);
		if (item_size > size - at - COLLECT_ITEM_HEADER_BYTES)
			break;
		if (frame[at] == COLLECT_ITEM_COUNT) {
			wire_writer_init(
				&writer, frame + at + COLLECT_ITEM_HEADER_BYTES, COLLECT_COUNT_BYTES
			);
			wire_put_u32(&writer, inflates ? 1000 : 0); // reached
			wire_put_u32(&writer, inflates ? 1000 : 0); // of them with a vote
			changed = true;
		}
		at += COLLECT_ITEM_HEADER_BYTES + item_size;
	}
	return changed;
}

// Send each linked member a relayed message in the victim's name. Its sequence is far ahead, so
// the member takes the real messages of the victim for old ones.
static void tell_relay(struct liar *liar) {
	const struct peer_entry *victim = liar_victim_entry(liar);
	struct ras *ras = liar->ras;
	uint8_t frame[RELAY_HEADER_BYTES];

	if (liar->turn % LIAR_TURNS_PER_SECOND != 0)
		return;
	for (uint32_t n = 0; n < ras->links.count; n++) {
		uint64_t to = ras->links.table[n]->peer;
		uint32_t slot = peers_find(&ras->peers, to);
		const struct relay_header header = {
			.kind = RELAY_DATA,
			.class = RAS_RELAY_CONTROL,
			.hops = 2, // with 1 the message would have to come from its source
			.hops_left = RELAY_HOPS_LEFT,
			.life_us = RELAY_LIFE_US,
			.source = liar->victim,
			.source_incarnation = victim->incarnation,
			.source_run = victim->record->run,
			.destination = to,
			.destination_run =
				slot != RAS_NO_SLOT ? ras_entry(ras, slot)->record->run : 0,
			.view = peers_digest(&ras->peers),
			.sequence = (UINT64_C(1) << 40) + liar->turn,
			.flow = 1,
			.port = RAS_RELAY_PORT_MIN,
		};

		if (to == liar->victim)
			continue;
		relay_header_encode(&header, frame);
		(void)liar_send_to(liar, to, frame, sizeof(frame));
	}
}

const struct lie lies_of_notices[] = {
	{"check", tell_check, NULL},
	{"mute", tell_ids_ahead, NULL},
	{"gone", tell_gone, NULL},
	{"replay", tell_replay, NULL},
	{"change", NULL, change_notice},
	{"grant", tell_grant, NULL},
	{"paths", tell_paths, NULL},
	{"forget", tell_forget, NULL},
	{"census", tell_census, change_census},
	{"relay", tell_relay, NULL},
	{NULL, NULL, NULL},
};
