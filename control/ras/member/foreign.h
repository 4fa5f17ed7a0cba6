// SPDX-License-Identifier: BSD-3-Clause
// Items of UPDATE in which something is of a newer version: kept and passed on, byte for byte.
//
// What is known of such an item is merged as of any other (news.h); here the whole of it is kept,
// for agents behind us may know the rest. Of each peer one is kept: that with the higher
// incarnation, of equal ones the greater by its bytes, so that all agents keep the same. It goes
// once to each link but those that it came by; then, while the table has its peer, to every link
// whose session begins, and to whoever takes our table. Nobody is judged by it, and no digest
// covers it.
//
// An item whose state we know is told only while our table holds what it says: a death that is
// contested here, or weighs too little, reaches nobody by this way, and one who lives is told of
// when its record is there. An item is forgotten with its peer, with that start of it, and if it
// was refuted; one that the table knows nothing of, after an hour, or, the oldest first, as soon as
// one of a peer in the table needs its room. Where there is no room for one more it is neither kept
// nor passed on: it stops here rather than going round for ever.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct link;
struct memory;
struct message_news;
struct ras;
struct wire_writer;

#define FOREIGN_ITEMS_MAX 1024
#define FOREIGN_BYTES_MAX (256u << 10) // of all
#define FOREIGN_ITEM_BYTES_MAX 4096    // of one

struct foreign_item {
	uint64_t id;
	uint64_t incarnation;
	uint64_t since_ns; // observed time
	uint64_t told;	   // while it is pending: links whose peer knows, as in news.h
	uint8_t *bytes;	   // without the length
	uint16_t size;
	uint8_t state; // maybe none of ours
	bool pending;  // the links that are up have not heard of it yet
};

struct foreign {
	struct foreign_item *items; // sorted by id
	uint32_t count, capacity;
	uint32_t pending; // of them
	size_t bytes;
};

void foreign_fini(struct foreign *foreign, struct memory *memory);

// An item came, and what is known of it was merged. `from` is NULL while we take a seed's table.
void foreign_heard(struct ras *ras, const struct link *from, const struct message_news *heard);
// Passes on what is pending: of the batch of news.
void foreign_flush(struct ras *ras);
// A session begins: all that is kept.
void foreign_tell(struct ras *ras, struct link *link);
// Writes an UPDATE of those whose ids follow *last, as many as find room, and moves *last to the
// last of them; false if there are none.
bool foreign_frame(struct ras *ras, uint64_t *last, struct wire_writer *writer);

// The peer was removed from the table.
void foreign_forget(struct ras *ras, uint64_t id);
void foreign_expire(struct ras *ras);
