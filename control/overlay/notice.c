// SPDX-License-Identifier: BSD-3-Clause
// Notices of the agent itself, which the core delivers to all members.
#include "overlay/inside.h"

#include <lib/must.h>

void overlay_set_notice_consumer(
	struct overlay *overlay, uint32_t kind, overlay_notice_fn *fn, void *ctx
) {
	struct overlay_notice_consumer *free = NULL;

	for (uint32_t n = 0; n < OVERLAY_NOTICE_CONSUMERS; n++) {
		struct overlay_notice_consumer *consumer = &overlay->notices[n];

		if (consumer->fn == NULL && free == NULL)
			free = consumer;
		if (consumer->fn == NULL || consumer->kind != kind)
			continue;
		*consumer = (struct overlay_notice_consumer){kind, fn, ctx};
		return;
	}
	must(free != NULL); // one entry for each kind that the agent has
	*free = (struct overlay_notice_consumer){kind, fn, ctx};
}

int overlay_notice_send(struct overlay *overlay, uint32_t kind, const void *bytes, size_t size) {
	return ras_notice(overlay->ras, overlay_now_ns(overlay), kind, bytes, size);
}
