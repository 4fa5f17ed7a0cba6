// SPDX-License-Identifier: BSD-3-Clause
// What the silence of a link means: it is delayed, its connection is replaced, its peer suspected.
#pragma once

struct link;
struct ras;

// Judges a link that is in use by how long its peer has been silent.
void link_silence_judge(struct ras *ras, struct link *link);
// A queue whose head has waited too long: the connection is ended, what waits goes over the next.
void link_stuck_check(struct ras *ras, struct link *link);
