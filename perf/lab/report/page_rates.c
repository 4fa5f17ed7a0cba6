// SPDX-License-Identifier: BSD-3-Clause
// Rates of a file as table rows, tiles and curves.
#include "report/page_rates.h"

#include "report/page_parts.h"

#include <jansson.h>

#include <math.h>
#include <page.h>
#include <stdio.h>

#define CELL_BYTES PAGE_CELL_BYTES

enum { P50 = 0, P99 = 2 }; // indexes in result_per_million

static double json_number_or_nan(const json_t *object, const char *key) {
	const json_t *value = json_object_get(object, key);

	return json_is_number(value) ? json_number_value(value) : NAN;
}

static const json_t *result_rates(const json_t *file) {
	return json_object_get(file, "rates");
}

static const json_t *rates_quantile(const json_t *file, uint32_t place) {
	return json_array_get(json_object_get(result_rates(file), "quantiles"), place);
}

static double rate_gbits(const json_t *file, double messages_per_s) {
	return messages_per_s * json_number_or_nan(file, "size_bytes") * 8 / 1e9;
}

static void format_gbits(const json_t *file, double messages_per_s, char text[static CELL_BYTES]) {
	if (isfinite(messages_per_s))
		snprintf(text, CELL_BYTES, "%.4g", rate_gbits(file, messages_per_s));
	else
		snprintf(text, CELL_BYTES, "n/a");
}

static void format_interval(const json_t *file, uint32_t place, char text[static CELL_BYTES]) {
	const json_t *quantile = rates_quantile(file, place);
	char low[CELL_BYTES], high[CELL_BYTES];

	format_gbits(file, json_number_or_nan(quantile, "low_per_s"), low);
	format_gbits(file, json_number_or_nan(quantile, "high_per_s"), high);
	if (json_is_number(json_object_get(quantile, "low_per_s")))
		snprintf(text, CELL_BYTES, "%.40s to %.40s", low, high);
	else
		snprintf(text, CELL_BYTES, "too few windows");
}

void page_rates_tiles(struct page *page, const json_t *file) {
	const json_t *rates = result_rates(file);
	double mean = json_number_or_nan(rates, "mean_per_s");
	char values[4][CELL_BYTES], under[4][CELL_BYTES], best[CELL_BYTES];

	format_gbits(
		file, json_number_or_nan(rates_quantile(file, P50), "messages_per_s"), values[0]
	);
	format_interval(file, P50, under[0]);
	format_gbits(
		file, json_number_or_nan(rates_quantile(file, P99), "messages_per_s"), values[1]
	);
	format_interval(file, P99, under[1]);
	format_gbits(file, mean, values[2]);
	snprintf(under[2], CELL_BYTES, "%.0f messages/s", mean);
	format_gbits(file, json_number_or_nan(rates, "worst_per_s"), values[3]);
	format_gbits(file, json_number_or_nan(rates, "best_per_s"), best);
	snprintf(under[3], CELL_BYTES, "best %.40s", best);
	page_tiles(
		page,
		(const struct page_tile[]){
			{"median, Gbit/s", values[0], under[0]},
			{"99 % of windows, Gbit/s", values[1], under[1]},
			{"mean, Gbit/s", values[2], under[2]},
			{"worst window, Gbit/s", values[3], under[3]},
		},
		4
	);
}

static void put_rate(struct page *page, const json_t *file, const char *name, double rate) {
	char messages[CELL_BYTES], gbits[CELL_BYTES];
	const char *cells[6] = {name, messages, "", gbits, "", ""};

	snprintf(messages, sizeof(messages), "%.1f", rate);
	format_gbits(file, rate, gbits);
	page_table_row(page, cells, 6);
}

static void put_quantile(
	struct page *page,
	const json_t *file,
	uint32_t place,
	const struct quantile_summary *quantile
) {
	const json_t *rates = rates_quantile(file, place);
	char name[CELL_BYTES], messages[CELL_BYTES] = "n/a", interval[CELL_BYTES] = "";
	char gbits[CELL_BYTES], effective[CELL_BYTES];
	const char *note = quantile->note == QUANTILE_TOO_FEW ? "too few windows"
			   : quantile->note == QUANTILE_SOUND ? ""
							      : "few windows beyond it";
	const char *cells[6] = {name, messages, interval, gbits, effective, note};

	snprintf(name, sizeof(name), "%g %%", quantile->per_million / 1e4);
	snprintf(effective, sizeof(effective), "%.0f", quantile->effective);
	format_gbits(file, json_number_or_nan(rates, "messages_per_s"), gbits);
	if (quantile->note != QUANTILE_TOO_FEW) {
		snprintf(messages, CELL_BYTES, "%.1f", json_number_or_nan(rates, "messages_per_s"));
		snprintf(
			interval, CELL_BYTES, "%.1f to %.1f",
			json_number_or_nan(rates, "low_per_s"),
			json_number_or_nan(rates, "high_per_s")
		);
	}
	page_table_row(page, cells, 6);
}

void page_rates_table(struct page *page, const json_t *file, const struct lab_result *result) {
	static const char *const columns[6] = {"of windows", "messages/s",	  "95 % interval",
					       "Gbit/s",     "effective windows", ""};
	const struct run_summary *summary = &result->summary;
	const json_t *rates = result_rates(file);
	double mean = json_number_or_nan(rates, "mean_per_s");

	page_table_begin_noted(page, columns, 6);
	put_rate(page, file, "best window", json_number_or_nan(rates, "best_per_s"));
	for (uint32_t n = 0; n < summary->quantile_count; n++)
		put_quantile(page, file, n, &summary->quantiles[n]);
	put_rate(page, file, "worst window", json_number_or_nan(rates, "worst_per_s"));
	put_rate(page, file, "mean", mean);
	if (result->peer_messages > 0) {
		double peer = json_number_or_nan(rates, "peer_per_s");

		put_rate(page, file, "mean of the server", peer);
		put_rate(page, file, "mean of both", mean + peer);
	}
	page_table_end(page);
}

void page_rates_sizes(struct page *page, const json_t *results) {
	static const uint32_t places[2] = {P50, P99};
	static const char *const keys[3] = {"messages_per_s", "low_per_s", "high_per_s"};
	static const char *const names[2] = {"median", "99 % of windows"};
	double x[PLAN_SIZES_MAX], values[2][3][PLAN_SIZES_MAX];
	struct page_series series[2];
	uint32_t count = (uint32_t)json_array_size(results);

	for (uint32_t n = 0; n < 2; n++) {
		for (uint32_t at = 0; at < count; at++) {
			const json_t *file = json_array_get(results, at);
			const json_t *quantile = rates_quantile(file, places[n]);

			x[at] = json_number_or_nan(file, "size_bytes");
			for (uint32_t key = 0; key < 3; key++)
				values[n][key][at] =
					rate_gbits(file, json_number_or_nan(quantile, keys[key]));
		}
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
			.caption = "Bandwidth by size, with 95 % intervals",
			.x = {.label = "bytes", .scale = PAGE_LOG},
			.y = {.label = "Gbit/s", .scale = PAGE_LOG},
			.series_count = 2,
			.series = series,
		}
	);
}
