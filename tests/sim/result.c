// SPDX-License-Identifier: BSD-3-Clause
#include "result.h"

#include <jansson.h>

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define RESULT_TEXT_BYTES 32

enum result_unit {
	UNIT_SECONDS,
	UNIT_COUNT,
	UNIT_PERCENT,
	UNIT_BYTES,
	UNIT_RATE,
	UNIT_MS,
};

struct result_row {
	const char *label; // in the table; NULL: only in JSON
	const char *key;
	size_t offset;
	enum result_unit unit;
};

#define ROW(label, member, unit) \
	{ label, #member, offsetof(struct result, member), unit }
#define ROW_AS(label, key, member, unit) \
	{ label, key, offsetof(struct result, member), unit }

static const struct result_row result_rows[] = {
	ROW("one view after the last start", joined_s, UNIT_SECONDS),
	ROW("death seen by the first", first_dead_s, UNIT_SECONDS),
	ROW("death seen by the last", all_dead_s, UNIT_SECONDS),
	ROW("death seen, p50", dead_p50_s, UNIT_SECONDS),
	ROW("death seen, p99", dead_p99_s, UNIT_SECONDS),
	ROW("return seen by the last", rejoined_s, UNIT_SECONDS),
	ROW("one view after the last fault", converged_s, UNIT_SECONDS),
	ROW("false suspicions", false_suspect, UNIT_COUNT),
	ROW("false deaths", false_dead, UNIT_COUNT),
	ROW("told to be dead, though alive", declared_dead, UNIT_COUNT),
	ROW("brakes", brakes_on, UNIT_COUNT),
	ROW("own pauses noticed", own_pauses, UNIT_COUNT),
	ROW("name conflicts", conflicts, UNIT_COUNT),
	ROW("joins refused", refused_joins, UNIT_COUNT),
	ROW("flood hops, most", flood_hops_max, UNIT_COUNT),
	ROW("links changed by a join", links_changed_per_join, UNIT_RATE),
	ROW_AS("bytes a node and second, mean", "bytes_per_node_s_mean", bytes_mean, UNIT_RATE),
	ROW_AS("bytes a node and second, p99", "bytes_per_node_s_p99", bytes_p99, UNIT_RATE),
	ROW_AS("messages a node and second, mean",
	       "messages_per_node_s_mean",
	       frames_mean,
	       UNIT_RATE),
	ROW_AS("messages a node and second, p99", "messages_per_node_s_p99", frames_p99, UNIT_RATE),
	ROW("memory of the largest instance", instance_bytes, UNIT_BYTES),
	ROW("memory of the simulation", world_bytes, UNIT_BYTES),
	ROW("relay: delivered between the living", relay_delivered_pct, UNIT_PERCENT),
	ROW("relay: refused for the dead", relay_nak_pct, UNIT_PERCENT),
	ROW("relay: delivered", relay_delivered, UNIT_COUNT),
	ROW("relay: refused", relay_refused, UNIT_COUNT),
	ROW("relay: expired", relay_expired, UNIT_COUNT),
	ROW("relay: hops, p99", relay_hops_p99, UNIT_COUNT),
	ROW("relay: round trip, p99", relay_ms_p99, UNIT_MS),
	ROW("transfers: done between the living", transfer_done_pct, UNIT_PERCENT),
	ROW("transfers: done", transfer_done, UNIT_COUNT),
	ROW("transfers: ended otherwise", transfer_ended, UNIT_COUNT),
	ROW("transfer, p99", transfer_ms_p99, UNIT_MS),
	ROW("collective, p50", collect_ms_p50, UNIT_MS),
	ROW("collective, longest", collect_ms_max, UNIT_MS),
	ROW("collective: hops, most", collect_hops_max, UNIT_COUNT),
	ROW("collectives with somebody missing", collect_partial, UNIT_COUNT),
	ROW("notice: heard by", notice_heard_pct, UNIT_PERCENT),
	ROW("notice, p99", notice_ms_p99, UNIT_MS),
	ROW("notice, last", notice_ms_max, UNIT_MS),
	ROW("jobs: looks", jobs_looks, UNIT_COUNT),
	ROW("jobs: named as they should be", jobs_named_pct, UNIT_PERCENT),
	ROW("jobs: ranks of the largest communicator", jobs_ranks, UNIT_COUNT),
	ROW("jobs: all ranks collected, longest", jobs_ms_max, UNIT_MS),
	ROW("jobs: bytes a rank at the asker", jobs_rank_bytes, UNIT_RATE),
	ROW("jobs: memory of merge and judgement", jobs_bytes, UNIT_BYTES),
	ROW("jobs: merge and judgement, longest", jobs_judge_s, UNIT_SECONDS),
	ROW("messages delivered", frames, UNIT_COUNT),
	ROW("virtual time", virtual_s, UNIT_SECONDS),
	ROW("wall time", wall_s, UNIT_SECONDS),
	ROW("time on the processor", cpu_s, UNIT_SECONDS),
};

#define RESULT_ROWS (sizeof(result_rows) / sizeof(result_rows[0]))

static double result_value(const struct result *result, const struct result_row *row) {
	double value;

	memcpy(&value, (const char *)result + row->offset, sizeof(value));
	return value;
}

void result_init(struct result *result) {
	double none = NAN;

	memset(result, 0, sizeof(*result));
	for (size_t n = 0; n < RESULT_ROWS; n++)
		memcpy((char *)result + result_rows[n].offset, &none, sizeof(none));
}

static void result_format(double value, enum result_unit unit, char text[RESULT_TEXT_BYTES]) {
	switch (unit) {
	case UNIT_SECONDS:
		snprintf(text, RESULT_TEXT_BYTES, "%.3f s", value);
		break;
	case UNIT_PERCENT:
		snprintf(text, RESULT_TEXT_BYTES, "%.2f %%", value);
		break;
	case UNIT_BYTES:
		snprintf(text, RESULT_TEXT_BYTES, "%.1f KiB", value / 1024);
		break;
	case UNIT_RATE:
		snprintf(text, RESULT_TEXT_BYTES, "%.1f", value);
		break;
	case UNIT_MS:
		snprintf(text, RESULT_TEXT_BYTES, "%.1f ms", value);
		break;
	default:
		snprintf(text, RESULT_TEXT_BYTES, "%.0f", value);
		break;
	}
}

void result_print(const struct result *result, FILE *to) {
	char text[RESULT_TEXT_BYTES];

	fprintf(to, "%s: %u nodes on %u hosts, profile %s, seed %" PRIu64 "\n", result->scenario,
		result->nodes, result->hosts, result->profile, result->seed);
	for (size_t n = 0; n < RESULT_ROWS; n++) {
		double value = result_value(result, &result_rows[n]);

		if (isnan(value))
			continue;
		result_format(value, result_rows[n].unit, text);
		fprintf(to, "  %-40s %16s\n", result_rows[n].label, text);
	}
	fprintf(to, "  %-40s %016" PRIx64 "\n", "digest", result->digest);
	if (result->matrix.present)
		matrix_print(&result->matrix, to);
	if (result->broken)
		fprintf(to, "  BROKEN at %.6f s: %s\n", result->broken_s, result->broken_text);
}

int result_print_json(const struct result *result, FILE *to) {
	char digest[RESULT_TEXT_BYTES];
	json_t *object;
	char *text;

	snprintf(digest, sizeof(digest), "%016" PRIx64, result->digest);
	object = json_pack(
		"{s:s, s:i, s:i, s:s, s:I, s:s}", "scenario", result->scenario, "nodes",
		(int)result->nodes, "hosts", (int)result->hosts, "profile", result->profile, "seed",
		(json_int_t)result->seed, "digest", digest
	);
	for (size_t n = 0; n < RESULT_ROWS; n++) {
		double value = result_value(result, &result_rows[n]);
		bool whole = result_rows[n].unit == UNIT_COUNT || result_rows[n].unit == UNIT_BYTES;
		json_t *made = isnan(value) ? json_null()
			       : whole	    ? json_integer((json_int_t)value)
					    : json_real(value);

		json_object_set_new(object, result_rows[n].key, made);
	}
	if (result->matrix.present)
		matrix_json(&result->matrix, object);
	json_object_set_new(
		object, "broken", result->broken ? json_string(result->broken_text) : json_null()
	);
	text = json_dumps(object, JSON_COMPACT | JSON_REAL_PRECISION(9));
	json_decref(object);
	if (text == NULL)
		return -ENOMEM;
	fprintf(to, "%s\n", text);
	free(text);
	return 0;
}
