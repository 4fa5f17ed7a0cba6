// SPDX-License-Identifier: BSD-3-Clause
// LINKS: the overlay links of this node, ring links first.
#include "client/answers.h"
#include "client/listing.h"
#include "client/names.h"
#include "client/peer_list.h"

#include <records/links.h>

#include <stdio.h>
#include <stdlib.h>

#define LINKS_SHOWN_MAX 4096 // far above the links of any node

struct links {
	struct listing listing;
	struct ras_link_info rows[];
};

static const struct {
	uint32_t bit;
	const char *name;
} uses[] = {
	{RAS_USE_NEXT, "next"},
	{RAS_USE_PREV, "prev"},
	{RAS_USE_FALLBACK_NEXT, "fallback-next"},
	{RAS_USE_FALLBACK_PREV, "fallback-prev"},
	{RAS_USE_CHECK, "check"},
};
#define USE_COUNT (sizeof(uses) / sizeof(uses[0]))

// Write the uses of a link; stops when the text is full.
static void link_uses_format(uint32_t bits, char text[static LINK_USES_BYTES]) {
	size_t used = 0;

	snprintf(text, LINK_USES_BYTES, "-");
	for (size_t n = 0; n < USE_COUNT && used < LINK_USES_BYTES; n++) {
		if ((bits & uses[n].bit) != 0)
			used += (size_t)snprintf(
				text + used, LINK_USES_BYTES - used, "%s%s", used > 0 ? " " : "",
				uses[n].name
			);
	}
	for (uint32_t level = 0; level < RAS_LEVELS_MAX && used < LINK_USES_BYTES; level++) {
		if ((bits & RAS_USE_LEVEL(level)) != 0)
			used += (size_t)snprintf(
				text + used, LINK_USES_BYTES - used, "%slong%u",
				used > 0 ? " " : "", level
			);
	}
}

// Order: ring links first, then long ones by level, then the rest.
static int links_compare(const void *left, const void *right) {
	const struct ras_link_info *a = left;
	const struct ras_link_info *b = right;
	uint32_t bits_a = (a->mine | a->theirs) != 0 ? (a->mine | a->theirs) : UINT32_MAX;
	uint32_t bits_b = (b->mine | b->theirs) != 0 ? (b->mine | b->theirs) : UINT32_MAX;
	uint32_t lowest_a = bits_a & (0 - bits_a);
	uint32_t lowest_b = bits_b & (0 - bits_b);

	if (lowest_a != lowest_b)
		return lowest_a < lowest_b ? -1 : 1;
	return a->peer < b->peer ? -1 : a->peer > b->peer;
}

// Return the mean rate over the life of a link; 0 in its first second.
static uint64_t link_byte_rate(const struct ras_link_info *link, uint64_t bytes) {
	return link->age_ns >= RAS_NS_PER_SEC
		       ? (uint64_t)((double)bytes * 1e9 / (double)link->age_ns)
		       : 0;
}

static json_t *row_json(struct session *session, void *work, uint32_t n) {
	const struct ras_link_info *link = &((struct links *)work)->rows[n];
	struct link_row row = {
		.state = !link->ready	 ? "down"
			 : link->delayed ? "delayed"
					 : "up",
		.protocol = link->version,
		.outgoing = link->outgoing,
		.rtt_min_ns = link->rtt_min_ns,
		.rtt_mean_ns = link->rtt_mean_ns,
		.rtt_max_ns = link->rtt_max_ns,
		.silent_ns = link->silent_ns,
		.sent_bytes = link->sent_bytes,
		.sent_frames = link->sent_frames,
		.received_bytes = link->received_bytes,
		.received_frames = link->received_frames,
		.sent_bytes_per_s = link_byte_rate(link, link->sent_bytes),
		.received_bytes_per_s = link_byte_rate(link, link->received_bytes),
		.reconnects = link->reconnects,
		.queued_bytes = link->queued_bytes,
	};

	if (link->rtt_min_ns == RAS_NEVER)
		row.rtt_min_ns = row.rtt_mean_ns = row.rtt_max_ns = RECORD_UNKNOWN;
	names_format_id(session_ras(session), link->peer, row.node);
	link_uses_format(link->mine, row.mine);
	link_uses_format(link->theirs, row.theirs);
	return record_to_json(&link_record, &row);
}

static const struct listing_ops ops = {.key = "links", .row_json = row_json};

void answer_links(struct session *session, const char *rest) {
	struct ras_link_info info;
	struct links *links;
	uint32_t count = 0;

	(void)rest;
	while (count < LINKS_SHOWN_MAX && ras_link_at(session_ras(session), count, &info) == 0)
		count++;
	links = calloc(1, sizeof(*links) + count * sizeof(links->rows[0]));
	if (!session_begin(session, listing_step, free, links))
		return;
	links->listing = (struct listing){.ops = &ops, .count = count};
	for (uint32_t n = 0; n < count; n++)
		ras_link_at(session_ras(session), n, &links->rows[n]);
	qsort(links->rows, count, sizeof(links->rows[0]), links_compare);
}
