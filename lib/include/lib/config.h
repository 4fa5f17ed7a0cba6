// SPDX-License-Identifier: BSD-3-Clause
// The configuration: an INI file and --set arguments, checked against one table of keys.
//
// Only the table knows the keys. It gives section, name, type, bounds and default. It also says
// whether a reload applies a change, and has the help text of the man page. A load succeeds
// completely or not at all. Every error is reported with its place, its value and the allowed
// values. For a mistyped name, the nearest known name is added.
//
//	[probe]
//	interval = 100ms         # "key = value"; a comment begins a line or follows a blank
//	[device mlx5_0]          # a section that may occur once per name
//	gid_index = 3
//
// A section may be opened more than once. A key may be given once in the file and once by --set,
// which takes precedence. Limits: the constants below. Text is UTF-8 without control characters.
//
// A loaded configuration never changes, so any thread may read it. The getters abort (must()) if
// the key is unknown or of another type: that is a bug of the caller.
#pragma once

#include <lib/parse.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define CONFIG_FILE_BYTES_MAX ((size_t)1024 * 1024)
#define CONFIG_LINE_BYTES_MAX 4096
#define CONFIG_VALUE_BYTES_MAX 4000
#define CONFIG_SECTIONS_MAX 256
#define CONFIG_NAME_BYTES_MAX 64 // of a section's instance: the mlx5_0 of [device mlx5_0]
#define CONFIG_ORIGIN_BYTES 512

enum config_type {
	CONFIG_BOOL,	 // yes or no
	CONFIG_INT,	 // bounds: min and max
	CONFIG_DURATION, // bounds in nanoseconds
	CONFIG_SIZE,	 // bounds in bytes
	CONFIG_STRING,	 // bounds of its length in bytes; `check`, if set, validates the text
	CONFIG_ENUM,	 // one of `choices`
	CONFIG_LIST,	 // items between commas; bounds of their count; `check` validates each item
};

// Validate a string, or one item of a list. Returns 0, or fills *error with parse_fail() and
// returns -errno. If the error text lacks the word "allowed", the allowed values of the key are
// appended.
typedef int config_check_fn(const char *text, size_t length, struct parse_error *error);

// Checks for two types of lib/: a hostlist of at most CONFIG_HOSTLIST_COUNT_MAX names, and a set of
// processors (of this or another machine). Both accept empty text; the key's min may reject it.
#define CONFIG_HOSTLIST_COUNT_MAX 100000
config_check_fn config_check_hostlist;
config_check_fn config_check_cpu_set;

struct config_key {
	// "probe", or "device NAME" if the section occurs once per name; the keys of one section
	// are adjacent in the table
	const char *section;
	const char *name;
	enum config_type type;
	bool reloadable; // SIGHUP applies a change; otherwise a restart is needed
	int64_t min;
	int64_t max;
	const char *const *choices; // CONFIG_ENUM: ends with NULL
	config_check_fn *check;	    // CONFIG_STRING and CONFIG_LIST; may be NULL
	// Allowed values in words, "a hostlist such as node[001-128]"; NULL: derived from type and
	// bounds.
	const char *allowed;
	const char *initial; // default, as a user would write it; NULL: the key is required
	const char *help;    // one or more sentences
};

struct config;
struct config_load; // load in progress, for config_reject_key()

// Find keys that contradict each other. The loader calls this also if some values were rejected. A
// rejected value holds its default, or empty text or 0 without a default; config_key_is_valid()
// detects it. Not called if a file could not be read.
typedef void config_conflict_fn(const struct config *config, struct config_load *load);

struct config_schema {
	const struct config_key *keys; // must outlive every configuration made from them
	size_t key_count;
	config_conflict_fn *conflict; // may be NULL
};

struct config_input {
	const char
		*path; // opened unless `stream` is given; NULL: no file, settings and defaults only
	FILE *stream;  // read to its end, not closed; `path` is then its name in messages
	const char *const *settings; // "section.key=value" or "section.name.key=value"
	size_t setting_count;
};

struct config_reporter {
	void (*report)(void *context, const char *message); // one line, without newline
	void *context;
};

struct config_list {
	const char *const *items;
	size_t count;
};

// Load a configuration and report every error. One thread at a time, because inih has global
// switches.
// Returns 0, -EINVAL (wrong text), -EFBIG (file too large), the error of opening or reading the
// file, or -ENOMEM. All but -ENOMEM are reported.
int config_load(
	const struct config_schema *schema,
	const struct config_input *input,
	const struct config_reporter *reporter,
	struct config **ret_config
);
struct config *config_destroy(struct config *config);

// Report "place: [section] key = value: reason" and fail the load. For config_conflict_fn. The key
// is not valid afterwards.
__attribute__((format(printf, 4, 5))) void config_reject_key(
	struct config_load *load, const char *section, const char *key, const char *format, ...
);

// Return true if the key holds the given value, or its default because none was given. For
// config_conflict_fn. False means that the given value was already reported as wrong, so conclude
// nothing from the stored one.
bool config_key_is_valid(const struct config_load *load, const char *section, const char *key);

// Getters: `section` is "probe" or "device mlx5_0".
bool config_get_bool(const struct config *config, const char *section, const char *key);
int64_t config_get_int(const struct config *config, const char *section, const char *key);
uint64_t config_get_duration_ns(const struct config *config, const char *section, const char *key);
uint64_t config_get_size_bytes(const struct config *config, const char *section, const char *key);
const char *config_get_string(const struct config *config, const char *section, const char *key);
// Return the index into the key's choices.
size_t config_get_enum(const struct config *config, const char *section, const char *key);
const struct config_list *
config_get_list(const struct config *config, const char *section, const char *key);

// Write the origin of a value: "default", "/etc/tocsin/tocsin.conf:12" or "--set". Truncated if it
// does not fit.
void config_get_origin(
	const struct config *config,
	const char *section,
	const char *key,
	char text[static CONFIG_ORIGIN_BYTES]
);

// Return the index-th named section of a kind: sections of the file in its order, then new ones of
// --set. For "device", that may be "device mlx5_0". NULL past the last.
const char *config_get_section(const struct config *config, const char *kind, size_t index);
// Return the "mlx5_0" of "device mlx5_0".
const char *config_section_name(const char *section);

// Print the effective configuration as a file that loads to the same values. Each line has a
// comment with the origin of its value. Returns 0 or -errno of writing.
int config_print(const struct config *config, FILE *stream);

// Print the key list of the man page in man(7): a subsection per section, a paragraph per key.
// Returns 0 or -errno of writing.
int config_print_man(const struct config_schema *schema, FILE *stream);

// One difference between two configurations of one schema. An added or removed named section is one
// change, with key "" and the values "absent" and "present".
struct config_change {
	const char *section;
	const char *key;
	const char *before;
	const char *after;
	bool reloadable;
};

// Call on_change for each key whose value differs; 100ms and 0.1s are equal. Returns the number of
// changes that need a restart.
size_t config_compare(
	const struct config *before,
	const struct config *after,
	void (*on_change)(void *context, const struct config_change *change),
	void *context
);
