// SPDX-License-Identifier: BSD-3-Clause
// Consequences of a silent link: it is delayed, its connection is replaced, its peer is suspected.
#pragma once

struct link;
struct ras;

// Judge a used link by the silence of its peer.
void link_silence_judge(struct ras *ras, struct link *link);
// End a connection whose oldest queued frame has waited too long. Its frames go over the next
// connection.
void link_stuck_check(struct ras *ras, struct link *link);
