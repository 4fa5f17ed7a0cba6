// SPDX-License-Identifier: BSD-3-Clause
// What the config_*.c files share: the layout of a configuration.
#pragma once

#include <lib/config.h>

#include <stdarg.h>

enum config_source {
	CONFIG_FROM_DEFAULT,
	CONFIG_FROM_FILE,
	CONFIG_FROM_SETTING,
};

struct config_value {
	enum config_source source;
	uint32_t line; // of the file; 0 else
	bool wrong;    // what was given was refused, and this is the default
	char *text;    // as written, owned; NULL only while a required key is missing
	union {
		bool truth;
		int64_t number;
		uint64_t amount; // nanoseconds, bytes, parts per million
		size_t choice;
		struct config_list list; // owned, with its items in one block
	};
};

// One per plain section of the schema, one per name of the others.
struct config_section {
	char *name; // "probe", "device mlx5_0"
	const struct config_key *keys;
	size_t key_count;
	uint32_t line;		      // where a named section was first opened; 0: not in the file
	struct config_value values[]; // one per key
};

struct config {
	const struct config_schema *schema;
	char *path; // NULL without a file
	size_t section_count;
	struct config_section *sections[CONFIG_SECTIONS_MAX];
};

// Parses text for a key. Returns 0, -ENOMEM, or another -errno with *error filled.
int config_value_parse(
	const struct config_key *key,
	const char *text,
	struct parse_error *error,
	struct config_value *ret_value
);
void config_value_fini(const struct config_key *key, struct config_value *value);
bool config_value_equal(
	const struct config_key *key,
	const struct config_value *value,
	const struct config_value *other
);

// What a key takes, in words; cut if it does not fit.
void config_key_describe(const struct config_key *key, char *text, size_t text_size);

// The "device" of "device NAME", "device mlx5_0" and "device".
size_t config_kind_size(const char *section);
bool config_section_is_named(const char *section);

int config_create(const struct config_schema *schema, const char *path, struct config **ret_config);
// Adds a section of the kind that keys begins, every key at its default. Returns 0, -ENOMEM, or
// -ENOSPC past CONFIG_SECTIONS_MAX.
int config_add_section(
	struct config *config,
	const struct config_key *keys,
	const char *name,
	struct config_section **ret_section
);
struct config_section *config_find_section(const struct config *config, const char *name);
// NULL if the section has no such key.
const struct config_key *
config_section_find_key(const struct config_section *section, const char *name, size_t *ret_index);
// The first key of a kind of section, NULL if there is none; *ret_count of them.
const struct config_key *
config_schema_find_keys(const struct config_schema *schema, const char *kind, size_t *ret_count);

void config_origin_text(
	const struct config *config, const struct config_value *value, char *text, size_t text_size
);

// A load under way: where it is, and whether anything was wrong so far.
struct config_load {
	const struct config_schema *schema;
	const struct config_reporter *reporter;
	struct config *config;
	uint32_t line;	     // of the file, for messages; 0 outside it
	const char *setting; // the --set argument being read; NULL outside of them
	bool failed;
	bool out_of_memory;
};

// Reports "PLACE: " and the sentence, and fails the load.
__attribute__((format(printf, 2, 3))) void
config_load_report(struct config_load *load, const char *format, ...);

// The section of that kind and name ("" for none), made if it is new. NULL if there can be no
// such section, which has been reported.
struct config_section *
config_load_section(struct config_load *load, const char *kind, const char *name);

// Gives a key its value, or reports why not. text NULL: there was no '='.
void config_load_assign(
	struct config_load *load, struct config_section *section, const char *name, const char *text
);

// Reads a whole file. What is wrong in it is reported; returns 0 or -errno if it cannot be read.
int config_read_stream(struct config_load *load, FILE *stream);

// Whether size bytes may stand in a configuration; if not, reports the first that may not.
bool config_load_check_text(struct config_load *load, const char *text, size_t size);
