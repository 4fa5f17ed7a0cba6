// SPDX-License-Identifier: BSD-3-Clause
// Command lines and exit statuses of verify, compare and history.
#include "history/kept.h"

#include "history/history.h"
#include "history/page_history.h"
#include "history/page_policies.h"
#include "history/page_versus.h"
#include "history/policies.h"
#include "history/versus.h"
#include "mesh/mesh_matrices.h"
#include "mesh/mesh_output.h"
#include "mesh/page_mesh.h"
#include "report/json.h"
#include "report/net.h"
#include "report/output.h"
#include "report/page_run.h"
#include "run/exit_status.h"

#include <lib/parse.h>

#include <jansson.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MARGIN_PPM 20000

// Command line of one command, with the current position.
struct words {
	int argc, at;
	char **argv;
	const char *html_path, *svg_path;
};

// Match the current argument with an option. Its value follows "=" or is the next argument;
// *ret_value is NULL if there is none.
static bool option_match(struct words *words, const char *option, const char **ret_value) {
	const char *word = words->argv[words->at];
	size_t length = strlen(option);

	if (strncmp(word, option, length) != 0 || (word[length] != '=' && word[length] != '\0'))
		return false;
	if (word[length] == '=')
		*ret_value = word + length + 1;
	else
		*ret_value = words->at + 1 < words->argc ? words->argv[++words->at] : NULL;
	return true;
}

// Parse an option whose value is a file. Returns 1 if the argument is this option, 0 if not, or the
// negative exit status.
static int parse_path_option(struct words *words, const char *option, const char **ret_path) {
	const char *value;

	if (!option_match(words, option, &value))
		return 0;
	if (value == NULL || value[0] == '\0')
		return -output_usage_error(option, "needs a file");
	*ret_path = value;
	return 1;
}

static bool page_is_standard_output(const struct words *words) {
	return (words->html_path != NULL && strcmp(words->html_path, "-") == 0) ||
	       (words->svg_path != NULL && strcmp(words->svg_path, "-") == 0);
}

static int page_write_html(const json_t *root, const char *path, struct lab_why *why) {
	static const struct {
		const char *schema;
		int (*draw)(const json_t *root, const char *path, struct lab_why *why);
	} kinds[] = {
		{LAB_JSON_SCHEMA, page_run_json},
		{MESH_JSON_SCHEMA, page_mesh_json},
		{POLICIES_JSON_SCHEMA, page_policies},
	};
	const char *schema = json_string_value(json_object_get(root, "schema"));

	for (size_t n = 0; schema != NULL && n < sizeof(kinds) / sizeof(kinds[0]); n++) {
		if (strcmp(schema, kinds[n].schema) == 0)
			return kinds[n].draw(root, path, why);
	}
	return lab_fail(why, -EINVAL, "a result of net has no page");
}

// Return the exit status of an option that the file's schema does not allow, or 0.
static int reject_picture_options(const struct words *words, const char *schema) {
	if (words->html_path != NULL && strcmp(schema, NET_JSON_SCHEMA) == 0)
		return output_usage_error("--html", "a result of net has no page");
	if (words->svg_path != NULL && strcmp(schema, MESH_JSON_SCHEMA) != 0)
		return output_usage_error("--svg", "needs a result of mesh");
	return 0;
}

// Verify one file. An unreadable file and a differing figure have different exit statuses.
static int verify_file(const struct words *words, const char *path) {
	struct lab_why why = {.text = ""};
	json_t *root;
	int err = verify_load(path, &why, &root), status;

	if (err != 0) {
		output_failure(&why);
		return err == -EUCLEAN ? EXIT_EXCEEDED : EXIT_FAILED;
	}
	status = reject_picture_options(words, json_member_text(root, "schema"));
	if (status != 0) {
		json_decref(root);
		return status;
	}
	if (!page_is_standard_output(words))
		printf("%s: %s.\n", path,
		       mesh_has_matrices(root)
			       ? "the summary matches the medians in the file; a mesh this large "
				 "stores no histograms, so the medians are not checked"
			       : "each figure follows from the data in the file");
	if (words->html_path != NULL)
		err = page_write_html(root, words->html_path, &why);
	if (err == 0 && words->svg_path != NULL)
		err = mesh_write_svg_json(root, words->svg_path, &why);
	json_decref(root);
	return err == 0 ? EXIT_DONE : output_failure(&why);
}

static int run_verify(struct words *words) {
	const char *path = NULL;

	for (; words->at < words->argc; words->at++) {
		int taken = parse_path_option(words, "--html", &words->html_path);

		if (taken == 0)
			taken = parse_path_option(words, "--svg", &words->svg_path);
		if (taken < 0)
			return -taken;
		if (taken > 0)
			continue;
		if (words->argv[words->at][0] == '-')
			return output_usage_error(
				words->argv[words->at], "is not an option of verify"
			);
		if (path != NULL)
			return output_usage_error("verify", "needs one FILE");
		path = words->argv[words->at];
	}
	if (words->html_path != NULL && words->svg_path != NULL &&
	    strcmp(words->html_path, words->svg_path) == 0)
		return output_usage_error("--svg", "another option has this file");
	return path != NULL ? verify_file(words, path)
			    : output_usage_error("verify", "needs one FILE");
}

static int set_margin(const char *value, uint32_t *ret_margin_ppm) {
	struct parse_error error = {.text = ""};
	uint64_t ppm;

	if (value == NULL)
		return output_usage_error("--margin", "needs a value");
	if (parse_percent_ppm(value, strlen(value), 0, 1000000, &error, &ppm) != 0)
		return output_usage_error("--margin", error.text);
	*ret_margin_ppm = (uint32_t)ppm;
	return 0;
}

int versus_exit_status(const struct versus_result *result) {
	int status = result->claims > 0 ? EXIT_DONE : EXIT_UNDECIDED;

	for (uint32_t n = 0; n < result->row_count; n++) {
		enum versus_outcome word = result->rows[n].word;

		if (word == VERSUS_SLOWER)
			return EXIT_EXCEEDED;
		if (word == VERSUS_UNDECIDED || word == VERSUS_TOO_FEW_RUNS)
			status = EXIT_UNDECIDED;
	}
	return status;
}

static int run_comparison(const struct words *words, const struct versus *versus) {
	static struct versus_result result;
	static struct versus_values values;
	struct lab_why why = {.text = ""};

	if (versus_load(versus, &why, &values) != 0)
		return output_failure(&why);
	if (versus_judge(versus, &values, &result) != 0)
		return output_usage_error("compare", "no memory");
	if (!page_is_standard_output(words))
		versus_print(versus, &result);
	if (words->html_path != NULL &&
	    page_versus(versus, &values, &result, words->html_path, &why) != 0)
		return output_failure(&why);
	return versus_exit_status(&result);
}

static int run_compare(struct words *words) {
	static struct versus versus;
	const char *value;
	int side = 0;

	versus.margin_ppm = MARGIN_PPM;
	for (; words->at < words->argc; words->at++) {
		const char *word = words->argv[words->at];
		int status = parse_path_option(words, "--html", &words->html_path);

		if (status < 0)
			return -status;
		if (status > 0)
			continue;
		if (strcmp(word, "--with") == 0 && side == 0) {
			side = 1;
			continue;
		}
		if (option_match(words, "--margin", &value)) {
			status = set_margin(value, &versus.margin_ppm);
			if (status != 0)
				return status;
			continue;
		}
		if (word[0] == '-')
			return output_usage_error(
				word, "is not an option of compare, or is given twice"
			);
		if (versus.counts[side] == VERSUS_FILES_MAX)
			return output_usage_error(
				"compare", "at most 60 files on each side of --with"
			);
		versus.paths[side][versus.counts[side]++] = word;
	}
	if (versus.counts[0] == 0 || versus.counts[1] == 0)
		return output_usage_error("compare", "needs files on both sides of --with");
	return run_comparison(words, &versus);
}

static int
report_history(const struct words *words, const char *directory, struct history *history) {
	struct lab_why why = {.text = ""};

	if (history_read(directory, &why, history) != 0)
		return output_failure(&why);
	if (!page_is_standard_output(words))
		history_print(history);
	if (words->html_path != NULL && page_history(history, words->html_path, &why) != 0)
		return output_failure(&why);
	if (history_is_slower(history))
		return EXIT_EXCEEDED;
	return history_is_undecided(history) ? EXIT_UNDECIDED : EXIT_DONE;
}

static int run_history(struct words *words) {
	struct history history = {.margin_ppm = MARGIN_PPM};
	const char *directory = NULL, *value;
	int status;

	for (; words->at < words->argc; words->at++) {
		const char *word = words->argv[words->at];
		int taken = parse_path_option(words, "--html", &words->html_path);

		if (taken < 0)
			return -taken;
		if (taken > 0)
			continue;
		if (option_match(words, "--margin", &value)) {
			status = set_margin(value, &history.margin_ppm);
			if (status != 0)
				return status;
			continue;
		}
		if (word[0] == '-')
			return output_usage_error(word, "is not an option of history");
		if (directory != NULL)
			return output_usage_error("history", "needs one DIRECTORY");
		directory = word;
	}
	if (directory == NULL)
		return output_usage_error("history", "needs one DIRECTORY");
	status = report_history(words, directory, &history);
	history_release(&history);
	return status;
}

static const struct {
	const char *name;
	int (*run)(struct words *words);
} verbs[] = {
	{"verify", run_verify},
	{"compare", run_compare},
	{"history", run_history},
};

#define COMMAND_COUNT (sizeof(verbs) / sizeof(verbs[0]))

bool kept_is_command(const char *word) {
	for (size_t n = 0; n < COMMAND_COUNT; n++) {
		if (strcmp(word, verbs[n].name) == 0)
			return true;
	}
	return false;
}

int kept_main(int argc, char **argv) {
	struct words words = {.argc = argc, .at = 2, .argv = argv};

	for (size_t n = 0; n < COMMAND_COUNT; n++) {
		if (strcmp(argv[1], verbs[n].name) == 0)
			return verbs[n].run(&words);
	}
	return EXIT_USAGE;
}
