// SPDX-License-Identifier: BSD-3-Clause
// One packet on its way out: headers, room for the payload, pad, ICRC, and over to the wire.
#pragma once

#include "transport/qp.h"

// Begins a packet to the peer of this queue pair; destination, P_Key, pad and headers are filled in
// here, opcode, PSN and the rest are the caller's. NULL: the wire is full, nothing was begun. Else
// where payload_bytes are to be written before output_end().
uint8_t *output_begin(struct soft_qp *qp, const struct packet *packet, uint32_t payload_bytes);
void output_end(struct soft_qp *qp);
