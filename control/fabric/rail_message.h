// SPDX-License-Identifier: BSD-3-Clause
// Message in which an agent announces its rails to another agent, on OVERLAY_PORT_RAILS.
//
//	version u8, flags u8 (0x01: the receiver is asked for its rails), count u16, then `count`
//	rails: length u16, then name (string), link u8, kind of subnet u8, bits u8, subnet 16
//
// A newer version adds fields at the end of a rail or after all rails, and may use other flags.
#pragma once

#include "fabric/rail_match.h"

#include <stddef.h>

#define RAIL_MESSAGE_BYTES_MAX 1024

// Encode the message. Returns its size in bytes.
size_t rail_message_encode(
	const struct rail_list *rails, bool asks, uint8_t bytes[static RAIL_MESSAGE_BYTES_MAX]
);
// Decode the message. Returns 0, or -EBADMSG or -EMSGSIZE if no agent sends such a message. Rails
// of unknown link types and rails beyond RAILS_MAX are left out. An unknown kind of subnet becomes
// DEVICE_SUBNET_UNKNOWN.
int rail_message_decode(
	const void *bytes, size_t size, struct rail_list *ret_rails, bool *ret_asks
);
