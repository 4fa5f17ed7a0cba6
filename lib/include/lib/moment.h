// SPDX-License-Identifier: BSD-3-Clause
// Points in time as people and other programs write them.
#pragma once

#include <lib/parse.h>

#include <stddef.h>
#include <stdint.h>

// Parse a point in time. Accepted are
//
//	90s 10m 2h 3d            this long before now_ns
//	15:10 15:10:05           that time of today, or of yesterday if today's is still to come
//	2026-11-29T15:10:05.5Z   ISO 8601; the time, its fraction and the zone may be missing, and a
//	                         blank may stand for the T
//	@1795965000 1795965000   UNIX time in seconds; without @ it has at least ten digits
//
// A time without a zone is local time. If the clocks were set back, so that it happened twice, the
// first one is meant. Returns 0, -EINVAL (also for a date, or a local time, that does not exist) or
// -ERANGE, with a sentence as the parsers of <lib/parse.h> do. Any thread.
int moment_parse(
	const char *text,
	size_t length,
	int64_t now_ns,
	struct parse_error *error,
	int64_t *ret_realtime_ns
);
