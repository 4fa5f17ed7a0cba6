// SPDX-License-Identifier: BSD-3-Clause
// Signs the departure of this agent, and checks that of others.
#include "member/departure.h"

#include "core/core.h"

void departure_signed_bytes(
	uint64_t cluster,
	uint64_t id,
	uint64_t incarnation,
	uint8_t ret_bytes[static DEPARTURE_SIGNED_BYTES]
) {
	// Keeps a signature of a departure from being valid for anything else that is signed.
	static const char domain[16] = "tocsin depart 1";
	struct wire_writer writer;

	wire_writer_init(&writer, ret_bytes, DEPARTURE_SIGNED_BYTES);
	wire_put_bytes(&writer, domain, sizeof(domain));
	wire_put_u64(&writer, cluster);
	wire_put_u64(&writer, id);
	wire_put_u64(&writer, incarnation);
	must(wire_writer_used(&writer) == DEPARTURE_SIGNED_BYTES);
}

void departure_sign(
	const struct ras *ras,
	uint64_t incarnation,
	uint8_t ret_signature[static RAS_SIGNATURE_BYTES]
) {
	uint8_t bytes[DEPARTURE_SIGNED_BYTES];

	departure_signed_bytes(ras->cluster, ras->self_id, incarnation, bytes);
	ras->ops.sign(ras->ops_ctx, bytes, sizeof(bytes), ret_signature);
}

// Return true if the merge of this departure would change the life of the peer.
static bool departure_is_newer(const struct peer_entry *entry, const struct peer_news *news) {
	return news->incarnation != entry->incarnation ? news->incarnation > entry->incarnation
						       : entry->state != RAS_LEFT;
}

bool departure_is_forged(const struct ras *ras, const struct peer_news *news) {
	uint32_t slot = peers_find(&ras->peers, news->id);
	const struct ras_record *record = news->record;
	uint8_t bytes[DEPARTURE_SIGNED_BYTES];

	// This agent refutes what is said about it, signed or not.
	if (news->state != RAS_LEFT || slot == ras->self_slot)
		return false;
	if (slot != RAS_NO_SLOT) {
		const struct peer_entry *entry = ras_entry(ras, slot);

		if (!departure_is_newer(entry, news))
			return false;
		// Two runs of one start differ in their records: the higher digest stays.
		if (ras_incarnation_start(news->incarnation) == entry->record->start &&
		    (record == NULL || record->digest <= entry->record->digest))
			record = entry->record;
	}
	if (record == NULL)
		return false; // the merge ignores an unknown peer, and pulls the record of a start
	if (news->signature == NULL)
		return true;
	departure_signed_bytes(ras->cluster, news->id, news->incarnation, bytes);
	return !ras->ops.verify(ras->ops_ctx, record->key, bytes, sizeof(bytes), news->signature);
}
