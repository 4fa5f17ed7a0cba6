// SPDX-License-Identifier: BSD-3-Clause
// A configuration in memory: sections and typed access.
#include "config_impl.h"

#include <lib/must.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

size_t config_kind_length(const char *section) {
	return strcspn(section, " ");
}

static bool config_kind_equal(const char *section, const char *other) {
	size_t size = config_kind_length(section);

	return size == config_kind_length(other) && memcmp(section, other, size) == 0;
}

bool config_section_is_named(const char *section) {
	return section[config_kind_length(section)] == ' ';
}

const char *config_section_name(const char *section) {
	must(config_section_is_named(section));
	return section + config_kind_length(section) + 1;
}

const struct config_key *
config_schema_find_keys(const struct config_schema *schema, const char *kind, size_t *ret_count) {
	const struct config_key *end = schema->keys + schema->key_count;
	const struct config_key *first;
	const struct config_key *last;

	for (first = schema->keys; first < end; first++) {
		if (config_kind_equal(first->section, kind))
			break;
	}
	if (first == end)
		return NULL;
	for (last = first; last < end && strcmp(last->section, first->section) == 0; last++)
		;
	*ret_count = (size_t)(last - first);
	return first;
}

// Check one key of the schema. The table is part of this program, so an error aborts the first test
// that loads it.
static void check_key(const struct config_schema *schema, const struct config_key *key) {
	size_t count = 0;
	const struct config_key *first = config_schema_find_keys(schema, key->section, &count);

	must(key >= first && key < first + count); // the keys of a section are adjacent
	for (const struct config_key *other = first; other < key; other++)
		must(strcmp(other->name, key->name) != 0);
	must(config_kind_length(key->section) < CONFIG_NAME_BYTES_MAX);
	must(key->help != NULL);
	must(key->min <= key->max);
	must(key->min >= 0 || key->type == CONFIG_INT);
	must((key->type == CONFIG_ENUM) == (key->choices != NULL));
}

static void section_destroy(struct config_section *section) {
	for (size_t i = 0; i < section->key_count; i++)
		config_value_fini(&section->keys[i], &section->values[i]);
	free(section->name);
	free(section);
}

struct config *config_destroy(struct config *config) {
	if (config == NULL)
		return NULL;
	for (size_t i = 0; i < config->section_count; i++)
		section_destroy(config->sections[i]);
	free(config->path);
	free(config);
	return NULL;
}

int config_add_section(
	struct config *config,
	const struct config_key *keys,
	const char *name,
	struct config_section **ret_section
) {
	struct config_section *section;
	size_t count = 0;
	int err;

	if (config->section_count == CONFIG_SECTIONS_MAX)
		return -ENOSPC;
	must(config_schema_find_keys(config->schema, keys->section, &count) == keys);
	section = calloc(1, sizeof(*section) + count * sizeof(section->values[0]));
	if (section == NULL)
		return -ENOMEM;
	section->keys = keys;
	section->key_count = count;
	section->name = strdup(name);
	err = section->name != NULL ? 0 : -ENOMEM;
	for (size_t i = 0; i < count && err == 0; i++) {
		if (keys[i].initial == NULL)
			continue;
		err = config_value_parse(&keys[i], keys[i].initial, NULL, &section->values[i]);
		must(err == 0 || err == -ENOMEM); // a default satisfies its own bounds
	}
	if (err != 0) {
		section_destroy(section);
		return err;
	}
	config->sections[config->section_count++] = section;
	*ret_section = section;
	return 0;
}

int config_create(
	const struct config_schema *schema, const char *path, struct config **ret_config
) {
	struct config_section *section;
	struct config *config;
	size_t count = 0;

	for (size_t i = 0; i < schema->key_count; i++)
		check_key(schema, &schema->keys[i]);
	config = calloc(1, sizeof(*config));
	if (config == NULL)
		return -ENOMEM;
	config->schema = schema;
	if (path != NULL) {
		config->path = strdup(path);
		if (config->path == NULL)
			goto fail;
	}
	for (size_t i = 0; i < schema->key_count; i += count) {
		const struct config_key *keys = &schema->keys[i];
		int err = 0;

		must(config_schema_find_keys(schema, keys->section, &count) == keys);
		if (!config_section_is_named(keys->section))
			err = config_add_section(config, keys, keys->section, &section);
		must(err != -ENOSPC);
		if (err != 0)
			goto fail;
	}
	*ret_config = config;
	return 0;
fail:
	config_destroy(config);
	return -ENOMEM;
}

struct config_section *config_find_section(const struct config *config, const char *name) {
	for (size_t i = 0; i < config->section_count; i++) {
		if (strcmp(config->sections[i]->name, name) == 0)
			return config->sections[i];
	}
	return NULL;
}

const struct config_key *
config_section_find_key(const struct config_section *section, const char *name, size_t *ret_index) {
	for (size_t i = 0; i < section->key_count; i++) {
		if (strcmp(section->keys[i].name, name) == 0) {
			*ret_index = i;
			return &section->keys[i];
		}
	}
	return NULL;
}

static const struct config_value *get_value(
	const struct config *config,
	const char *section_name,
	const char *key_name,
	const struct config_key **ret_key
) {
	const struct config_section *section = config_find_section(config, section_name);
	size_t index = 0;

	must(section != NULL);
	*ret_key = config_section_find_key(section, key_name, &index);
	must(*ret_key != NULL);
	return &section->values[index];
}

static const struct config_value *get_typed(
	const struct config *config,
	const char *section,
	const char *key_name,
	enum config_type type
) {
	const struct config_key *key;
	const struct config_value *value = get_value(config, section, key_name, &key);

	must(key->type == type);
	return value;
}

bool config_get_bool(const struct config *config, const char *section, const char *key) {
	return get_typed(config, section, key, CONFIG_BOOL)->truth;
}

int64_t config_get_int(const struct config *config, const char *section, const char *key) {
	return get_typed(config, section, key, CONFIG_INT)->number;
}

uint64_t config_get_duration_ns(const struct config *config, const char *section, const char *key) {
	return get_typed(config, section, key, CONFIG_DURATION)->amount;
}

uint64_t config_get_size_bytes(const struct config *config, const char *section, const char *key) {
	return get_typed(config, section, key, CONFIG_SIZE)->amount;
}

const char *config_get_string(const struct config *config, const char *section, const char *key) {
	return get_typed(config, section, key, CONFIG_STRING)->text;
}

size_t config_get_enum(const struct config *config, const char *section, const char *key) {
	return get_typed(config, section, key, CONFIG_ENUM)->choice;
}

const struct config_list *
config_get_list(const struct config *config, const char *section, const char *key) {
	return &get_typed(config, section, key, CONFIG_LIST)->list;
}

void config_origin_text(
	const struct config *config, const struct config_value *value, char *text, size_t text_size
) {
	switch (value->source) {
	case CONFIG_FROM_DEFAULT:
		snprintf(text, text_size, "default");
		break;
	case CONFIG_FROM_FILE:
		snprintf(text, text_size, "%s:%u", config->path, value->line);
		break;
	case CONFIG_FROM_SETTING:
		snprintf(text, text_size, "--set");
		break;
	}
}

void config_get_origin(
	const struct config *config,
	const char *section,
	const char *key,
	char text[static CONFIG_ORIGIN_BYTES]
) {
	const struct config_key *found;

	config_origin_text(
		config, get_value(config, section, key, &found), text, CONFIG_ORIGIN_BYTES
	);
}

const char *config_get_section(const struct config *config, const char *kind, size_t index) {
	for (size_t i = 0; i < config->section_count; i++) {
		const char *name = config->sections[i]->name;

		if (config_section_is_named(name) && config_kind_equal(name, kind) && index-- == 0)
			return name;
	}
	return NULL;
}
