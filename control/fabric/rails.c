// SPDX-License-Identifier: BSD-3-Clause
// Rails of this node and of its peers: requests, announcements, memory and matching.
#include "fabric/rails.h"

#include "fabric/inside.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// How long peers and own devices may take. An agent of an old version never answers, and own
// drivers may be slow.
#define PEER_WAIT_NS (3 * RAS_NS_PER_SEC)
#define ASK_BACKOFF_NS RAS_NS_PER_SEC
#define ASK_BACKOFF_MAX_NS (64 * RAS_NS_PER_SEC)
#define SEND_INTERVAL_NS \
	(100 * RAS_NS_PER_MS) // a peer that asks more often is answered in the next pass
#define EVENT_NAMES_MAX 4     // rails in the text of an event
#define MESSAGE_LIFE_NS (5 * RAS_NS_PER_SEC)

static bool rail_names_equal(const struct rail_list *a, const struct rail_list *b) {
	if (a->count != b->count)
		return false;
	for (uint32_t n = 0; n < a->count; n++) {
		if (strcmp(a->rails[n].name, b->rails[n].name) != 0)
			return false;
	}
	return true;
}

// Add an event, for people who ask what happened to a node's devices.
static void
rails_change_event(const struct fabric *fabric, uint64_t node, const struct rail_list *list) {
	char text[EVENT_NAMES_MAX * (DEVICE_NAME_MAX + 2) + 48] = "no RDMA device is left";
	size_t used = 0;

	for (uint32_t n = 0; n < list->count && n < EVENT_NAMES_MAX; n++)
		used += (size_t)snprintf(
			text + used, sizeof(text) - used, "%s%s", n == 0 ? "measures with " : ", ",
			list->rails[n].name
		);
	if (list->count > EVENT_NAMES_MAX)
		snprintf(
			text + used, sizeof(text) - used, " and %u more",
			list->count - EVENT_NAMES_MAX
		);
	overlay_note_rails(fabric->overlay, node, list->count, text);
}

// Our own.

// Return whether each own device was tried once, or had enough time.
static bool own_rails_are_settled(const struct fabric *fabric) {
	for (uint32_t n = 0; n < fabric->nic_count; n++) {
		if (!fabric->nics[n].tried &&
		    fabric_clock_ns(fabric) < fabric->rails.begun_ns + PEER_WAIT_NS)
			return false;
	}
	return true;
}

void rails_own_changed(struct fabric *fabric) {
	struct rails *rails = &fabric->rails;
	struct rail_list list = {0};

	for (uint32_t n = 0; n < fabric->nic_count; n++) {
		struct nic *nic = &fabric->nics[n];
		const struct device_port *port = &nic->parts.facts.port;

		memcpy(nic->rail.name, nic->config.name, sizeof(nic->rail.name));
		// A port that is down or closed keeps its last facts, because it comes back to the
		// same network.
		if (nic->open &&
		    (port->subnet.kind != DEVICE_SUBNET_UNKNOWN || nic->parts.facts.usable)) {
			nic->rail.link = port->link;
			nic->rail.subnet = port->subnet;
		}
		nic->rail_index = RAIL_NONE;
		if (nic->retired || (nic->opened == 0 && nic->config.announce_after_open) ||
		    list.count == RAILS_MAX)
			continue;
		nic->rail_index = list.count;
		list.rails[list.count++] = nic->rail;
	}
	if (rail_list_same(&list, &rails->own) && rails->number > 0)
		return;
	if (rails->number > 0 && !rail_names_equal(&list, &rails->own))
		rails_change_event(fabric, ras_self_id(overlay_ras(fabric->overlay)), &list);
	rails->own = list;
	rails->number++;
	neighbours_update_soon(fabric);
}

// Compare a list with the device names in a record. A record has the names that an agent started
// with.
static bool list_matches_record(const struct rail_list *list, const struct ras_record *record) {
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

// Peers.

static struct rail_peer *rail_peer_find(const struct fabric *fabric, uint64_t id) {
	struct rail_peer *peer = fabric->rails.peers;

	while (peer != NULL && peer->id != id)
		peer = peer->next;
	return peer;
}

static void rail_peer_forget_oldest(struct rails *rails) {
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

static struct rail_peer *rail_peer_get(struct fabric *fabric, uint64_t id) {
	struct rails *rails = &fabric->rails;
	struct rail_peer *peer = rail_peer_find(fabric, id);

	if (peer == NULL) {
		if (rails->peer_count == RAIL_PEERS_MAX)
			rail_peer_forget_oldest(rails);
		peer = calloc(1, sizeof(*peer));
		if (peer == NULL)
			return NULL; // the next pass tries again
		peer->id = id;
		peer->next = rails->peers;
		rails->peers = peer;
		rails->peer_count++;
	}
	peer->used_ns = fabric_clock_ns(fabric);
	return peer;
}

static bool rails_send(struct fabric *fabric, struct rail_peer *peer, bool asks) {
	uint8_t bytes[RAIL_MESSAGE_BYTES_MAX];
	struct overlay_port_message message = {
		.node = peer->id, .bytes = bytes, .life_ns = MESSAGE_LIFE_NS};

	message.size = rail_message_encode(&fabric->rails.own, asks, bytes);
	if (overlay_port_send(&fabric->rails.port, &message) != 0) {
		fabric->counters.messages_lost++;
		return false;
	}
	peer->told = fabric->rails.number;
	peer->said_ns = fabric_clock_ns(fabric);
	peer->owed = false;
	return true;
}

static void rails_ask(struct fabric *fabric, struct rail_peer *peer) {
	uint64_t now_ns = fabric_clock_ns(fabric);

	if (now_ns < peer->ask_ns || !own_rails_are_settled(fabric))
		return;
	if (peer->first_ns == 0) {
		peer->first_ns = now_ns;
		peer->gap_ns = ASK_BACKOFF_NS;
	}
	peer->ask_ns = now_ns + peer->gap_ns;
	peer->gap_ns =
		peer->gap_ns * 2 < ASK_BACKOFF_MAX_NS ? peer->gap_ns * 2 : ASK_BACKOFF_MAX_NS;
	(void)rails_send(fabric, peer, true);
}

static void rails_answer(struct fabric *fabric, struct rail_peer *peer) {
	bool early = !own_rails_are_settled(fabric) ||
		     (peer->said_ns != 0 && peer->told == fabric->rails.number &&
		      fabric_clock_ns(fabric) < peer->said_ns + SEND_INTERVAL_NS);

	if (early || !rails_send(fabric, peer, false))
		peer->owed = true;
}

// Return the rails that the peer announced in this start or the one before; NULL if none are known.
// Asks the peer if needed.
static const struct rail_list *
peer_rails_get(struct fabric *fabric, struct rail_peer *peer, const struct ras_record *record) {
	if (peer->start < record->start || peer->doubted)
		rails_ask(fabric, peer);
	if (peer->start == 0)
		return NULL;
	// Rails of an earlier start stay valid until the peer has not answered for PEER_WAIT_NS.
	return peer->start >= record->start || peer->first_ns == 0 ||
			       fabric_clock_ns(fabric) < peer->first_ns + PEER_WAIT_NS
		       ? &peer->list
		       : NULL;
}

// Choose a device by name, else by index, as agents do that know no rail messages.
static void
choose_by_record(const struct ras_peer_info *info, const struct nic *nic, char *ret_name) {
	const char *name = info->devices[nic->place % info->device_count].name;

	for (uint32_t n = 0; n < info->device_count; n++) {
		if (strcmp(info->devices[n].name, nic->config.name) == 0)
			name = info->devices[n].name;
	}
	static_assert(RAS_DEVICE_NAME_MAX == DEVICE_NAME_MAX, "the same names");
	memcpy(ret_name, name, DEVICE_NAME_MAX + 1);
}

enum rail_answer rails_choose_peer_rail(
	const struct nic *nic,
	const struct ras_record *record,
	char ret_name[static DEVICE_NAME_MAX + 1]
) {
	struct fabric *fabric = nic->fabric;
	struct rail_peer *peer = rail_peer_find(fabric, record->id);
	const struct rail_list *theirs;
	uint32_t places[RAILS_MAX];
	struct ras_peer_info info;

	if (nic->rail_index == RAIL_NONE)
		return RAIL_NO_FABRIC;
	ras_record_info(record, &info);
	if (peer == NULL && info.device_count == 1 && fabric->rails.own.count == 1 &&
	    !fabric->rails.record_is_outdated) {
		choose_by_record(&info, nic, ret_name);
		return RAIL_FOUND;
	}
	if (peer == NULL && info.device_count == 0 && !fabric->rails.record_is_outdated)
		return RAIL_NO_FABRIC;
	peer = rail_peer_get(fabric, record->id);
	if (!own_rails_are_settled(fabric))
		return RAIL_WAIT;
	theirs = peer != NULL ? peer_rails_get(fabric, peer, record) : NULL;
	if (theirs != NULL) {
		rail_match(&fabric->rails.own, theirs, places);
		if (places[nic->rail_index] == RAIL_NONE)
			return RAIL_NO_FABRIC;
		memcpy(ret_name, theirs->rails[places[nic->rail_index]].name, DEVICE_NAME_MAX + 1);
		return RAIL_FOUND;
	}
	if (peer == NULL || peer->first_ns == 0 ||
	    fabric_clock_ns(fabric) < peer->first_ns + PEER_WAIT_NS)
		return RAIL_WAIT;
	if (info.device_count == 0)
		return RAIL_NO_FABRIC;
	choose_by_record(&info, nic, ret_name);
	return RAIL_FOUND;
}

bool rails_find_other(
	const struct nic *nic,
	const struct ras_record *record,
	uint32_t nth,
	char ret_name[static DEVICE_NAME_MAX + 1]
) {
	const struct rail_peer *peer = rail_peer_find(nic->fabric, record->id);
	uint32_t place;

	if (peer == NULL || peer->start < record->start || nic->rail_index == RAIL_NONE)
		return false;
	place = rail_other_in_subnet(&nic->fabric->rails.own, &peer->list, nic->rail_index, nth);
	if (place == RAIL_NONE)
		return false;
	memcpy(ret_name, peer->list.rails[place].name, DEVICE_NAME_MAX + 1);
	return true;
}

// Messages.

static void rails_received(
	struct fabric *fabric,
	struct rail_peer *peer,
	const struct rail_list *list,
	const struct ras_record *record
) {
	bool is_news = peer->since_ns == 0 || !rail_list_same(&peer->list, list);
	bool has_new_names;

	peer->first_ns = peer->ask_ns = 0;
	peer->doubted = false;
	// Compare with the last list, or with the record if there is no list. The first list after
	// a start is no change.
	if (peer->since_ns == 0)
		has_new_names = !list_matches_record(list, record);
	else
		has_new_names =
			peer->said_start == record->start && !rail_names_equal(&peer->list, list);
	if (is_news && has_new_names)
		rails_change_event(fabric, peer->id, list);
	peer->said_start = record->start;
	if (!is_news)
		return;
	peer->list = *list;
	peer->since_ns = fabric_clock_ns(fabric);
	neighbours_update_soon(fabric);
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
	peer = rail_peer_get(fabric, node);
	if (peer == NULL)
		return;
	if (peer->start != ras_incarnation_start(incarnation))
		peer->told = 0; // another run of the agent, which does not know our rails
	peer->start = peer->told_start = ras_incarnation_start(incarnation);
	rails_received(fabric, peer, &list, known.record);
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

void rails_begin_pass(struct fabric *fabric) {
	const struct ras *ras = overlay_ras(fabric->overlay);
	struct ras_peer self;

	// Peers cannot learn our rails from an outdated record, so each neighbour gets a message.
	fabric->rails.record_is_outdated = ras_peer_find(ras, ras_self_id(ras), &self) == 0 &&
					   !list_matches_record(&fabric->rails.own, self.record);
	for (struct rail_peer *peer = fabric->rails.peers; peer != NULL; peer = peer->next) {
		peer->neighbour = false;
		if (peer->owed)
			rails_answer(fabric, peer);
	}
}

void rails_note_neighbour(struct fabric *fabric, const struct ras_record *record) {
	struct rail_peer *peer = fabric->rails.record_is_outdated
					 ? rail_peer_get(fabric, record->id)
					 : rail_peer_find(fabric, record->id);

	if (peer == NULL)
		return;
	peer->neighbour = true;
	if (peer->told_start != record->start) {
		peer->told_start = record->start;
		peer->told = 0;
	}

	// A peer that announced its rails must learn of changes of ours. So must a peer that knows
	// our record only, once the record is outdated.
	if ((peer->start >= record->start || fabric->rails.record_is_outdated) &&
	    peer->told != fabric->rails.number && own_rails_are_settled(fabric) &&
	    fabric_clock_ns(fabric) >= peer->said_ns + SEND_INTERVAL_NS)
		(void)rails_send(fabric, peer, false);
}

void rails_ask_again(struct fabric *fabric, uint64_t id) {
	struct rail_peer *peer = rail_peer_get(fabric, id);

	if (peer != NULL)
		peer->doubted = true;
}

bool rails_missing_next(
	const struct fabric *fabric, uint32_t *cursor, struct rail_missing *ret_missing
) {
	const struct rail_list *own = &fabric->rails.own;
	const struct rail_peer *peer = fabric->rails.peers;
	uint32_t places[RAILS_MAX], device = 0;

	for (uint32_t n = 0; n < *cursor / RAILS_MAX && peer != NULL; n++)
		peer = peer->next;
	while (peer != NULL) {
		const struct rail_peer *looked_at = peer;
		uint32_t rail = (*cursor)++ % RAILS_MAX;

		if (rail + 1 == RAILS_MAX)
			peer = peer->next;
		if (!looked_at->neighbour || looked_at->start == 0 || rail >= own->count)
			continue;
		rail_match(own, &looked_at->list, places);
		if (places[rail] != RAIL_NONE)
			continue;
		// Own devices that are not announced have no index in the list of rails.
		while (fabric->nics[device].rail_index != rail)
			device++;
		*ret_missing = (struct rail_missing){looked_at->id, device, looked_at->since_ns};
		return true;
	}
	return false;
}

// Lifecycle.

void rails_start(struct fabric *fabric) {
	struct rails *rails = &fabric->rails;

	rails->fabric = fabric;
	rails->begun_ns = fabric_clock_ns(fabric);
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
