// SPDX-License-Identifier: BSD-3-Clause
// Makes room for a new client: chooses the client to end.
#include "client/room.h"

#include "client/connection.h"
#include "client/server.h"

#include <lib/log.h>
#include <lib/must.h>

#include <errno.h>
#include <stdlib.h>

// Return how active a client is, where active clients are ended last: 0 idle, 1 monitors, 2 is
// being answered.
static int connection_activity(const struct connection *connection) {
	if (connection->lingering)
		return 0;
	return connection->session.busy ? 2 : connection->session.monitor != 0;
}

static bool connection_is_evictable(const struct connection *connection, bool orders_too) {
	return !connection->session.privileged ||
	       (orders_too && connection_activity(connection) == 0);
}

// The users of the clients that may be ended, sorted; a user appears once per client. Sorting
// avoids a quadratic search, since a user can choose the number of its clients.
struct users {
	uint32_t *uids;
	uint32_t count;
};

static int compare_uids(const void *a, const void *b) {
	const uint32_t *one = a, *other = b;

	return (*one > *other) - (*one < *other);
}

static int
evictable_users_collect(const struct client_server *server, bool orders_too, struct users *users) {
	users->count = 0;
	users->uids = malloc((server->counters.clients + 1) * sizeof(*users->uids));
	if (users->uids == NULL)
		return -ENOMEM;
	for (const struct connection *it = server->connections; it != NULL; it = it->next) {
		must(users->count < server->counters.clients);
		if (connection_is_evictable(it, orders_too))
			users->uids[users->count++] = it->session.uid;
	}
	qsort(users->uids, users->count, sizeof(*users->uids), compare_uids);
	return 0;
}

// Return the index of the first entry with this uid or a higher one; the count if there is none.
static uint32_t first_index_of_uid(const struct users *users, uint64_t uid) {
	uint32_t low = 0, high = users->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (users->uids[middle] < uid)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

static uint32_t client_count_of_uid(const struct users *users, uint32_t uid) {
	return first_index_of_uid(users, uid + UINT64_C(1)) - first_index_of_uid(users, uid);
}

static bool is_evicted_before(const struct connection *a, const struct connection *b) {
	return connection_activity(a) != connection_activity(b)
		       ? connection_activity(a) < connection_activity(b)
		       : a->since_ns < b->since_ns;
}

// Return the least active client of the users with the most clients; NULL if there is none.
static struct connection *find_connection_to_evict(
	const struct client_server *server,
	const struct users *users,
	uint32_t most,
	bool orders_too
) {
	struct connection *first = NULL;

	for (struct connection *it = server->connections; it != NULL; it = it->next) {
		if (!connection_is_evictable(it, orders_too) ||
		    (first != NULL && !is_evicted_before(it, first)))
			continue;
		if (client_count_of_uid(users, it->session.uid) == most)
			first = it;
	}
	return first;
}

bool room_make_for_user(struct client_server *server, uint32_t uid) {
	uint32_t most = 0, own, privileged = 0, begin = 0;
	struct connection *first;
	struct users users;
	bool orders_too;

	// If more privileged clients are connected than have reserved places, the rest uses common
	// places, so an idle privileged client may be ended.
	for (const struct connection *it = server->connections; it != NULL; it = it->next)
		privileged += it->session.privileged;
	orders_too = privileged > RESERVED_CLIENTS;
	if (evictable_users_collect(server, orders_too, &users) != 0)
		return false;
	for (uint32_t n = 0; n < users.count; n++) {
		if (users.uids[n] != users.uids[begin])
			begin = n;
		if (n + 1 - begin > most)
			most = n + 1 - begin;
	}
	own = client_count_of_uid(&users, uid);
	first = find_connection_to_evict(server, &users, most, orders_too);
	free(users.uids);
	if (first == NULL || (connection_activity(first) > 0 && own + 1 >= most))
		return false;
	server->counters.closed_for_room++;
	log_event(
		LOG_LEVEL_INFO, "client_closed",
		log_str("reason", "another client needs the place"),
		log_u64("uid", first->session.uid), log_u64("of_this_user", most)
	);
	connection_close(first);
	return true;
}
