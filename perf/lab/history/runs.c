// SPDX-License-Identifier: BSD-3-Clause
// Start this program once per run, and compare the results.
#include "history/runs.h"

#include "report/json.h"
#include "run/again.h"

#include <lib/error.h>
#include <lib/parse.h>

#include <jansson.h>

#include <errno.h>
#include <math.h>
#include <quantile.h>
#include <ranks.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ARGUMENTS_MAX 256
#define PATH_BYTES 512
#define TEXT_BYTES 64
#define COLUMNS 4 // quantiles in the table

struct arguments {
	char *words[ARGUMENTS_MAX + 1];
	uint32_t count;
	char own[2 * TEXT_BYTES + PATH_BYTES]; // strings of --run and --json
	char against[PATH_BYTES];
};

// Return the contender and the number of the run at an index of the whole sequence, from 0. Side 0
// is A.
static void runs_turn(uint32_t place, bool contended, uint32_t *ret_side, uint32_t *ret_number) {
	static const uint32_t sides[4] = {0, 1, 1, 0};

	*ret_side = contended ? sides[place % 4] : 0;
	*ret_number = contended ? place / 2 + 1 : place + 1;
}

// Return the file name of a run: "r.json" becomes "r.3.json", with contenders "r.a3.json".
static void
runs_file_name(const struct runs *runs, uint32_t side, uint32_t number, char *text, size_t size) {
	size_t length = strlen(runs->json_path);
	bool named = length > 5 && strcmp(runs->json_path + length - 5, ".json") == 0;
	const char *letter = runs->against == NULL ? "" : side == 0 ? "a" : "b";

	snprintf(
		text, size, "%.*s.%s%u.json", (int)(named ? length - 5 : length), runs->json_path,
		letter, number
	);
}

static int add_word(struct arguments *arguments, char *word, struct lab_why *why) {
	if (arguments->count == ARGUMENTS_MAX)
		return lab_fail(why, -E2BIG, "more than %d options", ARGUMENTS_MAX);
	arguments->words[arguments->count++] = word;
	arguments->words[arguments->count] = NULL;
	return 0;
}

// Return true for options of the whole series, which are not passed to a single run.
static bool option_is_for_runs(const char *word, bool *ret_has_value) {
	static const char *const names[] = {"--runs", "--against", "--json", "--margin"};

	for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
		size_t length = strlen(names[n]);

		if (strncmp(word, names[n], length) != 0)
			continue;
		*ret_has_value = word[length] == '=';
		if (*ret_has_value || word[length] == '\0')
			return true;
	}
	return false;
}

static int make_arguments(
	const struct runs *runs,
	uint32_t place,
	const char *path,
	struct arguments *arguments,
	struct lab_why *why
) {
	uint32_t side, number, total = runs->against != NULL ? 2 * runs->count : runs->count;
	bool has_value;
	int err = 0, length;

	arguments->count = 0;
	runs_turn(place, runs->against != NULL, &side, &number);
	for (int n = 0; n < runs->argc && err == 0; n++) {
		if (!option_is_for_runs(runs->argv[n], &has_value))
			err = add_word(arguments, runs->argv[n], why);
		else if (!has_value)
			n++;
	}
	if (err == 0 && side == 1) {
		char *save = NULL, *word;

		length = snprintf(
			arguments->against, sizeof(arguments->against), "%s", runs->against
		);
		if ((size_t)length >= sizeof(arguments->against))
			return lab_fail(
				why, -E2BIG, "--against has more than %d bytes", PATH_BYTES - 1
			);
		for (word = strtok_r(arguments->against, " \t", &save); word != NULL && err == 0;
		     word = strtok_r(NULL, " \t", &save))
			err = add_word(arguments, word, why);
	}
	length = snprintf(arguments->own, sizeof(arguments->own), "--run=%u/%u", place + 1, total);
	if (err == 0)
		err = add_word(arguments, arguments->own, why);
	snprintf(
		arguments->own + length + 1, sizeof(arguments->own) - (size_t)length - 1,
		"--json=%s", path
	);
	return err == 0 ? add_word(arguments, arguments->own + length + 1, why) : err;
}

static int play_run(
	const struct runs *runs,
	uint32_t place,
	const char *path,
	int *ret_status,
	struct lab_why *why
) {
	struct arguments *arguments = calloc(1, sizeof(*arguments));
	int err;

	if (arguments == NULL)
		return lab_fail(why, -ENOMEM, "no memory");
	err = make_arguments(runs, place, path, arguments, why);
	if (err == 0)
		err = again_run_child(arguments->words, runs->signal_fd, ret_status, why);
	free(arguments);
	return err;
}

struct collection {
	struct versus versus;
	char paths[2][VERSUS_FILES_MAX][PATH_BYTES];
	json_t *roots[2][VERSUS_FILES_MAX];
};

static int play_all_runs(
	const struct runs *runs, struct collection *collection, int *ret_status, struct lab_why *why
) {
	uint32_t total = runs->against != NULL ? 2 * runs->count : runs->count;
	int err = 0;

	for (uint32_t place = 0; place < total && err == 0; place++) {
		struct versus *versus = &collection->versus;
		uint32_t side, number, at;
		char *path;

		runs_turn(place, runs->against != NULL, &side, &number);
		at = versus->counts[side];
		path = collection->paths[side][at];
		runs_file_name(runs, side, number, path, PATH_BYTES);
		fprintf(stderr, "run %u of %u%s\n", place + 1, total,
			runs->against == NULL ? ""
			: side == 0	      ? ", A"
					      : ", B");
		err = play_run(runs, place, path, ret_status, why);
		if (err != 0 || *ret_status != 0)
			return err;
		versus->paths[side][at] = path;
		collection->roots[side][at] = json_load_file(path, 0, NULL);
		versus->counts[side]++;
	}
	return err;
}

static const json_t *
run_result(const struct collection *collection, int side, uint32_t n, uint32_t size) {
	return json_array_get(json_object_get(collection->roots[side][n], "results"), size);
}

static void print_cell(double value_ns) {
	if (isnan(value_ns))
		printf(" %10s", "n/a");
	else
		printf(" %10.3f", value_ns / 1e3);
}

static const char *side_letter(const struct collection *collection, int side) {
	if (collection->versus.counts[1] == 0)
		return "";
	return side == 0 ? "A" : "B";
}

// Print the median of all runs with its interval by order statistics, since runs are independent.
static void
print_over_runs(const struct collection *collection, int side, uint32_t size, int place) {
	uint32_t count = collection->versus.counts[side];
	double values[VERSUS_FILES_MAX];
	struct quantile_ranks ranks;
	char name[RESULT_QUANTILE_BYTES];

	if (count == 0) // a run of the other contender failed first
		return;
	for (uint32_t n = 0; n < count; n++) {
		values[n] = versus_figure_ns(run_result(collection, side, n, size), place);
		if (isnan(values[n]))
			return;
	}
	qsort(values, count, sizeof(values[0]), doubles_compare);
	result_quantile_name(result_per_million[place], name);
	printf("  %s%s: %-5s %10.3f", side_letter(collection, side),
	       collection->versus.counts[1] > 0 ? " over runs" : "over runs", name,
	       (values[(count - 1) / 2] + values[count / 2]) / 2e3);
	if (quantile_interval(count, count, QUANTILE_ONE / 2, VERSUS_LEVEL, &ranks) == 0)
		printf("  %10.3f .. %10.3f", values[ranks.low - 1] / 1e3,
		       values[ranks.high - 1] / 1e3);
	else
		printf("  95 %% interval: n/a, needs %llu runs",
		       (unsigned long long)quantile_samples_min(QUANTILE_ONE / 2, VERSUS_LEVEL));
	printf("  spread %.1f %%\n", 100 * (values[count - 1] - values[0]) / values[count / 2]);
}

static void print_size(const struct collection *collection, uint32_t size, bool contended) {
	const json_t *result = run_result(collection, 0, 0, size);
	char bytes[PARSE_TEXT_BYTES];

	format_size_bytes(
		(uint64_t)json_integer_value(json_object_get(result, "size_bytes")), bytes
	);
	printf("\n%s, us%s\n  %-7s %10s %10s %10s %10s %10s\n", bytes,
	       json_object_get(result, "window_messages") != NULL ? " per message" : "", "run",
	       "p50", "p90", "p99", "p99.9", "max");
	for (int side = 0; side < (contended ? 2 : 1); side++) {
		for (uint32_t n = 0; n < collection->versus.counts[side]; n++) {
			result = run_result(collection, side, n, size);
			printf("  %s%-*u", side_letter(collection, side),
			       collection->versus.counts[1] > 0 ? 6 : 7, n + 1);
			for (int place = 0; place < COLUMNS; place++)
				print_cell(versus_figure_ns(result, place));
			print_cell(versus_figure_ns(result, -1));
			printf("\n");
		}
		for (int place = 0; place < COLUMNS; place++)
			print_over_runs(collection, side, size, place);
	}
}

static void print_runs(const struct runs *runs, const struct collection *collection) {
	const json_t *root = collection->roots[0][0];
	const json_t *plan = json_object_get(root, "plan");
	size_t sizes = json_array_size(json_object_get(root, "results"));

	printf("%s: %u run%s, each with new processes\n", json_member_text(plan, "op"), runs->count,
	       PLURAL(runs->count));
	if (runs->against != NULL)
		printf("B: with %.80s\n", runs->against);
	for (uint32_t size = 0; size < sizes; size++)
		print_size(collection, size, runs->against != NULL);
}

int runs_make_directory(
	char directory[static RUNS_DIRECTORY_BYTES],
	char path[static RUNS_FILE_BYTES],
	struct lab_why *why
) {
	// NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it
	const char *temporary = getenv("TMPDIR");

	snprintf(
		directory, RUNS_DIRECTORY_BYTES, "%s/tocsin-perf-XXXXXX",
		temporary != NULL ? temporary : "/tmp"
	);
	if (mkdtemp(directory) == NULL)
		return lab_fail(why, neg_errno(), "%s: %s", directory, strerrordesc_np(errno));
	snprintf(path, RUNS_FILE_BYTES, "%s/r.json", directory);
	return 0;
}

static int collection_compare(
	const struct collection *collection, struct versus_result *ret_result, struct lab_why *why
) {
	static struct versus_values values;
	int err = versus_load(&collection->versus, why, &values);

	if (err == 0 && versus_judge(&collection->versus, &values, ret_result) != 0)
		err = lab_fail(why, -ENOMEM, "no memory");
	if (err != 0)
		return err;
	printf("\n");
	versus_print(&collection->versus, ret_result);
	return 0;
}

int runs_play(
	const struct runs *wanted,
	struct versus_result *ret_result,
	int *ret_status,
	struct lab_why *why
) {
	struct collection *collection = calloc(1, sizeof(*collection));
	char directory[RUNS_DIRECTORY_BYTES] = "", file[RUNS_FILE_BYTES];
	struct runs runs = *wanted;
	int err = 0;

	*ret_status = 0;
	if (collection == NULL)
		return lab_fail(why, -ENOMEM, "no memory");
	collection->versus.margin_ppm = runs.margin_ppm;
	collection->versus.ops_may_differ = true;
	if (runs.json_path == NULL) {
		err = runs_make_directory(directory, file, why);
		runs.json_path = file;
	}
	if (err != 0) {
		free(collection);
		return err;
	}
	err = play_all_runs(&runs, collection, ret_status, why);
	if (collection->versus.counts[0] > 0)
		print_runs(&runs, collection);
	if (err == 0 && *ret_status == 0 && runs.against != NULL)
		err = collection_compare(collection, ret_result, why);

	for (uint32_t side = 0; side < 2; side++) {
		for (uint32_t number = 1; number <= runs.count && directory[0] != '\0'; number++) {
			char path[PATH_BYTES];

			runs_file_name(&runs, side, number, path, sizeof(path));
			unlink(path);
		}
		for (uint32_t n = 0; n < collection->versus.counts[side]; n++)
			json_decref(collection->roots[side][n]);
	}
	if (directory[0] != '\0')
		rmdir(directory);
	free(collection);
	return err;
}
