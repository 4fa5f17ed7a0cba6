// SPDX-License-Identifier: BSD-3-Clause
// Foreign items: items of UPDATE in which a part is unknown to this version of the protocol. They
// are stored and forwarded byte for byte, because agents behind us may know the unknown part.
//
// The known part of a foreign item is merged like any other update (news.h). This module keeps the
// whole item. The store holds one item of each peer: the item with the highest incarnation, and of
// equal incarnations the one with the greatest bytes. So all agents keep the same item.
//
// An item is sent once to each link, except the links that it came by. While the table knows the
// peer of the item, every new session and every joiner gets the item, too. No peer is judged by a
// foreign item, and no digest covers it.
//
// An item of a known state is forwarded only while our table agrees with that state. So a death
// that is contested here, or has too little weight, is not forwarded this way. An item about a
// living peer is forwarded once its record has arrived.
//
// An item is dropped when its peer is removed, when a newer start is known, or when its death is
// refuted. An item about a peer that the table does not know is dropped after one hour. It is
// dropped earlier, oldest first, if an item of a known peer needs the room. An item that finds no
// room is neither stored nor forwarded. Otherwise it could circulate for ever.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct link;
struct message_news;
struct ras;
struct wire_writer;

#define FOREIGN_ITEMS_MAX 1024
#define FOREIGN_BYTES_MAX (256u << 10) // bytes of all items
#define FOREIGN_ITEM_BYTES_MAX 4096    // bytes of one item

struct foreign_item {
	uint64_t id;
	uint64_t incarnation;
	uint64_t since_ns; // observed time of arrival
	uint64_t told;	   // if pending: mask of links whose peer has the item, as in news.h
	uint8_t *bytes;	   // owned; without the length field
	uint16_t size;
	uint8_t state; // may be a state of a newer version
	bool pending;  // not yet sent to the links that are up
};

struct foreign {
	struct foreign_item *items; // sorted by id
	uint32_t count, capacity;
	uint32_t pending; // number of pending items
	size_t bytes;	  // sum of the item sizes
};

void foreign_fini(struct ras *ras);

// Store a received item whose known part was merged. `from` is NULL for the table of a seed.
void foreign_item_received(
	struct ras *ras, const struct link *from, const struct message_news *heard
);
// Send the pending items to all links, together with a batch of news.
void foreign_flush(struct ras *ras);
// Send all stored items of known peers on a link whose session begins.
void foreign_send_all(struct ras *ras, struct link *link);
// Write an UPDATE with stored items whose id is above *last, as many as fit. *last becomes the id
// of the last item written. Returns false if there are none.
bool foreign_frame_write(struct ras *ras, uint64_t *last, struct wire_writer *writer);

// Drop the item of a peer that is removed from the table.
void foreign_drop_peer(struct ras *ras, uint64_t id);
void foreign_expire(struct ras *ras);
