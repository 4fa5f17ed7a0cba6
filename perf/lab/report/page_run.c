// SPDX-License-Identifier: BSD-3-Clause
// Page of a run, built from its JSON both after a measurement and from a stored file.
#include "report/page_run.h"

#include "report/json.h"
#include "report/page_parts.h"
#include "report/page_rates.h"
#include "report/page_series.h"

#include <lib/parse.h>
#include <lib/show.h>

#include <jansson.h>

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <page.h>
#include <stdio.h>
#include <string.h>

#define CELL_BYTES PAGE_CELL_BYTES
#define TITLE_BYTES 160
#define OUTLIERS_SHOWN 10
#define COLUMNS 160	      // columns of the course if the run has one size
#define COLUMNS_OF_SEVERAL 80 // columns of each course if the run has several sizes

static void format_interval(const struct quantile_summary *quantile, char text[static CELL_BYTES]) {
	char low[CELL_BYTES], high[CELL_BYTES];

	page_format_us((double)quantile->low, low);
	page_format_us((double)quantile->high, high);
	snprintf(text, CELL_BYTES, "%.40s to %.40s", low, high);
}

static void put_tiles(struct page *page, const struct run_summary *summary) {
	static const uint32_t places[] = {0, 2, 3};
	char names[4][CELL_BYTES], values[4][CELL_BYTES], under[4][CELL_BYTES];
	char name[RESULT_QUANTILE_BYTES];
	struct page_tile tiles[4];

	for (uint32_t n = 0; n < 3; n++) {
		const struct quantile_summary *quantile = &summary->quantiles[places[n]];

		result_quantile_name(quantile->per_million, name);
		snprintf(names[n], CELL_BYTES, "%s, us", name);
		page_format_us((double)quantile->value, values[n]);
		format_interval(quantile, under[n]);
		if (quantile->note == QUANTILE_TOO_FEW) {
			snprintf(values[n], CELL_BYTES, "n/a");
			snprintf(under[n], CELL_BYTES, "too few samples");
		}
	}
	snprintf(names[3], CELL_BYTES, "max, us");
	page_format_us((double)summary->all.max, values[3]);
	snprintf(under[3], CELL_BYTES, "of %" PRIu64, summary->all.count);
	for (uint32_t n = 0; n < 4; n++)
		tiles[n] = (struct page_tile){names[n], values[n], under[n]};
	page_tiles(page, tiles, 4);
}

static void put_quantile(struct page *page, const struct quantile_summary *quantile, bool half) {
	char name[RESULT_QUANTILE_BYTES], value[CELL_BYTES] = "n/a", interval[CELL_BYTES] = "";
	char halved[CELL_BYTES] = "n/a", effective[CELL_BYTES];
	const char *note = quantile_note_text(quantile->note);
	const char *with_half[6] = {name, value, interval, halved, effective, note};
	const char *without[5] = {name, value, interval, effective, note};

	result_quantile_name(quantile->per_million, name);
	if (quantile->note != QUANTILE_TOO_FEW) {
		page_format_us((double)quantile->value, value);
		page_format_us((double)quantile->value / 2, halved);
		format_interval(quantile, interval);
	}
	snprintf(effective, sizeof(effective), "%.0f", quantile->effective);
	page_table_row(page, half ? with_half : without, half ? 6 : 5);
}

static void put_figure_row(struct page *page, const char *name, double value_ns, bool half) {
	char value[CELL_BYTES], halved[CELL_BYTES];
	const char *cells[6] = {name, value, "", half ? halved : "", "", ""};

	page_format_us(value_ns, value);
	page_format_us(value_ns / 2, halved);
	page_table_row(page, cells, half ? 6 : 5);
}

static void
put_summary(struct page *page, const char *what, const struct run_summary *summary, bool half) {
	char column[CELL_BYTES];
	const char *with_half[6] = {"", column, "95 % interval", "half, us", "effective samples",
				    ""};
	const char *without[5] = {"", column, "95 % interval", "effective samples", ""};

	snprintf(column, sizeof(column), "%.60s, us", what);
	page_table_begin_noted(page, half ? with_half : without, half ? 6 : 5);
	put_figure_row(page, "min", (double)summary->all.min, half);
	for (uint32_t n = 0; n < summary->quantile_count; n++)
		put_quantile(page, &summary->quantiles[n], half);
	put_figure_row(page, "max", (double)summary->all.max, half);
	put_figure_row(page, "mean", summary->all.mean, half);
	page_table_end(page);
}

static void
put_segments(struct page *page, const struct page_source *source, const struct page_span *span) {
	static const char *const columns[] = {"from, s", "from sample", "samples",
					      "p50, us", "p90, us",	"p99, us"};

	page_table_begin(page, columns, 6);
	for (uint32_t n = 0; n < source->summary->segment_count; n++) {
		struct result_segment segment;
		char texts[6][CELL_BYTES] = {"?"};
		const char *cells[6] = {texts[0], texts[1], texts[2], texts[3], texts[4], texts[5]};

		if (result_segment(source->record, source->summary, n, &segment) != 0)
			break;
		if (isfinite(span->begins[n]))
			snprintf(texts[0], CELL_BYTES, "%.3f", span->begins[n]);
		snprintf(texts[1], CELL_BYTES, "%" PRIu64, segment.first_sample);
		snprintf(texts[2], CELL_BYTES, "%" PRIu64, segment.samples);
		page_format_us((double)segment.p50_ns, texts[3]);
		page_format_us((double)segment.p90_ns, texts[4]);
		page_format_us((double)segment.p99_ns, texts[5]);
		page_table_row(page, cells, 6);
	}
	page_table_end(page);
}

static void put_judgement(struct page *page, const struct run_summary *summary) {
	char name[RESULT_QUANTILE_BYTES] = "";

	if (summary->judged_count > 0)
		result_quantile_name(
			summary->quantiles[summary->judged_count - 1].per_million, name
		);
	switch (summary->judgement) {
	case RUN_TOO_SHORT_TO_JUDGE:
		page_paragraph(
			page, PAGE_PLAIN, "The run is too short to judge whether it is steady."
		);
		break;
	case RUN_STEADY:
		page_paragraph(page, PAGE_GOOD, "No change found over the run, up to %s.", name);
		break;
	case RUN_CHANGED:
		page_paragraph(
			page, PAGE_BAD,
			"Latency changed during the run: read its parts, not one figure for all."
		);
		break;
	}
}

static void put_load(struct page *page, const struct result_load *load) {
	char late[CELL_BYTES];

	if (load->saturated)
		page_paragraph(page, PAGE_BAD, "Not valid: saturated, %s.", load->reason);
	page_format_us((double)load->lag_p99_ns, late);
	page_paragraph(
		page, PAGE_PLAIN,
		"Offered load %.6g operations a second; an operation was under way %.3g %% of the "
		"time. The sender was late by %s us at p99.",
		load->offered, 100 * load->occupied, late
	);
}

// Read the noise of one end from a file; counts that are no valid number are unknown.
static bool noise_from_json(const json_t *object, struct noise *ret_noise) {
	for (int n = 0; n < NOISE_KIND_COUNT; n++) {
		const json_t *value = json_object_get(object, noise_key((enum noise_kind)n));
		bool known = json_is_integer(value) && json_integer_value(value) >= 0;

		ret_noise->counts[n] = known ? (uint64_t)json_integer_value(value) : NOISE_UNKNOWN;
	}
	return json_object_size(object) > 0;
}

static void put_noise(struct page *page, const json_t *file) {
	static const char *const ends[2] = {"client", "server"};

	for (int n = 0; n < 2; n++) {
		const json_t *object = json_object_get(json_object_get(file, "noise"), ends[n]);
		char text[NOISE_TEXT_BYTES];
		struct noise noise;

		if (noise_from_json(object, &noise) && noise_format(&noise, text))
			page_paragraph(page, PAGE_PLAIN, "Noise, %s: %s.", ends[n], text);
	}
}

static bool outlier_from_json(const json_t *object, struct outlier *ret_outlier) {
	static const char *const keys[] = {"sample", "at_ns", "took_ns", "within_ns"};
	uint64_t *const places[] = {
		&ret_outlier->sample, &ret_outlier->at_ns, &ret_outlier->took_ns,
		&ret_outlier->within_ns};

	for (size_t n = 0; n < sizeof(keys) / sizeof(keys[0]); n++) {
		const json_t *value = json_object_get(object, keys[n]);

		if (!json_is_integer(value) || json_integer_value(value) < 0)
			return false;
		*places[n] = (uint64_t)json_integer_value(value);
	}
	for (int n = 0; n < OUTLIER_EVIDENCE_COUNT; n++) {
		const json_t *value =
			json_object_get(object, outlier_key((enum outlier_evidence)n));
		bool known = json_is_integer(value) && json_integer_value(value) >= 0;

		ret_outlier->evidence[n] =
			known ? (uint64_t)json_integer_value(value) : OUTLIER_UNKNOWN;
	}
	return true;
}

static void put_outlier(struct page *page, const struct outlier *outlier) {
	char texts[4][CELL_BYTES], said[OUTLIER_TEXT_BYTES];
	const char *cells[5] = {texts[0], texts[1], texts[2], texts[3], said};

	page_format_us((double)outlier->took_ns, texts[0]);
	snprintf(texts[1], CELL_BYTES, "%.3f", (double)outlier->at_ns / 1e9);
	snprintf(texts[2], CELL_BYTES, "%" PRIu64, outlier->sample);
	snprintf(texts[3], CELL_BYTES, "n/a");
	if (outlier->evidence[OUTLIER_KHZ] != OUTLIER_UNKNOWN)
		snprintf(
			texts[3], CELL_BYTES, "%.2f", (double)outlier->evidence[OUTLIER_KHZ] / 1e6
		);
	outlier_format(outlier, said);
	page_table_row(page, cells, 5);
}

// Put the largest outliers; a file lists them largest first.
static void put_outliers(struct page *page, const json_t *file) {
	static const char *const columns[] = {
		"largest, us", "at, s", "sample", "GHz", "what the client's kernel counted"};
	const json_t *outliers = json_object_get(file, "outliers");

	if (json_array_size(outliers) == 0)
		return;
	page_table_begin_noted(page, columns, 5);
	for (size_t n = 0; n < json_array_size(outliers) && n < OUTLIERS_SHOWN; n++) {
		struct outlier outlier;

		if (outlier_from_json(json_array_get(outliers, n), &outlier))
			put_outlier(page, &outlier);
	}
	page_table_end(page);
}

struct part {
	const json_t *plan, *file; // `file`: the result's part of the file
	const struct lab_result *result;
	bool alone;
};

static bool part_has_half(const struct part *part) {
	return json_is_true(json_object_get(part->plan, "answered")) && !part->result->open;
}

static void put_device(struct page *page, const struct part *part) {
	const struct result_device *device = &part->result->device;
	char mean[PAGE_CELL_BYTES], server[PAGE_CELL_BYTES], off[PAGE_CELL_BYTES];

	put_summary(page, "device", &device->device_summary, false);
	put_summary(page, "host", &device->host_summary, false);
	page_format_us((double)device->off_ns, off);
	page_paragraph(
		page, PAGE_PLAIN,
		"Device: from submission to the device's completion stamp. Host: from the stamp "
		"until the program saw the completion. The device's %s clock was off by at most "
		"%s us.",
		plan_stamps_name(device->stamps), off
	);
	if (device->answer_count > 0) {
		page_format_us((double)device->answer_mean_ps / 1e3, server);
		page_format_us(
			device->device_summary.all.mean - (double)device->answer_mean_ps / 1e3, mean
		);
		page_paragraph(
			page, PAGE_PLAIN,
			"Of the device's mean, the server's program took %s us to answer; the "
			"other %s us passed from NIC to NIC and back.",
			server, mean
		);
	}
	if (device->outside > 0)
		page_paragraph(
			page, device->doubtful ? PAGE_BAD : PAGE_PLAIN,
			"%s%" PRIu64 " stamps lie outside of their operation.",
			device->doubtful ? "Not valid: " : "", device->outside
		);
}

// Put the number of samples, and the main figures as tiles.
static void put_main_figures(struct page *page, const struct part *part) {
	const struct lab_result *result = part->result;
	char took[SHOW_BYTES], windows[CELL_BYTES] = "samples";

	if (result->window_messages > 0)
		snprintf(
			windows, sizeof(windows), "windows of %" PRIu64 " message%s",
			result->window_messages, result->window_messages == 1 ? "" : "s"
		);
	show_duration(result->took_ns, took);
	page_paragraph(
		page, PAGE_PLAIN, "%" PRIu64 " %s in %s, after %u that were dropped as warm-up.",
		result->summary.all.count, windows, took, result->warm_count
	);
	if (!result->complete)
		page_paragraph(page, PAGE_BAD, "Incomplete: the run ended early.");
	if (result->window_messages > 0)
		page_rates_tiles(page, part->file);
	else
		put_tiles(page, &result->summary);
}

static int put_result(struct page *page, const struct part *part) {
	const struct lab_result *result = part->result;
	bool is_load = result->window_messages > 0;
	struct page_source sources[2] = {
		{is_load ? "time of a window" : result_time_name(result), result->times,
		 &result->summary},
		{"service", result->load.service, &result->load.service_summary},
	};
	struct page_span span = {
		.took_ns = result->took_ns,
		.open = result->open,
		.columns = part->alone ? COLUMNS : COLUMNS_OF_SEVERAL,
	};
	int err;

	put_main_figures(page, part);
	if (result->open)
		put_load(page, &result->load);
	put_judgement(page, &result->summary);
	put_noise(page, part->file);
	if (is_load) {
		page_rates_table(page, part->file, result);
		page_paragraph(
			page, PAGE_PLAIN,
			"What follows is the time of a window: a short time is a high rate."
		);
	}
	err = page_percentiles(page, sources, result->open ? 2 : 1);
	if (err == 0)
		err = page_put_course(page, &sources[0], &span);
	if (err == 0 && result->summary.judgement == RUN_CHANGED)
		put_segments(page, &sources[0], &span);
	put_outliers(page, part->file);
	put_summary(page, sources[0].name, &result->summary, part_has_half(part));
	if (result->open)
		put_summary(page, "service", &result->load.service_summary, false);
	if (result->device.stamps != PLAN_STAMPS_NONE)
		put_device(page, part);
	return err;
}

static int put_file_result(
	struct page *page, const json_t *root, const json_t *file, bool alone, struct lab_why *why
) {
	struct lab_result result = {.size = 0};
	char size[SHOW_BYTES];
	int err = result_from_json(file, why, &result);

	if (err == 0)
		err = result_summarize(&result);
	show_bytes(result.size, size);
	if (err == 0)
		page_heading(page, size);
	if (err == 0 && !result.summarized)
		page_paragraph(page, PAGE_BAD, "No sample.");
	else if (err == 0)
		err = put_result(
			page, &(struct part){json_object_get(root, "plan"), file, &result, alone}
		);
	result_release(&result);
	return err == 0 ? 0 : lab_fail(why, err, "no memory for the page");
}

// Return a figure of a verified file, in microseconds.
static double quantile_figure(const json_t *result, uint32_t place, const char *key) {
	const json_t *figures = json_object_get(json_object_get(result, "times"), "figures");
	const json_t *quantile = json_array_get(json_object_get(figures, "quantiles"), place);
	const json_t *value = json_object_get(quantile, key);

	return json_is_number(value) ? json_number_value(value) / 1e3 : NAN;
}

// Put a chart with one curve for each of three quantiles over several sizes.
static void put_sizes(struct page *page, const json_t *results) {
	static const uint32_t places[] = {0, 2, 3};
	double x[PLAN_SIZES_MAX], values[3][3][PLAN_SIZES_MAX];
	char names[3][RESULT_QUANTILE_BYTES];
	struct page_series series[3];
	uint32_t count = (uint32_t)json_array_size(results);

	for (uint32_t n = 0; n < 3; n++) {
		for (uint32_t at = 0; at < count; at++) {
			const json_t *result = json_array_get(results, at);

			x[at] = json_number_value(json_object_get(result, "size_bytes"));
			values[n][0][at] = quantile_figure(result, places[n], "value_ns");
			values[n][1][at] = quantile_figure(result, places[n], "low_ns");
			values[n][2][at] = quantile_figure(result, places[n], "high_ns");
		}
		result_quantile_name(result_per_million[places[n]], names[n]);
		series[n] = (struct page_series){
			.name = names[n],
			.count = count,
			.x = x,
			.y = values[n][0],
			.low = values[n][1],
			.high = values[n][2],
		};
	}
	page_curves(
		page,
		&(struct page_curves){
			.caption = "Latency by size, with 95 % intervals",
			.x = {.label = "bytes", .scale = PAGE_LOG},
			.y = {.label = "us", .scale = PAGE_LOG},
			.series_count = 3,
			.series = series,
		}
	);
}

static void put_setup(struct page *page, const json_t *root) {
	const json_t *environment = json_object_get(root, "environment");

	page_heading(page, "Setup");
	page_fold_begin(page, "Plan and both machines");
	page_facts(page, "plan", json_object_get(root, "plan"));
	page_facts(page, "client", json_object_get(environment, "client"));
	page_facts(page, "server", json_object_get(environment, "server"));
	page_fold_end(page);
	page_fold_begin(page, "How to read this");
	page_paragraph(
		page, PAGE_PLAIN,
		"A 95 %% interval holds the true quantile with a probability of 95 %%. It comes "
		"from order statistics at the effective number of samples: samples in a row "
		"depend on each other, so they are worth fewer independent ones. \"few samples "
		"beyond it\" marks a quantile whose share of larger samples is not known within "
		"10 %%. An interval is about this run, not about the next one: compare runs with "
		"tocsin-perf compare."
	);
	page_paragraph(
		page, PAGE_PLAIN,
		"The band is interpolated between the quantiles of the table. Time over the run is "
		"the sum of the samples; the rest of the run's time is spread evenly between them. "
		"A red line marks a change."
	);
	page_fold_end(page);
}

static void put_head(struct page *page, const json_t *root) {
	const json_t *plan = json_object_get(root, "plan");
	const json_t *environment = json_object_get(root, "environment");
	const json_t *client = json_object_get(environment, "client");
	const json_t *server = json_object_get(environment, "server");
	const char *arrivals = page_member_text(plan, "arrivals");

	page_paragraph(
		page, PAGE_PLAIN, "%s on %s to %s on %s, policy %s, %s; started %s by %s.",
		page_member_text(client, "device"), page_member_text(client, "host"),
		page_member_text(server, "device"), page_member_text(server, "host"),
		page_member_text(plan, "policy"),
		strcmp(arrivals, "closed") == 0 ? "closed loop" : arrivals,
		page_member_text(root, "started"), page_member_text(root, "program")
	);
	if (page_member_text(root, "incomplete")[0] != '\0')
		page_paragraph(
			page, PAGE_BAD, "Incomplete: %s", page_member_text(root, "incomplete")
		);
}

static bool is_bandwidth(const json_t *root) {
	return strcmp(page_member_text(json_object_get(root, "plan"), "command"), "bw") == 0;
}

static int put_page(struct page *page, const json_t *root, struct lab_why *why) {
	const json_t *results = json_object_get(root, "results");
	size_t count = json_array_size(results);
	int err = 0;

	put_head(page, root);
	if (count > 1 && is_bandwidth(root))
		page_rates_sizes(page, results);
	else if (count > 1)
		put_sizes(page, results);
	for (size_t n = 0; n < count && err == 0; n++)
		err = put_file_result(page, root, json_array_get(results, n), count == 1, why);
	put_setup(page, root);
	return err;
}

int page_run_json(const json_t *root, const char *path, struct lab_why *why) {
	char title[TITLE_BYTES];
	struct page *page;
	int err;

	snprintf(
		title, sizeof(title), "%s of %.20s", is_bandwidth(root) ? "Bandwidth" : "Latency",
		page_member_text(json_object_get(root, "plan"), "op")
	);
	err = page_create(title, &page);
	if (err != 0)
		return lab_fail(why, err, "no memory for the page");
	err = put_page(page, root, why);
	if (err == 0)
		err = page_save(page, path, why);
	page_destroy(page);
	return err;
}

int page_run(const struct lab_run *run, const char *path, struct lab_why *why) {
	json_t *root;
	int err = run_to_json(run, &root);

	if (err != 0)
		return lab_fail(why, err, "no memory for JSON");
	err = page_run_json(root, path, why);
	json_decref(root);
	return err;
}
