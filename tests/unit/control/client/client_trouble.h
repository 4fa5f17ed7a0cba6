// SPDX-License-Identifier: BSD-3-Clause
// A cluster with something to tell of, on the client bench.
#pragma once

#include "control/client/client_bench.h"

// n3 is dead (its process gone), n2 suspect, and there is a link to n2.
void bench_make_trouble(void);
