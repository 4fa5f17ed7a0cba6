// SPDX-License-Identifier: BSD-3-Clause
// What people and programs read of a mesh: docs/perf-json.md describes its file.
#pragma once

#include "mesh.h"
#include "why.h"

#include <stdio.h>

#define MESH_JSON_SCHEMA "tocsin-perf-mesh/1"
#define MESH_COLUMNS_MAX 16 // of the table; a larger matrix has a line for each process

struct json_t;

// Standard output, of at most 100 columns.
void mesh_print(const struct mesh *mesh, const struct mesh_summary *summary);

// "-" is standard output. -errno with the reason.
int mesh_write_json(
	const struct mesh *mesh,
	const struct mesh_summary *summary,
	const char *path,
	struct lab_why *why
);
int mesh_write_csv(const struct mesh *mesh, const char *path, struct lab_why *why);
// The matrix of p50 as a picture of its own, SVG.
int mesh_write_svg(
	const struct mesh *mesh,
	const struct mesh_summary *summary,
	const char *path,
	struct lab_why *why
);
// Of a file's mesh, verified.
int mesh_write_svg_json(const struct json_t *root, const char *path, struct lab_why *why);

// -ENOMEM.
int mesh_to_json(
	const struct mesh *mesh, const struct mesh_summary *summary, struct json_t **ret_json
);
// Of a file what its figures follow from: hostile. To be released in any case. -EBADMSG with the
// reason, -ENOMEM.
int mesh_from_json(const struct json_t *root, struct lab_why *why, struct mesh *ret_mesh);
// Computes all figures of a file of this schema once more; as verify_load().
int mesh_verify(struct json_t *root, struct lab_why *why);
