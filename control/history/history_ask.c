// SPDX-License-Identifier: BSD-3-Clause
// Answers questions about the past: reads blocks and the journal on the keeper, and merges records
// into the points of the answer.
#include "history/inside.h"

#include <lib/container.h>
#include <lib/must.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define READ_LIMIT_NS (10 * RAS_NS_PER_SEC)
// Maximum number of bytes that one question reads from a tier, so that a slow disk still meets
// READ_LIMIT_NS.
#define READ_BYTES_MAX (UINT64_C(64) << 20)
// A question about a longer time reads the coarse tier, so that reading stays fast.
#define FINE_RANGE_S (INT64_C(2) * 86400)
#define MEDIAN_PERMILLE 500
#define P99_PERMILLE 990

// A question that a call of the keeper answers, with the bins of each point.
struct ask_job {
	struct disk *disk;
	struct history_question question;
	struct history_answer *answer;
	struct history_bins *bins[HISTORY_SERIES_MAX]; // a bin set for each point
	uint32_t next_series; // a period lists its paths in the order of the period before
	struct history_reader reader;
	int64_t from_s, to_s; // only periods that begin in this range are merged
	int64_t end_s;	      // end of the last merged period
	int err;
};

static bool
series_is_of(const struct history_series *series, const struct history_path_name *name) {
	return series->name.peer == name->peer && strcmp(series->name.device, name->device) == 0 &&
	       strcmp(series->name.peer_device, name->peer_device) == 0;
}

// Return the index of the series of the item's path; the number of series if there is none yet.
static uint32_t series_find(struct ask_job *job, const struct history_item *item) {
	const struct history_answer *answer = job->answer;
	uint32_t n = job->next_series;

	if (n >= answer->series_count || !series_is_of(answer->series[n], item->path)) {
		for (n = 0; n < answer->series_count; n++) {
			if (series_is_of(answer->series[n], item->path))
				break;
		}
	}
	job->next_series = n + 1;
	return n;
}

// Return the bins of the item's path at its point. NULL: no room or no memory.
static struct history_bins *
bins_for(struct ask_job *job, const struct history_item *item, uint32_t point) {
	struct history_answer *answer = job->answer;
	uint32_t place = series_find(job, item);

	if (place == HISTORY_SERIES_MAX) {
		answer->is_cut = true;
		return NULL;
	}
	if (place == answer->series_count) {
		answer->series[place] = calloc(1, sizeof(struct history_series));
		job->bins[place] = calloc(answer->points, sizeof(struct history_bins));
		answer->series_count++; // also without memory, so that both are freed
		if (answer->series[place] == NULL || job->bins[place] == NULL) {
			job->err = -ENOMEM;
			return NULL;
		}
		answer->series[place]->name = *item->path;
	}
	return &job->bins[place][point];
}

static void point_merge_node(struct ask_job *job, const struct history_item *item, uint32_t point) {
	struct history_node_point *node = &job->answer->node[point];

	node->is_cut |= item->node.id == HISTORY_NODES_CUT;
	if (item->node.id != job->question.peer || item->node.verdict < node->verdict)
		return;
	node->verdict = item->node.verdict;
	node->state = item->node.state;
}

// Mark each point that a period overlaps as covered.
static void points_cover_period(struct ask_job *job, const struct history_item *item) {
	struct history_answer *answer = job->answer;
	int64_t end_s = item->begin_s + item->seconds;

	for (uint32_t n = 0; n < answer->points; n++) {
		int64_t begin_s = answer->since_s + (int64_t)n * answer->step_s;

		if (item->begin_s < begin_s + answer->step_s && end_s > begin_s)
			answer->node[n].is_covered = true;
	}
	if (end_s > job->end_s)
		job->end_s = end_s;
}

static void block_merge(void *ctx, const uint8_t *bytes, size_t used) {
	struct ask_job *job = ctx;
	struct history_answer *answer = job->answer;
	struct history_item item;

	history_reader_init(&job->reader, bytes, used);
	while (job->err == 0 && history_reader_next(&job->reader, &item)) {
		int64_t point = (item.begin_s - answer->since_s) / answer->step_s;
		struct history_bins *bins;

		if (item.begin_s < job->from_s || item.begin_s > job->to_s ||
		    item.begin_s < answer->since_s || point >= answer->points)
			continue;
		if (item.kind == HISTORY_ITEM_PERIOD)
			points_cover_period(job, &item);
		else if (item.kind == HISTORY_ITEM_NODE)
			point_merge_node(job, &item, (uint32_t)point);
		else if (job->question.all_paths || item.path->peer == job->question.peer) {
			bins = bins_for(job, &item, (uint32_t)point);
			if (bins != NULL)
				history_bins_get(&item.bins, bins);
			wire_reader_fail(&job->reader.items, wire_reader_error(&item.bins));
		}
	}
	answer->damaged += !wire_reader_ok(&job->reader.items);
}

static int read_tier(struct ask_job *job, enum history_tier tier, int64_t from_s, int64_t to_s) {
	int damaged;

	if (history_file_bytes(job->disk->file, tier, from_s, to_s) > READ_BYTES_MAX)
		return -EFBIG;
	job->from_s = from_s;
	job->to_s = to_s;
	damaged = history_file_read(job->disk->file, tier, from_s, to_s, block_merge, job);
	if (damaged < 0)
		return damaged;
	job->answer->damaged += (uint64_t)damaged;
	return job->err;
}

static void fill_points(struct ask_job *job) {
	struct history_answer *answer = job->answer;

	// The node may be one of those that were left out, so its state is not known.
	for (uint32_t p = 0; p < answer->points; p++)
		answer->node[p].is_covered &=
			!answer->node[p].is_cut || answer->node[p].state != RAS_UNKNOWN;
	for (uint32_t n = 0; n < answer->series_count; n++) {
		for (uint32_t p = 0; p < answer->points; p++) {
			const struct history_bins *bins = &job->bins[n][p];

			answer->series[n]->points[p] = (struct history_point){
				.sent = bins->sent,
				.lost = bins->lost,
				.min_ns = bins->min_ns,
				.median_ns = history_bins_percentile(bins, MEDIAN_PERMILLE),
				.p99_ns = history_bins_percentile(bins, P99_PERMILLE),
				.max_ns = bins->max_ns,
			};
		}
	}
}

// Read the fine tier alone if the time is short and the fine tier reaches back far enough.
// Otherwise read the coarse tier, and then the fine periods after its last period.
static int read_records(struct ask_job *job) {
	const struct history_question *question = &job->question;
	struct history_answer *answer = job->answer;
	int64_t span_s = question->until_s - question->since_s;
	int64_t fine_s = history_file_oldest_s(job->disk->file, HISTORY_FINE);
	int64_t coarse_s = history_file_oldest_s(job->disk->file, HISTORY_COARSE);
	bool is_coarse = span_s > FINE_RANGE_S || (question->since_s < fine_s && coarse_s < fine_s);
	int64_t unit_s = is_coarse ? HISTORY_COARSE_S : job->disk->interval_s;
	int64_t step_s = (span_s + question->points - 1) / question->points;
	int err = 0;

	answer->oldest_s = fine_s < coarse_s ? fine_s : coarse_s;
	step_s = (step_s + unit_s - 1) / unit_s * unit_s;
	answer->step_s = (uint32_t)(step_s > 0 ? step_s : unit_s);
	answer->since_s = question->since_s - question->since_s % answer->step_s;
	answer->points = (uint32_t)((question->until_s - answer->since_s) / answer->step_s) + 1;
	if (answer->points > HISTORY_POINTS_MAX)
		answer->points = HISTORY_POINTS_MAX;
	job->end_s = INT64_MIN;
	if (is_coarse)
		err = read_tier(job, HISTORY_COARSE, answer->since_s, question->until_s);
	if (err == 0)
		err = read_tier(
			job, HISTORY_FINE,
			job->end_s > answer->since_s ? job->end_s : answer->since_s,
			question->until_s
		);
	if (err == 0)
		fill_points(job);
	return err;
}

static int call_ask(void *arg) {
	struct ask_job *job = arg;
	const struct history_question *question = &job->question;
	struct history_answer *answer = job->answer;
	const struct state_filter filter = {
		.since_ns = question->events_since_ns,
		.until_ns = question->events_until_ns,
		.peer = question->peer,
		.max = question->events,
	};
	int err = 0;

	answer->oldest_s = INT64_MAX;
	answer->has_file = job->disk->file != NULL;
	if (answer->has_file)
		err = read_records(job);
	if (err == 0 && question->events > 0)
		err = state_journal_read(
			job->disk->directory, &filter, &answer->events, &answer->event_count
		);
	return err;
}

struct history_answer *history_answer_free(struct history_answer *answer) {
	if (answer == NULL)
		return NULL;
	for (uint32_t n = 0; n < answer->series_count; n++)
		free(answer->series[n]);
	free(answer->events);
	free(answer);
	return NULL;
}

static void ask_job_drop(void *arg) {
	struct ask_job *job = arg;

	for (uint32_t n = 0; n < HISTORY_SERIES_MAX; n++)
		free(job->bins[n]);
	history_answer_free(job->answer);
	disk_put(job->disk);
	free(job);
}

static void query_unlink(struct history_query *query) {
	struct history_query **place = &query->history->queries;

	while (*place != query)
		place = &(*place)->next;
	*place = query->next;
	query->history = NULL;
}

static void on_answered(struct keeper_request *request, void *arg, int result) {
	struct history_query *query = container_of(request, struct history_query, request);
	struct ask_job *job = arg;
	struct history_answer *answer = NULL;

	query->history->was_stuck = false;
	query_unlink(query);
	if (result == 0) {
		answer = job->answer;
		job->answer = NULL;
	}
	query->ended(query, result, answer);
}

int history_ask(
	struct history *history,
	const struct history_question *question,
	struct history_query *query
) {
	struct ask_job *job = calloc(1, sizeof(*job));
	struct keeper_call call = {
		.call = call_ask, .drop = ask_job_drop, .arg = job, .limit_ns = READ_LIMIT_NS};
	uint32_t pending = 0;
	int err;

	must(question->points > 0 && question->points <= HISTORY_POINTS_MAX);
	if (job == NULL)
		return -ENOMEM;
	for (const struct history_query *at = history->queries; at != NULL; at = at->next)
		pending++;
	// New records wait in the same queue of the disk, so the number of questions is limited.
	if (pending >= HISTORY_QUESTIONS_MAX) {
		free(job);
		return -EAGAIN;
	}
	job->disk = disk_get(history->disk);
	job->answer = calloc(1, sizeof(*job->answer));
	job->question = *question;
	if (job->question.until_s < job->question.since_s)
		job->question.until_s = job->question.since_s;
	if (job->answer == NULL) {
		ask_job_drop(job);
		return -ENOMEM;
	}
	query->request = (struct keeper_request){.ended = on_answered};
	err = keeper_is_stuck(history->keeper)
		      ? -ETIMEDOUT
		      : keeper_run(history->keeper, &call, &query->request);
	if (err != 0) {
		ask_job_drop(job);
		return err;
	}
	query->history = history;
	query->next = history->queries;
	history->queries = query;
	return 0;
}

void history_cancel(struct history_query *query) {
	if (query->history == NULL)
		return;
	keeper_cancel(&query->request);
	query_unlink(query);
}

void history_fail_queries(struct history *history, int err) {
	while (history->queries != NULL) {
		struct history_query *query = history->queries;

		keeper_cancel(&query->request);
		query_unlink(query);
		query->ended(query, err, NULL);
	}
}
