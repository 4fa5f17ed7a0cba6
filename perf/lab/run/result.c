// SPDX-License-Identifier: BSD-3-Clause
// Memory and figures of results.
#include "run/result.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// The sender is late if 1 % of the operations lag by more than this share of the mean interval.
#define LAG_SHARE 0.1
// Share of stamps that may lie outside of their operation.
#define OUTSIDE_SHARE 0.001

const uint32_t result_per_million[RESULT_QUANTILES] = {
	500000, 900000, 990000, 999000, 999900, 999990,
};

static const char *const quantile_names[RESULT_QUANTILES] = {
	"p50", "p90", "p99", "p99.9", "p99.99", "p99.999",
};

void result_quantile_name(uint32_t per_million, char text[static RESULT_QUANTILE_BYTES]) {
	for (int n = 0; n < RESULT_QUANTILES; n++) {
		if (result_per_million[n] == per_million) {
			snprintf(text, RESULT_QUANTILE_BYTES, "%s", quantile_names[n]);
			return;
		}
	}
	snprintf(text, RESULT_QUANTILE_BYTES, "p%.6g", per_million / 1e4);
}

int result_quantile_parse(const char *text, size_t length, uint32_t *ret_per_million) {
	for (int n = 0; n < RESULT_QUANTILES; n++) {
		if (strlen(quantile_names[n]) == length &&
		    memcmp(quantile_names[n], text, length) == 0) {
			*ret_per_million = result_per_million[n];
			return 0;
		}
	}
	return -EINVAL;
}

int result_lag_create(struct histogram **ret_lag) {
	const struct histogram_shape shape = {
		.value_min = 1,
		.value_max = HISTOGRAM_VALUE_MAX,
		.precision_bits = 7,
		.counter_bits = 64,
	};

	return histogram_create(&shape, ret_lag);
}

int result_prepare(struct lab_result *result, uint64_t size, bool open) {
	int err = run_record_create(&result->times);

	result->size = size;
	result->open = open;
	result->warm = calloc(WARMUP_SAMPLES_MAX, sizeof(*result->warm));
	if (err == 0 && result->warm == NULL)
		err = -ENOMEM;
	if (err == 0 && open)
		err = run_record_create(&result->load.service);
	if (err == 0 && open)
		err = result_lag_create(&result->load.lag);
	return err;
}

int result_prepare_device(struct lab_result *result, enum plan_stamps stamps) {
	struct result_device *device = &result->device;
	int err = run_record_create(&device->device);

	if (err == 0)
		err = run_record_create(&device->host);
	if (err != 0)
		return err;
	device->stamps = stamps;
	return 0;
}

void result_touch(struct lab_result *result, uint64_t samples) {
	explicit_bzero(result->warm, WARMUP_SAMPLES_MAX * sizeof(*result->warm));
	run_record_touch(result->times, samples);
	if (result->open)
		run_record_touch(result->load.service, samples);
	if (result->device.stamps != PLAN_STAMPS_NONE) {
		run_record_touch(result->device.device, samples);
		run_record_touch(result->device.host, samples);
	}
}

void result_release(struct lab_result *result) {
	result->times = run_record_destroy(result->times);
	result->load.service = run_record_destroy(result->load.service);
	result->load.lag = histogram_destroy(result->load.lag);
	result->device.device = run_record_destroy(result->device.device);
	result->device.host = run_record_destroy(result->device.host);
	free(result->load.due_ns);
	free(result->warm);
	result->load.due_ns = NULL;
	result->warm = NULL;
}

void run_release(struct lab_run *run) {
	for (uint32_t n = 0; n < PLAN_SIZES_MAX; n++)
		result_release(&run->results[n]);
}

static int summarize_load(struct lab_result *result) {
	struct result_load *load = &result->load;
	const struct histogram_summary *service = &load->service_summary.all;
	uint64_t played = run_record_count(result->times);
	double took_ns = (double)result->took_ns, span_ns, distance_ns;
	struct histogram_summary lag;
	int err = run_summarize(
		load->service, result_per_million, RESULT_QUANTILES, &load->service_summary
	);

	if (err != 0)
		return err;
	histogram_summarize(load->lag, &lag);
	load->lag_p50_ns = histogram_percentile(load->lag, 500000);
	load->lag_p99_ns = histogram_percentile(load->lag, 990000);
	load->lag_max_ns = lag.max;
	if (load->due_ns != NULL)
		load->span_ns = load->due_ns[played - 1];
	span_ns = (double)load->span_ns;
	distance_ns = span_ns / (double)played;
	load->offered = span_ns > 0 ? (double)played / span_ns * 1e9 : 0;
	load->occupied = took_ns > 0 ? service->mean * (double)played / took_ns : 0;

	// An open loop is saturated if operations are due faster than they are served. The waiting
	// time then grows, so response times depend on the length of the run.
	load->saturated = true;
	if (service->mean >= distance_ns)
		load->reason = "operations are due faster than they are served";
	else if ((double)load->lag_p99_ns > LAG_SHARE * distance_ns)
		load->reason = "the sender itself is late";
	else
		load->saturated = false;
	return 0;
}

int result_summarize(struct lab_result *result) {
	struct result_device *device = &result->device;
	int err = run_summarize(
		result->times, result_per_million, RESULT_QUANTILES, &result->summary
	);

	result->summarized = err == 0;
	if (err == 0 && result->open)
		err = summarize_load(result);
	if (err == 0 && device->stamps != PLAN_STAMPS_NONE) {
		err = run_summarize(
			device->device, result_per_million, RESULT_QUANTILES,
			&device->device_summary
		);
		if (err == 0)
			err = run_summarize(
				device->host, result_per_million, RESULT_QUANTILES,
				&device->host_summary
			);
		device->doubtful = (double)device->outside >
				   OUTSIDE_SHARE * (double)run_record_count(device->device);
	}
	return err == -ENODATA ? 0 : err;
}

const char *result_time_name(const struct lab_result *result) {
	if (result->window_messages > 0)
		return "window";
	return result->open ? "response" : "round trip";
}

static double rate_per_second(double messages, double took_ns) {
	return took_ns > 0 ? messages / took_ns * 1e9 : 0;
}

double result_rate(const struct lab_result *result, uint64_t window_ns) {
	return rate_per_second((double)result->window_messages, (double)window_ns);
}

double result_rate_mean(const struct lab_result *result) {
	double windows = (double)run_record_count(result->times);

	return rate_per_second((double)result->window_messages * windows, (double)result->took_ns);
}

double result_rate_peer(const struct lab_result *result) {
	return rate_per_second((double)result->peer_messages, (double)result->peer_ns);
}

int result_segment(
	struct run_record *record,
	const struct run_summary *summary,
	uint32_t place,
	struct result_segment *ret_segment
) {
	const struct segment *segment = &summary->segments[place];
	struct run_windows windows = run_record_windows(record);
	uint32_t join = (uint32_t)(summary->window_samples / windows.samples);
	uint32_t first = segment->first * join, count = segment->count * join;
	struct histogram *joined;
	int err = histogram_create(histogram_shape(run_record_window(record, first)), &joined);

	if (err != 0)
		return err;
	for (uint32_t n = 0; n < count && err == 0; n++)
		err = histogram_merge(joined, run_record_window(record, first + n));
	*ret_segment = (struct result_segment){
		.first_sample = first * windows.samples,
		.samples = count * windows.samples,
		.p50_ns = histogram_percentile(joined, 500000),
		.p90_ns = histogram_percentile(joined, 900000),
		.p99_ns = histogram_percentile(joined, 990000),
		.p = segment->p,
	};
	histogram_destroy(joined);
	return err;
}
