// SPDX-License-Identifier: BSD-3-Clause
// What several observers say of one node, counted.
#pragma once

#include "triangulate.h"

// What one subject's observations say of one of its ports, or of all.
struct tally {
	uint64_t bad[VERDICT_SUBJECT_OBSERVATIONS_MAX];
	uint64_t bad_since[VERDICT_SUBJECT_OBSERVATIONS_MAX]; // when each turned bad
	uint32_t bad_hosts[VERDICT_SUBJECT_OBSERVATIONS_MAX];
	uint32_t bad_count, host_count;
	uint64_t bad_since_ns; // the latest that turned bad
	uint64_t good[VERDICT_SUBJECT_OBSERVATIONS_MAX];
	uint64_t good_at[VERDICT_SUBJECT_OBSERVATIONS_MAX];    // when each was
	uint64_t good_first[VERDICT_SUBJECT_OBSERVATIONS_MAX]; // and when it looked first
	uint32_t good_count;
	uint64_t good_ns; // the latest that was good
	uint64_t newest_ns;
	bool in_process; // all bad ones
	const struct evidence *example;
};

// Of all ports if `port` is NULL: the page is the same behind each of them.
void tally_take(
	const struct verdict_engine *engine,
	const struct subject *subject,
	enum observation_kind kind,
	const char *port,
	struct tally *ret_tally
);
// Whether it is enough to blame the subject.
bool tally_blames(
	const struct verdict_engine *engine,
	const struct subject *subject,
	enum observation_kind kind,
	const struct tally *tally
);
