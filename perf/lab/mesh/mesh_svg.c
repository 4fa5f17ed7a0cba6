// SPDX-License-Identifier: BSD-3-Clause
// SVG picture of the matrix of a mesh, for documents and tickets.
//
// All cells of one shade form one path, made of runs along a row. So the picture of 256 processes
// has only some hundred KB. Names come from other machines and files, so they are escaped.
#include "mesh/mesh_output.h"
#include "report/output.h"
#include "report/page_parts.h"

#include <lib/parse.h>

#include <jansson.h>

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <page.h>
#include <stdlib.h>
#include <string.h>

#define SHADES 12     // from the fastest to the slowest, in equal steps of the logarithm
#define VALUES_MAX 16 // largest mesh with values in its cells
#define NAMES_MAX 64  // largest mesh with all names; a larger one shows every NUMBER_STEP-th number
#define NUMBER_STEP 16
#define NAME_SHOWN 20 // length of the shown tail of a name, which differs most
#define LETTER_PX 7   // upper bound of the width of a letter
#define LINE_PX 18
#define HEAD_LINES 4
#define HEAD_PX (20 + HEAD_LINES * LINE_PX)
#define FOOT_PX 44	 // for the scale
#define WIDTH_PX_MIN 480 // for the scale

struct picture {
	FILE *file;
	const struct mesh *mesh;
	const struct mesh_summary *summary;
	char (*names)[MESH_NAME_BYTES];
	char head[HEAD_LINES][LAB_WHY_BYTES];
	uint32_t cell_px, left_px, top_px, width_px;
	double low, high; // range of the known values in ns
};

static bool cell_is_known(const struct mesh_cell *cell) {
	return cell->measured && cell->quantiles[0].known;
}

static double cell_p50_ns(const struct mesh_cell *cell) {
	return (double)cell->quantiles[0].value_ns;
}

// Return the shade of a cell; SHADES if its value is unknown.
static uint32_t cell_shade(const struct picture *picture, const struct mesh_cell *cell) {
	double part;

	if (!cell_is_known(cell))
		return SHADES;
	if (picture->low <= 0 || picture->high <= picture->low)
		return 0;
	part = log(fmax(cell_p50_ns(cell), picture->low) / picture->low) /
	       log(picture->high / picture->low);
	return part >= 1 ? SHADES - 1 : (uint32_t)(part * SHADES);
}

// Compute the range of the shades, and the places in the picture.
static void compute_layout(struct picture *picture) {
	const struct mesh *mesh = picture->mesh;
	size_t longest = 4;

	for (uint32_t n = 0; n < mesh->count * mesh->count; n++) {
		if (!cell_is_known(&mesh->cells[n]))
			continue;
		if (picture->high == 0 || cell_p50_ns(&mesh->cells[n]) < picture->low)
			picture->low = cell_p50_ns(&mesh->cells[n]);
		picture->high = fmax(picture->high, cell_p50_ns(&mesh->cells[n]));
	}
	picture->cell_px = mesh->count <= VALUES_MAX ? 44 : mesh->count <= NAMES_MAX ? 14 : 5;
	for (uint32_t n = 0; mesh->count <= NAMES_MAX && n < mesh->count; n++) {
		size_t length = strnlen(picture->names[n], NAME_SHOWN);

		longest = length > longest ? length : longest;
	}
	picture->left_px = 16 + (uint32_t)longest * LETTER_PX;
	picture->top_px = HEAD_PX + picture->left_px;
	picture->width_px = picture->left_px + mesh->count * picture->cell_px + 16;
	for (uint32_t n = 0; n < HEAD_LINES; n++) {
		uint32_t line_px = 16 + (uint32_t)strlen(picture->head[n]) * LETTER_PX;

		picture->width_px = line_px > picture->width_px ? line_px : picture->width_px;
	}
	if (picture->width_px < WIDTH_PX_MIN)
		picture->width_px = WIDTH_PX_MIN;
}

static void put_style(FILE *file) {
	fputs("<style>\n"
	      "text { font: 12px system-ui, sans-serif; fill: #1b1f24 }\n"
	      ".title { font-size: 16px; font-weight: 600 }\n"
	      ".ground { fill: #fff } .unknown { fill: #9aa0a6 }\n"
	      ".out { fill: none; stroke: #c5221f; stroke-width: 2;"
	      " vector-effect: non-scaling-stroke }\n",
	      file);
	for (uint32_t n = 0; n < SHADES; n++) {
		uint32_t light = 93 - n * 65 / (SHADES - 1);

		fprintf(file, ".s%u { fill: hsl(212, 62%%, %u%%) }%s", n, light,
			n + 1 == SHADES ? "\n" : " ");
	}
	fputs(".bright { fill: #fff } .dim { fill: #1b1f24 }\n"
	      "@media (prefers-color-scheme: dark) {\n"
	      "\ttext { fill: #e6e8eb } .ground { fill: #16181d }\n"
	      "\t.bright { fill: #fff } .dim { fill: #1b1f24 }\n"
	      "}\n</style>\n",
	      file);
}

static void put_text(
	const struct picture *picture, uint32_t x, uint32_t y, const char *more, const char *text
) {
	fprintf(picture->file, "<text x=\"%u\" y=\"%u\"%s>", x, y, more);
	page_put_text(picture->file, text);
	fputs("</text>\n", picture->file);
}

// Compose the lines above the matrix: title, outliers, largest cause and legend.
static void compose_head(struct picture *picture) {
	const struct mesh *mesh = picture->mesh;
	const struct mesh_summary *summary = picture->summary;
	char bytes[PARSE_TEXT_BYTES];

	format_size_bytes(mesh->plan.sizes[0], bytes);
	snprintf(
		picture->head[0], LAB_WHY_BYTES, "Mesh of %u: p50 of round trips, %s, %s",
		mesh->count, plan_op_name(mesh->plan.op), bytes
	);
	if (summary->outliers > 0)
		snprintf(
			picture->head[1], LAB_WHY_BYTES, "%u of %u directions stand out",
			summary->outliers, summary->measured
		);
	else
		snprintf(
			picture->head[1], LAB_WHY_BYTES, "%s",
			mesh->count == 2 ? "Two directions are too few to find outliers"
					 : "Nothing stands out"
		);
	if (summary->cause_count > 0)
		mesh_cause_format(mesh, &summary->causes[0], picture->head[2], LAB_WHY_BYTES);
	snprintf(
		picture->head[3], LAB_WHY_BYTES,
		"Rows: the measuring process; columns: the answering process%s%s",
		mesh_is_shared_host(mesh) ? "; processes share a machine" : "",
		mesh->partial[0] != '\0' ? "; incomplete" : ""
	);
}

// Draw all cells of one shade; the unit is a cell.
static void put_shade(const struct picture *picture, uint32_t shade) {
	const struct mesh *mesh = picture->mesh;
	bool begun = false;

	for (uint32_t from = 0; from < mesh->count; from++) {
		for (uint32_t to = 0, run; to<mesh->count; to += run> 0 ? run : 1) {
			for (run = 0; to + run < mesh->count && to + run != from; run++) {
				if (cell_shade(picture, mesh_cell(mesh, from, to + run)) != shade)
					break;
			}
			if (run == 0)
				continue;
			if (!begun && shade == SHADES)
				fputs("<path class=\"unknown\" d=\"", picture->file);
			else if (!begun)
				fprintf(picture->file, "<path class=\"s%u\" d=\"", shade);
			begun = true;
			fprintf(picture->file, "M%u %uh%uv1h-%uz", to, from, run, run);
		}
	}
	if (begun)
		fputs("\"/>\n", picture->file);
}

static void put_cells(const struct picture *picture) {
	const struct mesh *mesh = picture->mesh;

	fprintf(picture->file, "<g transform=\"translate(%u %u) scale(%u)\">\n", picture->left_px,
		picture->top_px, picture->cell_px);
	for (uint32_t shade = 0; shade <= SHADES; shade++)
		put_shade(picture, shade);
	if (picture->summary->outliers > 0) {
		fputs("<path class=\"out\" d=\"", picture->file);
		for (uint32_t n = 0; n < mesh->count * mesh->count; n++) {
			if (mesh_cell_is_outlier(picture->summary, &mesh->cells[n]))
				fprintf(picture->file, "M%u %uh1v1h-1z", n % mesh->count,
					n / mesh->count);
		}
		fputs("\"/>\n", picture->file);
	}
	fputs("</g>\n", picture->file);
}

static void put_values(const struct picture *picture) {
	const struct mesh *mesh = picture->mesh;

	for (uint32_t n = 0; mesh->count <= VALUES_MAX && n < mesh->count * mesh->count; n++) {
		const struct mesh_cell *cell = &mesh->cells[n];
		bool bright = cell_shade(picture, cell) > SHADES / 2;
		char value[PAGE_CELL_BYTES];

		if (!cell_is_known(cell))
			continue;
		page_format_us(cell_p50_ns(cell), value);
		put_text(
			picture, picture->left_px + n % mesh->count * picture->cell_px + 22,
			picture->top_px + n / mesh->count * picture->cell_px + 26,
			bright ? " class=\"bright\" text-anchor=\"middle\""
			       : " class=\"dim\" text-anchor=\"middle\"",
			value
		);
	}
}

// Write each name beside its row, and rotated above its column.
static void put_names(const struct picture *picture) {
	const struct mesh *mesh = picture->mesh;

	for (uint32_t n = 0; n < mesh->count; n++) {
		uint32_t middle = n * picture->cell_px + picture->cell_px / 2;
		uint32_t x = picture->left_px + middle + 4, y = picture->top_px - 8;
		size_t length = strlen(picture->names[n]);
		size_t cut = length > NAME_SHOWN ? length - NAME_SHOWN : 0;
		char name[MESH_NAME_BYTES], turn[96];

		if (mesh->count <= NAMES_MAX)
			snprintf(name, sizeof(name), "%s", picture->names[n] + cut);
		else if (n % NUMBER_STEP == 0)
			snprintf(name, sizeof(name), "%u", n);
		else
			continue;
		lab_sanitize(name); // the cut may have split a UTF-8 character
		put_text(
			picture, picture->left_px - 8, picture->top_px + middle + 4,
			" text-anchor=\"end\"", name
		);
		snprintf(turn, sizeof(turn), " transform=\"rotate(-90 %u %u)\"", x, y);
		put_text(picture, x, y, turn, name);
	}
}

static void put_scale(const struct picture *picture, uint32_t y) {
	char low[PAGE_CELL_BYTES], high[PAGE_CELL_BYTES], text[LAB_WHY_BYTES];

	if (picture->high == 0) {
		put_text(picture, 8, y + 22, "", "No direction has enough samples for a median");
		return;
	}
	for (uint32_t n = 0; n < SHADES; n++)
		fprintf(picture->file,
			"<rect class=\"s%u\" x=\"%u\" y=\"%u\" width=\"14\" height=\"14\"/>\n", n,
			8 + n * 14, y + 10);
	page_format_us(picture->low, low);
	page_format_us(picture->high, high);
	snprintf(
		text, sizeof(text), "%s to %s us; grey: unknown%s", low, high,
		picture->summary->outliers > 0 ? "; framed: stands out" : ""
	);
	put_text(picture, 18 + SHADES * 14, y + 21, "", text);
}

int mesh_write_svg(
	const struct mesh *mesh,
	const struct mesh_summary *summary,
	const char *path,
	struct lab_why *why
) {
	struct picture picture = {.mesh = mesh, .summary = summary};
	uint32_t width, bottom;
	int err;

	picture.names = calloc(mesh->count, sizeof(*picture.names));
	if (picture.names == NULL)
		return lab_fail(why, -ENOMEM, "no memory for the picture");
	err = output_open(path, why, &picture.file);
	if (err != 0) {
		free(picture.names);
		return err;
	}
	mesh_name_processes(mesh, picture.names);
	compose_head(&picture);
	compute_layout(&picture);
	width = picture.width_px;
	bottom = picture.top_px + mesh->count * picture.cell_px;
	fprintf(picture.file,
		"<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
		"viewBox=\"0 0 %u %u\" role=\"img\">\n",
		width, bottom + FOOT_PX, width, bottom + FOOT_PX);
	put_style(picture.file);
	fputs("<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n", picture.file);
	for (uint32_t n = 0; n < HEAD_LINES; n++)
		put_text(
			&picture, 8, 20 + n * LINE_PX, n == 0 ? " class=\"title\"" : "",
			picture.head[n]
		);
	put_cells(&picture);
	put_values(&picture);
	put_names(&picture);
	put_scale(&picture, bottom);
	fputs("</svg>\n", picture.file);
	err = output_close(path, picture.file, why);
	free(picture.names);
	return err;
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
