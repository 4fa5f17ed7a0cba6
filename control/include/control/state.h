// SPDX-License-Identifier: BSD-3-Clause
// The state directory: what an agent remembers over a restart. That is its start counter, the
// events of earlier runs, path baselines, members and the history of RDMA ports.
//
//	lock     held for as long as the agent runs, with its pid
//	start    the start counter, replaced whole
//	links    RDMA port history of the local checks (<control/checks.h>), which read and write it
//	paths    baselines of RDMA paths (<control/path_book.h>), replaced whole
//	members  more addresses to join through (<control/member_list.h>), replaced whole
//	maintenance  versions of the maintenance switches with their orders, replaced whole
//	agent.key  the key of this agent (<control/agent_key.h>), written once
//	journal  one JSON object a line; journal.1 is the previous file, so the size is bounded
//
// state_open() reads the files except `links` before the loop runs. Later only a separate thread
// writes them. A full or hanging disk loses events, which are counted, but delays no keep-alive.
#pragma once

#include <ras/event.h>
#include <ras/types.h>

#include <stdint.h>
#include <sys/stat.h>

struct state;

#define STATE_EARLIER_MAX 4096	// events of earlier runs kept in memory
#define STATE_QUEUE_EVENTS 1024 // events not written yet; further ones are lost
#define STATE_DETAIL_BYTES 256
#define STATE_TEXT_BYTES 256 // text of an event, with its NUL

struct state_event {
	int64_t realtime_ns; // UNIX time
	struct ras_event event;
	char text[STATE_TEXT_BYTES]; // description in UTF-8; may be ""
};

// Return why a directory with this owner and mode cannot be trusted; NULL if only this user and
// root can change it. A person who can create files in the directory could make the agent write
// elsewhere.
const char *state_directory_problem(const struct stat *info);

// Open the directory, and create it if its parent exists. Returns 0, -EBUSY (another agent holds
// it), -EPERM (the directory cannot be trusted) or -errno; ret_detail explains the error and names
// the path. An unreadable counter or journal is logged and started again. A directory on a
// read-only file system is read, and writes are lost.
int state_open(
	const char *directory,
	uint64_t journal_bytes_max,
	char ret_detail[static STATE_DETAIL_BYTES],
	struct state **ret_state
);
// Wait at most 2 s until all queued data is written, then close.
struct state *state_close(struct state *state);

// Return the number of this start: the last saved one plus one, or 0 if it could not be saved.
uint64_t state_start(const struct state *state);
// Save a larger start number, which the cluster knew.
void state_save_start(struct state *state, uint64_t start);

// Queue an event for the journal. Never waits.
void state_journal(struct state *state, const struct state_event *event);

#define STATE_ORDERS_MAX 2048 // orders of maintenance that are stored

// Limit of the file `maintenance`: a line for each peer that a table can hold, and the orders.
#define STATE_MAINTENANCE_BYTES \
	((size_t)RAS_PEERS_MAX * (RAS_NAME_MAX + 16) + (size_t)STATE_ORDERS_MAX * 1024 + 256)

// Texts that are replaced whole.
enum state_text {
	STATE_PATHS,
	STATE_MEMBERS,
	STATE_MAINTENANCE,
	STATE_TEXT_COUNT,
};

// Return the text that an earlier run saved. The caller must free it; only the first call gets it.
// Returns 0, -ENOENT, or the error of reading.
int state_read_text(struct state *state, enum state_text which, char **ret_text);
// Save a text, which must come from malloc() and is taken over. It replaces a text that is not
// written yet. A write that fails is repeated until it succeeds. Never waits.
void state_save_text(struct state *state, enum state_text which, char *text);

// Return the latest events of earlier runs, oldest first. They do not change.
uint32_t state_earlier(const struct state *state, const struct state_event **ret_events);

// Selection of events: the last `max` ones of a time.
struct state_filter {
	int64_t since_ns, until_ns; // UNIX time
	uint64_t peer;		    // 0: events about all peers
	uint32_t max;
};

// Read events from the journal of a state directory, oldest first. Needs no struct state, so any
// thread may call this, but it may wait for the disk. Returns 0, -ENOMEM or -errno. The caller
// frees the events.
int state_journal_read(
	const char *directory,
	const struct state_filter *filter,
	struct state_event **ret_events,
	uint32_t *ret_count
);

struct state_counters {
	uint64_t events_written, events_lost, write_failures;
};

void state_counters(const struct state *state, struct state_counters *ret_counters);
