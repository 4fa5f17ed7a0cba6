// SPDX-License-Identifier: BSD-3-Clause
// Output of a configuration: as a file, as the key list of the man page, as the changes of a
// reload.
#include "config_impl.h"

#include <lib/error.h>

#include <string.h>

#define ALLOWED_BYTES 512
#define COMMENT_COLUMN 40

static int stream_result(FILE *stream) {
	errno = 0;
	if (fflush(stream) != 0 || ferror(stream))
		return neg_errno();
	return 0;
}

static void print_value(
	const struct config *config,
	const struct config_key *key,
	const struct config_value *value,
	FILE *stream
) {
	char origin[CONFIG_ORIGIN_BYTES];
	size_t width = strlen(key->name) + strlen(" = ") + strlen(value->text);

	config_origin_text(config, value, origin, sizeof(origin));
	if (width < COMMENT_COLUMN)
		fprintf(stream, "%s = %s%*s# %s\n", key->name, value->text,
			(int)(COMMENT_COLUMN - width), "", origin);
	else // on a separate line, so that a long value fits on its own
		fprintf(stream, "# %s\n%s = %s\n", origin, key->name, value->text);
}

int config_print(const struct config *config, FILE *stream) {
	for (size_t i = 0; i < config->section_count; i++) {
		const struct config_section *section = config->sections[i];

		fprintf(stream, "%s[%s]\n", i > 0 ? "\n" : "", section->name);
		for (size_t k = 0; k < section->key_count; k++)
			print_value(config, &section->keys[k], &section->values[k], stream);
	}
	return stream_result(stream);
}

// Print text with roff's special characters escaped. A backslash begins an escape. A dot or quote
// at the start of a line makes it a request. A bare hyphen may become a dash.
static void print_roff(FILE *stream, const char *text) {
	if (text[0] == '.' || text[0] == '\'')
		fputs("\\&", stream);
	for (; *text != '\0'; text++) {
		if (*text == '\\')
			fputs("\\e", stream);
		else if (*text == '-')
			fputs("\\-", stream);
		else
			fputc(*text, stream);
	}
}

int config_print_man(const struct config_schema *schema, FILE *stream) {
	char allowed[ALLOWED_BYTES];

	for (size_t i = 0; i < schema->key_count; i++) {
		const struct config_key *key = &schema->keys[i];

		if (i == 0 || strcmp(key->section, schema->keys[i - 1].section) != 0) {
			fputs(".SS \"[", stream);
			print_roff(stream, key->section);
			fputs("]\"\n", stream);
		}
		config_key_describe(key, allowed, sizeof(allowed));
		fputs(".TP\n\\fB", stream);
		print_roff(stream, key->name);
		fputs("\\fR (", stream);
		print_roff(stream, allowed);
		fputs(")\n", stream);
		print_roff(stream, key->help);
		fputs("\n", stream);
		if (key->initial == NULL) {
			fputs("Must be given.\n", stream);
		} else if (key->initial[0] == '\0') {
			fputs("Default: empty.\n", stream);
		} else {
			fputs("Default: \\fB", stream);
			print_roff(stream, key->initial);
			fputs("\\fR.\n", stream);
		}
		fputs(key->reloadable ? "A reload applies a change.\n"
				      : "A change needs a restart.\n",
		      stream);
	}
	return stream_result(stream);
}

struct comparison {
	void (*on_change)(void *context, const struct config_change *change);
	void *context;
	size_t restart_count;
};

static void report_change(struct comparison *comparison, const struct config_change *change) {
	comparison->on_change(comparison->context, change);
	if (!change->reloadable)
		comparison->restart_count++;
}

// Return the text of a key, or the text of its default if the section is absent.
static const char *
key_text(const struct config_section *section, const struct config_key *key, size_t index) {
	if (section != NULL)
		return section->values[index].text;
	return key->initial != NULL ? key->initial : "";
}

// Compare a section key by key. An absent section (NULL) has the default of each key.
static void compare_keys(
	struct comparison *comparison,
	const struct config_section *before,
	const struct config_section *after
) {
	const struct config_section *present = after != NULL ? after : before;

	for (size_t i = 0; i < present->key_count; i++) {
		const struct config_key *key = &present->keys[i];
		struct config_change change = {
			.section = present->name,
			.key = key->name,
			.before = key_text(before, key, i),
			.after = key_text(after, key, i),
			.reloadable = key->reloadable,
		};
		bool equal = before != NULL && after != NULL
				     ? config_member_equal(key, before->settings, after->settings)
				     : config_member_is_default(key, present->settings);

		if (!equal)
			report_change(comparison, &change);
	}
}

// Report an added or removed section. If a reload applies every key, the section is one change.
// Otherwise its keys are compared one by one, because some of them wait for a restart.
static void compare_with_absent(
	struct comparison *comparison,
	const struct config_section *before,
	const struct config_section *after
) {
	const struct config_section *present = after != NULL ? after : before;
	const struct config_change change = {
		.section = present->name,
		.key = "",
		.before = before != NULL ? "present" : "absent",
		.after = after != NULL ? "present" : "absent",
		.reloadable = true,
	};
	bool all_reloadable = true;

	for (size_t i = 0; i < present->key_count; i++)
		all_reloadable = all_reloadable && present->keys[i].reloadable;
	if (all_reloadable)
		report_change(comparison, &change);
	else
		compare_keys(comparison, before, after);
}

size_t config_compare(
	const struct config *before,
	const struct config *after,
	void (*on_change)(void *context, const struct config_change *change),
	void *context
) {
	struct comparison comparison = {.on_change = on_change, .context = context};

	for (size_t i = 0; i < before->section_count; i++) {
		const struct config_section *old = before->sections[i];
		const struct config_section *new = config_find_section(after, old->name);

		if (new != NULL)
			compare_keys(&comparison, old, new);
		else
			compare_with_absent(&comparison, old, NULL);
	}
	for (size_t i = 0; i < after->section_count; i++) {
		const struct config_section *new = after->sections[i];

		if (config_find_section(before, new->name) == NULL)
			compare_with_absent(&comparison, NULL, new);
	}
	return comparison.restart_count;
}
