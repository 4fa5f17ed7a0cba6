// SPDX-License-Identifier: BSD-3-Clause
// Writer of matrices as SVG. Cells with tooltips are groups of their own. Other cells form one path
// per class, made of runs along a row. So a picture of 256 rows has only some hundred KB.
#include <lib/escape.h>
#include <lib/matrix_svg.h>
#include <lib/must.h>

#include <stdarg.h>
#include <string.h>
#include <sys/param.h>

#define MARGIN 28
#define AXIS 22 // room for the title of an axis
#define LEGEND_GAP 36
#define LETTER 8 // upper bound of the width of a letter
#define SWATCH 16
#define INDENT (SWATCH + 9) // of a text beside a swatch
#define LINE 20

struct drawing {
	const struct matrix_svg *picture;
	FILE *file;
	uint32_t cell, pitch, font; // edge of a cell, distance of two cells, size of labels
	uint32_t label;		    // room for row labels, and above for column labels
	uint32_t left, top, size;   // position and edge of the square
	uint32_t width, height;
};

static const char style[] =
	"<style>\nsvg{--page:#fff;--ink:#1b1f24;--faint:#656d76;--line:#c9d1d9;"
	"font-family:system-ui,'Segoe UI','DejaVu Sans',sans-serif}\n"
	"@media(prefers-color-scheme:dark){svg{--page:#0f141a;--ink:#e6edf3;--faint:#9aa4af;"
	"--line:#3a434d}}\n"
	".page{fill:var(--page)}text{fill:var(--ink);font-size:12px}.faint{fill:var(--faint)}\n"
	".title{font-size:19px;font-weight:600}\n"
	"text{text-anchor:middle}.title,.line,.faint,.label{text-anchor:start}"
	"text.end{text-anchor:end}g rect{pointer-events:all}\n";

void matrix_svg_add(struct matrix_svg_lines *lines, uint32_t class, const char *format, ...) {
	va_list values;

	must(lines->count < MATRIX_SVG_LINES_MAX);
	lines->lines[lines->count].class = class;
	va_start(values, format);
	vsnprintf(lines->lines[lines->count++].text, MATRIX_SVG_TEXT_BYTES, format, values);
	va_end(values);
}

static uint32_t lines_width(const struct matrix_svg_lines *lines) {
	size_t longest = 0;

	for (uint32_t n = 0; n < lines->count; n++)
		longest = MAX(longest, strlen(lines->lines[n].text));
	return MARGIN + INDENT + (uint32_t)longest * LETTER;
}

static void layout_compute(struct drawing *drawing) {
	static const uint32_t sizes[][3] = {
		// rows, edge of a cell, gap between cells
		{4, 88, 3},  {8, 72, 3},  {12, 52, 2}, {16, 44, 2}, {20, 36, 2},
		{40, 20, 1}, {64, 14, 1}, {96, 10, 1}, {128, 8, 1}, {MATRIX_SVG_COUNT_MAX, 5, 0}};
	const struct matrix_svg *picture = drawing->picture;
	char label[MATRIX_SVG_TEXT_BYTES];
	size_t longest = 2, n = 0;
	uint32_t legend;

	must(picture->count <= MATRIX_SVG_COUNT_MAX);
	while (sizes[n][0] < picture->count)
		n++;
	drawing->cell = sizes[n][1];
	drawing->pitch = drawing->cell + (picture->has_tooltips ? sizes[n][2] : 0);
	drawing->font = drawing->cell >= 14 ? 12 : 11;
	for (uint32_t row = 0; row < picture->count; row++) {
		picture->label(picture->context, row, label);
		longest = MAX(longest, strlen(label));
	}
	drawing->label = (uint32_t)longest * LETTER + 10;
	drawing->size = picture->count * drawing->pitch;
	drawing->left = MARGIN + AXIS + drawing->label;
	drawing->top = MARGIN + LINE * (picture->head.count + 1) + AXIS + drawing->label;
	legend = drawing->left + drawing->size + LEGEND_GAP + lines_width(&picture->legend);
	drawing->width = MAX(lines_width(&picture->head), lines_width(&picture->foot)) + MARGIN;
	drawing->width = MAX(drawing->width, legend);
	legend = LINE * picture->legend.count;
	drawing->height = drawing->top +
			  MAX(drawing->size + LINE, legend - MIN(legend, drawing->label)) + MARGIN +
			  LINE * picture->foot.count;
}

static void put_text(
	const struct drawing *drawing,
	const char *class,
	uint32_t x,
	uint32_t y,
	bool is_turned,
	const char *text
) {
	fprintf(drawing->file, "<text class=\"%s\" x=\"%u\" y=\"%u\"", class, x, y);
	if (is_turned)
		fprintf(drawing->file, " transform=\"rotate(-90 %u %u)\"", x, y);
	fputc('>', drawing->file);
	escape_put_markup(text, drawing->file);
	fputs("</text>\n", drawing->file);
}

static void
put_square(const struct drawing *drawing, uint32_t class, uint32_t x, uint32_t y, uint32_t size) {
	fprintf(drawing->file,
		"<rect class=\"%s\" x=\"%u\" y=\"%u\" width=\"%u\" height=\"%u\" rx=\"%d\"/>",
		drawing->picture->classes[class], x, y, size, size, size >= SWATCH ? 2 : 1);
}

// Draw lines of text; y is the baseline of the first one.
static void draw_lines(
	const struct drawing *drawing, const struct matrix_svg_lines *lines, uint32_t x, uint32_t y
) {
	for (uint32_t n = 0; n < lines->count; n++, y += LINE) {
		bool is_title = lines == &drawing->picture->head && n == 0;
		bool has_swatch = lines->lines[n].class != MATRIX_NO_CLASS;
		uint32_t text_x = has_swatch ? x + INDENT : x;

		if (has_swatch)
			put_square(drawing, lines->lines[n].class, x, y - SWATCH + 4, SWATCH);
		put_text(
			drawing, is_title ? "title" : "line", text_x, y, false, lines->lines[n].text
		);
	}
}

static void draw_axes(const struct drawing *drawing) {
	const struct matrix_svg *picture = drawing->picture;
	uint32_t left = drawing->left, top = drawing->top;
	char label[MATRIX_SVG_TEXT_BYTES];
	uint32_t step = 1; // if the labels do not all fit, only every step-th one is drawn

	while (step * drawing->pitch < drawing->font)
		step *= 2;
	put_text(drawing, "faint", left, top - drawing->label - 8, false, picture->column_axis);
	put_text(drawing, "faint end", MARGIN + 12, top, true, picture->row_axis);
	for (uint32_t n = 0; n < picture->count; n += step) {
		uint32_t middle = n * drawing->pitch + drawing->cell / 2 + drawing->font / 3;

		picture->label(picture->context, n, label);
		put_text(drawing, "label end", left - 7, top + middle, false, label);
		put_text(drawing, "label", left + middle, top - 7, true, label);
	}
}

static void
get_cell(const struct matrix_svg *picture, uint32_t n, struct matrix_svg_cell *ret_cell) {
	ret_cell->class = MATRIX_NO_CLASS;
	ret_cell->is_framed = false;
	ret_cell->tooltip[0] = ret_cell->value[0] = '\0';
	picture->cell(picture->context, n / picture->count, n % picture->count, ret_cell);
}

// Draw all cells of one class as one path; its unit is a cell. Each frame stands alone.
static void draw_class(const struct drawing *drawing, uint32_t class) {
	const struct matrix_svg *picture = drawing->picture;
	bool is_frame = class == picture->frame_class;
	uint32_t cells = picture->count * picture->count;
	uint32_t run = 0; // number of equal cells before this one
	struct matrix_svg_cell cell;

	fprintf(drawing->file, "<path class=\"%s\" d=\"", picture->classes[class]);
	for (uint32_t n = 0; n < cells; n++) {
		get_cell(picture, n, &cell);
		if (is_frame ? !cell.is_framed : cell.class != class)
			continue;
		run++;
		if ((n + 1) % picture->count != 0 && !is_frame) {
			get_cell(picture, n + 1, &cell);
			if (cell.class == class)
				continue;
		}
		fprintf(drawing->file, "M%u %uh%uv1h-%uz", n % picture->count + 1 - run,
			n / picture->count, run, run);
		run = 0;
	}
	fputs("\"/>\n", drawing->file);
}

static void draw_cells(const struct drawing *drawing) {
	const struct matrix_svg *picture = drawing->picture;
	uint32_t cells = picture->count * picture->count;
	struct matrix_svg_cell cell;

	if (!picture->has_tooltips) {
		fprintf(drawing->file, "<g transform=\"translate(%u %u) scale(%u)\">\n",
			drawing->left, drawing->top, drawing->pitch);
		for (uint32_t n = 0; n < picture->class_count; n++)
			draw_class(drawing, n);
		fputs("</g>\n", drawing->file);
	}
	for (uint32_t n = 0; n < cells; n++) {
		uint32_t x = drawing->left + n % picture->count * drawing->pitch;
		uint32_t y = drawing->top + n / picture->count * drawing->pitch;
		uint32_t middle = drawing->cell / 2;

		get_cell(picture, n, &cell);
		if (cell.class == MATRIX_NO_CLASS)
			continue;
		if (picture->has_tooltips) {
			fputs("<g><title>", drawing->file);
			escape_put_markup(cell.tooltip, drawing->file);
			fputs("</title>", drawing->file);
			put_square(drawing, cell.class, x, y, drawing->cell);
		}
		if (cell.value[0] != '\0')
			put_text(
				drawing, picture->classes[cell.class], x + middle, y + middle + 4,
				false, cell.value
			);
		if (picture->has_tooltips)
			fputs("</g>\n", drawing->file);
	}
}

void matrix_svg_write(const struct matrix_svg *picture, FILE *file) {
	struct drawing drawing = {.picture = picture, .file = file};
	uint32_t right, bottom;

	layout_compute(&drawing);
	fprintf(file,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
		"viewBox=\"0 0 %u %u\" role=\"img\">\n<title>",
		drawing.width, drawing.height, drawing.width, drawing.height);
	escape_put_markup(picture->head.lines[0].text, file);
	fprintf(file,
		"</title>\n%s.label{font-size:%upx}\n%s</style>\n<defs>%s</defs>\n"
		"<rect class=\"page\" width=\"%u\" height=\"%u\"/>\n",
		style, drawing.font, picture->style, picture->defs, drawing.width, drawing.height);
	draw_lines(&drawing, &picture->head, MARGIN, MARGIN + 14);
	draw_axes(&drawing);
	draw_cells(&drawing);
	right = drawing.left + drawing.size + LEGEND_GAP;
	draw_lines(&drawing, &picture->legend, right, drawing.top - drawing.label);
	bottom = drawing.height - MARGIN + LINE - LINE * picture->foot.count;
	draw_lines(&drawing, &picture->foot, MARGIN, bottom);
	fputs("</svg>\n", file);
}
