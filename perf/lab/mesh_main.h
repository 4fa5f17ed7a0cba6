// SPDX-License-Identifier: BSD-3-Clause
// The command mesh.
#pragma once

#include "options/options.h"

int mesh_main(const struct options *options);
