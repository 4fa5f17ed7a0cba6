// SPDX-License-Identifier: BSD-3-Clause
// Path baselines kept over a restart: the file `paths` of the state directory, as text. Pure
// functions.
//
//	paths 1 OBSERVER
//	path PEER DEVICE PEER_DEVICE RESPONDER MTU MBPS BASELINE_NS MAD_NS WINDOWS LEARNT_S
//	end COUNT DIGEST
//
// OBSERVER and PEER are node ids. The digest covers all lines before it, so a text that was cut or
// altered is rejected as a whole.
#pragma once

#include <dataplane/device.h>
#include <verdict/observation.h>
#include <verdict/path_memory.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PATH_BOOK_VERSION 1
#define PATH_BOOK_PATHS_MAX 1024 // three times the paths probed at once, because neighbours change
#define PATH_BOOK_BYTES ((size_t)PATH_BOOK_PATHS_MAX * 224 + 128)

struct path_book_entry {
	uint64_t peer; // own id: a device to itself
	char device[DEVICE_NAME_MAX + 1], peer_device[DEVICE_NAME_MAX + 1];
	// Properties of the path when the baseline was learnt. A baseline holds only for the same
	// properties.
	enum observation_responder responder;
	uint32_t mtu, speed_mbps;
	// The baseline.
	uint64_t baseline_ns, baseline_mad_ns;
	uint32_t windows;
	uint64_t learnt_s; // UNIX time of the last good window
};

struct path_book {
	struct path_book_entry baselines[PATH_BOOK_PATHS_MAX];
	uint32_t count;
};

// Return the entry of one path, or NULL.
const struct path_book_entry *path_book_find(
	const struct path_book *book, uint64_t peer, const char *device, const char *peer_device
);
// Insert or replace the entry of a path. A full book drops its oldest entry. Returns false if a
// name cannot be written in a line; then nothing is stored.
bool path_book_put(struct path_book *book, const struct path_book_entry *past);
// Remove the entries learnt before this UNIX time.
void path_book_expire(struct path_book *book, uint64_t before_s);

// Write the text. Returns its length without the NUL.
size_t path_book_format(
	const struct path_book *book, uint64_t observer, char text[static PATH_BOOK_BYTES]
);
// Parse the text. Returns 0 or -EBADMSG; on error the book is empty and *ret_reason explains why.
// One impossible entry makes the whole text invalid.
int path_book_parse(
	struct path_book *book, const char *text, uint64_t observer, const char **ret_reason
);
