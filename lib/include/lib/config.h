// SPDX-License-Identifier: BSD-3-Clause
// The configuration: an INI file and --set arguments, read against one table of keys.
//
// The table is the only place that knows a key: it gives section, name, type, bounds, default,
// whether a reload can apply a change, and the help that the man page prints. Reading is all or
// nothing: every error is reported, each with its place, value, what is allowed and, for a
// mistyped name, the nearest known one; a configuration exists only if there was none.
//
//	[probe]
//	interval = 100ms         # "key = value"; a comment begins a line or follows a blank
//	[device mlx5_0]          # a section that may occur once per name
//	gid_index = 3
//
// A section may be opened more than once; a key may be given once in the file and once by --set,
// which wins. Limits: the constants below. Text is
// UTF-8 without control characters.
//
// A configuration never changes once it is loaded: any thread may read it. The getters must()
// find the key with the type they are asked for: a wrong name is our own mistake.
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
#define CONFIG_NAME_BYTES_MAX 64 // of a section's instance, the mlx5_0 of [device mlx5_0]
#define CONFIG_ORIGIN_BYTES 512

enum config_type {
	CONFIG_BOOL,	 // yes or no
	CONFIG_INT,	 // min and max are its bounds
	CONFIG_DURATION, // bounds in nanoseconds
	CONFIG_SIZE,	 // bounds in bytes
	CONFIG_STRING,	 // bounds of its length in bytes; check, if there is one, decides the rest
	CONFIG_ENUM,	 // one of choices
	CONFIG_LIST,	 // items between commas; bounds of their count; check sees each item
};

// Whether a string, or one item of a list, is acceptable. Returns 0, or fills *error (with
// parse_fail()) and returns -errno. What the key takes is added to a sentence that does not say
// what is "allowed".
typedef int config_check_fn(const char *text, size_t length, struct parse_error *error);

// Checks for what lib can read: a hostlist of at most CONFIG_HOSTLIST_COUNT_MAX names, a set of
// processors (of this or another machine). Empty text passes: the key's min may refuse it.
#define CONFIG_HOSTLIST_COUNT_MAX 100000
config_check_fn config_check_hostlist;
config_check_fn config_check_cpu_set;

struct config_key {
	const char *section; // "probe", or "device NAME" if the section is given once per name;
			     // the keys of one section stand together in the table
	const char *name;
	enum config_type type;
	bool reloadable; // SIGHUP applies a change; else it needs a restart
	int64_t min;
	int64_t max;
	const char *const *choices; // CONFIG_ENUM: ends in NULL
	config_check_fn *check;	    // CONFIG_STRING and CONFIG_LIST; may be NULL
	const char *allowed; // in words, "a hostlist such as node[001-128]"; NULL: from the rest
	const char *initial; // as a user would write it; NULL: the key must be given
	const char *help;    // one or more sentences
};

struct config;
struct config_load; // a load under way, for config_reject()

// Called to find keys that contradict each other, also where some values were wrong: those hold
// their defaults (nothing, where there is none: an empty text, 0), and config_is_sound() tells
// which they are. Not called if a file could not be read.
typedef void config_conflict_fn(const struct config *config, struct config_load *load);

struct config_schema {
	const struct config_key *keys; // outlive every configuration made from them
	size_t key_count;
	config_conflict_fn *conflict; // may be NULL
};

struct config_input {
	const char
		*path; // opened unless stream is given; NULL: no file, settings and defaults only
	FILE *stream;  // read to its end, not closed; path is then its name in messages
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

// Reads the input, reporting every error. One thread at a time (inih has global switches).
// Returns 0; -EINVAL if the text is wrong, -EFBIG if there is too much of it, or why the file
// could not be opened or read, all reported; or -ENOMEM.
int config_load(
	const struct config_schema *schema,
	const struct config_input *input,
	const struct config_reporter *reporter,
	struct config **ret_config
);
struct config *config_destroy(struct config *config);

// For config_conflict_fn: reports "place: [section] key = value: reason" and fails the load. The
// key is not sound from then on.
__attribute__((format(printf, 4, 5))) void config_reject(
	struct config_load *load, const char *section, const char *key, const char *format, ...
);

// For config_conflict_fn: whether the key holds what was given, or its default as nothing was.
// False: what was given is reported already, and nothing should be concluded from what it holds.
bool config_is_sound(const struct config_load *load, const char *section, const char *key);

// section is "probe" or "device mlx5_0".
bool config_get_bool(const struct config *config, const char *section, const char *key);
int64_t config_get_int(const struct config *config, const char *section, const char *key);
uint64_t config_get_duration_ns(const struct config *config, const char *section, const char *key);
uint64_t config_get_size_bytes(const struct config *config, const char *section, const char *key);
const char *config_get_string(const struct config *config, const char *section, const char *key);
// The index into the key's choices.
size_t config_get_enum(const struct config *config, const char *section, const char *key);
const struct config_list *
config_get_list(const struct config *config, const char *section, const char *key);

// "default", "/etc/tocsin/tocsin.conf:12" or "--set"; cut if it does not fit.
void config_get_origin(
	const struct config *config,
	const char *section,
	const char *key,
	char text[static CONFIG_ORIGIN_BYTES]
);

// The index-th section of a kind that has names, in the order they came: for "device" it may be
// "device mlx5_0". NULL past the last.
const char *config_get_section(const struct config *config, const char *kind, size_t index);
// The "mlx5_0" of "device mlx5_0".
const char *config_section_name(const char *section);

// The effective configuration, as a file that would give it again, each line with a comment
// that says where the value came from. Returns 0 or -errno of writing.
int config_print(const struct config *config, FILE *stream);

// The key list of the man page, in man(7): a subsection per section, a paragraph per key.
// Returns 0 or -errno of writing.
int config_print_man(const struct config_schema *schema, FILE *stream);

// One difference between two configurations of one schema. A named section that came or went
// is one change with key "" and "absent" and "present" as its values.
struct config_change {
	const char *section;
	const char *key;
	const char *before;
	const char *after;
	bool reloadable;
};

// Calls on_change for each key whose value differs (100ms and 0.1s do not). Returns how many
// changes need a restart.
size_t config_compare(
	const struct config *before,
	const struct config *after,
	void (*on_change)(void *context, const struct config_change *change),
	void *context
);
