// SPDX-License-Identifier: BSD-3-Clause
// SVG picture of the matrix of a mesh, for documents and tickets.
#include "mesh/mesh_output.h"
#include "report/output.h"
#include "report/page_parts.h"

#include <lib/matrix_svg.h>
#include <lib/parse.h>

#include <jansson.h>

#include <errno.h>
#include <math.h>
#include <string.h>

#define SHADES 12 // from the fastest to the slowest, in equal steps of the logarithm
#define UNKNOWN SHADES
#define OUTLIER (SHADES + 1)
#define VALUES_MAX 16 // largest mesh with values in its cells
#define NAMES_MAX 64  // largest mesh with names; a larger one shows numbers
#define NAME_SHOWN 20 // length of the shown tail of a name, which differs most

struct picture {
	const struct mesh *mesh;
	const struct mesh_summary *summary;
	char names[MESH_NODES_MAX][MESH_NAME_BYTES];
	double low, high; // range of the known values in ns
};

static const char *const classes[] = {
	"s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7", "s8", "s9", "s10", "s11", "unknown", "out",
};

static const char style[] =
	".s0{fill:hsl(212,62%,93%)}.s1{fill:hsl(212,62%,88%)}.s2{fill:hsl(212,62%,82%)}"
	".s3{fill:hsl(212,62%,76%)}.s4{fill:hsl(212,62%,70%)}.s5{fill:hsl(212,62%,64%)}"
	".s6{fill:hsl(212,62%,58%)}.s7{fill:hsl(212,62%,52%)}.s8{fill:hsl(212,62%,46%)}"
	".s9{fill:hsl(212,62%,40%)}.s10{fill:hsl(212,62%,34%)}.s11{fill:hsl(212,62%,28%)}\n"
	"text.s0,text.s1,text.s2,text.s3,text.s4,text.s5,text.s6{fill:#1b1f24}"
	"text.s7,text.s8,text.s9,text.s10,text.s11{fill:#fff}"
	".unknown{fill:#9aa0a6}.out{fill:none;stroke:#c5221f;stroke-width:2;"
	"vector-effect:non-scaling-stroke}\n";

static bool cell_is_known(const struct mesh_cell *cell) {
	return cell->measured && cell->quantiles[0].known;
}

static double cell_p50_ns(const struct mesh_cell *cell) {
	return (double)cell->quantiles[0].value_ns;
}

// Format a median as a rate in Gbit/s or a time in microseconds.
static void format_value(const struct mesh *mesh, double value_ns, char *text) {
	if (mesh_is_bandwidth(mesh))
		snprintf(text, PAGE_CELL_BYTES, "%.3g", mesh_gbits((uint64_t)value_ns));
	else
		page_format_us(value_ns, text);
}

// Return the shade of a cell; UNKNOWN if its value is unknown.
static uint32_t cell_shade(const struct picture *picture, const struct mesh_cell *cell) {
	double part;

	if (!cell_is_known(cell))
		return UNKNOWN;
	if (picture->low <= 0 || picture->high <= picture->low)
		return 0;
	part = log(fmax(cell_p50_ns(cell), picture->low) / picture->low) /
	       log(picture->high / picture->low);
	return part >= 1 ? SHADES - 1 : (uint32_t)(part * SHADES);
}

static void compute_range(struct picture *picture) {
	const struct mesh *mesh = picture->mesh;

	for (uint32_t n = 0; n < mesh->count * mesh->count; n++) {
		if (!cell_is_known(&mesh->cells[n]))
			continue;
		if (picture->high == 0 || cell_p50_ns(&mesh->cells[n]) < picture->low)
			picture->low = cell_p50_ns(&mesh->cells[n]);
		picture->high = fmax(picture->high, cell_p50_ns(&mesh->cells[n]));
	}
}

static void format_label(const void *context, uint32_t n, char text[static MATRIX_SVG_TEXT_BYTES]) {
	const struct picture *picture = context;
	size_t length = strlen(picture->names[n]);

	if (picture->mesh->count > NAMES_MAX)
		snprintf(text, MATRIX_SVG_TEXT_BYTES, "%u", n);
	else
		snprintf(
			text, MATRIX_SVG_TEXT_BYTES, "%s",
			picture->names[n] + (length > NAME_SHOWN ? length - NAME_SHOWN : 0)
		);
}

static void
describe_cell(const void *context, uint32_t from, uint32_t to, struct matrix_svg_cell *ret_cell) {
	const struct picture *picture = context;
	const struct mesh_cell *cell = mesh_cell(picture->mesh, from, to);

	if (from == to)
		return;
	ret_cell->class = cell_shade(picture, cell);
	ret_cell->is_framed = mesh_cell_is_outlier(picture->summary, cell);
	if (picture->mesh->count <= VALUES_MAX && cell_is_known(cell))
		format_value(picture->mesh, cell_p50_ns(cell), ret_cell->value);
}

// Add the title, outliers, the largest cause and what limits the figures.
static void add_head(const struct picture *picture, struct matrix_svg_lines *head) {
	const struct mesh_summary *summary = picture->summary;
	const struct mesh *mesh = picture->mesh;
	char bytes[PARSE_TEXT_BYTES], cause[LAB_WHY_BYTES];

	format_size_bytes(mesh->plan.sizes[0], bytes);
	matrix_svg_add(
		head, MATRIX_NO_CLASS, "Mesh of %u: %s, %s, %s", mesh->count,
		mesh_is_bandwidth(mesh) ? "bandwidth" : "p50 of round trips",
		plan_op_name(mesh->plan.op), bytes
	);
	if (summary->outliers > 0)
		matrix_svg_add(
			head, MATRIX_NO_CLASS, "%u of %u directions stand out", summary->outliers,
			summary->measured
		);
	else
		matrix_svg_add(
			head, MATRIX_NO_CLASS, "%s",
			mesh->count == 2 ? "Two directions are too few to find outliers"
					 : "Nothing stands out"
		);
	if (summary->cause_count > 0) {
		mesh_cause_format(mesh, &summary->causes[0], cause, sizeof(cause));
		matrix_svg_add(head, MATRIX_NO_CLASS, "%s", cause);
	}
	matrix_svg_add(
		head, MATRIX_NO_CLASS,
		"Rows: the measuring process; columns: the answering process%s%s",
		mesh_is_shared_host(mesh) ? "; processes share a machine" : "",
		mesh->partial[0] != '\0' ? "; incomplete" : ""
	);
}

static void add_legend(const struct picture *picture, struct matrix_svg_lines *legend) {
	static const char *const words[SHADES] = {"fastest", [SHADES - 1] = "slowest"};
	char low[PAGE_CELL_BYTES], high[PAGE_CELL_BYTES];

	bool is_bandwidth = mesh_is_bandwidth(picture->mesh);

	if (picture->high > 0) {
		format_value(picture->mesh, picture->low, low);
		format_value(picture->mesh, picture->high, high);
		matrix_svg_add(
			legend, MATRIX_NO_CLASS, "%s to %s %s", low, high,
			is_bandwidth ? "Gbit/s" : "us"
		);
	}
	if (picture->high <= 0)
		matrix_svg_add(
			legend, MATRIX_NO_CLASS, "%s",
			"No direction has enough samples for a median"
		);
	for (uint32_t n = 0; picture->high > 0 && n < SHADES; n++)
		matrix_svg_add(legend, n, "%s", words[n] != NULL ? words[n] : "");
	matrix_svg_add(legend, UNKNOWN, "unknown");
	if (picture->summary->outliers > 0)
		matrix_svg_add(legend, OUTLIER, "stands out");
}

int mesh_write_svg(
	const struct mesh *mesh,
	const struct mesh_summary *summary,
	const char *path,
	struct lab_why *why
) {
	struct picture context = {.mesh = mesh, .summary = summary};
	struct matrix_svg picture = {
		.classes = classes,
		.class_count = OUTLIER + 1,
		.frame_class = OUTLIER,
		.style = style,
		.defs = "",
		.row_axis = "\xe2\x86\x90 measuring process",
		.column_axis = "answering process \xe2\x86\x92",
		.count = mesh->count,
		.context = &context,
		.label = format_label,
		.cell = describe_cell,
	};
	FILE *file;
	int err;

	err = output_open(path, why, &file);
	if (err != 0)
		return err;
	mesh_name_processes(mesh, context.names);
	compute_range(&context);
	add_head(&context, &picture.head);
	add_legend(&context, &picture.legend);
	matrix_svg_write(&picture, file);
	return output_close(path, file, why);
}

int mesh_write_svg_json(const json_t *root, const char *path, struct lab_why *why) {
	struct mesh_summary summary;
	struct mesh mesh = {.count = 0};
	int err = mesh_from_json(root, why, &mesh);

	if (err == 0) {
		err = mesh_summarize(&mesh, &summary);
		err = err != 0 ? lab_fail(why, err, "no memory for the picture")
			       : mesh_write_svg(&mesh, &summary, path, why);
	}
	mesh_release(&mesh);
	return err;
}
