// SPDX-License-Identifier: BSD-3-Clause
// Builds one outgoing packet: headers, room for the payload, pad and ICRC, then passes it to the
// wire.
#pragma once

#include "transport/qp.h"

// Begin a packet to the peer of this queue pair. The caller sets opcode, PSN and the other fields;
// destination, P_Key, pad and headers are filled in. Returns the place for payload_bytes, to be
// written before output_end(). Returns NULL if the wire is full; then nothing was begun.
uint8_t *output_begin(struct soft_qp *qp, const struct packet *packet, uint32_t payload_bytes);
void output_end(struct soft_qp *qp);
