// SPDX-License-Identifier: BSD-3-Clause
// Output of a mesh for people and programs; docs/perf-json.md describes its file.
#pragma once

#include "mesh/mesh.h"
#include "run/why.h"

#include <stdio.h>

#define MESH_JSON_SCHEMA "tocsin-perf-mesh/2"
// Columns of the table; a larger mesh is printed with one line per process.
#define MESH_COLUMNS_MAX 16

struct json_t;

// Print to standard output, at most 100 columns wide; rates at most 80.
void mesh_print(const struct mesh *mesh, const struct mesh_summary *summary);

// Write a file; "-" is standard output. Each returns 0, or -errno with the reason in `why`.
int mesh_write_json(
	const struct mesh *mesh,
	const struct mesh_summary *summary,
	const char *path,
	struct lab_why *why
);
int mesh_write_csv(const struct mesh *mesh, const char *path, struct lab_why *why);
// Write the matrix of p50 as an SVG picture.
int mesh_write_svg(
	const struct mesh *mesh,
	const struct mesh_summary *summary,
	const char *path,
	struct lab_why *why
);
// Write the picture of a verified JSON file.
int mesh_write_svg_json(const struct json_t *root, const char *path, struct lab_why *why);

// Convert a mesh to JSON. Returns 0 or -ENOMEM.
int mesh_to_json(
	const struct mesh *mesh, const struct mesh_summary *summary, struct json_t **ret_json
);
// Restore a mesh from an untrusted file, without figures that are computed from samples. The caller
// must release *ret_mesh in any case. Returns 0, -EBADMSG with the reason in `why`, or -ENOMEM.
int mesh_from_json(const struct json_t *root, struct lab_why *why, struct mesh *ret_mesh);
// Recompute all figures of a mesh file. Returns the errors of verify_load().
int mesh_verify(struct json_t *root, struct lab_why *why);
