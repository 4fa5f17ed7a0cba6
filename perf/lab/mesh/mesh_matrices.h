// SPDX-License-Identifier: BSD-3-Clause
// Matrix form of a mesh file, for many directions: one matrix per figure instead of one histogram
// per direction.
#pragma once

#include "mesh/mesh.h"
#include "run/why.h"

struct json_t;

// Add "matrices" and "failed". Returns 0 or -ENOMEM.
int mesh_matrices_put(struct json_t *root, const struct mesh *mesh);
// Return true if a file has the matrix form.
bool mesh_has_matrices(const struct json_t *root);
// Read the matrices from an untrusted file. Returns 0, or -EBADMSG with the reason in `why`.
int mesh_matrices_read(const struct json_t *root, struct mesh *mesh, struct lab_why *why);
