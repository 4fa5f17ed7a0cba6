// SPDX-License-Identifier: BSD-3-Clause
// Finds this agent's links that are quiet now.
#include "verdict/store/health_inside.h"

static bool link_is_quiet(const struct ras_link_info *link) {
	return link->ready && link->quiet_ns >= VERDICT_QUIET_NS;
}

static bool
quiet_links_contain(const struct ras *ras, const struct quiet_links *quiet, uint64_t peer) {
	struct ras_link_info link;

	for (uint32_t n = 0; n < quiet->count && n < HEALTH_QUIET_LINKS; n++) {
		if (quiet->peers[n] == peer)
			return true;
	}
	// Links beyond the list are looked up in the overlay.
	for (uint32_t n = 0; quiet->count > HEALTH_QUIET_LINKS && ras_link_at(ras, n, &link) == 0;
	     n++) {
		if (link.peer == peer)
			return link_is_quiet(&link);
	}
	return false;
}

void health_links(void *ctx, uint64_t peer, struct verdict_links *ret_links) {
	struct health *health = ctx;
	const struct ras *ras = overlay_ras(health->overlay);
	struct quiet_links *quiet = &health->quiet;
	uint64_t now_ns = loop_now_ns(health->loop);
	bool is_outdated = !quiet->known || quiet->at_ns != now_ns;
	struct ras_link_info link;
	struct ras_peer found;

	if (is_outdated)
		quiet->alive = quiet->count = 0;
	for (uint32_t n = 0; is_outdated && ras_link_at(ras, n, &link) == 0; n++) {
		if (!link_is_quiet(&link))
			continue;
		if (quiet->count < HEALTH_QUIET_LINKS)
			quiet->peers[quiet->count] = link.peer;
		quiet->count++;
		if (ras_peer_find(ras, link.peer, &found) == 0 && found.state == RAS_ALIVE)
			quiet->alive++;
	}
	quiet->known = true;
	quiet->at_ns = now_ns;
	*ret_links = (struct verdict_links){
		.quiet = quiet->alive,
		.peer_is_quiet = quiet_links_contain(ras, quiet, peer),
	};
}
