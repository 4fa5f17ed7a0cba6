// SPDX-License-Identifier: BSD-3-Clause
// What an agent remembers over a restart, in its state directory: how often it was started, and
// the events of its past.
//
//	lock     held for as long as the agent runs, with its pid
//	start    the start counter, replaced whole
//	links    what local checks remember of RDMA ports (<control/checks.h>), written by them
//	paths    what is usual on paths over RDMA (<control/path_book.h>), replaced whole
//	members  whom to join through beside the configured ones (<control/member_list.h>), likewise
//	journal  one JSON object a line; journal.1 is the one before, so the size is bounded
//
// Reading happens in state_open(), before the loop runs. After that only a thread of its own
// touches the disk: a full or hanging one costs events, which are counted, and never a keep-alive.
#pragma once

#include <ras/event.h>

#include <stdint.h>
#include <sys/stat.h>

struct state;

#define STATE_EARLIER_MAX 4096	// events of earlier runs kept in memory
#define STATE_QUEUE_EVENTS 1024 // not written yet; more are lost
#define STATE_DETAIL_BYTES 256
#define STATE_TEXT_BYTES 256 // of an event, with its NUL

struct state_event {
	int64_t realtime_ns; // UNIX time
	struct ras_event event;
	char text[STATE_TEXT_BYTES]; // what is said of it in words, UTF-8; ""
};

// Why what lies in such a directory is not to be believed, in words; NULL: this user and root alone
// can change it. Somebody who can put files there has the agent write where they point.
const char *state_directory_doubt(const struct stat *info);

// Makes the directory if its parent exists. -EBUSY: another agent holds it; -EPERM: it is
// doubtful. On failure *ret_detail says what failed, with the path. A counter or journal that
// cannot be read is begun anew, and logged. One on a file system that may only be read is read;
// what would be written is lost.
int state_open(
	const char *directory,
	uint64_t journal_bytes_max,
	char ret_detail[static STATE_DETAIL_BYTES],
	struct state **ret_state
);
// Waits for what is queued to be written, at most 2 s.
struct state *state_close(struct state *state);

// The number of this start: one more than the last one kept; 0 if it could not be kept.
uint64_t state_start(const struct state *state);
// The cluster knew a larger one.
void state_keep_start(struct state *state, uint64_t start);

// Never waits.
void state_journal(struct state *state, const struct state_event *event);

// Texts that are replaced whole.
enum state_text {
	STATE_PATHS,
	STATE_MEMBERS,
	STATE_TEXT_COUNT,
};

// What an earlier run kept: 0 and a text that is the caller's to free, once; -ENOENT, or why it
// cannot be read.
int state_take(struct state *state, enum state_text which, char **ret_text);
// Takes the text, of malloc(); one that was not written yet gives way. Never waits.
void state_keep(struct state *state, enum state_text which, char *text);

// The latest events of earlier runs, oldest first. They do not change.
uint32_t state_earlier(const struct state *state, const struct state_event **ret_events);

struct state_counters {
	uint64_t events_written, events_lost, write_failures;
};

void state_counters(const struct state *state, struct state_counters *ret_counters);
