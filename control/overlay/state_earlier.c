// SPDX-License-Identifier: BSD-3-Clause
// Reads events from the journal: those of earlier runs at the start, and those of any time later.
#include "overlay/state_file.h"

#include <lib/error.h>
#include <lib/log.h>
#include <lib/scoped.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Ring buffer of the last events that pass the filter.
struct ring {
	struct state_event *events;
	uint32_t seen, max;
	int64_t since_ns, until_ns;
	uint64_t peer; // 0: all
};

static void ring_add(struct ring *ring, const struct state_event *event) {
	if (event->realtime_ns < ring->since_ns || event->realtime_ns > ring->until_ns ||
	    (ring->peer != 0 && event->event.peer != ring->peer))
		return;
	ring->events[ring->seen++ % ring->max] = *event;
}

static void read_journal(int directory, const char *name, struct ring *ring) {
	int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	scoped_file FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
	char line[STATE_LINE_BYTES_MAX + 1];
	uint64_t bad = 0;

	if (file == NULL) {
		if (fd >= 0)
			close(fd);
		return;
	}
	while (fgets(line, sizeof(line), file) != NULL) {
		struct state_event event;

		if (state_line_parse(line, strlen(line), &event) == 0)
			ring_add(ring, &event);
		else
			bad++;
	}
	if (bad > 0)
		log_event(
			LOG_LEVEL_WARN, "journal_lines_unreadable", log_str("file", name),
			log_u64("lines", bad)
		);
}

static void events_reverse(struct state_event *events, uint32_t from, uint32_t to) {
	while (from + 1 < to) {
		struct state_event other = events[--to];

		events[to] = events[from];
		events[from++] = other;
	}
}

// Read both files, oldest event first. The events of the ring are handed over.
static void
ring_read(int directory, struct ring *ring, struct state_event **ret_events, uint32_t *ret_count) {
	uint32_t oldest;

	read_journal(directory, "journal.1", ring);
	read_journal(directory, "journal", ring);
	if (ring->seen > ring->max) {
		// Rotate the ring so that the oldest event comes first.
		oldest = ring->seen % ring->max;
		events_reverse(ring->events, 0, oldest);
		events_reverse(ring->events, oldest, ring->max);
		events_reverse(ring->events, 0, ring->max);
	}
	*ret_events = ring->events;
	*ret_count = ring->seen < ring->max ? ring->seen : ring->max;
}

int state_earlier_read(int directory, struct state_event **ret_events, uint32_t *ret_count) {
	struct ring ring = {
		.events = calloc(STATE_EARLIER_MAX, sizeof(*ring.events)),
		.max = STATE_EARLIER_MAX,
		.since_ns = INT64_MIN,
		.until_ns = INT64_MAX,
	};

	if (ring.events == NULL)
		return -ENOMEM;
	ring_read(directory, &ring, ret_events, ret_count);
	return 0;
}

int state_journal_read(
	const char *directory,
	const struct state_filter *filter,
	struct state_event **ret_events,
	uint32_t *ret_count
) {
	scoped_fd int at = open(directory, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct ring ring = {
		.max = filter->max,
		.since_ns = filter->since_ns,
		.until_ns = filter->until_ns,
		.peer = filter->peer,
	};

	if (at < 0)
		return neg_errno();
	ring.events = calloc(filter->max, sizeof(*ring.events));
	if (ring.events == NULL)
		return -ENOMEM;
	ring_read(at, &ring, ret_events, ret_count);
	return 0;
}
