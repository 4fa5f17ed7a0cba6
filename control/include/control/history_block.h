// SPDX-License-Identifier: BSD-3-Clause
// The file format of the history: blocks of HISTORY_BLOCK_BYTES, each complete in itself. Pure
// functions; the bytes of a block are checked and never trusted.
//
// A block begins with a header of 64 bytes: a mark, the version of the format, the tier, the id of
// the node, a sequence number, the times that the block covers, and a checksum of the header. Then
// come items, covered by a second checksum. All numbers are little-endian. An item is a kind, a
// length and a body, so a reader skips kinds that it does not know. A period item gives the time of
// all items that follow. A path is named once per block, and later items refer to its number.
#pragma once

#include <control/history_bins.h>
#include <ras/types.h>

#include <stddef.h>
#include <stdint.h>

#define HISTORY_BLOCK_BYTES 65536
#define HISTORY_HEADER_BYTES 64
#define HISTORY_VERSION 1
#define HISTORY_PATHS_MAX 384 // paths that one block can name
#define HISTORY_DEVICE_MAX 31 // bytes of a device's name

enum history_tier {
	HISTORY_FINE,	// a period of one minute, unless [history] interval differs
	HISTORY_COARSE, // a period of one hour
	HISTORY_TIERS,
};

struct history_path_name {
	uint64_t peer; // overlay id
	char node[RAS_NAME_MAX + 1];
	char device[HISTORY_DEVICE_MAX + 1];
	char peer_device[HISTORY_DEVICE_MAX + 1];
};

// State of one node at the end of a period.
// Id of a node record that stands for further nodes: more were unwell than a period records.
#define HISTORY_NODES_CUT UINT64_C(0)

struct history_node {
	uint64_t id;
	char name[RAS_NAME_MAX + 1];
	uint8_t state;	 // enum ras_state
	uint8_t verdict; // enum verdict
};

// A block that is being filled.
struct history_block {
	uint8_t bytes[HISTORY_BLOCK_BYTES];
	size_t used; // header included
	enum history_tier tier;
	uint64_t owner, sequence;
	int64_t first_s, last_s; // UNIX times of the begin of the first period, end of the last
	uint64_t names[HISTORY_PATHS_MAX]; // digests of the named paths
	uint32_t name_count;
};

// A place in a block to which the block can be set back.
struct history_mark {
	size_t used;
	uint32_t name_count;
	int64_t first_s, last_s;
};

void history_block_begin(
	struct history_block *block, enum history_tier tier, uint64_t owner, uint64_t sequence
);
struct history_mark history_block_mark(const struct history_block *block);
void history_block_set_back(struct history_block *block, const struct history_mark *mark);

// Add an item. Returns false, with the block unchanged, if there is no room.
bool history_block_put_period(struct history_block *block, int64_t begin_s, uint32_t seconds);
bool history_block_put_path(
	struct history_block *block,
	const struct history_path_name *name,
	const struct history_bins *bins
);
bool history_block_put_node(struct history_block *block, const struct history_node *node);

// Write the header and both checksums. Returns the bytes to store from the start of the block.
size_t history_block_seal(struct history_block *block);

// The header of a stored block.
struct history_header {
	enum history_tier tier;
	uint64_t owner, sequence;
	int64_t first_s, last_s;
	uint32_t used; // header included
	uint64_t digest;
};

// Read a header of HISTORY_HEADER_BYTES. Returns 0, -ENODATA (an empty block), -EPROTONOSUPPORT
// (another version) or -EBADMSG.
int history_header_read(const uint8_t *bytes, struct history_header *ret_header);
// Check the items of a block of header->used bytes. Returns 0 or -EBADMSG.
int history_block_check(const uint8_t *bytes, const struct history_header *header);

enum history_kind {
	HISTORY_ITEM_PERIOD = 1,
	HISTORY_ITEM_NAME = 2, // never returned by history_reader_next()
	HISTORY_ITEM_PATH = 3,
	HISTORY_ITEM_NODE = 4,
};

struct history_item {
	enum history_kind kind;
	int64_t begin_s; // the period of the item
	uint32_t seconds;
	const struct history_path_name *path; // HISTORY_ITEM_PATH: until the reader is used again
	struct wire_reader bins;	      // HISTORY_ITEM_PATH: for history_bins_get()
	struct history_node node;	      // HISTORY_ITEM_NODE
};

struct history_reader {
	struct wire_reader items;
	int64_t begin_s;
	uint32_t seconds; // 0: no period yet
	uint32_t name_count;
	struct history_path_name names[HISTORY_PATHS_MAX];
};

void history_reader_init(struct history_reader *reader, const uint8_t *bytes, size_t used);
// Return the next item. Returns false at the end, or at the first item that is malformed; then
// wire_reader_ok(&reader->items) is false.
bool history_reader_next(struct history_reader *reader, struct history_item *ret_item);
