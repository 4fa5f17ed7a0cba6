// SPDX-License-Identifier: BSD-3-Clause
// Collects the lines of one screen and prints them in colour.
#include "show/frame.h"

#include "show/paint.h"

#include <lib/must.h>

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

int frame_init(struct frame *frame, size_t columns, size_t lines_max) {
	must(lines_max <= FRAME_LINES_MAX);
	*frame = (struct frame){.columns = columns, .lines_max = lines_max};
	frame->lines = calloc(lines_max + 1, sizeof(frame->lines[0]));
	return frame->lines != NULL ? 0 : -ENOMEM;
}

void frame_fini(struct frame *frame) {
	free(frame->lines);
	frame->lines = NULL;
}

void frame_add(struct frame *frame, enum frame_kind kind, const char *format, ...) {
	struct frame_line *line = &frame->lines[frame->count];
	char raw[FRAME_LINE_BYTES];
	va_list arguments;

	if (frame_lines_left(frame) == 0)
		return;
	va_start(arguments, format);
	vsnprintf(raw, sizeof(raw), format, arguments);
	va_end(arguments);
	line->kind = kind;
	paint_cut(raw, frame->columns, line->text, sizeof(line->text));
	frame->count++;
}

static enum paint paint_of_mark(char mark) {
	switch (mark) {
	case '+':
		return PAINT_GOOD;
	case '?':
	case '~':
		return PAINT_WARN;
	case 'x':
		return PAINT_BAD;
	default:
		return PAINT_FAINT;
	}
}

static void print_line(const struct frame_line *line, bool colour, FILE *stream) {
	enum paint paint = line->kind == FRAME_TITLE ? PAINT_TITLE : PAINT_FAINT;
	const char *text = line->text;

	switch (line->kind) {
	case FRAME_TEXT:
		paint_print_words(text, colour, stream);
		break;
	case FRAME_MARKED:
		while (text[strspn(text, " ")] != '\0') {
			size_t blanks = strspn(text, " ");
			size_t size = strcspn(text + blanks, " ");

			paint = paint_of_mark(text[blanks]);
			fprintf(stream, "%*s%s%.*s%s", (int)blanks, "", paint_begin(paint, colour),
				(int)size, text + blanks, paint_end(paint, colour));
			text += blanks + size;
		}
		break;
	case FRAME_MARKS: // in runs of equal marks
		while (*text != '\0') {
			const char mark[] = {*text, '\0'};
			size_t size = strspn(text, mark);

			paint = paint_of_mark(*text);
			fprintf(stream, "%s%.*s%s", paint_begin(paint, colour), (int)size, text,
				paint_end(paint, colour));
			text += size;
		}
		break;
	case FRAME_TITLE:
	case FRAME_HEAD:
		fputs(paint_begin(paint, colour), stream);
		fputs(text, stream);
		fputs(paint_end(paint, colour), stream);
		break;
	}
}

void frame_print(const struct frame *frame, bool colour, const char *end, FILE *stream) {
	for (size_t n = 0; n < frame->count; n++) {
		print_line(&frame->lines[n], colour, stream);
		fputs(end, stream);
	}
}
