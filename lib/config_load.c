// SPDX-License-Identifier: BSD-3-Clause
// Loads a configuration from a file and --set arguments: resolves sections, keys and values, and
// reports unknown or wrong ones.
#include "config_impl.h"

#include <lib/error.h>
#include <lib/escape.h>
#include <lib/must.h>
#include <lib/scoped.h>
#include <lib/suggestion.h>

#include <stdlib.h>
#include <string.h>

#define MESSAGE_BYTES 1024
#define QUOTE_BYTES 80

// Allowed bytes of names, which appear unquoted in --set, in metrics and in log lines.
#define NAME_BYTES "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.:-"

// A message being built; truncated if it does not fit.
struct message {
	char text[MESSAGE_BYTES];
	size_t used;
};

__attribute__((format(printf, 2, 0))) static void
message_add_list(struct message *message, const char *format, va_list arguments) {
	size_t room = sizeof(message->text) - message->used;
	int n = vsnprintf(message->text + message->used, room, format, arguments);

	if (n > 0)
		message->used += (size_t)n < room ? (size_t)n : room - 1;
}

__attribute__((format(printf, 2, 3))) static void
message_add(struct message *message, const char *format, ...) {
	va_list arguments;

	va_start(arguments, format);
	message_add_list(message, format, arguments);
	va_end(arguments);
}

static void load_fail(struct config_load *load, const struct message *message) {
	load->failed = true;
	load->reporter->report(load->reporter->context, message->text);
}

void config_load_report(struct config_load *load, const char *format, ...) {
	struct message message = {.used = 0};
	char quoted[QUOTE_BYTES];
	va_list arguments;

	if (load->setting != NULL) {
		escape_quote(load->setting, strlen(load->setting), quoted, sizeof(quoted));
		message_add(&message, "--set %s: ", quoted);
	} else if (load->config->path != NULL && load->line > 0) {
		message_add(&message, "%s:%u: ", load->config->path, load->line);
	} else if (load->config->path != NULL) {
		message_add(&message, "%s: ", load->config->path);
	}
	va_start(arguments, format);
	message_add_list(&message, format, arguments);
	va_end(arguments);
	load_fail(load, &message);
}

// Return the value of the key with this member, and the section and name of that key.
static struct config_value *find_member(
	const struct config_load *load,
	const void *member,
	const char **ret_section,
	const char **ret_name
) {
	for (size_t i = 0; i < load->config->section_count; i++) {
		struct config_section *section = load->config->sections[i];

		for (size_t k = 0; k < section->key_count; k++) {
			if (config_member(section->settings, section->keys[k].offset) != member)
				continue;
			*ret_section = section->name;
			*ret_name = section->keys[k].name;
			return &section->values[k];
		}
	}
	must(false); // `member` is not the member of a key
	return NULL;
}

void config_reject_key(struct config_load *load, const void *member, const char *format, ...) {
	const char *section, *key;
	struct config_value *value = find_member(load, member, &section, &key);
	struct message message = {.used = 0};
	char origin[CONFIG_ORIGIN_BYTES];
	char quoted[QUOTE_BYTES];
	va_list arguments;

	config_origin_text(load->config, value, origin, sizeof(origin));
	escape_quote(value->text, strlen(value->text), quoted, sizeof(quoted));
	message_add(&message, "%s: [%s] %s = %s: ", origin, section, key, quoted);
	va_start(arguments, format);
	message_add_list(&message, format, arguments);
	va_end(arguments);
	load_fail(load, &message);
	value->wrong = true;
}

bool config_key_is_valid(const struct config_load *load, const void *member) {
	const char *section, *key;

	return !find_member(load, member, &section, &key)->wrong;
}

bool config_key_is_default(const struct config_load *load, const void *member) {
	const char *section, *key;

	return find_member(load, member, &section, &key)->source == CONFIG_FROM_DEFAULT;
}

bool config_load_check_text(struct config_load *load, const char *text, size_t size) {
	struct escape_unit unit;

	for (size_t at = 0; at < size; at += unit.taken_bytes) {
		escape_next(text + at, size - at, &unit);
		// A quote, a backslash and a tab are escaped in output, but are valid text.
		if (unit.text_size == unit.taken_bytes || text[at] == '"' || text[at] == '\\' ||
		    text[at] == '\t')
			continue;
		config_load_report(
			load, "byte %zu is %.*s; allowed is UTF-8 without control characters",
			at + 1, (int)unit.text_size, unit.text
		);
		return false;
	}
	return true;
}

static bool
check_section_name(struct config_load *load, const struct config_key *keys, const char *name) {
	size_t name_size = strlen(name);
	char quoted[QUOTE_BYTES];

	escape_quote(name, name_size, quoted, sizeof(quoted));
	if (!config_section_is_named(keys->section)) {
		if (name_size > 0)
			config_load_report(
				load, "[%s] takes no name, but %s is given", keys->section, quoted
			);
		return name_size == 0;
	}
	if (name_size == 0) {
		config_load_report(load, "the section needs a name: [%s]", keys->section);
		return false;
	}
	if (name_size > CONFIG_NAME_BYTES_MAX || strspn(name, NAME_BYTES) != name_size) {
		config_load_report(
			load,
			"%s is not a valid section name; allowed are up to %d of A-Z a-z 0-9 _ . "
			": -",
			quoted, CONFIG_NAME_BYTES_MAX
		);
		return false;
	}
	return true;
}

static struct config_section *
add_section(struct config_load *load, const struct config_key *keys, const char *full_name) {
	struct config_section *section;
	int err;

	err = config_add_section(load->config, keys, full_name, &section);
	if (err == -ENOMEM) {
		load->out_of_memory = true;
		return NULL;
	}
	if (err != 0) {
		config_load_report(load, "more than %d sections", CONFIG_SECTIONS_MAX);
		return NULL;
	}
	section->line = load->line;
	return section;
}

struct config_section *
config_load_section(struct config_load *load, const char *kind, const char *name) {
	char full_name[2 * CONFIG_NAME_BYTES_MAX], quoted[QUOTE_BYTES];
	const struct config_schema *schema = load->schema;
	struct suggestion suggestion;
	const struct config_key *keys;
	struct config_section *section;
	size_t count = 0;

	keys = strchr(kind, ' ') == NULL ? config_schema_find_keys(schema, kind, &count) : NULL;
	if (keys == NULL && schema->partial)
		return NULL;
	if (keys == NULL) {
		suggestion_init(&suggestion, kind);
		for (size_t i = 0; i < schema->key_count; i++) {
			const char *known = schema->keys[i].section;

			if (i == 0 || strcmp(known, schema->keys[i - 1].section) != 0)
				suggestion_add(&suggestion, known, config_kind_length(known));
		}
		escape_quote(kind, strlen(kind), quoted, sizeof(quoted));
		config_load_report(
			load, "unknown section %s, %s", quoted, suggestion_text(&suggestion)
		);
		return NULL;
	}
	if (!check_section_name(load, keys, name))
		return NULL;
	snprintf(full_name, sizeof(full_name), "%s%s%s", kind, name[0] != '\0' ? " " : "", name);
	section = config_find_section(load->config, full_name);
	return section != NULL ? section : add_section(load, keys, full_name);
}

static void report_unknown_key(
	struct config_load *load, const struct config_section *section, const char *name
) {
	struct suggestion suggestion;
	char quoted[QUOTE_BYTES];

	suggestion_init(&suggestion, name);
	for (size_t i = 0; i < section->key_count; i++)
		suggestion_add(&suggestion, section->keys[i].name, strlen(section->keys[i].name));
	escape_quote(name, strlen(name), quoted, sizeof(quoted));
	config_load_report(
		load, "unknown key %s in [%s], %s", quoted, section->name,
		suggestion_text(&suggestion)
	);
}

static void report_duplicate(
	struct config_load *load,
	const struct config_section *section,
	const struct config_key *key,
	const struct config_value *first
) {
	if (first->source == CONFIG_FROM_SETTING)
		config_load_report(load, "[%s] %s is set twice", section->name, key->name);
	else
		config_load_report(
			load, "[%s] %s is already set in line %u", section->name, key->name,
			first->line
		);
}

// Return true if the parser's sentence already contains everything that the key accepts. Such
// sentences end in "; use ..." or "; give ...".
static bool
error_names_allowed_values(const struct config_key *key, int err, const char *sentence) {
	switch (key->type) {
	case CONFIG_BOOL:
	case CONFIG_ENUM:
		return true;
	case CONFIG_INT:
	case CONFIG_DURATION:
	case CONFIG_SIZE:
		return err == -ERANGE;
	case CONFIG_STRING:
	case CONFIG_LIST:
		// The value comes first, in quotes, and may have any byte.
		sentence = strrchr(sentence, '"') != NULL ? strrchr(sentence, '"') : sentence;
		return strstr(sentence, "allowed") != NULL || strchr(sentence, ';') != NULL;
	}
	return false;
}

static void report_bad_value(
	struct config_load *load,
	const struct config_section *section,
	const struct config_key *key,
	int err,
	const struct parse_error *error
) {
	char allowed[PARSE_ERROR_BYTES];

	if (error_names_allowed_values(key, err, error->text)) {
		config_load_report(load, "[%s] %s: %s", section->name, key->name, error->text);
		return;
	}
	config_key_describe(key, allowed, sizeof(allowed));
	config_load_report(
		load, "[%s] %s: %s; allowed: %s", section->name, key->name, error->text, allowed
	);
}

static void assign_known_key(
	struct config_load *load,
	const struct config_section *section,
	const struct config_key *key,
	const char *text,
	struct config_value *value
) {
	enum config_source source = load->setting != NULL ? CONFIG_FROM_SETTING : CONFIG_FROM_FILE;
	struct parse_error error;
	int err;

	if (value->source == source) {
		report_duplicate(load, section, key, value);
		return;
	}
	// Set the source even if the text is bad, so that a second line is a second error.
	value->source = source;
	value->line = load->line;
	value->wrong = true;
	err = config_value_parse(key, text, &error, value, section->settings);
	if (err == -ENOMEM) {
		load->out_of_memory = true;
		return;
	}
	if (err != 0) {
		report_bad_value(load, section, key, err, &error);
		return;
	}
	value->wrong = false;
}

void config_load_assign(
	struct config_load *load, struct config_section *section, const char *name, const char *text
) {
	const struct config_key *key;
	size_t index = 0;

	key = config_section_find_key(section, name, &index);
	if (key == NULL && load->schema->partial)
		return;
	if (key == NULL)
		report_unknown_key(load, section, name);
	else if (text == NULL)
		config_load_report(
			load, "[%s] %s has no value, write %s = VALUE", section->name, name, name
		);
	else if (text[0] == ';' || text[0] == '#')
		config_load_report(
			load, "[%s] %s: a value cannot begin with %c, which begins a comment",
			section->name, name, text[0]
		);
	else if (strlen(text) > CONFIG_VALUE_BYTES_MAX)
		config_load_report(
			load, "[%s] %s: the value has %zu bytes; allowed are %d", section->name,
			name, strlen(text), CONFIG_VALUE_BYTES_MAX
		);
	else
		assign_known_key(load, section, key, text, &section->values[index]);
}

static char *text_trim(char *text) {
	size_t size;

	text += strspn(text, " \t");
	size = strlen(text);
	while (size > 0 && strchr(" \t", text[size - 1]) != NULL)
		size--;
	text[size] = '\0';
	return text;
}

// Split "section.key=value" or "section.name.key=value"; a name may contain dots.
static bool split_setting(char *setting, char **ret_name, char **ret_key, char **ret_value) {
	static char no_name[] = "";
	char *value = strchr(setting, '=');
	char *name;
	char *key;

	if (value == NULL)
		return false;
	*value = '\0';
	key = strrchr(setting, '.');
	if (key == NULL)
		return false;
	*key = '\0';
	name = strchr(setting, '.');
	if (name != NULL)
		*name++ = '\0';
	*ret_name = name != NULL ? name : no_name;
	*ret_key = text_trim(key + 1);
	*ret_value = text_trim(value + 1);
	return true;
}

static void load_setting(struct config_load *load, const char *setting) {
	char copy[CONFIG_LINE_BYTES_MAX + 1];
	struct config_section *section;
	char *name;
	char *key;
	char *value;

	if (strlen(setting) > CONFIG_LINE_BYTES_MAX) {
		config_load_report(load, "longer than %d bytes", CONFIG_LINE_BYTES_MAX);
		return;
	}
	memcpy(copy, setting, strlen(setting) + 1);
	if (!split_setting(copy, &name, &key, &value)) {
		config_load_report(
			load, "not of the form section.key=value or section.name.key=value"
		);
		return;
	}

	// Reject values that a line of the file could not hold, so that a printed configuration
	// reads back the same.
	if (!config_load_check_text(load, value, strlen(value)))
		return;
	for (size_t i = 1; value[0] != '\0' && value[i] != '\0'; i++) {
		if (strchr(";#", value[i]) != NULL && strchr(" \t", value[i - 1]) != NULL) {
			config_load_report(
				load, "%c after a blank begins a comment and cannot be in a value",
				value[i]
			);
			return;
		}
	}
	section = config_load_section(load, copy, name);
	if (section != NULL)
		config_load_assign(load, section, key, value);
}

static int load_file(struct config_load *load, const struct config_input *input) {
	scoped_file FILE *opened = NULL;
	FILE *stream = input->stream;
	int err = 0;

	if (stream == NULL) {
		opened = fopen(input->path, "re");
		stream = opened;
	}
	if (stream == NULL)
		err = neg_errno();
	else
		err = config_read_stream(load, stream);
	load->line = 0;
	if (err == -ENOMEM)
		load->out_of_memory = true;
	else if (err == -EFBIG)
		config_load_report(load, "larger than %zu bytes", CONFIG_FILE_BYTES_MAX);
	else if (err != 0)
		config_load_report(load, "cannot be read: %s", strerrordesc_np(-err));
	return err;
}

static void check_required(struct config_load *load) {
	const struct config *config = load->config;

	for (size_t i = 0; i < config->section_count; i++) {
		struct config_section *section = config->sections[i];

		load->line = section->line;
		for (size_t k = 0; k < section->key_count; k++) {
			if (section->values[k].text != NULL)
				continue;
			if (section->values[k].source == CONFIG_FROM_DEFAULT)
				config_load_report(
					load, "[%s] needs the key %s", section->name,
					section->keys[k].name
				);
			load->failed = true;
			// Put empty text in place of the value, so that the remaining checks can
			// run and report.
			section->values[k].wrong = true;
			section->values[k].text = strdup("");
			if (section->values[k].text == NULL)
				load->out_of_memory = true;
		}
	}
	load->line = 0;
}

int config_load(
	const struct config_schema *schema,
	const struct config_input *input,
	const struct config_reporter *reporter,
	struct config **ret_config
) {
	struct config_load load = {.schema = schema, .reporter = reporter};
	int err;

	must(input->stream == NULL || input->path != NULL);
	err = config_create(schema, input->path, &load.config);
	if (err != 0)
		return err;
	if (input->path != NULL)
		err = load_file(&load, input);
	for (size_t i = 0; i < input->setting_count && !load.out_of_memory; i++) {
		load.setting = input->settings[i];
		load_setting(&load, load.setting);
	}
	load.setting = NULL;
	if (err == 0)
		check_required(&load);
	if (err == 0 && !load.out_of_memory && schema->conflict != NULL)
		schema->conflict(load.config, &load);
	if (load.out_of_memory)
		err = -ENOMEM;
	else if (err == 0 && load.failed)
		err = -EINVAL;
	if (err != 0) {
		config_destroy(load.config);
		return err;
	}
	*ret_config = load.config;
	return 0;
}
