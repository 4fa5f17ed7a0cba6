// SPDX-License-Identifier: BSD-3-Clause
// Results of a run: for each size the stored samples and the figures computed from them.
//
// All printed figures are in the summaries, which are computed from the stored samples only. So
// `tocsin-perf verify` can recompute them from a file.
#pragma once

#include "run/environment.h"
#include "run/noise.h"
#include "run/outlier.h"
#include "run/plan.h"

#include <stdbool.h>
#include <stdint.h>
#include <summary.h>
#include <warmup.h>

#define RESULT_QUANTILES 6
#define RESULT_FILE_BYTES ((size_t)4 << 20) // largest file of a run; all sizes share it
#define RESULT_FILE_BYTES_MIN ((size_t)64 << 10)
#define RESULT_DUE_MAX 65536 // longest schedule that a file contains
#define RESULT_LEAD 16	     // operations dropped after the pause in which the warm-up is judged

extern const uint32_t result_per_million[RESULT_QUANTILES]; // p50 to p99.999
#define RESULT_QUANTILE_BYTES 16
// Return the name of a quantile, for example "p99.9".
void result_quantile_name(uint32_t per_million, char text[static RESULT_QUANTILE_BYTES]);
// Parse the name of one of the quantiles above. Returns 0 or -EINVAL.
int result_quantile_parse(const char *text, size_t length, uint32_t *ret_per_million);

// Results of an open loop.
struct result_load {
	uint64_t *due_ns; // schedule, relative to its start
	uint64_t due_count;
	bool due_left_out; // not in the file
	uint64_t span_ns;  // due time of the last played operation
	struct run_record *service;
	struct histogram *lag; // delay of the sender: submission after the earliest possible time
	struct run_summary service_summary;
	uint64_t lag_p50_ns, lag_p99_ns, lag_max_ns;
	double offered;	    // operations per second of the played schedule
	double occupied;    // share of the time with an outstanding operation
	bool saturated;	    // response times are not valid
	const char *reason; // reason of the saturation, as text
};

// Results of --device-time: the parts of each sample that belong to device and host.
struct result_device {
	enum plan_stamps stamps; // PLAN_STAMPS_NONE: the other members are unused
	struct run_record *device, *host;
	struct run_summary device_summary, host_summary;
	uint64_t khz;	  // frequency reported by the device
	uint64_t off_ns;  // largest error when a clock reading is predicted from the previous one
	uint64_t outside; // device stamps before the start or after the end of their operation
	bool doubtful;	  // too many such stamps
	// Times that the server's program took to answer, for answered operations.
	uint64_t answer_count, answer_mean_ps, answer_p50_ns, answer_p99_ns, answer_max_ns;
};

struct lab_result {
	uint64_t size;
	bool complete; // false: the run ended early
	// Warm-up samples, which are dropped.
	uint64_t *warm; // WARMUP_SAMPLES_MAX
	uint32_t warm_count;
	bool warm_judged;   // false: there was not enough time for enough samples
	bool warm_left_out; // samples are not in the file
	struct warmup_check warm_check;
	// Stored samples.
	struct run_record *times;
	uint64_t window_messages; // messages per timed window of bw; 0 for lat
	// Messages sent by the server meanwhile, for bw in both directions.
	uint64_t peer_messages, peer_ns;
	// From the start of the first operation to the end of the last one.
	uint64_t took_ns;
	bool open;
	struct result_load load;
	struct result_device device;
	// Figures computed from the stored samples.
	bool summarized; // false: no sample
	struct run_summary summary;
	struct noise noise[2]; // [0]: client, [1]: server
	bool noise_known[2];
	uint32_t outlier_count; // number of stored outliers, largest first
	bool outliers_left_out; // not in the file
	struct outlier outliers[OUTLIERS_MAX];
};

struct lab_run {
	struct plan plan;
	struct lab_environment environment[2]; // [0]: client, [1]: server
	int64_t started_ns;		       // wall-clock time
	uint32_t count;
	struct lab_result results[PLAN_SIZES_MAX];
	char partial[LAB_WHY_BYTES]; // reason of an early end; "": complete
};

// Allocate memory for samples. Returns 0 or -ENOMEM.
int result_prepare(struct lab_result *result, uint64_t size, bool open);
// Allocate memory for the samples of --device-time. Returns 0 or -ENOMEM.
int result_prepare_device(struct lab_result *result, enum plan_stamps stamps);
// Touch the memory of this number of samples, so that no sample includes a page fault.
void result_touch(struct lab_result *result, uint64_t samples);
void result_release(struct lab_result *result);
void run_release(struct lab_run *run);

// Create a histogram for lags; its buckets are 0.8 % wide. Returns 0 or -ENOMEM.
int result_lag_create(struct histogram **ret_lag);
// Thin the stored samples until they fit in a file of file_bytes, which size_count sizes share.
// Call this before result_summarize(). file_bytes must be at least result_bytes_min(). Returns 0 or
// -ENOMEM.
int result_thin(struct lab_result *result, uint32_t size_count, size_t file_bytes);
// Return the smallest file size that always has room for a run with this plan.
size_t result_bytes_min(const struct plan *plan);
// Compute the figures from the stored samples. Returns 0 or -ENOMEM.
int result_summarize(struct lab_result *result);

// Return half of a round trip, rounded to nearest; for operations that are answered.
static inline uint64_t result_half_ns(uint64_t value_ns) {
	return (value_ns + 1) / 2;
}

// Return true for an open loop whose response times are not valid.
static inline bool result_is_saturated(const struct lab_result *result) {
	return result->open && result->load.saturated;
}

// Return the name of the measured times: "round trip", "response" or "window".
const char *result_time_name(const struct lab_result *result);
// Return messages per second of bw: in a window of this duration, as the mean, or from the server.
double result_rate(const struct lab_result *result, uint64_t window_ns);
double result_rate_mean(const struct lab_result *result);
double result_rate_peer(const struct lab_result *result); // 0: the server did not send

// Figures of one segment of a run that changed, from its windows, with 0.8 % precision.
struct result_segment {
	uint64_t first_sample, samples;
	uint64_t p50_ns, p90_ns, p99_ns;
	double p; // probability that the cut before the segment is chance
};

// Compute the figures of a segment. Returns 0 or -ENOMEM.
int result_segment(
	struct run_record *record,
	const struct run_summary *summary,
	uint32_t place,
	struct result_segment *ret_segment
);
