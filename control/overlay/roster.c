// SPDX-License-Identifier: BSD-3-Clause
// Nodes that are expected, by names that a person wrote down. A node that never joined is not in
// the core's table, and only shows here.
#include "overlay/inside.h"

#include <lib/config.h>
#include <lib/hostlist.h>

#include <errno.h>
#include <string.h>

int overlay_set_roster(struct overlay *overlay, const char *names) {
	struct hostlist *roster = NULL;
	int err = 0;

	if (names[0] != '\0')
		err = hostlist_expand(
			names, strlen(names), CONFIG_HOSTLIST_COUNT_MAX, NULL, &roster
		);
	if (err != 0)
		return err;
	hostlist_destroy(overlay->roster);
	overlay->roster = roster;
	overlay_mistakes_schedule(overlay);
	return 0;
}

uint32_t overlay_roster_count(const struct overlay *overlay) {
	return overlay->roster != NULL ? hostlist_count(overlay->roster) : 0;
}

const char *overlay_missing_next(const struct overlay *overlay, uint32_t *cursor) {
	while (*cursor < overlay_roster_count(overlay)) {
		const char *name = hostlist_name(overlay->roster, (*cursor)++);
		struct ras_peer peer;

		if (ras_peer_find(overlay->ras, ras_id(name, strlen(name)), &peer) != 0)
			return name;
	}
	return NULL;
}

bool overlay_roster_has_node(const struct overlay *overlay, const char *name, size_t length) {
	return overlay->roster != NULL && hostlist_contains(overlay->roster, name, length);
}

void overlay_roster_fini(struct overlay *overlay) {
	overlay->roster = hostlist_destroy(overlay->roster);
}
