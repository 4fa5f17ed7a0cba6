// SPDX-License-Identifier: BSD-3-Clause
// Tables of options, one per subject, and the parser that uses them.
#pragma once

#include "options/options.h"

#include <lib/parse.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Commands that accept an option. Options about a result belong to the client.
enum option_owner { OPTION_BOTH, OPTION_CLIENT, OPTION_SERVER, OPTION_MESH };

struct option {
	const char *name;
	// `value` is NULL for a flag without a value.
	int (*set)(struct options *options, const char *value, struct parse_error *error);
	uint32_t part; // PLAN_PART_ bit that the option sets, or 0
	enum option_owner owner;
	bool is_flag;	    // no value follows
	bool may_be_valued; // a flag with an optional value behind "="
};
#define OPTION(name, set, part, owner) \
	{ name, set, part, owner, false, false }
#define OPTION_FLAG(name, set, part, owner) \
	{ name, set, part, owner, true, false }
#define OPTION_FLAG_VALUED(name, set, part, owner) \
	{ name, set, part, owner, true, true }

struct option_table {
	const struct option *options;
	size_t count;
};
#define OPTION_TABLE(array) \
	{ (array), sizeof(array) / sizeof((array)[0]) }

extern const struct option_table options_of_plan, options_of_place, options_of_result,
	options_of_mesh;

// Arguments that are no option values: HOST, and the last option given of each kind. NULL: none.
struct option_words {
	const char *host;
	const char *of_client, *of_server, *of_mesh;
	const char *of_place; // last option about the place, for either end
};

// Parse all arguments behind the command. Returns 0, or -EINVAL after an error message on standard
// error.
int options_parse_arguments(
	int argc, char **argv, struct options *options, struct option_words *ret_words
);
// Return the name of an option that sets one of these parts of the plan, or NULL.
const char *options_part_name(uint32_t parts);
// Print an error about an option on standard error. Always returns -EINVAL.
int option_fail(const char *option, const char *text);
int option_parse_u32(
	const char *value,
	uint32_t min,
	uint32_t max,
	struct parse_error *error,
	uint32_t *ret_value
);

// Initialize the options of a command that measures. After parsing, options_apply_defaults() sets
// values that depend on other options.
void options_begin(int argc, char **argv, enum plan_command command, struct options *ret_options);
void options_apply_defaults(struct options *options);
// Check that no two options name the same file. Returns 0, or -EINVAL after an error message on
// standard error.
int options_check_files(const struct options *options);

int options_parse_measure(
	int argc, char **argv, enum plan_command command, struct options *options
);
int options_parse_mesh(int argc, char **argv, struct options *options);
