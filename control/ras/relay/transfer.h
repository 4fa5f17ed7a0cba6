// SPDX-License-Identifier: BSD-3-Clause
// Transfers: what the rest of the core calls.
//
// A START announces a transfer and offers nothing; its answer is the first CREDIT, and no byte is
// sent before. So a START may be repeated at will: one that comes late makes a transfer that
// nothing follows, and no consumer hears of it. DATA goes in one ordered flow behind it. CREDIT
// says how far the sender may go, END and CANCEL how it ended; each is repeated until the
// relay reports it delivered, or the deadline has passed.
#pragma once

#include <ras/relay.h>
#include <ras/transfer.h>

int transfer_create(struct ras *ras); // -ENOMEM
void transfer_destroy(struct ras *ras);

// A message for RELAY_PORT_TRANSFER; answers as ops.deliver.
int transfer_deliver(struct ras *ras, const struct ras_relay_delivery *delivery);
// How one that was sent there ended.
void transfer_report(struct ras *ras, const struct ras_relay_report *report);
// The peer died, left, started again or is about to be forgotten.
void transfer_peer_changed(struct ras *ras, uint32_t slot);
// We leave: everything ends now.
void transfer_leave(struct ras *ras);

void transfer_tick(struct ras *ras);
// When transfer_tick() has something to do, or RAS_NEVER.
uint64_t transfer_next_ns(const struct ras *ras);
