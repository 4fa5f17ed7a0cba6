// SPDX-License-Identifier: BSD-3-Clause
// The lines of a configuration file.
//
// inih takes a line apart into key and value and knows what a comment is. Three things it does
// not do for us: it cuts long lines and section names without a word, it remembers the first bad
// line only, and it says nothing of a section without keys. So the file is read as a whole, each
// line is checked before inih sees it, and section headers are handled here and handed on as
// blank lines.
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
	struct config_section *section; // keys go here; NULL before the first header, or after one
	bool section_failed;		// that was reported, so that its keys are passed over
	const char *text;
	size_t size;
	size_t at; // where the next line begins
};

// Everything from the stream, on the heap, for the caller to free.
static int read_all(FILE *stream, char **ret_text, size_t *ret_size) {
	scoped_mem char *text = malloc(CONFIG_FILE_BYTES_MAX + 1);
	size_t size;

	if (text == NULL)
		return -ENOMEM;
	errno = 0;
	size = fread(text, 1, CONFIG_FILE_BYTES_MAX + 1, stream);
	if (ferror(stream))
		return neg_errno();
	if (size > CONFIG_FILE_BYTES_MAX)
		return -EFBIG;
	*ret_text = scoped_take_mem(&text);
	*ret_size = size;
	return 0;
}

// Cuts "kind name" in two, in place; returns the name, "" if there is none.
static char *split_header(char *header) {
	char *name = header + strcspn(header, BLANKS);
	char *end;

	if (*name != '\0')
		*name++ = '\0';
	name += strspn(name, BLANKS);
	end = name + strlen(name);
	while (end > name && strchr(BLANKS, end[-1]) != NULL)
		end--;
	*end = '\0';
	return name;
}

// line is "[kind name]", perhaps with a comment behind.
static void read_header(struct reader *reader, char *line) {
	char *kind = line + 1 + strspn(line + 1, BLANKS);
	char *close = strchr(kind, ']');
	char *rest;

	reader->section = NULL;
	reader->section_failed = true;
	if (close == NULL) {
		config_load_report(reader->load, "a section header without its ]");
		return;
	}
	rest = close + 1 + strspn(close + 1, BLANKS);
	if (*rest != '\0' && *rest != ';' && *rest != '#') {
		config_load_report(reader->load, "only a comment may follow a section header");
		return;
	}
	*close = '\0';
	reader->section = config_load_section(reader->load, kind, split_header(kind));
	reader->section_failed = reader->section == NULL;
}

// The next line, not terminated.
static const char *next_line(struct reader *reader, size_t *ret_size) {
	const char *line = reader->text + reader->at;
	const char *newline = memchr(line, '\n', reader->size - reader->at);
	size_t size = newline != NULL ? (size_t)(newline - line) : reader->size - reader->at;

	reader->at += size + (newline != NULL);
	reader->load->line++;
	if (size > 0 && line[size - 1] == '\r')
		size--;
	*ret_size = size;
	return line;
}

static bool check_line(struct reader *reader, const char *line, size_t size) {
	if (size > CONFIG_LINE_BYTES_MAX) {
		config_load_report(
			reader->load, "the line has %zu bytes; allowed are %d", size,
			CONFIG_LINE_BYTES_MAX
		);
		return false;
	}
	return config_load_check_text(reader->load, line, size);
}

static bool line_is_header(const char *line, size_t size) {
	size_t at = 0;

	while (at < size && strchr(BLANKS, line[at]) != NULL && line[at] != '\0')
		at++;
	return at < size && line[at] == '[';
}

// What inih calls in place of fgets(). A line that is bad, or done with, becomes a blank one.
static char *read_line(char *buffer, int buffer_size, void *context) {
	struct reader *reader = context;
	const char *line;
	size_t size;

	must(buffer_size >= LINE_BUFFER_BYTES);
	if (reader->at == reader->size || reader->load->out_of_memory)
		return NULL;
	line = next_line(reader, &size);
	if (!check_line(reader, line, size)) {
		if (line_is_header(line, size)) { // its keys must not go to the section above
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

static int on_pair(void *context, const char *section, const char *name, const char *value) {
	struct reader *reader = context;

	(void)section; // inih saw no header
	if (reader->section_failed)
		return 1;
	if (reader->section == NULL)
		config_load_report(reader->load, "a key before the first [section]");
	else if (name[0] == '\0')
		config_load_report(reader->load, "a value without a key");
	else
		config_load_assign(reader->load, reader->section, name, value);
	return 1;
}

int config_read_stream(struct config_load *load, FILE *stream) {
	static char comment_bytes[] = ";#"; // never written; inih forgot the const
	scoped_mem char *text = NULL;
	struct reader reader = {.load = load};
	int result;
	int err;

	err = read_all(stream, &text, &reader.size);
	if (err != 0)
		return err;
	reader.text = text;
	if (reader.size >= strlen(UTF8_BOM) && memcmp(text, UTF8_BOM, strlen(UTF8_BOM)) == 0)
		reader.at = strlen(UTF8_BOM);

	ini_use_stack = false; // else the buffer is 200 bytes, whatever the next line says
	ini_initial_alloc = LINE_BUFFER_BYTES;
	ini_allow_multiline = false;
	ini_allow_no_value = true; // reported by config_load_assign()
	ini_allow_inline_comments = true;
	ini_inline_comment_prefixes = comment_bytes;
	result = ini_parse_stream(read_line, &reader, on_pair, &reader);
	if (result == 0)
		return 0;
	return result == -2 ? -ENOMEM : -EINVAL;
}
