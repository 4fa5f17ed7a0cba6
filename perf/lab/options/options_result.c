// SPDX-License-Identifier: BSD-3-Clause
// Options about the results.
#include "options/options_impl.h"

#include <errno.h>
#include <string.h>

#define RUN_PATIENCE_NS UINT64_C(60000000000)

static int set_fail_if(struct options *options, const char *value, struct parse_error *error) {
	if (options->threshold_count == THRESHOLDS_MAX)
		return parse_fail(
			error, -EINVAL, value, strlen(value), "is one threshold too many"
		);
	return threshold_parse(
		value, strlen(value), error, &options->thresholds[options->threshold_count++]
	);
}

static int set_runs(struct options *options, const char *value, struct parse_error *error) {
	return option_parse_u32(value, 1, VERSUS_FILES_MAX, error, &options->runs.count);
}

static int set_against(struct options *options, const char *value, struct parse_error *error) {
	(void)error;
	options->runs.against = value;
	return 0;
}

static int set_runs_margin(struct options *options, const char *value, struct parse_error *error) {
	uint64_t ppm;
	int err = parse_percent_ppm(value, strlen(value), 0, 1000000, error, &ppm);

	if (err == 0)
		options->runs.margin_ppm = (uint32_t)ppm;
	options->runs.margin_given = true;
	return err;
}

static int set_run(struct options *options, const char *value, struct parse_error *error) {
	struct plan *plan = &options->session.plan;
	size_t length = strcspn(value, "/");
	uint64_t run, runs;

	if (value[length] == '\0')
		return parse_fail(
			error, -EINVAL, value, length, "is not a run N/K, for example 3/8"
		);
	if (parse_u64(value, length, 1, PLAN_RUNS_MAX, error, &run) != 0 ||
	    parse_u64(
		    value + length + 1, strlen(value + length + 1), run, PLAN_RUNS_MAX, error, &runs
	    ) != 0)
		return -EINVAL;
	plan->run = (uint32_t)run;
	plan->runs = (uint32_t)runs;
	options->session.patience_ns = RUN_PATIENCE_NS;
	return 0;
}

static int parse_path(const char *value, struct parse_error *error, const char **ret_path) {
	if (value[0] == '\0')
		return parse_fail(error, -EINVAL, value, 0, "is not a file name");
	*ret_path = value;
	return 0;
}

static int set_json(struct options *options, const char *value, struct parse_error *error) {
	return parse_path(value, error, &options->json_path);
}

static int set_json_bytes(struct options *options, const char *value, struct parse_error *error) {
	uint64_t bytes;
	int err = parse_size_bytes(
		value, strlen(value), RESULT_FILE_BYTES_MIN, RESULT_FILE_BYTES, error, &bytes
	);

	if (err == 0)
		options->session.file_bytes = bytes;
	return err;
}

static int set_csv(struct options *options, const char *value, struct parse_error *error) {
	return parse_path(value, error, &options->csv_path);
}

static int set_hgrm(struct options *options, const char *value, struct parse_error *error) {
	return parse_path(value, error, &options->hgrm_path);
}

static int set_html(struct options *options, const char *value, struct parse_error *error) {
	return parse_path(value, error, &options->html_path);
}

static int set_svg(struct options *options, const char *value, struct parse_error *error) {
	return parse_path(value, error, &options->svg_path);
}

static int set_perftest(struct options *options, const char *value, struct parse_error *error) {
	(void)value;
	(void)error;
	options->perftest = true;
	return 0;
}

static const struct option rows[] = {
	OPTION("--fail-if", set_fail_if, 0, OPTION_CLIENT),
	OPTION("--json", set_json, 0, OPTION_CLIENT),
	OPTION("--json-bytes", set_json_bytes, 0, OPTION_CLIENT),
	OPTION("--run", set_run, 0, OPTION_BOTH),
	OPTION("--runs", set_runs, 0, OPTION_CLIENT),
	OPTION("--against", set_against, 0, OPTION_CLIENT),
	OPTION("--margin", set_runs_margin, 0, OPTION_CLIENT),
	OPTION("--csv", set_csv, 0, OPTION_CLIENT),
	OPTION("--hgrm", set_hgrm, 0, OPTION_CLIENT),
	OPTION("--html", set_html, 0, OPTION_CLIENT),
	OPTION("--svg", set_svg, 0, OPTION_MESH),
	OPTION_FLAG("--perftest", set_perftest, 0, OPTION_CLIENT),
};

const struct option_table options_of_result = OPTION_TABLE(rows);

// If two options named the same file, the second would overwrite the first.
int options_check_files(const struct options *options) {
	const struct {
		const char *option, *path;
	} files[] = {
		{"--json", options->json_path}, {"--csv", options->csv_path},
		{"--hgrm", options->hgrm_path}, {"--html", options->html_path},
		{"--svg", options->svg_path},
	};

	for (size_t n = 1; n < sizeof(files) / sizeof(files[0]); n++) {
		for (size_t other = 0; other < n; other++) {
			if (files[n].path != NULL && files[other].path != NULL &&
			    strcmp(files[n].path, files[other].path) == 0)
				return option_fail(files[n].option, "another option has this file");
		}
	}
	return 0;
}
