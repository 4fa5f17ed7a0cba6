// SPDX-License-Identifier: BSD-3-Clause
// Departures: the signed statement of an agent that it has left.
//
// An agent that leaves signs its id and its incarnation. The signature travels with the news that
// the peer left, and the table keeps it for as long as the peer is in this state. The incarnation
// makes an old departure worthless against a later start.
//
// Each receiver checks a departure once, before it changes the table. Only the table is forwarded.
// The key is that of the record which the table holds after the merge. So the next receiver of
// record and signature comes to the same result.
#pragma once

#include <ras/types.h>

#define DEPARTURE_SIGNED_BYTES 40

struct peer_news;
struct ras;

// Write the bytes that an agent signs when it leaves.
void departure_signed_bytes(
	uint64_t cluster,
	uint64_t id,
	uint64_t incarnation,
	uint8_t ret_bytes[static DEPARTURE_SIGNED_BYTES]
);
// Sign the departure of this agent in this incarnation.
void departure_sign(
	const struct ras *ras,
	uint64_t incarnation,
	uint8_t ret_signature[static RAS_SIGNATURE_BYTES]
);
// Return true if the update reports a departure that would change the table, and the peer did not
// sign it.
bool departure_is_forged(const struct ras *ras, const struct peer_news *news);
