// SPDX-License-Identifier: BSD-3-Clause
// SVG picture of a square matrix, with labels, a legend and notes: one file without scripts. It is
// legible on light and dark pages. All texts are escaped.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define MATRIX_SVG_COUNT_MAX 256
#define MATRIX_SVG_TEXT_BYTES 1024
#define MATRIX_SVG_LINES_MAX 20
#define MATRIX_NO_CLASS UINT32_MAX

struct matrix_svg_cell {
	uint32_t class; // index; MATRIX_NO_CLASS: nothing is drawn
	bool is_framed; // drawn with frame_class as well; ignored if there are tooltips
	char tooltip[MATRIX_SVG_TEXT_BYTES], value[96]; // "": none
};

// Lines of text, each beside a swatch of its class, if it has one.
struct matrix_svg_lines {
	uint32_t count;
	struct {
		uint32_t class;
		char text[MATRIX_SVG_TEXT_BYTES];
	} lines[MATRIX_SVG_LINES_MAX];
};

struct matrix_svg {
	const char *const *classes; // CSS classes of cells; text of a class is a value in its cell
	uint32_t class_count, frame_class;
	const char *style; // CSS of the classes
	const char *defs;  // patterns that the style refers to, or ""
	const char *row_axis, *column_axis;
	uint32_t count;	   // of rows, at most MATRIX_SVG_COUNT_MAX
	bool has_tooltips; // each cell has one; without any, a large picture has a small file

	const void *context;
	void (*label)(const void *context, uint32_t n, char text[static MATRIX_SVG_TEXT_BYTES]);
	// Fill in a cell, which has no class and no texts before.
	void (*cell
	)(const void *context, uint32_t row, uint32_t column, struct matrix_svg_cell *ret_cell);

	struct matrix_svg_lines head; // the first line is the title
	struct matrix_svg_lines legend, foot;
};

// Append a line to the head, the legend or the foot. A text that is too long is cut.
__attribute__((format(printf, 3, 4))) void
matrix_svg_add(struct matrix_svg_lines *lines, uint32_t class, const char *format, ...);
// Write the picture. The caller looks for errors of the stream.
void matrix_svg_write(const struct matrix_svg *picture, FILE *file);
