// SPDX-License-Identifier: BSD-3-Clause
// The protocol versions of this build. This file holds nothing else: tests link it with other
// numbers to build an older or newer agent (tests/smoke/meson.build).
#include <ras/ras.h>

#ifndef RAS_PROTOCOL_MIN
#define RAS_PROTOCOL_MIN 3
#endif
#ifndef RAS_PROTOCOL_MAX
#define RAS_PROTOCOL_MAX 3
#endif

const struct ras_versions ras_versions_built = {.min = RAS_PROTOCOL_MIN, .max = RAS_PROTOCOL_MAX};
