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
// The program reads values from a struct of settings. Each row of the table has the offset of its
// member; CONFIG_AT() checks at compile time that the member exists and has the type of the key.
//
// A loaded configuration never changes, so any thread may read it.
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
#define CONFIG_NAME_BYTES_MAX 64 // bytes of a section's name: mlx5_0 in [device mlx5_0]

enum config_type {
	CONFIG_BOOL,	 // yes or no
	CONFIG_INT,	 // bounds: min and max
	CONFIG_DURATION, // bounds in nanoseconds
	CONFIG_SIZE,	 // bounds in bytes
	CONFIG_STRING,	 // bounds of its length in bytes; `check`, if set, validates the text
	CONFIG_ENUM,	 // one of `choices`; the value is its index
	CONFIG_LIST,	 // items between commas; bounds of their count; `check` validates each item
};

struct config_list {
	const char *const *items;
	size_t count;
};

// Type and offset of a key: CONFIG_AT(DURATION, struct agent_settings, probe.interval_ns). Does not
// compile if the member is missing or has another type than those below. A number that may be
// negative needs an int32_t.
// clang-format off
#define CONFIG_AT(type, settings, member) \
	CONFIG_##type, \
	_Generic(((settings *)NULL)->member, CONFIG_MEMBER_##type(offsetof(settings, member)))
#define CONFIG_MEMBER_BOOL(offset) bool: (offset)
#define CONFIG_MEMBER_INT(offset) int32_t: (offset), uint32_t: (offset)
#define CONFIG_MEMBER_DURATION(offset) uint64_t: (offset)
#define CONFIG_MEMBER_SIZE(offset) uint64_t: (offset)
#define CONFIG_MEMBER_STRING(offset) const char *: (offset)
#define CONFIG_MEMBER_ENUM(offset) uint32_t: (offset) // enums without negative values fit as well
#define CONFIG_MEMBER_LIST(offset) struct config_list: (offset)
// clang-format on

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
	size_t offset;	 // of the member in the settings, or in the struct of a named section
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

// A kind of named section, for example "device NAME". The struct of one section begins with a
// `const char *section`, its full name such as "device mlx5_0". The settings have an array of
// CONFIG_SECTIONS_MAX + 1 pointers to these structs, which ends with NULL. Its order is that of the
// file; new sections of --set follow.
struct config_named {
	const char *section;
	size_t size;   // of the struct of one section
	size_t offset; // of the array in the settings
};

struct config_schema {
	const struct config_key *keys; // must outlive every configuration made from them
	size_t key_count;
	const struct config_named *named; // ends with an empty one
	size_t settings_size;		  // of the struct of settings
	config_conflict_fn *conflict;	  // may be NULL
	// The table has only a part of the keys: ignore all other sections and keys.
	bool partial;
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

// Functions for config_conflict_fn. `member` is the address of a key's member in the settings.
//
// Report "place: [section] key = value: reason" and fail the load. The key is not valid afterwards.
__attribute__((format(printf, 3, 4))) void
config_reject_key(struct config_load *load, const void *member, const char *format, ...);
// Return true if the key holds the given value, or its default because none was given. False means
// that the given value was already reported as wrong, so conclude nothing from the stored one.
bool config_key_is_valid(const struct config_load *load, const void *member);
// Return true if neither the file nor --set gave the key.
bool config_key_is_default(const struct config_load *load, const void *member);

// Return the struct of settings, which lives as long as the configuration.
const void *config_settings(const struct config *config);

// Return the "mlx5_0" of "device mlx5_0".
const char *config_section_name(const char *section);

// Print the effective configuration as a file that loads to the same values. Each line has a
// comment with the origin of its value. Returns 0 or -errno of writing.
int config_print(const struct config *config, FILE *stream);

// Print the key list of the man page in man(7): a subsection per section, a paragraph per key.
// Returns 0 or -errno of writing.
int config_print_man(const struct config_schema *schema, FILE *stream);

// One difference between two configurations of one schema. An absent named section has the default
// of each key. If all keys of an added or removed section are reloadable, the section is one change
// instead, with key "" and the values "absent" and "present".
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
