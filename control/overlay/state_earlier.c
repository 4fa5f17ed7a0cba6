// SPDX-License-Identifier: BSD-3-Clause
// Reads the events of earlier runs from the journal.
#include "overlay/state_file.h"

#include <lib/log.h>
#include <lib/scoped.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// Ring buffer of the last STATE_EARLIER_MAX events.
struct ring {
	struct state_event *events;
	uint32_t seen;
};

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
			ring->events[ring->seen++ % STATE_EARLIER_MAX] = event;
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

int state_earlier_read(int directory, struct state_event **ret_events, uint32_t *ret_count) {
	struct ring ring = {.events = calloc(STATE_EARLIER_MAX, sizeof(*ring.events))};
	uint32_t oldest;

	if (ring.events == NULL)
		return -ENOMEM;
	read_journal(directory, "journal.1", &ring);
	read_journal(directory, "journal", &ring);
	if (ring.seen > STATE_EARLIER_MAX) {
		// Rotate the ring so that the oldest event comes first.
		oldest = ring.seen % STATE_EARLIER_MAX;
		events_reverse(ring.events, 0, oldest);
		events_reverse(ring.events, oldest, STATE_EARLIER_MAX);
		events_reverse(ring.events, 0, STATE_EARLIER_MAX);
	}
	*ret_events = ring.events;
	*ret_count = ring.seen < STATE_EARLIER_MAX ? ring.seen : STATE_EARLIER_MAX;
	return 0;
}
