// SPDX-License-Identifier: BSD-3-Clause
#include "room.h"

#include "connection.h"
#include "server.h"

#include <lib/log.h>

#include <stddef.h>

// The more, the later it is ended: 0 idle, 1 monitors, 2 is being answered.
static int worth(const struct connection *connection) {
	if (connection->lingering)
		return 0;
	return connection->session.busy ? 2 : connection->session.monitor != 0;
}

// Those who may give orders have places of their own. More of them take everybody's: of these an
// idle one may be ended.
static bool orders_take_more(const struct client_server *server) {
	uint32_t count = 0;

	for (const struct connection *it = server->connections; it != NULL; it = it->next)
		count += it->session.privileged;
	return count > RESERVED_CLIENTS;
}

static bool may_go(const struct connection *connection, bool orders_too) {
	return !connection->session.privileged || (orders_too && worth(connection) == 0);
}

static uint32_t count_of(const struct client_server *server, uint32_t uid, bool orders_too) {
	uint32_t count = 0;

	for (const struct connection *it = server->connections; it != NULL; it = it->next)
		count += it->session.uid == uid && may_go(it, orders_too);
	return count;
}

static uint32_t largest_count(const struct client_server *server, bool orders_too) {
	uint32_t largest = 0;

	for (const struct connection *it = server->connections; it != NULL; it = it->next) {
		uint32_t count = count_of(server, it->session.uid, orders_too);

		largest = count > largest ? count : largest;
	}
	return largest;
}

static bool goes_before(const struct connection *a, const struct connection *b) {
	return worth(a) != worth(b) ? worth(a) < worth(b) : a->since_ns < b->since_ns;
}

bool room_make(struct client_server *server, uint32_t uid) {
	bool orders_too = orders_take_more(server);
	uint32_t most = largest_count(server, orders_too);
	struct connection *first = NULL;

	for (struct connection *it = server->connections; it != NULL; it = it->next) {
		if (!may_go(it, orders_too) || count_of(server, it->session.uid, orders_too) < most)
			continue;
		if (first == NULL || goes_before(it, first))
			first = it;
	}
	if (first == NULL || (worth(first) > 0 && count_of(server, uid, orders_too) + 1 >= most))
		return false;
	server->counters.closed_for_room++;
	log_event(
		LOG_LEVEL_INFO, "client_closed", log_str("reason", "others wait for its place"),
		log_u64("uid", first->session.uid), log_u64("of_this_user", most)
	);
	connection_close(first);
	return true;
}
