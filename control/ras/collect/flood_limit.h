// SPDX-License-Identifier: BSD-3-Clause
// Limits how many notices of others this agent forwards.
//
// Any member may send notices to all members, and some of them follow what a user's job does. In
// each second of observed time an agent forwards at most FLOOD_FORWARD_MAX notices of others. An
// origin gets at most one share of them, so that a flood drops its own notices. The shares follow
// the number of origins in this second and in the one before. One share stays free, so that a
// newcomer finds room. A dropped notice is delivered here, but not forwarded.
//
// Notices of the core itself are always forwarded: membership depends on them.
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct collect_notice;
struct ras;

#define FLOOD_FORWARD_MAX 8192
#define FLOOD_SHARE_MIN 8 // notices of one origin, however many origins there are

struct flood_limit {
	uint32_t second;    // of observed time
	uint32_t forwarded; // in this second
	uint32_t origins;   // with a notice in this second, forwarded or not
	uint32_t origins_before;
};

// Count a notice of another member. Returns false if it must not be forwarded. Call once per
// notice, after flood_record_first().
bool flood_limit_admit(struct ras *ras, const struct collect_notice *notice);
