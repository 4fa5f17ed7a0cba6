// SPDX-License-Identifier: BSD-3-Clause
// Layout of a configuration, shared by the config_*.c files.
#pragma once

#include <lib/config.h>

#include <stdarg.h>

#define CONFIG_ORIGIN_BYTES 512

enum config_source {
	CONFIG_FROM_DEFAULT,
	CONFIG_FROM_FILE,
	CONFIG_FROM_SETTING,
};

struct config_value {
	enum config_source source;
	uint32_t line; // line of the file; 0 for other sources
	bool wrong;    // the given text was rejected; this is the default
	char *text;    // as written, owned; NULL only while a required key is missing
};

// One section: one per plain section of the schema, one per name of a named section.
struct config_section {
	char *name; // "probe", "device mlx5_0"
	const struct config_key *keys;
	size_t key_count;
	// The struct with the members of the keys. A plain section has that of the configuration, a
	// named one owns its own.
	void *settings;
	// Line where a named section was first opened; 0: not in the file.
	uint32_t line;
	struct config_value values[]; // one per key
};

struct config {
	const struct config_schema *schema;
	char *path; // NULL without a file
	void *settings;
	size_t section_count;
	struct config_section *sections[CONFIG_SECTIONS_MAX];
};

static inline void *config_member(void *settings, size_t offset) {
	return (char *)settings + offset;
}

// Parse the text of a key into the member of the settings, and keep a copy of the text. Returns 0,
// -ENOMEM, or another -errno with *error filled. Nothing is changed on failure.
int config_value_parse(
	const struct config_key *key,
	const char *text,
	struct parse_error *error,
	struct config_value *value,
	void *settings
);
void config_value_fini(const struct config_key *key, struct config_value *value, void *settings);
// Compare the members of two structs of settings.
bool config_member_equal(const struct config_key *key, const void *settings, const void *other);
// Compare the member of a key with its default; "" stands for a missing default. Returns false also
// if memory for the default of a list is short.
bool config_member_is_default(const struct config_key *key, const void *settings);

// Describe in words what a key accepts. Truncated if it does not fit.
void config_key_describe(const struct config_key *key, char *text, size_t text_size);

// Return the length of the kind: the "device" of "device NAME", "device mlx5_0" and "device".
size_t config_kind_length(const char *section);
bool config_section_is_named(const char *section);

int config_create(const struct config_schema *schema, const char *path, struct config **ret_config);
// Add a section with the keys that start at `keys`, each at its default. Returns 0, -ENOMEM, or
// -ENOSPC past CONFIG_SECTIONS_MAX.
int config_add_section(
	struct config *config,
	const struct config_key *keys,
	const char *name,
	struct config_section **ret_section
);
struct config_section *config_find_section(const struct config *config, const char *name);
// Find a key by name. Returns NULL if the section has no such key.
const struct config_key *
config_section_find_key(const struct config_section *section, const char *name, size_t *ret_index);
// Return the first key of a kind of section, with their number in *ret_count; NULL if there is
// none.
const struct config_key *
config_schema_find_keys(const struct config_schema *schema, const char *kind, size_t *ret_count);

void config_origin_text(
	const struct config *config, const struct config_value *value, char *text, size_t text_size
);

// State of a load in progress: current place, and whether an error has been reported.
struct config_load {
	const struct config_schema *schema;
	const struct config_reporter *reporter;
	struct config *config;
	uint32_t line;	     // current line of the file, for messages; 0 outside the file
	const char *setting; // --set argument being read; NULL outside of --set
	bool failed;
	bool out_of_memory;
};

// Report "PLACE: " and the sentence, and fail the load.
__attribute__((format(printf, 2, 3))) void
config_load_report(struct config_load *load, const char *format, ...);

// Return the section of a kind and name ("" for none), creating it if it is new. Returns NULL, with
// a report, if no such section can exist.
struct config_section *
config_load_section(struct config_load *load, const char *kind, const char *name);

// Assign a value to a key, or report why it is rejected. text NULL: the line had no '='.
void config_load_assign(
	struct config_load *load, struct config_section *section, const char *name, const char *text
);

// Read a whole file and report the errors in it. Returns 0, or -errno if the file cannot be read.
int config_read_stream(struct config_load *load, FILE *stream);

// Return true if the bytes are allowed in a configuration; otherwise report the first that is not.
bool config_load_check_text(struct config_load *load, const char *text, size_t size);
