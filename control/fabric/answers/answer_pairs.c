// SPDX-License-Identifier: BSD-3-Clause
// PAIRS: the RDMA pairs of this node, those that are not ready first.
#include "client/answers.h"
#include "client/listing.h"
#include "client/names.h"
#include "client/peer_list.h"
#include "client/server.h"
#include "fabric/answers/congestion.h"
#include "fabric/answers/gpus.h"

#include <lib/show.h>
#include <records/pairs.h>

#include <inttypes.h>
#include <stdlib.h>

#define PAIRS_SHOWN_MAX 4096
#define MEDIAN 500000
#define P99 990000

struct pairs {
	struct listing listing;
	struct fabric_pair_view rows[];
};

// Order: not ready first, then by peer and device.
static int pairs_compare(const void *left, const void *right) {
	const struct pairing_view *a = &((const struct fabric_pair_view *)left)->pairing;
	const struct pairing_view *b = &((const struct fabric_pair_view *)right)->pairing;
	bool ready_a = a->state == PAIRING_READY, ready_b = b->state == PAIRING_READY;

	if (ready_a != ready_b)
		return ready_a ? 1 : -1;
	if (a->key.peer != b->key.peer)
		return a->key.peer < b->key.peer ? -1 : 1;
	return (a->key.device > b->key.device) - (a->key.device < b->key.device);
}

// Return the mean rate since the pair became ready; 0 in the first second.
static uint64_t
pair_byte_rate(struct session *session, const struct pairing_view *pairing, uint64_t bytes) {
	uint64_t age_ns = time_age_ns(session, pairing->since_ns);

	return pairing->state == PAIRING_READY && age_ns >= RAS_NS_PER_SEC
		       ? (uint64_t)((double)bytes * 1e9 / (double)age_ns)
		       : 0;
}

static json_t *times_json(const struct fabric_pair_view *row) {
	struct histogram_summary summary;

	if (!row->timed || row->counters.ops[OP_OK] == 0)
		return json_null();
	histogram_log2_summarize(&row->times, &summary);
	return json_pack(
		"{s:I,s:I,s:I,s:I,s:I}", "count", (json_int_t)summary.count, "min_ns",
		(json_int_t)summary.min, "p50_ns",
		(json_int_t)histogram_log2_percentile(&row->times, MEDIAN), "p99_ns",
		(json_int_t)histogram_log2_percentile(&row->times, P99), "max_ns",
		(json_int_t)summary.max
	);
}

static json_t *row_json(struct session *session, void *work, uint32_t n) {
	const struct fabric_pair_view *view = &((struct pairs *)work)->rows[n];
	const struct pairing_view *pairing = &view->pairing;
	const struct pair_counters *counters = &view->counters;
	const struct pairing_failure *failure = &pairing->failure;
	char name[NAMES_TEXT_BYTES], theirs[DEVICE_NAME_MAX + 1], since[SHOW_BYTES];
	char text[PAIRING_TEXT_MAX + 1];
	struct pair_row row = {
		.node = name,
		.device = view->device,
		.peer_device = theirs,
		.state = pairing_state_name(pairing->state),
		.since = time_text(session, pairing->since_ns, since),
		.for_ns = time_age_ns(session, pairing->since_ns),
		.wanted = pairing->wanted,
		.guest = pairing->guest,
		.stuck = pairing->stuck,
		.generation = pairing->generation,
		.tries = pairing->tries,
		.failure = json_null(),
		.ops = counters->ops[OP_OK],
		.sent_bytes = counters->bytes_out,
		.received_bytes = counters->bytes_in,
		.sent_bytes_per_s = pair_byte_rate(session, pairing, counters->bytes_out),
		.received_bytes_per_s = pair_byte_rate(session, pairing, counters->bytes_in),
		.errors = pairing->broken,
		.retransmits = RECORD_UNKNOWN,
		.times = times_json(view),
		.port_congestion = rail_congestion_name(session, view->device),
	};

	for (uint32_t outcome = 0; outcome < OP_OUTCOME_COUNT; outcome++)
		row.unsuccessful += outcome != OP_OK ? counters->ops[outcome] : 0;
	if (failure->reason != PAIRING_REASON_NONE) {
		names_sanitize_text(failure->text, strlen(failure->text), text, sizeof(text));
		row.failure = json_pack(
			"{s:s,s:b,s:s}", "reason", pairing_reason_name(failure->reason), "by_peer",
			failure->by_peer, "text", text
		);
	}
	names_format_id(session_ras(session), pairing->key.peer, name);
	names_sanitize_text(
		pairing->key.peer_device, strlen(pairing->key.peer_device), theirs, sizeof(theirs)
	);
	return record_to_json(&pair_record, &row);
}

static json_t *pairs_facts(struct session *session, void *work) {
	const struct client_server *server = session->server;
	uint32_t count =
		server->fabric != NULL ? server->fabric_calls->device_count(server->fabric) : 0;
	json_t *object = json_pack("{s:i}", "devices", (int)count);

	(void)work;
	gpus_add_devices(session, object);
	return object;
}

static const struct listing_ops ops = {
	.key = "pairs",
	.facts = pairs_facts,
	.row_json = row_json,
};

void answer_pairs(struct session *session, const char *rest) {
	const struct client_server *server = session->server;
	uint32_t count = 0, cursor = 0;
	struct fabric_pair_view view;
	struct pairs *pairs;

	(void)rest;
	while (server->fabric != NULL && count < PAIRS_SHOWN_MAX &&
	       server->fabric_calls->pair_next(server->fabric, &cursor, &view))
		count++;
	pairs = calloc(1, sizeof(*pairs) + count * sizeof(pairs->rows[0]));
	if (!session_begin(session, listing_step, free, pairs))
		return;
	pairs->listing.ops = &ops;
	cursor = 0;
	while (pairs->listing.count < count &&
	       server->fabric_calls->pair_next(
		       server->fabric, &cursor, &pairs->rows[pairs->listing.count]
	       ))
		pairs->listing.count++;
	qsort(pairs->rows, pairs->listing.count, sizeof(pairs->rows[0]), pairs_compare);
}
