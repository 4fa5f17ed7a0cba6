// SPDX-License-Identifier: BSD-3-Clause
#include "trace.h"

#include "fault.h"
#include "net.h"

#include <ras/event.h>

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

// A thousand nodes make this many entries in about ten seconds.
#define TRACE_RING (1u << 18)

static const char *const trace_own_names[] = {
	[TRACE_TICK - TRACE_OWN] = "tick",   [TRACE_SEND - TRACE_OWN] = "send",
	[TRACE_OPEN - TRACE_OWN] = "open",   [TRACE_CLOSE - TRACE_OWN] = "close",
	[TRACE_LOST - TRACE_OWN] = "lost",   [TRACE_RAS_EVENT - TRACE_OWN] = "event",
	[TRACE_FAULT - TRACE_OWN] = "fault",
};

int trace_init(struct trace *trace, FILE *file) {
	memset(trace, 0, sizeof(*trace));
	trace->ring = calloc(TRACE_RING, sizeof(*trace->ring));
	if (trace->ring == NULL)
		return -ENOMEM;
	trace->ring_mask = TRACE_RING - 1;
	trace->file = file;
	trace->verbose = file != NULL;
	return 0;
}

void trace_fini(struct trace *trace) {
	free(trace->ring);
	trace->ring = NULL;
}

void trace_node_name(uint32_t node, char name[TRACE_NAME_BYTES]) {
	snprintf(name, TRACE_NAME_BYTES, "n%05u", node + 1);
}

static const char *trace_kind_name(const struct trace_entry *entry) {
	if (entry->kind >= TRACE_OWN && entry->kind < TRACE_KIND_COUNT)
		return trace_own_names[entry->kind - TRACE_OWN];
	return net_event_name(entry->kind);
}

void trace_write(FILE *to, const struct trace_entry *entry) {
	char name[TRACE_NAME_BYTES];
	char other[TRACE_NAME_BYTES] = "-";

	trace_node_name(entry->node, name);
	if (entry->other != NET_NOBODY)
		trace_node_name(entry->other, other);
	fprintf(to, "%14.9f %-8s %-7s %-8s", (double)entry->at_ns / 1e9, name,
		trace_kind_name(entry), other);
	switch (entry->kind) {
	case TRACE_RAS_EVENT:
		fprintf(to, " %s cause=%s", ras_event_name((enum ras_event_kind)entry->value),
			ras_cause_name((enum ras_cause)entry->detail));
		break;
	case TRACE_FAULT:
		fprintf(to, " %s", fault_name((enum fault_kind)entry->value));
		break;
	default:
		fprintf(to, " type=%u value=%" PRIu32, entry->type, entry->value);
		break;
	}
	fputc('\n', to);
}

static bool
trace_concerns(const struct trace_entry *entry, const uint32_t *nodes, uint32_t node_count) {
	if (entry->kind == TRACE_FAULT)
		return true;
	if (entry->kind == TRACE_TICK)
		return false;
	for (uint32_t n = 0; n < node_count; n++) {
		if (entry->node == nodes[n] && (node_count == 1 || entry->kind == TRACE_RAS_EVENT ||
						entry->kind == TRACE_OPEN))
			return true;
		for (uint32_t m = 0; m < node_count; m++) {
			if (entry->node == nodes[n] && entry->other == nodes[m])
				return true;
		}
	}
	return false;
}

void trace_excerpt(
	const struct trace *trace,
	const uint32_t *nodes,
	uint32_t node_count,
	uint32_t lines_max,
	FILE *to
) {
	uint64_t kept = trace->count <= trace->ring_mask ? trace->count : trace->ring_mask + 1;
	uint64_t from = trace->count;
	uint32_t lines = 0;

	while (from > trace->count - kept && lines < lines_max) {
		from--;
		lines += trace_concerns(&trace->ring[from & trace->ring_mask], nodes, node_count);
	}
	for (; from < trace->count; from++) {
		const struct trace_entry *entry = &trace->ring[from & trace->ring_mask];

		if (trace_concerns(entry, nodes, node_count))
			trace_write(to, entry);
	}
}
