// SPDX-License-Identifier: BSD-3-Clause
// Keeps the learnt baselines of paths when their probed paths end: for neighbours that come back,
// and in the state directory for the next start. The state's own thread writes the file; this file
// only formats the text, every few minutes.
#include "fabric/probing.h"

#include <control/state.h>
#include <lib/log.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define BASELINE_KEEP_S (PATH_LEARNT_MAX_NS / RAS_NS_PER_SEC)

// Return UNIX time in seconds; 0 if the clock is before 1970, which gives no ages.
static uint64_t unix_time_s(const struct probing *probing, uint64_t now_ns) {
	int64_t realtime_ns = overlay_realtime_ns(probing->fabric->overlay, now_ns);

	return realtime_ns > 0 ? (uint64_t)realtime_ns / RAS_NS_PER_SEC : 0;
}

void path_baselines_read(struct probing *probing) {
	const struct fabric *fabric = probing->fabric;
	const char *reason = NULL;
	char *text = NULL;
	int err;

	if (fabric->config.state == NULL)
		return;
	err = state_read_text(fabric->config.state, STATE_PATHS, &text);
	if (err == -ENOENT)
		return;
	if (err == 0)
		err = path_book_parse(
			&probing->path_baselines, text, ras_self_id(overlay_ras(fabric->overlay)),
			&reason
		);
	free(text);
	if (err == 0)
		return;
	probing->counters.path_files_unreadable++;
	log_event(
		LOG_LEVEL_WARN, "paths_unreadable", log_errno("error", err),
		log_str("reason", reason != NULL ? reason : ""),
		log_str("effect", "path baselines are discarded and learnt again")
	);
}

// Start with a stored baseline, if the path is like the one it was learnt on. If the clock was set
// back since, the baseline counts as new and ages from now on.
void path_baselines_restore(struct probed_path *probed_path) {
	struct probing *probing = probed_path->probing;
	const struct fabric *fabric = probing->fabric;
	uint64_t now_ns = fabric_clock_ns(fabric), now_s, age_s;
	const struct path_book_entry *past;
	struct path_learnt learnt;

	if (probed_path->memory == NULL || probed_path->begun)
		return;
	probed_path->begun = true;
	past = path_book_find(
		&probing->path_baselines, probed_path->key.peer,
		fabric->nics[probed_path->key.device].config.name, probed_path->key.peer_device
	);
	if (past == NULL)
		return;
	now_s = unix_time_s(probing, now_ns);
	age_s = now_s > past->learnt_s ? now_s - past->learnt_s : 0;
	learnt = (struct path_learnt){
		.baseline_ns = past->baseline_ns,
		.baseline_mad_ns = past->baseline_mad_ns,
		.windows = past->windows,
		.age_ns = age_s <= BASELINE_KEEP_S ? age_s * RAS_NS_PER_SEC : RAS_NEVER,
	};
	if (past->responder == observations_responder(probed_path->responder) &&
	    past->mtu == probed_path->mtu && past->speed_mbps == probed_path->speed_mbps &&
	    path_memory_restore(probed_path->memory, now_ns, &learnt))
		probing->counters.baselines_taken++;
	else
		probing->counters.baselines_outdated++;
}

void path_baselines_store(struct probed_path *probed_path) {
	struct probing *probing = probed_path->probing;
	const struct fabric *fabric = probing->fabric;
	uint64_t now_ns = fabric_clock_ns(fabric), now_s = unix_time_s(probing, now_ns);
	struct path_learnt learnt;
	struct path_book_entry past;

	// If probing is disabled, the baselines are to be forgotten.
	if (!fabric->config.probe.on || probed_path->memory == NULL || !probed_path->known ||
	    !path_memory_get_learnt(probed_path->memory, now_ns, &learnt))
		return;
	past = (struct path_book_entry){
		.peer = probed_path->key.peer,
		.responder = observations_responder(probed_path->responder),
		.mtu = probed_path->mtu,
		.speed_mbps = probed_path->speed_mbps,
		.baseline_ns = learnt.baseline_ns,
		.baseline_mad_ns = learnt.baseline_mad_ns,
		.windows = learnt.windows,
	};
	if (now_s > learnt.age_ns / RAS_NS_PER_SEC)
		past.learnt_s = now_s - learnt.age_ns / RAS_NS_PER_SEC;
	snprintf(
		past.device, sizeof(past.device), "%s",
		fabric->nics[probed_path->key.device].config.name
	);
	snprintf(past.peer_device, sizeof(past.peer_device), "%s", probed_path->key.peer_device);
	(void)path_book_put(&probing->path_baselines, &past); // fails for an unusable name
}

void path_baselines_save(struct probing *probing, uint64_t now_ns) {
	const struct fabric *fabric = probing->fabric;
	uint64_t now_s = unix_time_s(probing, now_ns);
	char *text;

	probing->path_baselines_save_ns = now_ns + PATH_BASELINES_SAVE_NS;
	for (uint32_t n = 0; n < probing->probed_paths_used; n++) {
		if (probing->probed_paths[n].stage != PROBED_PATH_FREE)
			path_baselines_store(&probing->probed_paths[n]);
	}
	path_book_expire(
		&probing->path_baselines, now_s > BASELINE_KEEP_S ? now_s - BASELINE_KEEP_S : 0
	);
	if (fabric->config.state == NULL)
		return;
	text = malloc(PATH_BOOK_BYTES);
	if (text == NULL)
		return; // the next save may find memory
	path_book_format(&probing->path_baselines, ras_self_id(overlay_ras(fabric->overlay)), text);
	state_save_text(fabric->config.state, STATE_PATHS, text);
}

void path_baselines_save_due(struct probing *probing, uint64_t now_ns) {
	if (now_ns >= probing->path_baselines_save_ns)
		path_baselines_save(probing, now_ns);
}

void path_baselines_forget(struct probing *probing, uint64_t now_ns) {
	probing->path_baselines.count = 0;
	path_baselines_save(probing, now_ns);
}
