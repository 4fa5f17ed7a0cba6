// SPDX-License-Identifier: BSD-3-Clause
// A worker's prober: made and ended outside the hot path.
#include "probe/prober_impl.h"

#include <lib/must.h>

#include <errno.h>
#include <string.h>

#define AGENDA_BYTES (WATCH_AGENDA * sizeof(struct watch_due))
#define OUTCOMES_BYTES (WATCH_OUTCOMES * sizeof(struct watch_outcome))

int prober_create(
	const struct path_table *paths,
	const struct peer_table *peers,
	const struct clock *clock,
	struct near near,
	struct prober **ret_prober
) {
	struct prober *prober = near_alloc(near, sizeof(*prober));

	if (prober == NULL)
		return -ENOMEM;
	memset(prober, 0, sizeof(*prober));
	prober->near = near;
	// Of pages that nobody touched: most of them never are.
	prober->agenda.items = near_alloc(near, AGENDA_BYTES);
	prober->outcomes.items = near_alloc(near, OUTCOMES_BYTES);
	if (prober->agenda.items == NULL || prober->outcomes.items == NULL) {
		prober_destroy(prober);
		return -ENOMEM;
	}
	prober->paths = paths;
	prober->peers = peers;
	prober->clock = clock;
	*ret_prober = prober;
	return 0;
}

struct prober *prober_destroy(struct prober *prober) {
	if (prober == NULL)
		return NULL;
	near_free(prober->near, prober->agenda.items, AGENDA_BYTES);
	near_free(prober->near, prober->outcomes.items, OUTCOMES_BYTES);
	near_free(prober->near, prober, sizeof(*prober));
	return NULL;
}

struct worker_poll prober_poll(struct prober *prober) {
	return (struct worker_poll){.poll = prober_step, .ctx = prober};
}
