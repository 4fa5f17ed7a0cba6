// SPDX-License-Identifier: BSD-3-Clause
// Collects the nodes of the roster that are in no table.
#include "client/absent.h"

#include <control/overlay.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void absent_fini(struct absent *absent) {
	for (uint32_t n = 0; n < absent->count; n++)
		free(absent->names[n]);
	free(absent->names);
	*absent = (struct absent){.names = NULL};
}

static int name_add(struct absent *absent, const char *name) {
	char *copy = strdup(name);

	if (copy == NULL)
		return -ENOMEM;
	absent->names[absent->count++] = copy;
	return 0;
}

int absent_collect_all(const struct overlay *overlay, struct absent *ret_absent) {
	struct absent absent = {
		.names = calloc((size_t)overlay_roster_count(overlay) + 1, sizeof(*absent.names)),
	};
	int err = absent.names != NULL ? 0 : -ENOMEM;
	uint32_t cursor = 0;
	const char *name;

	while (err == 0 && (name = overlay_missing_next(overlay, &cursor)) != NULL)
		err = name_add(&absent, name);
	if (err == 0)
		*ret_absent = absent;
	else
		absent_fini(&absent);
	return err;
}

int absent_make_single(const char *name, struct absent *ret_absent) {
	struct absent absent = {.names = calloc(1, sizeof(*absent.names))};

	if (absent.names == NULL)
		return -ENOMEM;
	if (name_add(&absent, name) != 0) {
		absent_fini(&absent);
		return -ENOMEM;
	}
	*ret_absent = absent;
	return 0;
}

bool absent_has_node(const struct overlay *overlay, const char *name) {
	size_t length = strlen(name);
	struct ras_peer peer;

	return overlay_roster_has_node(overlay, name, length) &&
	       ras_peer_find(overlay_ras(overlay), ras_id(name, length), &peer) != 0;
}
