// SPDX-License-Identifier: BSD-3-Clause
// Draws the heat map as an SVG picture: one file without scripts. It is legible on light and dark
// pages, and each cell has a tooltip.
#include "show/heat.h"

#include <lib/show.h>
#include <lib/utf8.h>

#include <stdlib.h>
#include <string.h>

#define MARGIN 28
#define AXIS 22 // room for the title of an axis
#define LEGEND_GAP 36
#define LEGEND_WIDTH 190
#define SWATCH 16
#define LINE 20
#define SCALE_GAP 12
#define WIDTH_LEAST 720
#define LABEL_CHARS_MAX 22

struct drawing {
	const struct heat *heat;
	FILE *out;
	int cell, gap, font; // font: size of labels
	int label;	     // room for row labels, and above for column labels
	int left, top;	     // position of the square
	int size;	     // edge length of the square
	int width, height;
	int notes; // lines below the title
};

static const char *const classes[HEAT_KIND_COUNT] = {
	[HEAT_NOTHING] = "nothing", [HEAT_SELF] = "self",	  [HEAT_DEAD] = "dead",
	[HEAT_GOOD] = "l0",	    [HEAT_NO_PAIR] = "nopair",	  [HEAT_DEGRADED] = "degraded",
	[HEAT_LOSSY] = "lossy",	    [HEAT_STANDING] = "standing", [HEAT_SILENT] = "silent",
};

static const char *const words[HEAT_KIND_COUNT] = {
	[HEAT_NOTHING] = "not read yet",
	[HEAT_SELF] = "itself",
	[HEAT_DEAD] = "an agent is dead",
	[HEAT_NO_PAIR] = "no pair: not known",
	[HEAT_DEGRADED] = "degraded: slow",
	[HEAT_LOSSY] = "lossy: large reads are lost",
	[HEAT_STANDING] = "standing: agent does not run",
	[HEAT_SILENT] = "silent: nothing comes back",
};

static const char style[] =
	"<style>\n"
	"svg{--page:#ffffff;--ink:#1b1f24;--faint:#656d76;--line:#c9d1d9;--deep:#ffffff;"
	"font-family:system-ui,'Segoe UI','DejaVu Sans',sans-serif}\n"
	".l0{fill:#e3f2ee}.l1{fill:#bfe3dc}.l2{fill:#93cdc9}.l3{fill:#63b1b8}"
	".l4{fill:#3f90a6}.l5{fill:#336f92}.l6{fill:#324e79}.l7{fill:#2c2f5b}\n"
	".t0,.t1,.t2,.t3{fill:#1b1f24}.t4,.t5,.t6,.t7{fill:#ffffff}\n"
	"@media(prefers-color-scheme:dark){svg{--page:#0f141a;--ink:#e6edf3;--faint:#9aa4af;"
	"--line:#3a434d;--deep:#0f141a}\n"
	".l0{fill:#1f3a47}.l1{fill:#23515c}.l2{fill:#27696e}.l3{fill:#2f837d}"
	".l4{fill:#469d87}.l5{fill:#70b68e}.l6{fill:#a4cd97}.l7{fill:#dbe3a5}\n"
	".t0,.t1,.t2,.t3{fill:#ffffff}.t4,.t5,.t6,.t7{fill:#10161c}}\n"
	".page{fill:var(--page)}text{fill:var(--ink);font-size:12px}.faint{fill:var(--faint)}\n"
	".title{font-size:19px;font-weight:600}.axis{font-size:12px;fill:var(--faint)}\n"
	".degraded{fill:#e8590c}.lossy{fill:url(#lossy)}.standing{fill:#9c36b5}.silent{fill:#d6204e}\n"
	".nopair{fill:url(#nopair)}.dead{fill:url(#dead)}\n"
	".nothing{fill:none;stroke:var(--line);stroke-width:.6}"
	".self{fill:none;stroke:none}.stroke{stroke:var(--line);fill:none}\n"
	".cross{stroke:#ffffff;stroke-width:2;fill:none}.on{fill:#ffffff}.onlight{fill:#1b1f24}\n"
	"</style>\n"
	"<defs>\n"
	"<pattern id=\"nopair\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
	"patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"#8b949e\" "
	"fill-opacity=\".25\"/><rect width=\"2\" height=\"6\" fill=\"#8b949e\"/></pattern>\n"
	"<pattern id=\"dead\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\">"
	"<rect width=\"5\" height=\"5\" fill=\"#57606a\"/><path d=\"M0 0L5 5M5 0L0 5\" "
	"stroke=\"#24292f\" stroke-width=\"1\"/></pattern>\n"
	"<pattern id=\"lossy\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
	"patternTransform=\"rotate(-45)\"><rect width=\"6\" height=\"6\" fill=\"#f2b705\"/>"
	"<rect width=\"2\" height=\"6\" fill=\"#b07d00\"/></pattern>\n"
	"</defs>\n";

// Return true for a character allowed in XML. U+FFFE and U+FFFF are valid in UTF-8, but not in XML.
static bool character_is_xml(const char *text, size_t size) {
	return size > 0 && (size > 1 || (unsigned char)*text >= ' ') &&
	       memcmp(text, "\xef\xbf\xbe", size) != 0 && memcmp(text, "\xef\xbf\xbf", size) != 0;
}

// Write text escaped for XML. Names come from other machines, and may be cut within a character.
static void xml_put_text(FILE *out, const char *text) {
	static const char *const entities[] = {
		['&'] = "&amp;", ['<'] = "&lt;", ['>'] = "&gt;", ['"'] = "&quot;", ['\''] = "&#39;",
	};
	size_t left = strlen(text), size;

	for (; left > 0; text += size, left -= size) {
		unsigned char first = (unsigned char)*text;

		size = utf8_character_size(text, left);
		if (first < sizeof(entities) / sizeof(entities[0]) && entities[first] != NULL)
			fputs(entities[first], out);
		else if (character_is_xml(text, size))
			fwrite(text, 1, size, out);
		else
			fputc('?', out);
		size = size > 0 ? size : 1;
	}
}

// Return a group name of at most LABEL_CHARS_MAX characters, not cut within a character.
static void group_short_name(const struct heat *heat, uint32_t group, char text[HEAT_NAME_BYTES]) {
	size_t at = 0, count = 0;

	heat_group_name(heat, group, text);
	while (text[at] != '\0') {
		if (((unsigned char)text[at] & 0xc0) != 0x80 && ++count > LABEL_CHARS_MAX) {
			memcpy(text + at, "~", 2);
			return;
		}
		at++;
	}
}

// Layout.

static int int_larger(int a, int b) {
	return a > b ? a : b;
}

static void layout_compute(struct drawing *drawing) {
	static const struct {
		uint32_t groups;
		int cell, gap;
	} sizes[] = {{4, 88, 3},  {8, 72, 3},  {12, 52, 2}, {20, 36, 2},
		     {40, 20, 1}, {64, 14, 1}, {96, 10, 1}, {HEAT_SVG_GROUPS_MAX, 8, 1}};
	const struct heat *heat = drawing->heat;
	char line[HEAT_LINE_BYTES], name[HEAT_NAME_BYTES];
	int legend = LINE * (HEAT_LEVELS + HEAT_KIND_COUNT + 3);
	size_t longest = 2, n = 0;

	while (sizes[n].groups < heat->group_count)
		n++;
	drawing->cell = sizes[n].cell;
	drawing->gap = sizes[n].gap;
	drawing->font = drawing->cell >= 14 ? 12 : 11;
	for (uint32_t group = 0; group < heat->group_count; group++) {
		group_short_name(heat, group, name);
		longest = strlen(name) > longest ? strlen(name) : longest;
	}
	drawing->label = (int)longest * drawing->font * 2 / 3 + 10;
	while (heat_omission_text(heat, (uint32_t)drawing->notes, line))
		drawing->notes++;
	drawing->size = (int)heat->group_count * (drawing->cell + drawing->gap);
	drawing->left = MARGIN + AXIS + drawing->label;
	drawing->top = MARGIN + 58 + drawing->notes * LINE + AXIS + drawing->label;
	drawing->width = int_larger(
		WIDTH_LEAST, drawing->left + drawing->size + LEGEND_GAP + LEGEND_WIDTH + MARGIN
	);
	drawing->height =
		drawing->top + int_larger(drawing->size, legend - drawing->label) + MARGIN;
	if (heat->worst_count > 0)
		drawing->height += LINE * (int)(heat->worst_count + 2);
}

// Parts of the picture.

static void draw_head(const struct drawing *drawing) {
	const struct heat *heat = drawing->heat;
	char line[HEAT_LINE_BYTES];
	FILE *out = drawing->out;
	int y = MARGIN + 40;

	fprintf(out,
		"<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
		"viewBox=\"0 0 %d %d\" role=\"img\">\n<title>How the nodes of ",
		drawing->width, drawing->height, drawing->width, drawing->height);
	xml_put_text(out, heat->cluster);
	fprintf(out,
		" read each other</title>\n%s<rect class=\"page\" width=\"%d\" height=\"%d\"/>\n",
		style, drawing->width, drawing->height);
	fprintf(out, "<text class=\"title\" x=\"%d\" y=\"%d\">How the nodes of ", MARGIN,
		MARGIN + 14);
	xml_put_text(out, heat->cluster);
	fprintf(out, " read each other over RDMA</text>\n");
	heat_summary_line(heat, line);
	fprintf(out, "<text class=\"faint\" x=\"%d\" y=\"%d\">%u nodes, ", MARGIN, y,
		heat->node_count);
	xml_put_text(out, line);
	fputs("; ", out);
	xml_put_text(out, heat->at);
	fputs("</text>\n", out);
	for (uint32_t n = 0; heat_omission_text(heat, n, line); n++) {
		y += LINE;
		fprintf(out, "<text x=\"%d\" y=\"%d\">", MARGIN, y);
		xml_put_text(out, line);
		fputs("</text>\n", out);
	}
}

static int cell_at(const struct drawing *drawing, uint32_t group) {
	return (int)group * (drawing->cell + drawing->gap);
}

static void draw_axes(const struct drawing *drawing) {
	int pitch = drawing->cell + drawing->gap;
	// If the labels do not all fit, only every n-th one is drawn.
	uint32_t step = (uint32_t)((drawing->font + pitch - 1) / pitch);
	char name[HEAT_NAME_BYTES];
	FILE *out = drawing->out;

	fprintf(out,
		"<text class=\"axis\" x=\"%d\" y=\"%d\">node that is read \xe2\x86\x92</text>\n",
		drawing->left, drawing->top - drawing->label - 8);
	fprintf(out,
		"<text class=\"axis\" text-anchor=\"end\" transform=\"translate(%d %d) "
		"rotate(-90)\">\xe2\x86\x90 node that reads</text>\n",
		MARGIN + 12, drawing->top);
	for (uint32_t group = 0; group < drawing->heat->group_count; group += step) {
		int middle = cell_at(drawing, group) + drawing->cell / 2;

		group_short_name(drawing->heat, group, name);
		fprintf(out,
			"<text style=\"font-size:%dpx\" text-anchor=\"end\" x=\"%d\" y=\"%d\">",
			drawing->font, drawing->left - 7,
			drawing->top + middle + drawing->font / 3);
		xml_put_text(out, name);
		fprintf(out,
			"</text><text style=\"font-size:%dpx\" transform=\"translate(%d %d) "
			"rotate(-90)\">",
			drawing->font, drawing->left + middle + drawing->font / 3,
			drawing->top - 7);
		xml_put_text(out, name);
		fputs("</text>\n", out);
	}
}

static void put_tooltip(const struct drawing *drawing, uint32_t node, uint32_t peer) {
	const struct heat_cell *cell = heat_get_cell(drawing->heat, node, peer);
	char line[HEAT_LINE_BYTES], name[HEAT_NAME_BYTES];
	FILE *out = drawing->out;

	fputs("<title>", out);
	if (drawing->heat->group_size > 1) {
		heat_group_name(drawing->heat, node, name);
		xml_put_text(out, name);
		fputs(" reads ", out);
		heat_group_name(drawing->heat, peer, name);
		xml_put_text(out, name);
		fprintf(out, ", %u paths, the worst: ", cell->told);
	}
	if (cell->told == 0 && drawing->heat->group_size > 1)
		snprintf(line, sizeof(line), "%s", heat_kind_words(cell->worst.kind));
	else
		heat_path_words(drawing->heat, &cell->worst, line);
	xml_put_text(out, line);
	fputs("</title>", out);
}

// Draw the content of a cell that is large enough.
static void draw_inside(const struct drawing *drawing, const struct heat_path *path, int x, int y) {
	int middle = drawing->cell / 2;
	char text[SHOW_BYTES];

	if (path->kind == HEAT_SELF && drawing->cell >= 14)
		fprintf(drawing->out, "<path class=\"stroke\" d=\"M%d %dl%d %d\"/>", x + 3, y + 3,
			drawing->cell - 6, drawing->cell - 6);
	if (path->kind == HEAT_SILENT && drawing->cell >= 10)
		fprintf(drawing->out, "<path class=\"cross\" d=\"M%d %dl%d %dm0 %dl%d %d\"/>",
			x + middle / 2 + 1, y + middle / 2 + 1, middle - 2, middle - 2, 2 - middle,
			2 - middle, middle - 2);
	if (drawing->cell < 52 || !heat_is_timed(path))
		return;
	show_duration(path->median_ns, text);
	fprintf(drawing->out, "<text text-anchor=\"middle\" x=\"%d\" y=\"%d\" class=\"", x + middle,
		y + middle + 4);
	if (path->kind == HEAT_GOOD)
		fprintf(drawing->out, "t%u", heat_level(drawing->heat, path->median_ns));
	else
		fputs(path->kind == HEAT_LOSSY ? "onlight" : "on", drawing->out);
	fprintf(drawing->out, "\">%s</text>", text);
}

static void draw_cells(const struct drawing *drawing) {
	FILE *out = drawing->out;

	for (uint32_t node = 0; node < drawing->heat->group_count; node++) {
		for (uint32_t peer = 0; peer < drawing->heat->group_count; peer++) {
			const struct heat_path *path =
				&heat_get_cell(drawing->heat, node, peer)->worst;
			int x = drawing->left + cell_at(drawing, peer);
			int y = drawing->top + cell_at(drawing, node);

			fputs("<g>", out);
			put_tooltip(drawing, node, peer);
			fprintf(out,
				"<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"%d\" "
				"pointer-events=\"all\" class=\"",
				x, y, drawing->cell, drawing->cell, drawing->cell >= 20 ? 3 : 1);
			if (path->kind == HEAT_GOOD && path->median_ns > 0)
				fprintf(out, "l%u", heat_level(drawing->heat, path->median_ns));
			else
				fputs(classes[path->kind], out);
			fputs("\"/>", out);
			draw_inside(drawing, path, x, y);
			fputs("</g>\n", out);
		}
	}
}

static void draw_swatch(const struct drawing *drawing, const char *class, int x, int y) {
	fprintf(drawing->out,
		"<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" rx=\"2\" class=\"%s\"/>", x, y,
		SWATCH, SWATCH, class);
}

static void draw_legend(const struct drawing *drawing) {
	int x = drawing->left + drawing->size + LEGEND_GAP;
	int y = drawing->top - drawing->label + 8;
	char class[8], text[SHOW_BYTES];
	FILE *out = drawing->out;

	if (drawing->heat->least_ns > 0) {
		fprintf(out, "<text x=\"%d\" y=\"%d\">median time to read 8 bytes</text>\n", x,
			y - 8);
		y += SCALE_GAP; // the first label is level with the upper edge of its swatch
		for (uint32_t level = 0; level < HEAT_LEVELS; level++, y += LINE) {
			snprintf(class, sizeof(class), "l%u", level);
			fprintf(out,
				"<rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\" class=\"%s\"/>",
				x, y, SWATCH, LINE, class);
			show_duration(heat_level_ns(drawing->heat, level), text);
			fprintf(out, "<text x=\"%d\" y=\"%d\">%s%s</text>\n", x + SWATCH + 9, y + 5,
				text,
				level == 0		   ? " (the fastest)"
				: level + 1 == HEAT_LEVELS ? " and more"
							   : "");
		}
		y += LINE;
	}
	for (enum heat_kind kind = HEAT_KIND_COUNT; kind-- > 0;) {
		if (words[kind] == NULL)
			continue;
		draw_swatch(drawing, classes[kind], x, y);
		if (kind == HEAT_SELF)
			fprintf(out, "<path class=\"stroke\" d=\"M%d %dl%d %d\"/>", x + 2, y + 2,
				SWATCH - 4, SWATCH - 4);
		fprintf(out, "<text x=\"%d\" y=\"%d\">%s</text>\n", x + SWATCH + 9, y + 12,
			words[kind]);
		y += LINE;
	}
}

void heat_svg(const struct heat *heat, FILE *out) {
	struct drawing drawing = {.heat = heat, .out = out};
	char line[HEAT_LINE_BYTES];
	int y;

	layout_compute(&drawing);
	draw_head(&drawing);
	draw_axes(&drawing);
	draw_cells(&drawing);
	draw_legend(&drawing);
	y = drawing.height - MARGIN - LINE * (int)heat->worst_count;
	if (heat->worst_count > 0)
		fprintf(out, "<text x=\"%d\" y=\"%d\" class=\"faint\">The worst</text>\n", MARGIN,
			y);
	for (uint32_t n = 0; n < heat->worst_count; n++) {
		y += LINE;
		draw_swatch(&drawing, classes[heat->worst[n].path.kind], MARGIN, y - 13);
		fprintf(out, "<text x=\"%d\" y=\"%d\">", MARGIN + SWATCH + 9, y);
		heat_worst_words(heat, &heat->worst[n], line);
		xml_put_text(out, line);
		fputs("</text>\n", out);
	}
	fputs("</svg>\n", out);
}
