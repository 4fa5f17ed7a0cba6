// SPDX-License-Identifier: BSD-3-Clause
// Ranks of this node as rows of COMMS. The first part selects the reports, and later parts continue
// in the same turn of the loop. The source gives each user a share of the answer.
#include <control/comms_share.h>
#include <control/overlay.h>
#include <lib/wire.h>
#include <ras/ras.h>

#include <errno.h>
#include <jobs/share.h>
#include <stdlib.h>

#define REPORTS_MAX 16384 // about what RAS_COLLECT_PARTS_MAX parts hold

struct comms_share {
	struct overlay *overlay;
	struct comms_source source;
	const struct jobs_rank_report **reports; // NULL: no answer is being made
	uint32_t count, next;
	size_t bytes_left; // of this node's part of RAS_COLLECT_BYTES_MAX
	struct jobs_row row;
};

static void share_drop_reports(struct comms_share *share) {
	free(share->reports);
	share->reports = NULL;
	share->count = 0;
	share->next = 0;
}

// Without memory no ranks are reported: other nodes see that no agent holds these ranks.
static void share_select_reports(struct comms_share *share) {
	struct ras_view view;

	share_drop_reports(share);
	share->reports = calloc(REPORTS_MAX, sizeof(struct jobs_rank_report *));
	if (share->reports != NULL)
		share->count = share->source.select(share->source.ctx, share->reports, REPORTS_MAX);
	share->count = jobs_reports_unique(share->reports, share->count);
	// The agent that asks keeps RAS_COLLECT_BYTES_MAX of all nodes together and drops the rest,
	// so each node has an equal share.
	ras_view(overlay_ras(share->overlay), &view);
	share->bytes_left = RAS_COLLECT_BYTES_MAX / (view.alive > 0 ? view.alive : 1);
}

static bool
contribute_ranks(void *ctx, const struct ras_contribution *wanted, struct wire_writer *writer) {
	struct comms_share *share = ctx;
	bool any = false;
	size_t used;

	if (wanted->part == 0)
		share_select_reports(share);
	while (share->next < share->count) {
		uint32_t length =
			jobs_row_length(share->reports + share->next, share->count - share->next);

		used = wire_writer_used(writer);
		jobs_row_make(share->reports + share->next, length, &share->row);
		if (ras_comm_put(writer, &share->row.comm) != 0)
			return any; // an empty part has room for any row
		used = wire_writer_used(writer) - used;
		any = true;
		share->next += length;
		share->bytes_left -= used < share->bytes_left ? used : share->bytes_left;
		if (share->bytes_left == 0)
			break;
	}
	if (share->next < share->count)
		share->source.cut(share->source.ctx, share->count - share->next);
	share_drop_reports(share);
	return false;
}

int comms_share_create(
	struct overlay *overlay, const struct comms_source *source, struct comms_share **ret_share
) {
	struct comms_share *share = calloc(1, sizeof(*share));

	if (share == NULL)
		return -ENOMEM;
	share->overlay = overlay;
	share->source = *source;
	overlay_contributor(overlay, RAS_COLLECT_COMMS, contribute_ranks, share);
	*ret_share = share;
	return 0;
}

struct comms_share *comms_share_destroy(struct comms_share *share) {
	if (share == NULL)
		return NULL;
	overlay_contributor(share->overlay, RAS_COLLECT_COMMS, NULL, NULL);
	share_drop_reports(share);
	free(share);
	return NULL;
}
