// SPDX-License-Identifier: BSD-3-Clause
// The page of a mesh: what stands out, the matrix, the slowest directions, the processes.
#pragma once

#include "mesh.h"
#include "why.h"

struct json_t;

// Of a mesh that was just measured. "-" is standard output.
int page_mesh(
	const struct mesh *mesh,
	const struct mesh_summary *summary,
	const char *path,
	struct lab_why *why
);
// Of a file's mesh, verified.
int page_mesh_json(const struct json_t *root, const char *path, struct lab_why *why);
