// SPDX-License-Identifier: BSD-3-Clause
// Yardsticks: the minima of some floors, shown beside the results of other commands.
#pragma once

#include "run/environment.h"
#include "run/floor.h"

#include <stdint.h>

// Measure each yardstick for some milliseconds and add its minimum to the environment, for example
// as "floor_udp_ns". A floor that this machine lacks is left out.
void yardsticks_measure(struct lab_environment *environment);
// Add the shortest sample of a yardstick, or "n/a" if even this one waited for a processor.
void yardsticks_add(struct lab_environment *environment, enum floor_kind kind, uint64_t sample_ns);
#define YARDSTICKS_BYTES 88 // length of a line without its label; the longest known values fit
// Format the yardsticks: "clock 17 ns, syscall 66 ns ..."; "" if none is known.
void yardsticks_format(
	const struct lab_environment *environment, char text[static YARDSTICKS_BYTES]
);
