// SPDX-License-Identifier: BSD-3-Clause
// Count of bad and good observers of one node.
#pragma once

#include "triangulate.h"

// Observations of one subject, over one of its ports or all.
struct tally {
	uint64_t bad[VERDICT_SUBJECT_OBSERVATIONS_MAX];
	uint64_t bad_since[VERDICT_SUBJECT_OBSERVATIONS_MAX]; // when each bad observer turned bad
	uint32_t bad_hosts[VERDICT_SUBJECT_OBSERVATIONS_MAX];
	uint32_t bad_count, host_count;
	uint64_t bad_since_ns; // when the last of them turned bad
	uint64_t good[VERDICT_SUBJECT_OBSERVATIONS_MAX];
	uint64_t good_at[VERDICT_SUBJECT_OBSERVATIONS_MAX];    // latest good read of each observer
	uint64_t good_first[VERDICT_SUBJECT_OBSERVATIONS_MAX]; // first read of each observer
	uint32_t good_count;
	uint64_t good_ns; // latest good read of all
	uint64_t newest_ns;
	bool in_process; // all bad reads were answered by the agent process
	const struct evidence *example;
};

// Count the observations of one kind. `port` NULL: all ports, since the same pulse is behind each
// of them.
void tally_fill(
	const struct verdict_engine *engine,
	const struct subject *subject,
	enum observation_kind kind,
	const char *port,
	struct tally *ret_tally
);
// Return whether the tally is enough to blame the subject.
bool tally_is_enough_for_blame(
	const struct verdict_engine *engine,
	const struct subject *subject,
	enum observation_kind kind,
	const struct tally *tally
);
