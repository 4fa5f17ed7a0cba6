// SPDX-License-Identifier: BSD-3-Clause
// Notices that a test makes itself, signed like fake_sign.h.
#pragma once

#include "collect/collect_message.h"
#include "collect/flood.h"

#include <support/fake_sign.h>

// Encode a notice with the signature of this key; its `signature` is ignored.
static inline void fake_notice_encode(
	const struct collect_notice *notice,
	uint64_t cluster,
	const uint8_t key[static RAS_KEY_BYTES],
	struct wire_writer *writer
) {
	uint8_t signature[RAS_SIGNATURE_BYTES];
	uint8_t bytes[FLOOD_SIGNED_BYTES_MAX];
	struct collect_notice signed_notice = *notice;

	fake_sign(key, bytes, flood_signed_bytes(cluster, notice, bytes), signature);
	signed_notice.signature = signature;
	collect_notice_encode(&signed_notice, writer);
}
