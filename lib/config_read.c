// SPDX-License-Identifier: BSD-3-Clause
// Reader for the lines of a configuration file.
//
// inih splits a line into key and value and recognizes comments. Three things are missing. inih
// truncates long lines and section names silently. It remembers only the first bad line. It does
// not report sections without keys. So the file is read as a whole, and each line is checked before
// inih sees it. Section headers are handled here and passed to inih as blank lines.
#include "config_impl.h"

#include <lib/error.h>
#include <lib/escape.h>
#include <lib/must.h>
#include <lib/scoped.h>

#include <ini.h>

#include <stdlib.h>
#include <string.h>

#define BLANKS " \t"
#define LINE_BUFFER_BYTES (CONFIG_LINE_BYTES_MAX + 2) // newline and end
#define UTF8_BOM "\xef\xbb\xbf"

struct reader {
	struct config_load *load;
	// Receives the keys; NULL before the first header and after a bad one.
	struct config_section *section;
	// The last header was rejected and reported; its keys are skipped.
	bool section_failed;
	const char *text;
	size_t size;
	size_t at; // offset of the next line
};

// Read a header: line is "[kind name]", optionally followed by a comment.
static void read_header(struct reader *reader, char *line) {
	char *kind = line + 1 + strspn(line + 1, BLANKS);
	char *close = strchr(kind, ']');
	char *rest, *name, *end;

	reader->section = NULL;
	reader->section_failed = true;
	if (close == NULL) {
		config_load_report(reader->load, "the section header has no closing ]");
		return;
	}
	rest = close + 1 + strspn(close + 1, BLANKS);
	if (*rest != '\0' && *rest != ';' && *rest != '#') {
		config_load_report(reader->load, "only a comment may follow a section header");
		return;
	}
	*close = '\0';

	// Split "kind name"; without a name, it is "".
	name = kind + strcspn(kind, BLANKS);
	if (*name != '\0')
		*name++ = '\0';
	name += strspn(name, BLANKS);
	end = name + strlen(name);
	while (end > name && strchr(BLANKS, end[-1]) != NULL)
		end--;
	*end = '\0';
	reader->section = config_load_section(reader->load, kind, name);
	reader->section_failed = reader->section == NULL;
}

static bool line_is_header(const char *line, size_t size) {
	size_t at = 0;

	while (at < size && strchr(BLANKS, line[at]) != NULL && line[at] != '\0')
		at++;
	return at < size && line[at] == '[';
}

// Read one line; inih calls this in place of fgets(). A bad line or a header becomes a blank line.
static char *read_line(char *buffer, int buffer_size, void *context) {
	struct reader *reader = context;
	const char *line, *newline;
	bool valid = false;
	size_t size;

	must(buffer_size >= LINE_BUFFER_BYTES);
	if (reader->at == reader->size || reader->load->out_of_memory)
		return NULL;
	line = reader->text + reader->at;
	newline = memchr(line, '\n', reader->size - reader->at);
	size = newline != NULL ? (size_t)(newline - line) : reader->size - reader->at;
	reader->at += size + (newline != NULL);
	reader->load->line++;
	if (size > 0 && line[size - 1] == '\r')
		size--;

	if (size > CONFIG_LINE_BYTES_MAX)
		config_load_report(
			reader->load, "the line has %zu bytes; allowed are %d", size,
			CONFIG_LINE_BYTES_MAX
		);
	else
		valid = config_load_check_text(reader->load, line, size);
	if (!valid) {
		if (line_is_header(line, size)) {
			// The keys below a bad header must not go to the section above.
			reader->section = NULL;
			reader->section_failed = true;
		}
		size = 0;
	}
	memcpy(buffer, line, size);
	buffer[size] = '\0';
	if (line_is_header(line, size)) {
		read_header(reader, buffer + strspn(buffer, BLANKS));
		size = 0;
	}
	buffer[size] = '\n';
	buffer[size + 1] = '\0';
	return buffer;
}

static int on_key_value(void *context, const char *section, const char *name, const char *value) {
	struct reader *reader = context;

	(void)section; // always empty: inih sees no headers
	if (reader->section_failed)
		return 1;
	if (reader->section == NULL)
		config_load_report(reader->load, "the key is before the first [section]");
	else if (name[0] == '\0')
		config_load_report(reader->load, "the value has no key");
	else
		config_load_assign(reader->load, reader->section, name, value);
	return 1;
}

int config_read_stream(struct config_load *load, FILE *stream) {
	static char comment_bytes[] = ";#"; // never written; inih's declaration lacks the const
	scoped_mem char *text = malloc(CONFIG_FILE_BYTES_MAX + 1);
	struct reader reader = {.load = load, .text = text};
	int result;

	if (text == NULL)
		return -ENOMEM;
	errno = 0;
	reader.size = fread(text, 1, CONFIG_FILE_BYTES_MAX + 1, stream);
	if (ferror(stream))
		return neg_errno();
	if (reader.size > CONFIG_FILE_BYTES_MAX)
		return -EFBIG;
	if (reader.size >= strlen(UTF8_BOM) && memcmp(text, UTF8_BOM, strlen(UTF8_BOM)) == 0)
		reader.at = strlen(UTF8_BOM);

	ini_use_stack = false; // otherwise the buffer has 200 bytes and ignores ini_initial_alloc
	ini_initial_alloc = LINE_BUFFER_BYTES;
	ini_allow_multiline = false;
	ini_allow_no_value = true; // reported by config_load_assign()
	ini_allow_inline_comments = true;
	ini_inline_comment_prefixes = comment_bytes;
	result = ini_parse_stream(read_line, &reader, on_key_value, &reader);
	if (result == 0)
		return 0;
	return result == -2 ? -ENOMEM : -EINVAL;
}
