// SPDX-License-Identifier: BSD-3-Clause
#include "prober_impl.h"

#include <lib/must.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int prober_create(struct path_table *paths, const struct clock *clock, struct prober **ret_prober) {
	struct prober *prober = aligned_alloc(alignof(struct prober), sizeof(*prober));

	if (prober == NULL)
		return -ENOMEM;
	memset(prober, 0, sizeof(*prober));
	// Of pages that nobody touched: most of them never are.
	prober->agenda.items = calloc(WATCH_AGENDA, sizeof(prober->agenda.items[0]));
	prober->outcomes.items = calloc(WATCH_OUTCOMES, sizeof(prober->outcomes.items[0]));
	if (prober->agenda.items == NULL || prober->outcomes.items == NULL) {
		prober_destroy(prober);
		return -ENOMEM;
	}
	prober->paths = paths;
	prober->clock = clock;
	*ret_prober = prober;
	return 0;
}

struct prober *prober_destroy(struct prober *prober) {
	if (prober == NULL)
		return NULL;
	free(prober->agenda.items);
	free(prober->outcomes.items);
	free(prober);
	return NULL;
}

struct worker_poll prober_poll(struct prober *prober) {
	return (struct worker_poll){.poll = prober_step, .ctx = prober};
}

const char *probe_end_name(enum probe_end end) {
	static const char *const names[] = {
		[PROBE_COMPLETE] = "complete",
		[PROBE_NO_PATH] = "no-path",
		[PROBE_FAILED] = "failed",
	};

	must(end < sizeof(names) / sizeof(names[0]));
	return names[end];
}
