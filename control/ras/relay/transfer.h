// SPDX-License-Identifier: BSD-3-Clause
// Transfers: long answers in segments over the relay. This is their interface for the core.
//
// START announces a transfer and carries no data. The receiver answers with the first CREDIT, and
// no byte is sent before. So START may be repeated freely: a late copy creates a transfer without
// data, which no consumer sees. DATA follows in one ordered flow. CREDIT grants the sender an upper
// offset. END and CANCEL tell the outcome. Each control message is repeated until the relay reports
// its delivery or the deadline has passed.
#pragma once

#include <ras/relay.h>
#include <ras/transfer.h>

int transfer_create(struct ras *ras); // -ENOMEM
void transfer_destroy(struct ras *ras);

// Process a message to RELAY_PORT_TRANSFER. Returns the same values as ops.deliver.
int transfer_message_received(struct ras *ras, const struct ras_relay_delivery *delivery);
// Process the report about a message that we sent to RELAY_PORT_TRANSFER.
void transfer_report_received(struct ras *ras, const struct ras_relay_report *report);
// End the transfers of a peer that died, left, started again or is about to be removed.
void transfer_peer_changed(struct ras *ras, uint32_t slot);
// End all transfers at once, because this agent leaves.
void transfer_leave(struct ras *ras);

void transfer_tick(struct ras *ras);
// Return when transfer_tick() has work, or RAS_NEVER.
uint64_t transfer_next_ns(const struct ras *ras);
