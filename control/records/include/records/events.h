// SPDX-License-Identifier: BSD-3-Clause
// EVENTS: an event of the overlay, as one agent saw it.
#pragma once

#include <lib/record.h>

struct event_row {
	uint64_t sequence;
	const char *time;
	const char *event;
	const char *node; // NULL if the event has no peer
	const char *cause;
	uint64_t start, refutations, duration_ns, value;
	uint32_t hops;
	json_t *observers;
	const char *detail, *text;
};

extern const struct record event_record;
