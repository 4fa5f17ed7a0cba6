// SPDX-License-Identifier: BSD-3-Clause
// Table of the peers with which this node exchanges messages.
//
// An entry has the latest sequence sent to the peer. It also has a window over the sequences that
// came from the peer's current start, so that no message is delivered twice. An entry is kept until
// no copy of its newest message can be on the way any more. A table full of such entries refuses
// new peers.
//
// A flow stores the latest sequence that was delivered in order. It lives as long as its entry.
#include "relay/relay_state.h"

static struct relay_source **source_bucket(const struct relay *relay, uint64_t id) {
	return &relay->buckets[id % RELAY_SOURCE_BUCKETS].first; // ids are hashes already
}

// Release the entries that are not needed any more at this time.
static void sources_release_unneeded(struct ras *ras, uint64_t now_ns) {
	struct relay *relay = ras->relay;

	if (relay->buckets == NULL)
		return;
	for (uint32_t n = 0; n < RELAY_SOURCE_BUCKETS; n++) {
		struct relay_source **at = &relay->buckets[n].first;

		while (*at != NULL) {
			struct relay_source *source = *at;

			if (source->keep_ns > now_ns) {
				at = &source->next;
				continue;
			}
			*at = source->next;
			relay->flow_count -= source->flow_count;
			relay->source_count--;
			memory_release(
				&ras->memory, source->flows,
				source->flow_capacity * sizeof(*source->flows)
			);
			memory_release(&ras->memory, source, sizeof(*source));
		}
	}
	if (relay->source_count == 0) {
		memory_release(
			&ras->memory, relay->buckets, RELAY_SOURCE_BUCKETS * sizeof(*relay->buckets)
		);
		relay->buckets = NULL;
	}
}

void relay_sources_reclaim(struct ras *ras) {
	sources_release_unneeded(ras, ras->now_ns);
}

void relay_sources_fini(struct ras *ras) {
	sources_release_unneeded(ras, RAS_NEVER);
}

struct relay_source *relay_source_find(const struct relay *relay, uint64_t id) {
	struct relay_source *source;

	if (relay->buckets == NULL)
		return NULL;
	for (source = *source_bucket(relay, id); source != NULL; source = source->next) {
		if (source->id == id)
			return source;
	}
	return NULL;
}

static struct relay_source *source_create(struct ras *ras, uint64_t id) {
	struct relay *relay = ras->relay;
	struct relay_source *source;

	if (relay->source_count >= RELAY_SOURCES_MAX)
		relay_sources_reclaim(ras);
	if (relay->source_count >= RELAY_SOURCES_MAX)
		return NULL;
	if (relay->buckets == NULL)
		relay->buckets = memory_allocate(
			&ras->memory, RELAY_SOURCE_BUCKETS * sizeof(*relay->buckets)
		);
	if (relay->buckets == NULL)
		return NULL;
	source = memory_allocate(&ras->memory, sizeof(*source));
	if (source == NULL)
		return NULL;
	source->id = id;
	// Above all sequences that the peer may have seen from us before we released its entry.
	source->sent = relay->last_sequence;
	source->next = *source_bucket(relay, id);
	*source_bucket(relay, id) = source;
	relay->source_count++;
	relay_schedule_reclaim(ras);
	return source;
}

struct relay_source *relay_source_get(struct ras *ras, uint64_t id, uint64_t keep_ns) {
	struct relay_source *source = relay_source_find(ras->relay, id);

	if (source == NULL)
		source = source_create(ras, id);
	if (source != NULL && source->keep_ns < keep_ns)
		source->keep_ns = keep_ns;
	return source;
}

void relay_source_restart(
	struct ras *ras, struct relay_source *source, uint64_t start, uint64_t run
) {
	source->start = start;
	source->run = run;
	source->highest = 0;
	memset(source->decided, 0, sizeof(source->decided));
	memset(source->refused, 0, sizeof(source->refused));
	ras->relay->flow_count -= source->flow_count;
	source->flow_count = 0;
}

static uint64_t window_bit(uint64_t sequence) {
	return UINT64_C(1) << sequence % 64;
}

static uint32_t window_word_index(uint64_t sequence) {
	return (uint32_t)(sequence % RELAY_WINDOW / 64);
}

enum relay_seen relay_source_seen(const struct relay_source *source, uint64_t sequence) {
	if (sequence > source->highest)
		return RELAY_FRESH;
	if (source->highest - sequence >= RELAY_WINDOW)
		return RELAY_REFUSED;
	if ((source->decided[window_word_index(sequence)] & window_bit(sequence)) == 0)
		return RELAY_FRESH;
	return (source->refused[window_word_index(sequence)] & window_bit(sequence)) != 0
		       ? RELAY_REFUSED
		       : RELAY_DELIVERED;
}

void relay_source_decide(struct relay_source *source, uint64_t sequence, bool refused) {
	must(sequence > source->highest || source->highest - sequence < RELAY_WINDOW);
	if (sequence > source->highest) {
		uint64_t moved = sequence - source->highest;

		// Sequences that enter the window reuse the bits of those that leave it.
		for (uint64_t n = 0; n < moved && n < RELAY_WINDOW; n++) {
			source->decided[window_word_index(sequence - n)] &=
				~window_bit(sequence - n);
			source->refused[window_word_index(sequence - n)] &=
				~window_bit(sequence - n);
		}
		source->highest = sequence;
	}
	source->decided[window_word_index(sequence)] |= window_bit(sequence);
	if (refused)
		source->refused[window_word_index(sequence)] |= window_bit(sequence);
}

struct relay_flow *
relay_source_get_flow(struct ras *ras, struct relay_source *source, uint32_t flow, uint32_t port) {
	void *flows = source->flows;
	struct relay_flow *made;

	for (uint32_t n = 0; n < source->flow_count; n++) {
		if (source->flows[n].flow == flow && source->flows[n].port == port)
			return &source->flows[n];
	}
	if (source->flow_count >= RELAY_SOURCE_FLOWS_MAX ||
	    ras->relay->flow_count >= RELAY_FLOWS_MAX)
		return NULL;
	if (memory_grow(
		    &ras->memory, &flows, &source->flow_capacity, source->flow_count + 1,
		    sizeof(*source->flows)
	    ) < 0)
		return NULL;
	source->flows = flows;
	made = &source->flows[source->flow_count++];
	*made = (struct relay_flow){.flow = flow, .port = port};
	ras->relay->flow_count++;
	return made;
}
