// SPDX-License-Identifier: BSD-3-Clause
// What was learnt of paths, kept when their trails go: for neighbours that come back, and in the
// state directory for the next start. Written by its thread; here only text is made, each few
// minutes.
#include "fabric/probing.h"

#include <control/state.h>
#include <lib/log.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define KEEP_S (PATH_LEARNT_MAX_NS / RAS_NS_PER_SEC)

// A clock of before 1970 tells no ages.
static uint64_t unix_s(const struct probing *probing, uint64_t now_ns) {
	int64_t realtime_ns = overlay_realtime_ns(probing->fabric->overlay, now_ns);

	return realtime_ns > 0 ? (uint64_t)realtime_ns / RAS_NS_PER_SEC : 0;
}

void pasts_read(struct probing *probing) {
	const struct fabric *fabric = probing->fabric;
	const char *reason = NULL;
	char *text = NULL;
	int err;

	if (fabric->config.state == NULL)
		return;
	err = state_take(fabric->config.state, STATE_PATHS, &text);
	if (err == -ENOENT)
		return;
	if (err == 0)
		err = path_book_parse(
			&probing->pasts, text, ras_self_id(overlay_ras(fabric->overlay)), &reason
		);
	free(text);
	if (err == 0)
		return;
	probing->counters.path_files_unreadable++;
	log_event(
		LOG_LEVEL_WARN, "paths_unreadable", log_errno("error", err),
		log_str("reason", reason != NULL ? reason : ""),
		log_str("effect", "what is usual on paths is learnt anew")
	);
}

// The clock may have been set back meanwhile: then it is taken for new, and grows old from now on.
static bool trail_begin(const struct trail *trail, const struct path_past *past, uint64_t now_ns) {
	uint64_t now_s = unix_s(trail->probing, now_ns);
	uint64_t age_s = now_s > past->learnt_s ? now_s - past->learnt_s : 0;
	const struct path_learnt learnt = {
		.baseline_ns = past->baseline_ns,
		.baseline_mad_ns = past->baseline_mad_ns,
		.windows = past->windows,
		.age_ns = age_s <= KEEP_S ? age_s * RAS_NS_PER_SEC : RAS_NEVER,
	};

	return past->responder == sights_responder(trail->responder) && past->mtu == trail->mtu &&
	       past->speed_mbps == trail->speed_mbps &&
	       path_memory_begin(trail->memory, now_ns, &learnt);
}

void pasts_take(struct trail *trail) {
	struct probing *probing = trail->probing;
	const struct fabric *fabric = probing->fabric;
	const struct path_past *past;

	if (trail->memory == NULL || trail->begun)
		return;
	trail->begun = true;
	past = path_book_find(
		&probing->pasts, trail->key.peer, fabric->nics[trail->key.device].config.name,
		trail->key.peer_device
	);
	if (past == NULL)
		return;
	if (trail_begin(trail, past, loop_clock_ns(fabric->loop)))
		probing->counters.pasts_taken++;
	else
		probing->counters.pasts_outdated++;
}

static void trail_note(struct trail *trail, uint64_t now_ns) {
	struct probing *probing = trail->probing;
	uint64_t now_s = unix_s(probing, now_ns);
	struct path_learnt learnt;
	struct path_past past;

	if (trail->memory == NULL || !trail->known ||
	    !path_memory_learnt(trail->memory, now_ns, &learnt))
		return;
	past = (struct path_past){
		.peer = trail->key.peer,
		.responder = sights_responder(trail->responder),
		.mtu = trail->mtu,
		.speed_mbps = trail->speed_mbps,
		.baseline_ns = learnt.baseline_ns,
		.baseline_mad_ns = learnt.baseline_mad_ns,
		.windows = learnt.windows,
	};
	if (now_s > learnt.age_ns / RAS_NS_PER_SEC)
		past.learnt_s = now_s - learnt.age_ns / RAS_NS_PER_SEC;
	snprintf(
		past.device, sizeof(past.device), "%s",
		probing->fabric->nics[trail->key.device].config.name
	);
	snprintf(past.peer_device, sizeof(past.peer_device), "%s", trail->key.peer_device);
	(void)path_book_put(&probing->pasts, &past); // no word: not kept
}

void pasts_note(struct trail *trail) {
	// Switched off, what was learnt is to be forgotten.
	if (trail->probing->fabric->config.probe.on)
		trail_note(trail, loop_clock_ns(trail->probing->fabric->loop));
}

void pasts_save(struct probing *probing, uint64_t now_ns) {
	const struct fabric *fabric = probing->fabric;
	uint64_t now_s = unix_s(probing, now_ns);
	char *text;

	probing->pasts_save_ns = now_ns + PASTS_SAVE_NS;
	for (uint32_t n = 0; n < probing->trails_used; n++) {
		if (probing->trails[n].stage != TRAIL_FREE)
			pasts_note(&probing->trails[n]);
	}
	path_book_drop(&probing->pasts, now_s > KEEP_S ? now_s - KEEP_S : 0);
	if (fabric->config.state == NULL)
		return;
	text = malloc(PATH_BOOK_BYTES);
	if (text == NULL)
		return; // the next time there may be memory
	path_book_format(&probing->pasts, ras_self_id(overlay_ras(fabric->overlay)), text);
	state_keep(fabric->config.state, STATE_PATHS, text);
}

void pasts_look(struct probing *probing, uint64_t now_ns) {
	if (now_ns >= probing->pasts_save_ns)
		pasts_save(probing, now_ns);
}

void pasts_forget(struct probing *probing, uint64_t now_ns) {
	probing->pasts.count = 0;
	pasts_save(probing, now_ns);
}
