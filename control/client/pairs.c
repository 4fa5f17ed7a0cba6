// SPDX-License-Identifier: BSD-3-Clause
// PAIRS: the RDMA pairs of this node, those that are not ready first.
#include "client/answers.h"
#include "client/congestion.h"
#include "client/gpus.h"
#include "client/listing.h"
#include "client/names.h"
#include "client/peer_list.h"
#include "client/server.h"

#include <lib/show.h>

#include <inttypes.h>
#include <stdlib.h>

#define PAIRS_SHOWN_MAX 4096
#define MEDIAN 500000
#define P99 990000

struct pairs {
	struct listing listing;
	bool marked; // a row said that there is congestion
	struct fabric_pair_view rows[];
};

#define SHOW_END_BYTES ((size_t)2 * SHOW_BYTES)

static uint64_t completions_failed(const struct pair_counters *counters) {
	uint64_t count = 0;

	for (uint32_t n = 0; n < OP_OUTCOME_COUNT; n++)
		count += n != OP_OK ? counters->ops[n] : 0;
	return count;
}

// Not ready first, then by peer and device.
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

static void say_head(struct session *session, void *work) {
	const struct pairs *pairs = work;
	uint32_t ready = 0;

	if (session->server->fabric == NULL) {
		text_print(&session->out, "0 pairs, 0 ready\n%s", no_device_words);
		return;
	}
	for (uint32_t n = 0; n < pairs->listing.count; n++)
		ready += pairs->rows[n].pairing.state == PAIRING_READY;
	text_print(
		&session->out,
		"%u pairs, %u ready\n\n%-12s %-14s %-8s %-11s %-7s %-7s %7s %6s %s\n",
		pairs->listing.count, ready, "NODE", "DEVICES", "STATE", "FOR", "P50", "P99", "OPS",
		"FAILED", "OUT, IN /S"
	);
}

// Over the time that it has been ready; 0 for the first moment.
static uint64_t
rate_of(struct session *session, const struct pairing_view *pairing, uint64_t bytes) {
	uint64_t age_ns = time_age_ns(session, pairing->since_ns);

	return pairing->state == PAIRING_READY && age_ns >= RAS_NS_PER_SEC
		       ? (uint64_t)((double)bytes * 1e9 / (double)age_ns)
		       : 0;
}

static void show_end(
	struct session *session,
	const struct fabric_pair_view *row,
	char text[static SHOW_END_BYTES]
) {
	char out[SHOW_BYTES], in[SHOW_BYTES];

	if (row->pairing.state != PAIRING_READY) {
		snprintf(
			text, SHOW_END_BYTES, "%s", pairing_reason_name(row->pairing.failure.reason)
		);
		return;
	}
	show_bytes(rate_of(session, &row->pairing, row->counters.bytes_out), out);
	show_bytes(rate_of(session, &row->pairing, row->counters.bytes_in), in);
	snprintf(text, SHOW_END_BYTES, "%.20s, %.20s", out, in);
}

static void say_row(struct session *session, void *work, uint32_t n) {
	struct pairs *pairs = work;
	const struct fabric_pair_view *row = &pairs->rows[n];
	const struct pairing_view *pairing = &row->pairing;
	const char *mark = "";
	char state[SHOW_BYTES], name[NAMES_TEXT_BYTES], node[SHOW_BYTES],
		both[SHOW_BYTES + DEVICE_NAME_MAX];
	char devices[SHOW_BYTES], age[SHOW_BYTES], p50[SHOW_BYTES] = "-", p99[SHOW_BYTES] = "-";
	char theirs[DEVICE_NAME_MAX + 1], end[SHOW_END_BYTES];

	names_id(session_ras(session), pairing->key.peer, name);
	names_text(
		pairing->key.peer_device, strlen(pairing->key.peer_device), theirs, sizeof(theirs)
	);
	snprintf(both, sizeof(both), "%s>%s", row->device, theirs);
	show_duration(time_age_ns(session, pairing->since_ns), age);
	if (row->timed && row->counters.ops[OP_OK] > 0) {
		show_duration(histogram_log2_percentile(&row->times, MEDIAN), p50);
		show_duration(histogram_log2_percentile(&row->times, P99), p99);
	}
	show_end(session, row, end);
	if (pairing->state == PAIRING_READY)
		mark = congestion_mark(session, row->device);
	pairs->marked = pairs->marked || *mark != '\0';
	snprintf(state, sizeof(state), "%s%s", pairing_state_name(pairing->state), mark);
	text_print(
		&session->out, "%-12s %-14s %-8s %-11s %-7s %-7s %7" PRIu64 " %6" PRIu64 " %s\n",
		session_cell(session, name, 12, node), session_cell(session, both, 14, devices),
		state, age, p50, p99, row->counters.ops[OP_OK], completions_failed(&row->counters),
		end
	);
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

static json_t *failure_json(const struct pairing_failure *failure) {
	char text[PAIRING_TEXT_MAX + 1];

	if (failure->reason == PAIRING_REASON_NONE)
		return json_null();
	names_text(failure->text, strlen(failure->text), text, sizeof(text));
	return json_pack(
		"{s:s,s:b,s:s}", "reason", pairing_reason_name(failure->reason), "by_peer",
		failure->by_peer, "text", text
	);
}

static json_t *row_json(struct session *session, void *work, uint32_t n) {
	const struct fabric_pair_view *row = &((struct pairs *)work)->rows[n];
	const struct pairing_view *pairing = &row->pairing;
	char name[NAMES_TEXT_BYTES], theirs[DEVICE_NAME_MAX + 1];

	names_id(session_ras(session), pairing->key.peer, name);
	names_text(
		pairing->key.peer_device, strlen(pairing->key.peer_device), theirs, sizeof(theirs)
	);
	return json_pack(
		"{s:o,s:s,s:s,s:s,s:o,s:b,s:b,s:b,s:I,s:i,s:o,s:I,s:I,s:I,s:I,s:I,s:I,s:i,s:n,s:o,"
		"s:s}",
		"node", peer_name_json(name), "device", row->device, "peer_device", theirs, "state",
		pairing_state_name(pairing->state), "since",
		time_at_json(session, pairing->since_ns), "wanted", pairing->wanted, "guest",
		pairing->guest, "stuck", pairing->stuck, "generation",
		(json_int_t)pairing->generation, "tries", (int)pairing->tries, "failure",
		failure_json(&pairing->failure), "ops", (json_int_t)row->counters.ops[OP_OK],
		"unsuccessful", (json_int_t)completions_failed(&row->counters), "bytes_out",
		(json_int_t)row->counters.bytes_out, "bytes_in", (json_int_t)row->counters.bytes_in,
		"bytes_out_per_s", (json_int_t)rate_of(session, pairing, row->counters.bytes_out),
		"bytes_in_per_s", (json_int_t)rate_of(session, pairing, row->counters.bytes_in),
		"errors", (int)pairing->broken, "retransmits", "times", times_json(row),
		"port_congestion", congestion_word(session, row->device)
	);
}

static json_t *pairs_facts(struct session *session, void *work) {
	json_t *object = json_object();

	(void)work;
	gpus_put_devices(session, object);
	return object;
}

static void say_tail(struct session *session, void *work) {
	if (((const struct pairs *)work)->marked)
		text_print(&session->out, "%s", congestion_legend);
	gpus_say_devices(session);
}

static const struct listing_ops ops = {
	.key = "pairs",
	.facts = pairs_facts,
	.head = say_head,
	.row = say_row,
	.row_json = row_json,
	.tail = say_tail,
};

static uint32_t count_pairs(const struct client_server *server) {
	struct fabric_pair_view view;
	uint32_t cursor = 0, count = 0;

	while (server->fabric != NULL && count < PAIRS_SHOWN_MAX &&
	       server->fabric_calls->pair_next(server->fabric, &cursor, &view))
		count++;
	return count;
}

void answer_pairs(struct session *session, const char *rest) {
	const struct client_server *server = session->server;
	uint32_t count = count_pairs(server), cursor = 0;
	struct pairs *pairs = calloc(1, sizeof(*pairs) + count * sizeof(pairs->rows[0]));

	(void)rest;
	if (!session_begin(session, listing_step, free, pairs))
		return;
	pairs->listing.ops = &ops;
	while (pairs->listing.count < count &&
	       server->fabric_calls->pair_next(
		       server->fabric, &cursor, &pairs->rows[pairs->listing.count]
	       ))
		pairs->listing.count++;
	qsort(pairs->rows, pairs->listing.count, sizeof(pairs->rows[0]), pairs_compare);
}
