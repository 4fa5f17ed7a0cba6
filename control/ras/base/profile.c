// SPDX-License-Identifier: BSD-3-Clause
// The named profiles of timers and limits: fast and nccl.
#include <ras/profile.h>

#include <string.h>

#define MS *RAS_NS_PER_MS
#define SEC *RAS_NS_PER_SEC
#define HOUR *(3600 * RAS_NS_PER_SEC)

// Death by silence: suspected after 3 s, declared after 8.7 s; a last round of looks begins 2 s
// earlier. An agent survives a pause of 6 s, even if only one observer sees a proof of life. Its
// first messages may be delayed by another 2 s.
//
// Death by absence: two refused connects 300 ms apart, seen by two agents. The 300 ms are for an
// agent behind a firewall that rejects what it should accept: it reconnects in that time.
const struct ras_profile ras_profile_fast = {
	.name = "fast",
	.beat_ns = 1 SEC,
	.suspect_ns = 3 SEC,
	.confirm_ns = 2 SEC,
	.dead_ns = 8700 MS,
	.sole_factor = 2,
	.gone_recheck_ns = 300 MS,
	.suspicion_max_ns = 30 SEC,
	.again_ns = 30 SEC,
	.observers = 2,
	.evidence = true,
	.connect_ns = 3 SEC,
	.init_ns = 3 SEC,
	.stuck_ns = 20 SEC,
	.close_ns = 5 SEC,
	.idle_ns = 10 SEC,
	.retry_ns = 1 SEC,
	.retry_max_ns = 30 SEC,
	.higher_wait_ns = 5 SEC,
	.delayed_ns = 3 SEC,
	.silent_close_ns = 10 SEC,
	.long_rings = true,
	.relink_ns = 1 SEC,
	.news_ns = 50 MS,
	.sync_ns = 1500 MS,
	.sync_gap_ns = 2 SEC,
	.leg_ns = 5 SEC,
	.leg_grace_ns = 1 SEC,
	.relay_retry_ns = 500 MS,
	.relay_tries = 4,
	.left_keep_ns = 1 HOUR,
	.dead_keep_ns = 168 HOUR,
	.search_ns = 500 MS,
	.joins_max = 16,
	.brake_window_ns = 10 SEC,
	.brake_hold_ns = 60 SEC,
	.brake_peers = 8,
	.brake_percent = 20,
};

// The timers and the topology of the RAS network of NCCL 2.30.7, for comparison with `fast`: one
// ring, one observer, no evidence but silence.
const struct ras_profile ras_profile_nccl = {
	.name = "nccl",
	.beat_ns = 1 SEC,
	.suspect_ns = 5 SEC,
	.confirm_ns = 0,
	.dead_ns = 60 SEC,
	.sole_factor = 1,
	.gone_recheck_ns = 1 SEC,
	.suspicion_max_ns = 120 SEC,
	.observers = 1,
	.evidence = false,
	.connect_ns = 20 SEC,
	.init_ns = 20 SEC,
	.stuck_ns = 20 SEC,
	.close_ns = 20 SEC,
	.idle_ns = 60 SEC,
	.retry_ns = 1 SEC,
	.retry_max_ns = 1 SEC,
	.higher_wait_ns = 5 SEC,
	.delayed_ns = 5 SEC,
	.silent_close_ns = 20 SEC,
	.long_rings = false,
	.relink_ns = 1 SEC,
	.news_ns = 50 MS,
	.sync_ns = 1500 MS,
	.sync_gap_ns = 2 SEC,
	.leg_ns = 5 SEC,
	.leg_grace_ns = 5 SEC,
	.relay_retry_ns = 500 MS,
	.relay_tries = 4,
	.left_keep_ns = 1 HOUR,
	.dead_keep_ns = 168 HOUR,
	.search_ns = 500 MS,
	.joins_max = 16,
	.brake_window_ns = 10 SEC,
	.brake_hold_ns = 60 SEC,
	.brake_peers = UINT32_MAX,
	.brake_percent = 100,
};

const struct ras_profile *ras_profile_find(const char *name) {
	if (strcmp(name, ras_profile_fast.name) == 0)
		return &ras_profile_fast;
	if (strcmp(name, ras_profile_nccl.name) == 0)
		return &ras_profile_nccl;
	return NULL;
}
