// SPDX-License-Identifier: BSD-3-Clause
// Prints the heat map, in 80 columns on a terminal and in 100 elsewhere. Few nodes get times. More
// nodes get one sign per cell, readable without colour.
#include "show/heat.h"
#include "show/paint.h"

#include <lib/show.h>

#include <string.h>

#define TIMES_MAX 8	 // largest number of nodes whose cells show times
#define LABEL_COLUMNS 15 // columns of a row label, without the row number
#define TIME_COLUMNS 10
#define SIGN_LABEL_COLUMNS (LABEL_COLUMNS + 4) // with the row number
#define TERMINAL_COLUMNS 80
#define PIPE_COLUMNS 100

static const char ramp[HEAT_LEVELS + 1] = ".:-=+*%#";

static const char signs[HEAT_KIND_COUNT] = {
	[HEAT_NOTHING] = ' ', [HEAT_SELF] = '\\',    [HEAT_DEAD] = 'x',
	[HEAT_GOOD] = '.',    [HEAT_NO_PAIR] = '?',  [HEAT_DEGRADED] = 'D',
	[HEAT_LOSSY] = 'L',   [HEAT_STANDING] = 'S', [HEAT_SILENT] = 'X',
};

// Colours from dark blue to yellow (256-colour codes), with black or white text.
static const char *const level_colours[HEAT_LEVELS] = {
	"\x1b[97;48;5;17m", "\x1b[97;48;5;18m", "\x1b[97;48;5;25m",  "\x1b[97;48;5;30m",
	"\x1b[97;48;5;29m", "\x1b[30;48;5;71m", "\x1b[30;48;5;149m", "\x1b[30;48;5;227m",
};

static const char *const kind_colours[HEAT_KIND_COUNT] = {
	[HEAT_NOTHING] = "",
	[HEAT_SELF] = "\x1b[2m",
	[HEAT_DEAD] = "\x1b[97;48;5;240m",
	[HEAT_GOOD] = "",
	[HEAT_NO_PAIR] = "\x1b[33m",
	[HEAT_DEGRADED] = "\x1b[1;30;48;5;208m",
	[HEAT_LOSSY] = "\x1b[1;30;48;5;214m",
	[HEAT_STANDING] = "\x1b[1;97;48;5;127m",
	[HEAT_SILENT] = "\x1b[1;97;48;5;160m",
};

static const char *path_colour(const struct heat *heat, const struct heat_path *path) {
	if (path->kind == HEAT_GOOD && path->median_ns > 0)
		return level_colours[heat_level(heat, path->median_ns)];
	return kind_colours[path->kind];
}

static void print_painted(const char *colour, bool wanted, const char *text, FILE *out) {
	bool painted = wanted && colour[0] != '\0';

	fprintf(out, "%s%s%s", painted ? colour : "", text, painted ? "\x1b[0m" : "");
}

static void print_label(const struct heat *heat, uint32_t group, FILE *out) {
	char name[HEAT_NAME_BYTES], clean[HEAT_NAME_BYTES], cell[SHOW_BYTES];

	heat_group_name(heat, group, name);
	paint_escape(name, HEAT_NAME_BYTES, clean, sizeof(clean));
	show_truncated(clean, LABEL_COLUMNS, cell);
	fprintf(out, "%-*s", LABEL_COLUMNS, cell);
}

// Cells with times.

// Print the rails below a row of times, one sign per rail. Two lines of eight are used if they do
// not fit.
static void
print_rails(const struct heat *heat, uint32_t node, uint32_t first, uint32_t end, FILE *out) {
	size_t most = 0, count = TIME_COLUMNS - 1;

	for (uint32_t peer = first; peer < end; peer++) {
		size_t length = strlen(heat_get_cell(heat, node, peer)->rails);

		most = length > most ? length : most;
	}
	if (most > count)
		count = HEAT_RAILS_MAX / 2;
	for (size_t from = 0; from < most; from += count) {
		fprintf(out, "%-*s", LABEL_COLUMNS, from == 0 ? "  its rails" : "");
		for (uint32_t peer = first; peer < end; peer++) {
			const char *rails = heat_get_cell(heat, node, peer)->rails;

			fprintf(out, " %*.*s", TIME_COLUMNS - 1, (int)count,
				from < strlen(rails) ? rails + from : "");
		}
		fputc('\n', out);
	}
}

// Print the columns from `first` up to `end`, with the rows of all nodes.
static void
print_times(const struct heat *heat, uint32_t first, uint32_t end, bool colour, FILE *out) {
	static const char *const words[HEAT_KIND_COUNT] = {
		[HEAT_NOTHING] = "-",	[HEAT_SELF] = "\\",	    [HEAT_DEAD] = "dead",
		[HEAT_GOOD] = "good",	[HEAT_NO_PAIR] = "no pair", [HEAT_DEGRADED] = "slow",
		[HEAT_LOSSY] = "lossy", [HEAT_STANDING] = "stands", [HEAT_SILENT] = "silent",
	};
	char median[SHOW_BYTES], text[SHOW_BYTES], padded[SHOW_BYTES];

	fprintf(out, "%-*s", LABEL_COLUMNS, "");
	for (uint32_t peer = first; peer < end; peer++) {
		char name[HEAT_NAME_BYTES], clean[HEAT_NAME_BYTES], cell[SHOW_BYTES];

		heat_group_name(heat, peer, name);
		paint_escape(name, HEAT_NAME_BYTES, clean, sizeof(clean));
		show_truncated(clean, TIME_COLUMNS - 1, cell);
		fprintf(out, " %*s", TIME_COLUMNS - 1, cell);
	}
	fputc('\n', out);
	for (uint32_t node = 0; node < heat->group_count; node++) {
		print_label(heat, node, out);
		for (uint32_t peer = first; peer < end; peer++) {
			const struct heat_path *path = &heat_get_cell(heat, node, peer)->worst;
			const char *mark = path->kind == HEAT_DEGRADED ? " D"
					   : path->kind == HEAT_LOSSY  ? " L"
								       : "";

			if (heat_is_timed(path)) {
				show_duration(path->median_ns, median);
				snprintf(text, sizeof(text), "%.20s%s", median, mark);
			} else {
				snprintf(text, sizeof(text), "%s", words[path->kind]);
			}
			snprintf(padded, sizeof(padded), "%*.40s", TIME_COLUMNS - 1, text);
			fputc(' ', out);
			print_painted(path_colour(heat, path), colour, padded, out);
		}
		fputc('\n', out);
		print_rails(heat, node, first, end, out);
	}
}

// Print as many blocks of columns, of about the same width, as the columns of the output need.
static void print_time_blocks(const struct heat *heat, size_t columns, bool colour, FILE *out) {
	uint32_t most = (uint32_t)((columns - LABEL_COLUMNS) / TIME_COLUMNS);
	uint32_t blocks = (heat->group_count + most - 1) / most, first = 0;

	for (uint32_t n = 1; n <= blocks; n++) {
		uint32_t end = heat->group_count * n / blocks;

		if (n > 1)
			fputc('\n', out);
		print_times(heat, first, end, colour, out);
		first = end;
	}
}

// Cells with signs.

static void print_signs(const struct heat *heat, size_t columns, bool colour, FILE *out) {
	uint32_t cell_columns = SIGN_LABEL_COLUMNS + 2 * heat->group_count <= columns ? 2 : 1;
	char text[3] = "";

	// The numbers of the columns are written from top to bottom, tens above ones.
	for (uint32_t unit = heat->group_count >= 10 ? 10 : 1; unit > 0; unit /= 10) {
		fprintf(out, "%-*s", SIGN_LABEL_COLUMNS, "");
		for (uint32_t peer = 1; peer <= heat->group_count; peer++) {
			bool shown = unit == 1 || peer % 10 == 0;
			uint32_t digit = peer / unit % 10;

			fprintf(out, "%c%s", shown ? (char)('0' + digit) : ' ',
				cell_columns == 2 ? " " : "");
		}
		fputc('\n', out);
	}

	for (uint32_t node = 0; node < heat->group_count; node++) {
		fprintf(out, "%3u ", node + 1);
		print_label(heat, node, out);
		for (uint32_t peer = 0; peer < heat->group_count; peer++) {
			const struct heat_path *path = &heat_get_cell(heat, node, peer)->worst;

			text[0] = signs[path->kind];
			if (path->kind == HEAT_GOOD && path->median_ns > 0)
				text[0] = ramp[heat_level(heat, path->median_ns)];
			text[1] = cell_columns == 2 ? ' ' : '\0';
			print_painted(path_colour(heat, path), colour, text, out);
		}
		fputc('\n', out);
	}
}

// Begin a new line if an entry of this width would end beyond the last column.
static void make_room(size_t width, size_t columns, size_t *used, FILE *out) {
	if (*used > 0 && *used + width > columns) {
		fputc('\n', out);
		*used = 0;
	}
	*used += width;
}

static void print_legend(const struct heat *heat, size_t columns, bool colour, FILE *out) {
	char least[SHOW_BYTES], text[4];
	size_t used = strlen("From ");

	fputc('\n', out);
	if (heat->least_ns > 0) {
		fprintf(out, "From ");
		for (uint32_t level = 0; level < HEAT_LEVELS; level++) {
			show_duration(heat_level_ns(heat, level), least);
			snprintf(text, sizeof(text), " %c ", ramp[level]);
			make_room(strlen("   ") + 1 + strlen(least) + 2, columns, &used, out);
			print_painted(level_colours[level], colour, text, out);
			fprintf(out, " %s%s", least, level + 1 < HEAT_LEVELS ? "  " : "\n");
		}
	}
	used = 0;
	for (enum heat_kind kind = HEAT_KIND_COUNT; kind-- > HEAT_SELF;) {
		if (kind == HEAT_GOOD)
			continue;
		snprintf(text, sizeof(text), "%c", signs[kind]);
		make_room(2 + strlen(heat_kind_words(kind)) + 2, columns, &used, out);
		print_painted(kind_colours[kind], colour, text, out);
		fprintf(out, " %s  ", heat_kind_words(kind));
	}
	make_room(strlen("blank: ") + strlen(heat_kind_words(HEAT_NOTHING)), columns, &used, out);
	fprintf(out, "blank: %s\n", heat_kind_words(HEAT_NOTHING));
}

// Print a line after an indent of blanks, broken at blanks.
static void print_line(size_t indent, const char *line, size_t columns, bool colour, FILE *out) {
	char clean[HEAT_LINE_BYTES], *words = clean;

	paint_escape(line, sizeof(clean), clean, sizeof(clean));
	while (*words != '\0') {
		size_t length = paint_line_bytes(words, columns - indent);
		char after = words[length];

		words[length] = '\0';
		fprintf(out, "%*s", (int)indent, "");
		paint_print_line(words, colour, out);
		words[length] = after;
		words += length;
		words += strspn(words, " ");
	}
}

void heat_print(const struct heat *heat, bool whole, bool colour, FILE *out) {
	bool times = heat->group_count <= TIMES_MAX && heat->group_size == 1;
	size_t columns = whole ? PIPE_COLUMNS : TERMINAL_COLUMNS;
	char line[HEAT_LINE_BYTES];

	heat_summary_line(heat, line);
	print_line(0, line, columns, colour, out);
	for (uint32_t n = 0; heat_omission_text(heat, n, line); n++)
		print_line(0, line, columns, colour, out);
	print_line(
		0,
		"The node of a row reads the node of a column; a cell is the median time to read "
		"8 bytes.",
		columns, false, out
	);
	fputc('\n', out);
	if (times)
		print_time_blocks(heat, columns, colour, out);
	else
		print_signs(heat, columns, colour, out);
	if (!times)
		print_legend(heat, columns, colour, out);
	if (times && heat->has_rails) {
		fputc('\n', out);
		print_line(
			0,
			"Rails, in order of their names: . good  D degraded  L lossy  S standing  "
			"X silent  ? no pair",
			columns, false, out
		);
	}
	if (heat->worst_count > 0)
		fprintf(out, "\nThe worst:\n");
	for (uint32_t n = 0; n < heat->worst_count; n++) {
		heat_worst_words(heat, &heat->worst[n], line);
		print_line(2, line, columns, colour, out);
	}
}
