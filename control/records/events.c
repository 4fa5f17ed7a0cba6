// SPDX-License-Identifier: BSD-3-Clause
// The fields of EVENTS. `tocsin events` prints rows as they come, so there are no columns.
#include <records/events.h>

#define MEMBER(...) RECORD_MEMBER(struct event_row, __VA_ARGS__)

static const struct record_field fields[] = {
	MEMBER(sequence, UNIT_COUNT, "number of the event; 0 if it is from an earlier start"),
	MEMBER(time, UNIT_NONE, "when it happened, UTC"),
	MEMBER(event, UNIT_NONE, "name of the event: SUSPECT, DEAD, LINK_UP and so on"),
	MEMBER(node, UNIT_NONE, "the peer, or null"),
	MEMBER(cause, UNIT_NONE, "why it happened, or \"none\""),
	MEMBER(start, UNIT_COUNT, "number of the start of the peer's agent"),
	MEMBER(refutations, UNIT_COUNT, "suspicions refuted since its start; null if it left"),
	MEMBER(duration_ns, UNIT_NANOSECONDS, "duration that belongs to the event, or null"),
	MEMBER(value, UNIT_NONE, "any other number that belongs to it, or null; see detail"),
	MEMBER(hops, UNIT_COUNT, "links that the news travelled to this agent"),
	MEMBER(observers, UNIT_NONE, "names of the nodes that reported it"),
	MEMBER(detail, UNIT_NONE, "cause, value, observers and text as one sentence"),
	MEMBER(text, UNIT_NONE, "description of the event, or \"\""),
};

const struct record event_record = RECORD("events", fields);
