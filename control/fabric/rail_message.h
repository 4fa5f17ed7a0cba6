// SPDX-License-Identifier: BSD-3-Clause
// What an agent tells another of its rails, on OVERLAY_PORT_RAILS.
//
//	version u8, flags u8 (0x01: yours are asked for), count u16, and as often
//	a rail: bytes u16, then name (string), link u8, kind of subnet u8, bits u8, subnet 16
//
// A newer version adds behind a rail's fields or behind all rails, and may use other flags.
#pragma once

#include "fabric/rail_match.h"

#include <stddef.h>

#define RAIL_MESSAGE_BYTES_MAX 1024

// The size of what is in `bytes`.
size_t rail_message_encode(
	const struct rail_list *rails, bool asks, uint8_t bytes[static RAIL_MESSAGE_BYTES_MAX]
);
// -EBADMSG, -EMSGSIZE: no agent sends this. Rails of links that are not known here are left out,
// and those beyond RAILS_MAX; a kind of subnet that is not is an unknown one.
int rail_message_decode(
	const void *bytes, size_t size, struct rail_list *ret_rails, bool *ret_asks
);
