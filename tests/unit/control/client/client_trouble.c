// SPDX-License-Identifier: BSD-3-Clause
#include "control/client/client_trouble.h"

void bench_make_trouble(void) {
	struct ras_peer *dead = bench_peer("n3");
	struct ras_peer *suspect = bench_peer("n2");

	dead->state = RAS_DEAD;
	dead->cause = RAS_CAUSE_GONE;
	dead->observer_count = 2;
	dead->observers[0] = bench.overlay.records[0]->id;
	dead->observers[1] = bench.overlay.records[1]->id;
	suspect->state = RAS_SUSPECT;
	suspect->cause = RAS_CAUSE_SILENT;
	bench.overlay.links[0] = (struct ras_link_info){
		.peer = suspect->record->id,
		.ready = true,
		.delayed = true,
		.outgoing = true,
		.mine = RAS_USE_NEXT | RAS_USE_PREV,
		.silent_ns = 3200 * RAS_NS_PER_MS,
		.rtt_min_ns = 80000,
		.rtt_mean_ns = 120000,
		.rtt_max_ns = 500000,
		.sent_bytes = 123456,
		.age_ns = 4 * RAS_NS_PER_SEC,
		.received_bytes = 99,
		.reconnects = 1,
	};
	bench.overlay.links[1] = (struct ras_link_info){
		.peer = dead->record->id,
		.theirs = RAS_USE_LEVEL(2),
		.silent_ns = 90 * RAS_NS_PER_SEC,
		.rtt_min_ns = RAS_NEVER,
	};
	bench.overlay.link_count = 2;
	bench_add_event(RAS_EVENT_JOINED, "n3", RAS_CAUSE_NONE, 0);
	bench_add_event(RAS_EVENT_LINK_UP, "n3", RAS_CAUSE_NONE, 2 * RAS_NS_PER_MS);
	bench_add_event(RAS_EVENT_SUSPECT, "n3", RAS_CAUSE_RESET, 0);
	bench_add_event(RAS_EVENT_DEAD, "n3", RAS_CAUSE_GONE, 0);
	bench_add_event(RAS_EVENT_BRAKE_ON, NULL, RAS_CAUSE_NONE, 17);
}
