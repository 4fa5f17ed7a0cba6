// SPDX-License-Identifier: BSD-3-Clause
// The versions of the protocol that this build speaks, and nothing else: a program that links this
// file compiled with other numbers is an older or newer agent (tests/smoke/meson.build).
#include <ras/ras.h>

#ifndef RAS_PROTOCOL_MIN
#define RAS_PROTOCOL_MIN 2
#endif
#ifndef RAS_PROTOCOL_MAX
#define RAS_PROTOCOL_MAX 2
#endif

const struct ras_versions ras_versions_built = {.min = RAS_PROTOCOL_MIN, .max = RAS_PROTOCOL_MAX};
