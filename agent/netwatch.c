// SPDX-License-Identifier: BSD-3-Clause
// Looks whether this machine still has the address that the overlay is spoken from. Losing it is
// our own fault, not that of the peers that fall silent: an operator wants to read that first.
#include "agent.h"

#include <lib/container.h>
#include <lib/log.h>
#include <lib/netif/source.h>
#include <lib/netif/watch.h>

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>

#define QUIET_NS (200 * RAS_NS_PER_MS) // after the last of several changes
#define LIMIT_NS (2 * RAS_NS_PER_SEC)

static bool has_address(const struct netif_table *table, const struct sock_addr *wanted) {
	for (size_t n = 0; n < table->address_count; n++) {
		struct sock_addr addr = table->addresses[n].address;
		const struct netif_link *link = &table->links[table->addresses[n].link];

		addr.port = wanted->port;
		if (sock_addr_equal(&addr, wanted))
			return link->has_carrier;
	}
	return false;
}

// 127/8 is all there as long as the loopback is.
static bool is_watched(const struct sock_addr *address) {
	return !sock_addr_is_any(address) && !sock_addr_is_loopback(address);
}

static void judge(struct agent *agent, const struct netif_table *table) {
	struct sock_addr address = overlay_address(agent->overlay);
	bool is_there = has_address(table, &address);
	char text[SOCK_ADDR_TEXT_BYTES];

	if (is_there == agent->address_there)
		return;
	agent->address_there = is_there;
	sock_addr_format(&address, text);
	if (is_there)
		log_event(LOG_LEVEL_INFO, "own_address_back", log_str("address", text));
	else
		log_event(
			LOG_LEVEL_ERROR, "own_address_gone", log_str("address", text),
			log_str("effect", "the overlay cannot be spoken from this node")
		);
}

// Beside the loop: dumps wait for the kernel's lock on interfaces, which a driver may hold long.
static int gather(void *arg) {
	const struct netif_query query = {0};
	struct netif_table **table = arg;

	return netif_gather(&query, table);
}

static void drop(void *arg) {
	struct netif_table **table = arg;

	netif_table_destroy(*table);
	free(table);
}

static void look(struct agent *agent);

static void gathered(struct keeper_request *request, void *arg, int result) {
	struct agent *agent = container_of(request, struct agent, netif_request);
	struct netif_table *const *table = arg;

	if (result == 0)
		judge(agent, *table);
	if (!agent->netif_again)
		return;
	agent->netif_again = false;
	look(agent);
}

static void look(struct agent *agent) {
	struct sock_addr address = overlay_address(agent->overlay);
	struct keeper_call call = {.call = gather, .drop = drop};
	int err = -ENOMEM;

	if (!is_watched(&address))
		return;
	if (agent->netif_request.job != NULL) {
		agent->netif_again = true;
		return;
	}
	agent->netif_request.ended = gathered;
	call.arg = calloc(1, sizeof(struct netif_table *));
	if (call.arg != NULL)
		err = keeper_run(agent->netif, &call, &agent->netif_request);
	if (err == 0)
		return;
	free(call.arg);
	log_event(LOG_LEVEL_WARN, "interfaces_unwatched", log_errno("error", err));
}

static void set_timer(struct agent *agent) {
	struct deadline due = netif_watch_deadline(agent->netwatch);

	if (!deadline_is_never(due) &&
	    loop_timer_set(agent->loop, &agent->netwatch_timer, due.at_ns) != 0)
		log_event(LOG_LEVEL_WARN, "interfaces_unwatched", log_errno("error", ENOMEM));
}

static void due(struct loop_timer *timer, uint64_t now_ns) {
	struct agent *agent = container_of(timer, struct agent, netwatch_timer);
	struct netif_watch_event event;

	if (netif_watch_take(agent->netwatch, now_ns, &event))
		look(agent);
	set_timer(agent);
}

static void readable(struct loop_source *source, uint32_t events) {
	struct agent *agent = container_of(source, struct agent, netwatch_source);
	int err = netif_watch_read(agent->netwatch, loop_now_ns(agent->loop));

	(void)events;
	if (err != 0)
		log_event(LOG_LEVEL_WARN, "interfaces_unwatched", log_errno("error", err));
	set_timer(agent);
}

static void stuck(void *ctx, struct keeper *keeper) {
	(void)ctx;
	(void)keeper;
	log_event(
		LOG_LEVEL_WARN, "interfaces_hang",
		log_str("reason", "the kernel does not tell what interfaces there are")
	);
}

int netwatch_start(struct agent *agent) {
	const struct keeper_ops ops = {.stuck = stuck, .totals = &agent->keeper_counters};
	int err = netif_watch_create(QUIET_NS, LIMIT_NS, &agent->netwatch);

	if (err != 0)
		return err;
	agent->address_there = true;
	agent->netwatch_timer.expired = due;
	agent->netwatch_source = (struct loop_source){
		.fd = netif_watch_fd(agent->netwatch),
		.events = EPOLLIN,
		.rank = LOOP_OVERLAY,
		.ready = readable,
	};
	err = keeper_create(agent->loop, "tocsin-netif", &ops, &agent->netif);
	if (err == 0)
		err = loop_add(agent->loop, &agent->netwatch_source);
	if (err != 0)
		netwatch_stop(agent);
	return err;
}

void netwatch_stop(struct agent *agent) {
	loop_timer_cancel(agent->loop, &agent->netwatch_timer);
	loop_remove(&agent->netwatch_source);
	agent->netif = keeper_destroy(agent->netif);
	agent->netwatch = netif_watch_destroy(agent->netwatch);
}
