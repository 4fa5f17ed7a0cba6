// SPDX-License-Identifier: BSD-3-Clause
// A configuration in memory: its sections and the struct of settings.
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
		must(strcmp(other->name, key->name) != 0 && other->offset != key->offset);
	must(config_kind_length(key->section) < CONFIG_NAME_BYTES_MAX);
	must(key->help != NULL);
	must(key->min <= key->max);
	must(key->min >= 0 || key->type == CONFIG_INT);
	must(key->type != CONFIG_INT || (key->min >= INT32_MIN && key->max <= INT32_MAX));
	must(key->initial != NULL || key->type == CONFIG_STRING);
	must((key->type == CONFIG_ENUM) == (key->choices != NULL));
}

static void section_destroy(struct config_section *section) {
	for (size_t i = 0; i < section->key_count && section->settings != NULL; i++)
		config_value_fini(&section->keys[i], &section->values[i], section->settings);
	if (config_section_is_named(section->keys->section))
		free(section->settings);
	free(section->name);
	free(section);
}

struct config *config_destroy(struct config *config) {
	if (config == NULL)
		return NULL;
	for (size_t i = 0; i < config->section_count; i++)
		section_destroy(config->sections[i]);
	free(config->settings);
	free(config->path);
	free(config);
	return NULL;
}

// Return the kind of a named section; NULL if the section is plain.
static const struct config_named *
find_named(const struct config_schema *schema, const char *section) {
	const struct config_named *named = schema->named;

	if (!config_section_is_named(section))
		return NULL;
	while (strcmp(named->section, section) != 0)
		must((++named)->section != NULL);
	return named;
}

int config_add_section(
	struct config *config,
	const struct config_key *keys,
	const char *name,
	struct config_section **ret_section
) {
	const struct config_named *named = find_named(config->schema, keys->section);
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
	section->settings = named != NULL ? calloc(1, named->size) : config->settings;
	err = section->name != NULL && section->settings != NULL ? 0 : -ENOMEM;
	for (size_t i = 0; i < count && err == 0; i++) {
		if (keys[i].initial == NULL)
			*(const char **)config_member(section->settings, keys[i].offset) = "";
		else
			err = config_value_parse(
				&keys[i], keys[i].initial, NULL, &section->values[i],
				section->settings
			);
		must(err == 0 || err == -ENOMEM); // a default satisfies its own bounds
	}
	if (err != 0) {
		section_destroy(section);
		return err;
	}
	if (named != NULL) {
		void **slot = config_member(config->settings, named->offset);

		while (*slot != NULL)
			slot++;
		*slot = section->settings;
		*(const char **)section->settings = section->name; // the first member
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
	config->settings = calloc(1, schema->settings_size);
	if (config->settings == NULL)
		goto fail;
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

const void *config_settings(const struct config *config) {
	return config->settings;
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
