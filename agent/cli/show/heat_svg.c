// SPDX-License-Identifier: BSD-3-Clause
// Describes the heat map to the writer of matrices as SVG. Each cell has a tooltip.
#include "show/heat.h"

#include <lib/matrix_svg.h>
#include <lib/show.h>

#include <string.h>

#define VALUES_MAX 12 // largest number of groups with times in the cells
#define LABEL_CHARS_MAX 22

// A level of the scale has the class HEAT_KIND_COUNT + level. No cell has the class of HEAT_GOOD.
static const char *const classes[HEAT_KIND_COUNT + HEAT_LEVELS] = {
	"nothing", "self", "dead", "good", "nopair", "degraded", "lossy", "standing", "silent",
	"l0",	   "l1",   "l2",   "l3",   "l4",     "l5",	 "l6",	  "l7",
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
	".l0{fill:#e3f2ee}.l1{fill:#bfe3dc}.l2{fill:#93cdc9}.l3{fill:#63b1b8}"
	".l4{fill:#3f90a6}.l5{fill:#336f92}.l6{fill:#324e79}.l7{fill:#2c2f5b}\n"
	".degraded{fill:#e8590c}.lossy{fill:url(#lossy)}.standing{fill:#9c36b5}"
	".silent{fill:url(#silent)}.nopair{fill:url(#nopair)}.dead{fill:url(#dead)}"
	".self{fill:url(#self)}.nothing{fill:none;stroke:var(--line);stroke-width:.6}\n"
	"text.lossy,text.l0,text.l1,text.l2,text.l3{fill:#1b1f24}"
	"text.degraded,text.l4,text.l5,text.l6,text.l7{fill:#fff}\n"
	"@media(prefers-color-scheme:dark){\n"
	".l0{fill:#1f3a47}.l1{fill:#23515c}.l2{fill:#27696e}.l3{fill:#2f837d}"
	".l4{fill:#469d87}.l5{fill:#70b68e}.l6{fill:#a4cd97}.l7{fill:#dbe3a5}\n"
	"text.l0,text.l1,text.l2,text.l3{fill:#fff}"
	"text.l4,text.l5,text.l6,text.l7{fill:#10161c}}\n";

static const char patterns[] =
	"<pattern id=\"nopair\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
	"patternTransform=\"rotate(45)\"><rect width=\"6\" height=\"6\" fill=\"#8b949e\" "
	"fill-opacity=\".25\"/><rect width=\"2\" height=\"6\" fill=\"#8b949e\"/></pattern>\n"
	"<pattern id=\"dead\" width=\"5\" height=\"5\" patternUnits=\"userSpaceOnUse\">"
	"<rect width=\"5\" height=\"5\" fill=\"#57606a\"/><path d=\"M0 0L5 5M5 0L0 5\" "
	"stroke=\"#24292f\" stroke-width=\"1\"/></pattern>\n"
	"<pattern id=\"lossy\" width=\"6\" height=\"6\" patternUnits=\"userSpaceOnUse\" "
	"patternTransform=\"rotate(-45)\"><rect width=\"6\" height=\"6\" fill=\"#f2b705\"/>"
	"<rect width=\"2\" height=\"6\" fill=\"#b07d00\"/></pattern>\n"
	"<pattern id=\"self\" width=\"1\" height=\"1\" patternContentUnits=\"objectBoundingBox\">"
	"<path d=\"M.1 .1L.9 .9\" style=\"stroke:var(--line)\" stroke-width=\".04\"/></pattern>\n"
	"<pattern id=\"silent\" width=\"1\" height=\"1\" patternContentUnits=\"objectBoundingBox\">"
	"<rect width=\"1\" height=\"1\" fill=\"#d6204e\"/><path d=\"M.25 .25L.75 .75M.75 .25L.25 .75\" "
	"stroke=\"#fff\" stroke-width=\".06\"/></pattern>\n";

// Format a group name of at most LABEL_CHARS_MAX characters, not cut within a character.
static void
format_label(const void *context, uint32_t group, char text[static MATRIX_SVG_TEXT_BYTES]) {
	size_t at = 0, count = 0;

	heat_group_name(context, group, text);
	while (text[at] != '\0') {
		if (((unsigned char)text[at] & 0xc0) != 0x80 && ++count > LABEL_CHARS_MAX) {
			memcpy(text + at, "~", 2);
			return;
		}
		at++;
	}
}

static uint32_t path_class(const struct heat *heat, const struct heat_path *path) {
	if (path->kind != HEAT_GOOD)
		return path->kind;
	return HEAT_KIND_COUNT + (path->median_ns > 0 ? heat_level(heat, path->median_ns) : 0);
}

static void
describe_cell(const void *context, uint32_t node, uint32_t peer, struct matrix_svg_cell *ret_cell) {
	const struct heat *heat = context;
	const struct heat_cell *cell = heat_get_cell(heat, node, peer);
	char line[HEAT_LINE_BYTES], name[HEAT_NAME_BYTES], peer_name[HEAT_NAME_BYTES];

	ret_cell->class = path_class(heat, &cell->worst);
	if (heat->group_count <= VALUES_MAX && heat_is_timed(&cell->worst))
		show_duration(cell->worst.median_ns, ret_cell->value);
	heat_path_words(heat, &cell->worst, line);
	if (heat->group_size == 1) {
		snprintf(ret_cell->tooltip, sizeof(ret_cell->tooltip), "%s", line);
		return;
	}
	heat_group_name(heat, node, name);
	heat_group_name(heat, peer, peer_name);
	snprintf(
		ret_cell->tooltip, sizeof(ret_cell->tooltip),
		"%s reads %s, %u paths, the worst: %s", name, peer_name, cell->told,
		cell->told == 0 ? heat_kind_words(cell->worst.kind) : line
	);
}

static void add_legend(const struct heat *heat, struct matrix_svg_lines *legend) {
	char text[SHOW_BYTES];

	if (heat->least_ns > 0) {
		matrix_svg_add(legend, MATRIX_NO_CLASS, "median time to read 8 bytes");
		for (uint32_t level = 0; level < HEAT_LEVELS; level++) {
			show_duration(heat_level_ns(heat, level), text);
			matrix_svg_add(
				legend, HEAT_KIND_COUNT + level, "%s%s%s", level > 0 ? "from " : "",
				text, level == 0 ? " (the fastest)" : ""
			);
		}
		matrix_svg_add(legend, MATRIX_NO_CLASS, "%s", "");
	}
	for (enum heat_kind kind = HEAT_KIND_COUNT; kind-- > 0;) {
		if (words[kind] != NULL)
			matrix_svg_add(legend, kind, "%s", words[kind]);
	}
}

void heat_svg(const struct heat *heat, FILE *out) {
	struct matrix_svg picture = {
		.classes = classes,
		.class_count = HEAT_KIND_COUNT + HEAT_LEVELS,
		.style = style,
		.defs = patterns,
		.row_axis = "\xe2\x86\x90 node that reads",
		.column_axis = "node that is read \xe2\x86\x92",
		.count = heat->group_count,
		.has_tooltips = true,
		.context = heat,
		.label = format_label,
		.cell = describe_cell,
	};
	char line[HEAT_LINE_BYTES];

	matrix_svg_add(
		&picture.head, MATRIX_NO_CLASS, "How the nodes of %s read each other over RDMA",
		heat->cluster
	);
	heat_summary_line(heat, line);
	matrix_svg_add(
		&picture.head, MATRIX_NO_CLASS, "%u nodes, %s; %s", heat->node_count, line, heat->at
	);
	for (uint32_t n = 0; heat_omission_text(heat, n, line); n++)
		matrix_svg_add(&picture.head, MATRIX_NO_CLASS, "%s", line);
	add_legend(heat, &picture.legend);
	if (heat->worst_count > 0)
		matrix_svg_add(&picture.foot, MATRIX_NO_CLASS, "The worst");
	for (uint32_t n = 0; n < heat->worst_count; n++) {
		heat_worst_words(heat, &heat->worst[n], line);
		matrix_svg_add(&picture.foot, path_class(heat, &heat->worst[n].path), "%s", line);
	}
	matrix_svg_write(&picture, out);
}
