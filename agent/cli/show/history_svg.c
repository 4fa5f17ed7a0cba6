// SPDX-License-Identifier: BSD-3-Clause
// Draws the answer of HISTORY as SVG: a strip for the node, and a curve for each path.
#include "show/history.h"

#include <lib/escape.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define WIDTH 760 // of the curves
#define LEFT 20
#define STRIP 16
#define CURVE 70
#define GAP 34
#define HEAD 92
#define PATHS_MAX 64
#define TEXT_BYTES 512

static const char style[] =
	"<style>svg{--page:#fff;--ink:#1b1f24;--good:#56b4e9;--bad:#d55e00;--none:#d0d7de;"
	"--p99:#e69f00;font:12px system-ui,'DejaVu Sans',sans-serif}"
	"@media(prefers-color-scheme:dark){svg{--page:#0f141a;--ink:#e6edf3;--none:#3a434d}}"
	".page{fill:var(--page)}text{fill:var(--ink)}.good{fill:var(--good)}.bad{fill:var(--bad)}"
	".none{fill:var(--none)}polyline{fill:none;stroke:var(--good);stroke-width:1.5}"
	".p99{stroke:var(--p99)}</style>\n";

// Write a text of the answer as XML.
static void put_text(FILE *out, const char *text) {
	for (; *text != '\0'; text++) {
		if (*text == '<' || *text == '>' || *text == '&' || *text == '"')
			fprintf(out, "&#%d;", *text);
		else if ((unsigned char)*text >= ' ')
			fputc(*text, out);
	}
}

static void put_strip(FILE *out, const json_t *periods) {
	size_t count = json_array_size(periods), n;
	double width = count > 0 ? (double)WIDTH / (double)count : WIDTH;
	const json_t *period;

	json_array_foreach(periods, n, period) {
		bool kept = fact_holds(period, "kept");
		bool good = fact_is(period, "verdict", "healthy");

		fprintf(out,
			"<rect class=\"%s\" x=\"%.1f\" y=\"%d\" width=\"%.1f\" height=\"%d\"><title>",
			!kept  ? "none"
			: good ? "good"
			       : "bad",
			LEFT + width * (double)n, HEAD - STRIP - 16, width, STRIP);
		put_text(out, fact_name(period, "time"));
		fputs(": ", out);
		put_text(out, kept ? fact_name(period, "state") : "no record");
		fputs(", ", out);
		put_text(out, kept ? fact_name(period, "verdict") : "unknown");
		fputs("</title></rect>\n", out);
	}
}

// Return the smallest and the largest latency of a path's curves. Returns false without any.
static bool curve_range(const json_t *points, double *ret_low, double *ret_high) {
	uint64_t low_ns = UINT64_MAX, high_ns = 0;
	const json_t *point;
	size_t n;

	json_array_foreach(points, n, point) {
		uint64_t median_ns = fact_number(point, "median_ns");

		if (median_ns == 0)
			continue;
		low_ns = median_ns < low_ns ? median_ns : low_ns;
		high_ns = fact_number(point, "p99_ns") > high_ns ? fact_number(point, "p99_ns")
								 : high_ns;
		high_ns = median_ns > high_ns ? median_ns : high_ns;
	}
	*ret_low = log2((double)low_ns);
	*ret_high = log2((double)high_ns);
	if (*ret_high - *ret_low < 1)
		*ret_high = *ret_low + 1;
	return high_ns > 0;
}

// Place and scale of the curves of one path.
struct curve_area {
	const json_t *periods, *points;
	double top;	  // pixels from the top of the picture
	double low, high; // binary logarithms of nanoseconds at the lower and the upper edge
};

// Draw one value of all periods. The curve is broken where there is none.
static void
put_curve(FILE *out, const struct curve_area *area, const char *key, const char *class) {
	const json_t *periods = area->periods, *points = area->points;
	size_t count = json_array_size(periods), next = 0;
	bool is_open = false;

	for (size_t n = 0; n < count; n++) {
		const json_t *point = json_array_get(points, next);
		uint64_t value_ns = 0;

		if (point != NULL &&
		    fact_is(point, "time", fact_word(json_array_get(periods, n), "time"))) {
			value_ns = fact_number(point, key);
			next++;
		}
		if (value_ns == 0) {
			if (is_open)
				fputs("\"/>\n", out);
			is_open = false;
			continue;
		}
		if (!is_open)
			fprintf(out, "<polyline class=\"%s\" points=\"", class);
		is_open = true;
		fprintf(out, "%.1f,%.1f ", LEFT + (double)WIDTH * ((double)n + 0.5) / (double)count,
			area->top + CURVE * (1 - (log2((double)value_ns) - area->low) /
							 (area->high - area->low)));
	}
	if (is_open)
		fputs("\"/>\n", out);
}

static void put_path(FILE *out, const json_t *path, const json_t *periods, double top) {
	struct curve_area area = {
		.periods = periods,
		.points = json_object_get(path, "points"),
		.top = top,
	};
	char low_text[SHOW_BYTES], high_text[SHOW_BYTES];

	fprintf(out, "<text x=\"%d\" y=\"%.0f\">", LEFT, top - 6);
	put_text(out, fact_name(path, "peer"));
	fputs(": ", out);
	put_text(out, fact_name(path, "device"));
	fputs(" reads ", out);
	put_text(out, fact_name(path, "peer_device"));
	if (!curve_range(area.points, &area.low, &area.high)) {
		fputs(", no answer</text>\n", out);
		return;
	}
	show_duration((uint64_t)exp2(area.low), low_text);
	show_duration((uint64_t)exp2(area.high), high_text);
	fprintf(out, ", from %s (bottom) to %s (top)</text>\n", low_text, high_text);
	put_curve(out, &area, "median_ns", "median");
	put_curve(out, &area, "p99_ns", "p99");
}

void history_svg(const json_t *answer, FILE *out) {
	const json_t *periods = json_object_get(answer, "periods");
	const json_t *paths = json_object_get(answer, "paths"), *path;
	size_t count = json_array_size(paths), n;
	double height;

	if (count > PATHS_MAX)
		count = PATHS_MAX;
	height = HEAD + (double)count * (CURVE + GAP) + 20;
	fprintf(out,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%.0f\">\n%s"
		"<rect class=\"page\" width=\"100%%\" height=\"100%%\"/>\n<text x=\"%d\" y=\"24\">",
		WIDTH + 2 * LEFT, height, style, LEFT);
	put_text(out, fact_name(answer, "node"));
	fputs(", as ", out);
	put_text(out, fact_name(answer, "observer"));
	fputs(" recorded it: ", out);
	put_text(out, fact_name(answer, "since"));
	fputs(" to ", out);
	put_text(out, fact_name(answer, "until"));
	fprintf(out,
		"</text>\n<text x=\"%d\" y=\"44\">Strip: blue is healthy, orange is not, grey is "
		"without a record. Curves: blue is the median, yellow is p99.</text>\n",
		LEFT);
	put_strip(out, periods);
	json_array_foreach(paths, n, path) {
		if (n < count)
			put_path(out, path, periods, HEAD + GAP / 2.0 + (double)n * (CURVE + GAP));
	}
	fputs("</svg>\n", out);
}
