// SPDX-License-Identifier: BSD-3-Clause
// Options in tables, one of each subject, and how a command takes its words.
#pragma once

#include "options.h"

#include <lib/parse.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Who may have it: options about a result are the client's.
enum option_owner { OPTION_BOTH, OPTION_CLIENT, OPTION_SERVER, OPTION_MESH };

struct option {
	const char *name;
	// `value` is NULL of a flag alone.
	int (*set)(struct options *options, const char *value, struct parse_error *error);
	uint32_t part; // of the plan
	enum option_owner owner;
	bool is_flag;	    // no value follows
	bool may_be_valued; // a flag, but for one behind "="
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

// What a command line said besides values: the last option that only such an owner has, or NULL.
struct option_words {
	const char *host;
	const char *of_client, *of_server, *of_mesh;
	const char *of_place; // of whomever
};

// All words behind the command's name. -EINVAL: what is wrong was said on standard error.
int options_take_words(
	int argc, char **argv, struct options *options, struct option_words *ret_words
);
// The name of one that sets one of these parts of the plan, or NULL.
const char *options_name_of_part(uint32_t parts);
// Says it on standard error. Always -EINVAL.
int option_fail(const char *option, const char *text);
int option_parse_u32(
	const char *value,
	uint32_t min,
	uint32_t max,
	struct parse_error *error,
	uint32_t *ret_value
);

// Where all commands that measure begin; then what follows from options for others.
void options_begin(int argc, char **argv, enum plan_command command, struct options *ret_options);
void options_settle(struct options *options);
// Whether each file has one option. -EINVAL, said on standard error.
int options_check_files(const struct options *options);

int options_parse_measure(
	int argc, char **argv, enum plan_command command, struct options *options
);
int options_parse_mesh(int argc, char **argv, struct options *options);
