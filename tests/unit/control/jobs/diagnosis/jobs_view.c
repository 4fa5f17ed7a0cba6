// SPDX-License-Identifier: BSD-3-Clause
// Looks at a simulated job.
#include "control/jobs/diagnosis/jobs_view.h"

#include <lib/wire.h>
#include <support/cmocka.h>
#include <support/heap.h>

#include <jobs/share.h>
#include <stdio.h>
#include <stdlib.h>

#define REPORTS_MAX 256

const struct ras_memory jobs_view_memory = HEAP_MEMORY(NULL);

static void add_node(struct jobs_view *view, const struct job_model *model, uint32_t node) {
	static struct jobs_rank_report reports[REPORTS_MAX];
	const struct jobs_rank_report *rows[REPORTS_MAX];
	static struct jobs_row row;
	static uint8_t bytes[RAS_COLLECT_PART_BYTES_MAX];
	struct ras_collected_part part = {.node = VIEW_FIRST_NODE + node, .payload = bytes};
	uint32_t count = job_model_reports(model, node, reports, REPORTS_MAX);
	struct wire_writer writer;

	for (uint32_t n = 0; n < count; n++)
		rows[n] = &reports[n];
	wire_writer_init(&writer, bytes, sizeof(bytes));
	for (uint32_t n = 0, length; n < count; n += length) {
		length = jobs_row_length(rows + n, count - n);
		jobs_row_make(rows + n, length, &row);
		assert_int_equal(ras_comm_put(&writer, &row.comm), 0);
	}
	assert_int_equal(wire_writer_finish(&writer, &part.size), 0);
	view->bytes += part.size;
	assert_int_equal(ras_comms_add(view->merged, &part), 0);
}

void jobs_view_take(
	struct jobs_view *view,
	const struct job_model *model,
	uint32_t nodes,
	const struct jobs_limits *limits,
	struct jobs_wait_history *book
) {
	*view = (struct jobs_view){0};
	assert_int_equal(ras_comms_create(&jobs_view_memory, &view->merged), 0);
	for (uint32_t node = 0; node < nodes; node++)
		add_node(view, model, node);
	view->count = ras_comms_settle(view->merged);
	view->comms = calloc(view->count + 1, sizeof(*view->comms));
	view->findings = calloc(view->count + 1, sizeof(*view->findings));
	for (uint32_t n = 0; n < view->count; n++) {
		ras_comms_at(view->merged, n, &view->comms[n]);
		if (book != NULL)
			jobs_wait_history_add(book, &view->comms[n]);
	}
	view->look = (struct jobs_snapshot){
		.limits = limits,
		.comms = view->comms,
		.comm_count = view->count,
		.pairs = &view->pair,
		.pair_count = job_model_pair(model, VIEW_FIRST_NODE, &view->pair),
		.book = book,
		.memory = &jobs_view_memory,
	};
	assert_int_equal(jobs_judge(&view->look, view->findings), 0);
}

void jobs_view_drop(struct jobs_view *view) {
	ras_comms_destroy(view->merged);
	free(view->comms);
	free(view->findings);
}

static void node_name(void *ctx, uint64_t node, char *text, uint32_t size) {
	(void)ctx;
	snprintf(text, size, "n%u", (unsigned int)(node - VIEW_FIRST_NODE));
}

void jobs_view_say(
	const struct jobs_view *view, uint32_t n, char text[static JOBS_SENTENCE_BYTES]
) {
	const struct jobs_name_resolver words = {.node_name = node_name};

	jobs_describe_finding(&view->look, n, &view->findings[n], &words, text);
}
