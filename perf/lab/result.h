// SPDX-License-Identifier: BSD-3-Clause
// What came of a run: for each size what was kept, and what it tells.
//
// All figures that are printed are in the summaries, and these follow from what is kept alone:
// `tocsin-perf verify` computes them once more from a file.
#pragma once

#include "environment.h"
#include "noise.h"
#include "outlier.h"
#include "plan.h"

#include <stdbool.h>
#include <stdint.h>
#include <summary.h>
#include <warmup.h>

#define RESULT_QUANTILES 6
#define RESULT_FILE_BYTES ((size_t)4 << 20) // of a file, at most: sizes share it
#define RESULT_FILE_BYTES_MIN ((size_t)64 << 10)
#define RESULT_DUE_MAX 65536 // times of a schedule that are in a file
#define RESULT_LEAD 16 // operations behind the pause in which the warm-up was judged; not kept

extern const uint32_t result_per_million[RESULT_QUANTILES]; // p50 to p99.999
#define RESULT_QUANTILE_BYTES 16
// "p99.9"
void result_quantile_name(uint32_t per_million, char text[static RESULT_QUANTILE_BYTES]);
// Of those above. -EINVAL.
int result_quantile_parse(const char *text, size_t length, uint32_t *ret_per_million);

// Of an open loop.
struct result_load {
	uint64_t *due_ns; // the schedule, after its beginning
	uint64_t due_count;
	bool due_left_out; // of the file
	uint64_t span_ns;  // when the last one that was played was due
	struct run_record *service;
	struct histogram *lag; // the sender's own: later than it could have been
	struct run_summary service_summary;
	uint64_t lag_p50_ns, lag_p99_ns, lag_max_ns;
	double offered;	    // operations a second, of the schedule that was played
	double occupied;    // share of the time in which an operation was under way
	bool saturated;	    // the run tells nothing of response times
	const char *reason; // why, in words
};

// Of --device-time: what of each sample was the device's, and what the host's.
struct result_device {
	enum plan_stamps stamps; // PLAN_STAMPS_NONE: nothing of all this
	struct run_record *device, *host;
	struct run_summary device_summary, host_summary;
	uint64_t khz;	  // of the device's clock, as it says
	uint64_t off_ns;  // the most that a reading of it was off what the one before foretold
	uint64_t outside; // stamps that lay outside of their operation
	bool doubtful;	  // too many of them
	// What the server's program took to answer, of answered operations.
	uint64_t answer_count, answer_mean_ps, answer_p50_ns, answer_p99_ns, answer_max_ns;
};

struct lab_result {
	uint64_t size;
	bool complete; // else the run ended before its time
	// The warm-up: dropped.
	uint64_t *warm; // WARMUP_SAMPLES_MAX
	uint32_t warm_count;
	bool warm_judged;   // else there was no time for enough of them
	bool warm_left_out; // its samples, of the file
	struct warmup_look warm_look;
	// What is kept.
	struct run_record *times;	 // of an open loop response times
	uint64_t window_messages;	 // of bw: what is timed are windows of so many; 0: of lat
	uint64_t peer_messages, peer_ns; // of bw both ways: what the server sent meanwhile
	uint64_t took_ns;		 // from the first one's beginning to the last one's end
	bool open;
	struct result_load load;
	struct result_device device;
	// What it tells.
	bool summarized; // false: no sample
	struct run_summary summary;
	struct noise noise[2]; // of client and server
	bool noise_known[2];
	uint32_t outlier_count; // the largest samples, the largest first
	bool outliers_left_out; // of the file
	struct outlier outliers[OUTLIERS_KEPT];
};

struct lab_run {
	struct plan plan;
	struct lab_environment environment[2]; // of client and server
	int64_t started_ns;		       // of the real-time clock
	uint32_t count;
	struct lab_result results[PLAN_SIZES_MAX];
	char partial[LAB_WHY_BYTES]; // why it ended before its time, "" if it did not
};

// Memory for samples. -ENOMEM.
int result_prepare(struct lab_result *result, uint64_t size, bool open);
// The same of the parts of --device-time. -ENOMEM.
int result_prepare_device(struct lab_result *result, enum plan_stamps stamps);
// Touches what so many samples take of it, so that none waits for a page.
void result_touch(struct lab_result *result, uint64_t samples);
void result_release(struct lab_result *result);
void run_release(struct lab_run *run);

// A histogram for lags, of 0.8 %. -ENOMEM.
int result_lag_create(struct histogram **ret_lag);
// Thins out what is kept, for a file of so many bytes that so many sizes share, before the figures:
// at least result_bytes_least() of the plan. -ENOMEM.
int result_thin(struct lab_result *result, uint32_t size_count, size_t file_bytes);
// What the file of such a run has room in, whatever is measured.
size_t result_bytes_least(const struct plan *plan);
// The figures, from what is kept. -ENOMEM.
int result_summarize(struct lab_result *result);

// Of a run whose op is answered: half of a round trip, rounded to nearest.
static inline uint64_t result_half(uint64_t value_ns) {
	return (value_ns + 1) / 2;
}

// What its times are: "round trip", "response", "window".
const char *result_what(const struct lab_result *result);
// Of bw: messages a second, of a window that took so long.
double result_rate(const struct lab_result *result, uint64_t window_ns);
double result_rate_mean(const struct lab_result *result);
double result_rate_peer(const struct lab_result *result); // 0: it did not send

// What a segment of a run that changed tells: from its windows, within 0.8 %.
struct result_segment {
	uint64_t first_sample, samples;
	uint64_t p50_ns, p90_ns, p99_ns;
	double p; // that the cut before it is chance
};

// -ENOMEM.
int result_segment(
	struct run_record *record,
	const struct run_summary *summary,
	uint32_t place,
	struct result_segment *ret_segment
);
