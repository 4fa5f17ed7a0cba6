// SPDX-License-Identifier: BSD-3-Clause
// The form that a file gives to many directions: a matrix of each figure in place of a histogram of
// each direction.
#pragma once

#include "mesh.h"
#include "why.h"

struct json_t;

// "matrices" and "failed". -ENOMEM.
int mesh_matrices_put(struct json_t *root, const struct mesh *mesh);
// Whether a file has that form.
bool mesh_has_matrices(const struct json_t *root);
// From a file, hostile. -EBADMSG with the reason.
int mesh_matrices_take(const struct json_t *root, struct mesh *mesh, struct lab_why *why);
