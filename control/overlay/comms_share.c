// SPDX-License-Identifier: BSD-3-Clause
// Ranks of this node as rows of COMMS. The first part collects all reports, and later parts
// continue.
#include <control/comms_share.h>
#include <control/overlay.h>

#include <errno.h>
#include <jobs/share.h>
#include <stdlib.h>

#define REPORTS_MAX 65536

struct comms_share {
	struct overlay *overlay;
	struct comms_source source;
	struct jobs_rank_report *reports;
	const struct jobs_rank_report **order;
	uint32_t count, next;
	struct jobs_row row;
};

static void share_drop_reports(struct comms_share *share) {
	free(share->reports);
	free(share->order);
	share->reports = NULL;
	share->order = NULL;
	share->count = 0;
	share->next = 0;
}

static int compare_reports(const void *a, const void *b) {
	const struct jobs_rank_report *const *left = a;
	const struct jobs_rank_report *const *right = b;

	return jobs_report_compare(*left, *right);
}

// Without memory no ranks are reported: other nodes see that no agent holds these ranks.
static void share_take_reports(struct comms_share *share) {
	uint32_t count = share->source.count(share->source.ctx);

	share_drop_reports(share);
	if (count > REPORTS_MAX)
		count = REPORTS_MAX;
	share->reports = calloc((size_t)count + 1, sizeof(*share->reports));
	share->order = calloc((size_t)count + 1, sizeof(struct jobs_rank_report *));
	if (share->reports == NULL || share->order == NULL) {
		share_drop_reports(share);
		return;
	}
	for (uint32_t n = 0; n < count; n++) {
		struct jobs_rank_report *report = &share->reports[share->count];

		if (share->source.at(share->source.ctx, n, report) != 0 || report->size == 0 ||
		    report->size > RAS_COMM_SIZE_MAX || report->rank >= report->size)
			continue;
		// An ended rank is not sampled any more, but the time since its exit must go on.
		if (report->exited_ns != 0)
			report->sampled_ns = overlay_now_ns(share->overlay);
		share->order[share->count++] = report;
	}
	qsort(share->order, share->count, sizeof(struct jobs_rank_report *), compare_reports);
}

static bool
contribute_ranks(void *ctx, const struct ras_contribution *wanted, struct wire_writer *writer) {
	struct comms_share *share = ctx;
	bool any = false;

	if (wanted->part == 0)
		share_take_reports(share);
	while (share->next < share->count) {
		uint32_t length =
			jobs_row_length(share->order + share->next, share->count - share->next);

		jobs_row_make(share->order + share->next, length, &share->row);
		if (ras_comm_put(writer, &share->row.comm) != 0)
			return any; // an empty part has room for any row
		any = true;
		share->next += length;
	}
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
