// SPDX-License-Identifier: BSD-3-Clause
// What paths have learnt, kept over a restart: the file `paths` of the state directory, as a text.
// Pure.
//
//	paths 1 OBSERVER
//	path PEER DEVICE PEER_DEVICE RESPONDER MTU MBPS BASELINE_NS MAD_NS WINDOWS LEARNT_S
//	end COUNT DIGEST
//
// OBSERVER and PEER are the ids of nodes. The digest is of all before its line: a text that was cut
// short or altered is not taken in parts.
#pragma once

#include <dataplane/device.h>
#include <verdict/observation.h>
#include <verdict/path_memory.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATH_BOOK_VERSION 1
#define PATH_BOOK_PATHS_MAX 1024 // three times what is probed at once: neighbours change
#define PATH_BOOK_BYTES ((size_t)PATH_BOOK_PATHS_MAX * 224 + 128)

struct path_past {
	uint64_t peer; // our own id: a device with itself
	char device[DEVICE_NAME_MAX + 1], peer_device[DEVICE_NAME_MAX + 1];
	// Where it was learnt: where one of these is another, so is the usual time.
	enum observation_responder responder;
	uint32_t mtu, speed_mbps;
	// What was learnt.
	uint64_t baseline_ns, baseline_mad_ns;
	uint32_t windows;
	uint64_t learnt_s; // UNIX time of the last good window
};

struct path_book {
	struct path_past baselines[PATH_BOOK_PATHS_MAX];
	uint32_t count;
};

// NULL: there is none.
const struct path_past *path_book_find(
	const struct path_book *book, uint64_t peer, const char *device, const char *peer_device
);
// In place of what was known of that path; of a full book the oldest goes. False: a name that no
// line can hold, and nothing is kept.
bool path_book_put(struct path_book *book, const struct path_past *past);
// Those that were learnt before then.
void path_book_drop(struct path_book *book, uint64_t before_s);

// The length, without the NUL.
size_t path_book_format(
	const struct path_book *book, uint64_t observer, char text[static PATH_BOOK_BYTES]
);
// -EBADMSG: the book is empty, and *ret_reason says in words why nothing was taken. One path that
// cannot be is reason enough.
int path_book_parse(
	struct path_book *book, const char *text, uint64_t observer, const char **ret_reason
);
