// SPDX-License-Identifier: BSD-3-Clause
// Rails of this node and of its peers: requests, announcements, memory and matching.
#include "fabric/rails.h"

#include "fabric/inside.h"

#include <lib/log.h>
#include <lib/must.h>

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// How long peers and own devices may take. An agent of an old version never answers, and own
// drivers may be slow.
#define WAIT_NS (3 * RAS_NS_PER_SEC)
#define ASK_NS RAS_NS_PER_SEC
#define ASK_MAX_NS (64 * RAS_NS_PER_SEC)
#define SAY_GAP_NS (100 * RAS_NS_PER_MS) // a peer that asks more often is answered in the next pass
#define NAMED_MAX 4			 // rails in the text of an event
#define LIFE_NS (5 * RAS_NS_PER_SEC)

static uint64_t now_of(const struct fabric *fabric) {
	return loop_clock_ns(fabric->loop);
}

static bool same_names(const struct rail_list *a, const struct rail_list *b) {
	if (a->count != b->count)
		return false;
	for (uint32_t n = 0; n < a->count; n++) {
		if (strcmp(a->rails[n].name, b->rails[n].name) != 0)
			return false;
	}
	return true;
}

// Add an event, for people who ask what happened to a node's devices.
static void note_change(const struct fabric *fabric, uint64_t node, const struct rail_list *list) {
	char text[NAMED_MAX * (DEVICE_NAME_MAX + 2) + 48] = "no RDMA device any more";
	size_t used = 0;

	for (uint32_t n = 0; n < list->count && n < NAMED_MAX; n++)
		used += (size_t)snprintf(
			text + used, sizeof(text) - used, "%s%s", n == 0 ? "measures with " : ", ",
			list->rails[n].name
		);
	if (list->count > NAMED_MAX)
		snprintf(text + used, sizeof(text) - used, " and %u more", list->count - NAMED_MAX);
	overlay_note_rails(fabric->overlay, node, list->count, text);
}

// Our own.

// Return whether each own device was tried once, or had enough time.
static bool is_settled(const struct fabric *fabric) {
	for (uint32_t n = 0; n < fabric->nic_count; n++) {
		if (!fabric->nics[n].tried && now_of(fabric) < fabric->rails.begun_ns + WAIT_NS)
			return false;
	}
	return true;
}

// Update the facts of a rail. A port that is down or closed keeps its last facts, because it comes
// back to the same network.
static void take_facts(struct nic *nic) {
	const struct device_port *port = &nic->parts.facts.port;

	memcpy(nic->rail.name, nic->config.name, sizeof(nic->rail.name));
	if (!nic->open || (port->subnet.kind == DEVICE_SUBNET_UNKNOWN && !nic->parts.facts.usable))
		return;
	nic->rail.link = port->link;
	nic->rail.subnet = port->subnet;
}

static bool is_told(const struct nic *nic) {
	return !nic->retired && (nic->opened > 0 || !nic->config.may_never_come);
}

static void collect_own(struct fabric *fabric, struct rail_list *ret_list) {
	struct rail_list list = {0};

	for (uint32_t n = 0; n < fabric->nic_count; n++) {
		struct nic *nic = &fabric->nics[n];

		take_facts(nic);
		nic->rail_place = RAIL_NONE;
		if (!is_told(nic) || list.count == RAILS_MAX)
			continue;
		nic->rail_place = list.count;
		list.rails[list.count++] = nic->rail;
	}
	*ret_list = list;
}

void rails_own_changed(struct fabric *fabric) {
	struct rails *rails = &fabric->rails;
	struct rail_list list;

	collect_own(fabric, &list);
	if (rail_list_same(&list, &rails->own) && rails->number > 0)
		return;
	if (rails->number > 0 && !same_names(&list, &rails->own))
		note_change(fabric, ras_self_id(overlay_ras(fabric->overlay)), &list);
	rails->own = list;
	rails->number++;
	neighbours_look_soon(fabric);
}

// Compare a list with the device names in a record. A record has the names that an agent started
// with.
static bool is_as_record(const struct rail_list *list, const struct ras_record *record) {
	struct ras_peer_info info;

	ras_record_info(record, &info);
	if (info.device_count != list->count)
		return false;
	for (uint32_t n = 0; n < list->count; n++) {
		if (strcmp(info.devices[n].name, list->rails[n].name) != 0)
			return false;
	}
	return true;
}

// Return whether our record is outdated, so that peers cannot learn our rails from it.
static bool has_moved(const struct fabric *fabric) {
	struct ras_peer self;
	const struct ras *ras = overlay_ras(fabric->overlay);

	return ras_peer_find(ras, ras_self_id(ras), &self) == 0 &&
	       !is_as_record(&fabric->rails.own, self.record);
}

// Peers.

static struct rail_peer *rail_peer_find(const struct fabric *fabric, uint64_t id) {
	struct rail_peer *peer = fabric->rails.peers;

	while (peer != NULL && peer->id != id)
		peer = peer->next;
	return peer;
}

static void forget_oldest(struct rails *rails) {
	struct rail_peer **oldest = &rails->peers;

	for (struct rail_peer **at = &rails->peers; *at != NULL; at = &(*at)->next) {
		if ((*at)->used_ns < (*oldest)->used_ns)
			oldest = at;
	}
	if (*oldest != NULL) {
		struct rail_peer *gone = *oldest;

		*oldest = gone->next;
		rails->peer_count--;
		free(gone);
	}
}

static struct rail_peer *rail_peer_take(struct fabric *fabric, uint64_t id) {
	struct rails *rails = &fabric->rails;
	struct rail_peer *peer = rail_peer_find(fabric, id);

	if (peer == NULL) {
		if (rails->peer_count == RAIL_PEERS_MAX)
			forget_oldest(rails);
		peer = calloc(1, sizeof(*peer));
		if (peer == NULL)
			return NULL; // the next pass tries again
		peer->id = id;
		peer->next = rails->peers;
		rails->peers = peer;
		rails->peer_count++;
	}
	peer->used_ns = now_of(fabric);
	return peer;
}

static bool rails_send(struct fabric *fabric, struct rail_peer *peer, bool asks) {
	uint8_t bytes[RAIL_MESSAGE_BYTES_MAX];
	struct overlay_port_message message = {
		.node = peer->id, .bytes = bytes, .life_ns = LIFE_NS};

	message.size = rail_message_encode(&fabric->rails.own, asks, bytes);
	if (overlay_port_send(&fabric->rails.port, &message) != 0) {
		fabric->counters.messages_lost++;
		return false;
	}
	peer->told = fabric->rails.number;
	peer->said_ns = now_of(fabric);
	peer->owed = false;
	return true;
}

static void rails_ask(struct fabric *fabric, struct rail_peer *peer) {
	uint64_t now_ns = now_of(fabric);

	if (now_ns < peer->ask_ns || !is_settled(fabric))
		return;
	if (peer->first_ns == 0) {
		peer->first_ns = now_ns;
		peer->gap_ns = ASK_NS;
	}
	peer->ask_ns = now_ns + peer->gap_ns;
	peer->gap_ns = peer->gap_ns * 2 < ASK_MAX_NS ? peer->gap_ns * 2 : ASK_MAX_NS;
	(void)rails_send(fabric, peer, true);
}

static void rails_answer(struct fabric *fabric, struct rail_peer *peer) {
	bool early =
		!is_settled(fabric) || (peer->said_ns != 0 && peer->told == fabric->rails.number &&
					now_of(fabric) < peer->said_ns + SAY_GAP_NS);

	if (early || !rails_send(fabric, peer, false))
		peer->owed = true;
}

// Return the rails that the peer announced in this start or the one before; NULL if none are known.
// Asks the peer if needed.
static const struct rail_list *
list_of(struct fabric *fabric, struct rail_peer *peer, const struct ras_record *record) {
	if (peer->start < record->start || peer->doubted)
		rails_ask(fabric, peer);
	if (peer->start == 0)
		return NULL;
	// Rails of an earlier start stay valid until the peer has not answered for PEER_WAIT_NS.
	return peer->start >= record->start || peer->first_ns == 0 ||
			       now_of(fabric) < peer->first_ns + WAIT_NS
		       ? &peer->list
		       : NULL;
}

// Choose a device by name, else by index, as agents do that know no rail messages.
static void by_record(const struct ras_peer_info *info, const struct nic *nic, char *ret_name) {
	const char *name = info->devices[nic->place % info->device_count].name;

	for (uint32_t n = 0; n < info->device_count; n++) {
		if (strcmp(info->devices[n].name, nic->config.name) == 0)
			name = info->devices[n].name;
	}
	static_assert(RAS_DEVICE_NAME_MAX == DEVICE_NAME_MAX, "the same names");
	memcpy(ret_name, name, DEVICE_NAME_MAX + 1);
}

static enum rail_answer
by_list(const struct nic *nic, const struct rail_list *theirs, char *ret_name) {
	uint32_t places[RAILS_MAX];

	rail_match(&nic->fabric->rails.own, theirs, places);
	if (places[nic->rail_place] == RAIL_NONE)
		return RAIL_NO_FABRIC;
	memcpy(ret_name, theirs->rails[places[nic->rail_place]].name, DEVICE_NAME_MAX + 1);
	return RAIL_FOUND;
}

enum rail_answer rails_choose(
	const struct nic *nic,
	const struct ras_record *record,
	char ret_name[static DEVICE_NAME_MAX + 1]
) {
	struct fabric *fabric = nic->fabric;
	struct rail_peer *peer = rail_peer_find(fabric, record->id);
	const struct rail_list *theirs;
	struct ras_peer_info info;

	if (nic->rail_place == RAIL_NONE)
		return RAIL_NO_FABRIC;
	ras_record_info(record, &info);
	if (peer == NULL && info.device_count == 1 && fabric->rails.own.count == 1 &&
	    !fabric->rails.moved) {
		by_record(&info, nic, ret_name);
		return RAIL_FOUND;
	}
	if (peer == NULL && info.device_count == 0 && !fabric->rails.moved)
		return RAIL_NO_FABRIC;
	peer = rail_peer_take(fabric, record->id);
	if (!is_settled(fabric))
		return RAIL_WAIT;
	theirs = peer != NULL ? list_of(fabric, peer, record) : NULL;
	if (theirs != NULL)
		return by_list(nic, theirs, ret_name);
	if (peer == NULL || peer->first_ns == 0 || now_of(fabric) < peer->first_ns + WAIT_NS)
		return RAIL_WAIT;
	if (info.device_count == 0)
		return RAIL_NO_FABRIC;
	by_record(&info, nic, ret_name);
	return RAIL_FOUND;
}

bool rails_across(
	const struct nic *nic,
	const struct ras_record *record,
	uint32_t nth,
	char ret_name[static DEVICE_NAME_MAX + 1]
) {
	const struct rail_peer *peer = rail_peer_find(nic->fabric, record->id);
	uint32_t place;

	if (peer == NULL || peer->start < record->start || nic->rail_place == RAIL_NONE)
		return false;
	place = rail_across(&nic->fabric->rails.own, &peer->list, nic->rail_place, nth);
	if (place == RAIL_NONE)
		return false;
	memcpy(ret_name, peer->list.rails[place].name, DEVICE_NAME_MAX + 1);
	return true;
}

// Messages.

// Return whether the device names differ from the peer's last list, or from its record if there is
// no list. The first list after a start is no change.
static bool has_other_names(
	const struct rail_peer *peer, const struct rail_list *list, const struct ras_record *record
) {
	if (peer->since_ns == 0)
		return !is_as_record(list, record);
	return peer->said_start == record->start && !same_names(&peer->list, list);
}

static void rails_heard(
	struct fabric *fabric,
	struct rail_peer *peer,
	const struct rail_list *list,
	const struct ras_record *record
) {
	bool is_news = peer->since_ns == 0 || !rail_list_same(&peer->list, list);

	peer->first_ns = peer->ask_ns = 0;
	peer->doubted = false;
	if (is_news && has_other_names(peer, list, record))
		note_change(fabric, peer->id, list);
	peer->said_start = record->start;
	if (!is_news)
		return;
	peer->list = *list;
	peer->since_ns = now_of(fabric);
	neighbours_look_soon(fabric);
}

static void on_message(
	struct overlay_port *port,
	uint64_t node,
	uint64_t incarnation,
	const void *bytes,
	size_t size
) {
	struct rails *rails = container_of(port, struct rails, port);
	struct fabric *fabric = rails->fabric;
	struct rail_peer *peer;
	struct rail_list list;
	struct ras_peer known;
	bool asks;

	if (rail_message_decode(bytes, size, &list, &asks) != 0) {
		fabric->counters.rails_malformed++;
		return;
	}
	if (ras_peer_find(overlay_ras(fabric->overlay), node, &known) != 0 ||
	    ras_incarnation_start(incarnation) < known.record->start)
		return;
	peer = rail_peer_take(fabric, node);
	if (peer == NULL)
		return;
	if (peer->start != ras_incarnation_start(incarnation))
		peer->told = 0; // another run of the agent, which does not know our rails
	peer->start = peer->told_start = ras_incarnation_start(incarnation);
	rails_heard(fabric, peer, &list, known.record);
	if (asks)
		rails_answer(fabric, peer);
}

// Announce again, or ask again, after the current pause.
static void
on_undelivered(struct overlay_port *port, uint32_t tag, const struct ras_relay_report *report) {
	struct rails *rails = container_of(port, struct rails, port);
	struct rail_peer *peer = rail_peer_find(rails->fabric, report->destination);

	(void)tag;
	if (peer != NULL)
		peer->told = 0;
}

// Passes.

void rails_look(struct fabric *fabric) {
	fabric->rails.moved = has_moved(fabric);
	for (struct rail_peer *peer = fabric->rails.peers; peer != NULL; peer = peer->next) {
		peer->neighbour = false;
		if (peer->owed)
			rails_answer(fabric, peer);
	}
}

// Return whether our rails must be sent to a peer. A peer that announced its rails must learn of
// changes of ours. So must a peer that knows our record only, once the record is outdated.
static bool is_to_be_told(struct fabric *fabric, struct rail_peer *peer, uint64_t start) {
	if (peer->told_start != start) {
		peer->told_start = start;
		peer->told = 0;
	}
	return (peer->start >= start || fabric->rails.moved) &&
	       peer->told != fabric->rails.number && is_settled(fabric) &&
	       now_of(fabric) >= peer->said_ns + SAY_GAP_NS;
}

void rails_neighbour(struct fabric *fabric, const struct ras_record *record) {
	struct rail_peer *peer = fabric->rails.moved ? rail_peer_take(fabric, record->id)
						     : rail_peer_find(fabric, record->id);

	if (peer == NULL)
		return;
	peer->neighbour = true;
	if (is_to_be_told(fabric, peer, record->start))
		(void)rails_send(fabric, peer, false);
}

void rails_doubt(struct fabric *fabric, uint64_t id) {
	struct rail_peer *peer = rail_peer_take(fabric, id);

	if (peer != NULL)
		peer->doubted = true;
}

static bool is_missing(const struct fabric *fabric, const struct rail_peer *peer, uint32_t rail) {
	const struct rail_list *own = &fabric->rails.own;
	uint32_t places[RAILS_MAX];

	if (!peer->neighbour || peer->start == 0 || rail >= own->count)
		return false;
	rail_match(own, &peer->list, places);
	return places[rail] == RAIL_NONE;
}

bool rails_missing_next(
	const struct fabric *fabric, uint32_t *cursor, struct rail_missing *ret_missing
) {
	const struct rail_peer *peer = fabric->rails.peers;

	for (uint32_t n = 0; n < *cursor / RAILS_MAX && peer != NULL; n++)
		peer = peer->next;
	while (peer != NULL) {
		const struct rail_peer *looked_at = peer;
		uint32_t rail = (*cursor)++ % RAILS_MAX;

		if (rail + 1 == RAILS_MAX)
			peer = peer->next;
		if (!is_missing(fabric, looked_at, rail))
			continue;
		*ret_missing = (struct rail_missing){looked_at->id, rail, looked_at->since_ns};
		return true;
	}
	return false;
}

// Lifecycle.

void rails_start(struct fabric *fabric) {
	struct rails *rails = &fabric->rails;

	rails->fabric = fabric;
	rails->begun_ns = now_of(fabric);
	rails->port = (struct overlay_port){
		.message = on_message,
		.undelivered = on_undelivered,
		.number = OVERLAY_PORT_RAILS,
	};
	rails_own_changed(fabric);
	overlay_port_open(fabric->overlay, &rails->port);
}

void rails_stop(struct fabric *fabric) {
	struct rails *rails = &fabric->rails;

	overlay_port_close(&rails->port);
	while (rails->peers != NULL) {
		struct rail_peer *peer = rails->peers;

		rails->peers = peer->next;
		free(peer);
	}
	rails->peer_count = 0;
}
