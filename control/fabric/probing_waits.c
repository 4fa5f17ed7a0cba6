// SPDX-License-Identifier: BSD-3-Clause
// Waits for a processor, as probes need them: of this agent's threads, and of responders.
#include "fabric/probing.h"

#define RESPONDER_WAIT_VALID_NS (2 * RAS_NS_PER_SEC)

void probing_update_waits(struct probing *probing, uint64_t now_ns) {
	const struct fabric_config *config = &probing->fabric->config;
	struct schedstat stats[FABRIC_THREADS_MAX] = {0};

	if (config->schedstats == NULL || now_ns < probing->waits.before_ns + WAITS_UPDATE_NS)
		return;
	config->schedstats(config->schedstats_ctx, stats);
	if (waits_update(&probing->waits, now_ns, stats))
		pulse_set_wait(probing->fabric->pulse, waits_turn_ns(&probing->waits));
}

void fabric_waits(const struct fabric *fabric, struct fabric_waits *ret_waits) {
	const struct probing *probing = fabric->probing;

	*ret_waits = (struct fabric_waits){0};
	if (probing == NULL || !fabric->config.probe.on)
		return;
	ret_waits->is_short = probing->waits.is_short;
	ret_waits->permille = probing->waits.permille;
	if (probing->waits.is_short)
		ret_waits->for_ns = fabric_clock_ns(fabric) - probing->waits.since_ns;
	for (uint32_t n = 0; n < probing->probed_paths_used; n++) {
		const struct probed_path *probed_path = &probing->probed_paths[n];
		struct path_summary summary;

		if (probed_path->stage == PROBED_PATH_FREE || probed_path->memory == NULL ||
		    probed_path->self)
			continue;
		path_memory_summary(probed_path->memory, &summary);
		ret_waits->paths++;
		ret_waits->unjudged += summary.unjudged;
	}
}

void probed_path_take_wait(struct probed_path *probed_path, const struct watch_outcome *outcome) {
	if (!outcome->has_wait)
		return;
	probed_path->responder_wait_at_ns = outcome->at_ns;
	probed_path->responder_wait_ns =
		probed_path->responder == DEVICE_RESPONDER_IN_PROCESS && !probed_path->self
			? outcome->wait_ns
			: 0;
}

bool probed_path_wait_is_old(const struct probed_path *probed_path, uint64_t now_ns) {
	return probed_path->responder == DEVICE_RESPONDER_IN_PROCESS && !probed_path->self &&
	       now_ns > probed_path->responder_wait_at_ns + RESPONDER_WAIT_VALID_NS;
}
