// SPDX-License-Identifier: BSD-3-Clause
// Departures that a test makes itself, signed like fake_sign.h.
#pragma once

#include "member/departure.h"

#include <support/fake_sign.h>

static inline void fake_departure(
	uint64_t cluster,
	uint64_t id,
	uint64_t incarnation,
	const uint8_t key[static RAS_KEY_BYTES],
	uint8_t ret_signature[static RAS_SIGNATURE_BYTES]
) {
	uint8_t bytes[DEPARTURE_SIGNED_BYTES];

	departure_signed_bytes(cluster, id, incarnation, bytes);
	fake_sign(key, bytes, sizeof(bytes), ret_signature);
}
