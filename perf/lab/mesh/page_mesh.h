// SPDX-License-Identifier: BSD-3-Clause
// HTML page of a mesh: outliers, matrix, slowest directions and processes.
#pragma once

#include "mesh/mesh.h"
#include "run/why.h"

struct json_t;

// Write the page of a new measurement; "-" is standard output.
int page_mesh(
	const struct mesh *mesh,
	const struct mesh_summary *summary,
	const char *path,
	struct lab_why *why
);
// Write the page of a verified JSON file.
int page_mesh_json(const struct json_t *root, const char *path, struct lab_why *why);
