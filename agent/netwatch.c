// SPDX-License-Identifier: BSD-3-Clause
// Watches whether this machine still has the overlay's address. Losing it is a local fault, not a
// fault of the peers that fall silent, so it is reported first. If the rules chose the address,
// another suitable address replaces it. The new address is bound and announced as a restart of this
// agent. The overlay also receives the list of all local addresses, to find other nodes that
// advertise one of them.
#include "agent.h"

#include <dataplane/soft.h>
#include <lib/container.h>
#include <lib/log.h>
#include <lib/netif/source.h>
#include <lib/netif/tocsin.h>
#include <lib/netif/watch.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>

#define SETTLE_NS (200 * RAS_NS_PER_MS) // wait after the last of several changes
#define SETTLE_MAX_NS (2 * RAS_NS_PER_SEC)
// Every address change counts as a restart that all members learn of, so it is rate-limited.
#define ADDRESS_CHANGE_INTERVAL_NS (10 * RAS_NS_PER_SEC)

// Report that the software device still uses the old address. Its pairs and memory belong to the
// opened device, so it cannot move. Only a restart moves it.
static void soft_device_check_address(struct agent *agent) {
	struct sock_addr address = overlay_address(agent->overlay), device;
	char before[SOCK_ADDR_TEXT_BYTES], after[SOCK_ADDR_TEXT_BYTES],
		words[STATE_TEXT_BYTES] = "";

	address.port = 0;
	if (soft_device_uses_overlay_address(agent->settings) &&
	    soft_device_address(SOFT_DEVICE_NAME, &device) == 0) {
		device.port = 0;
		device.scope_id = address.scope_id;
		sock_addr_format_host(&device, before);
		sock_addr_format_host(&address, after);
		if (!sock_addr_equal(&device, &address))
			snprintf(
				words, sizeof(words),
				"%s still uses %s, but the address of this node is now %s: restart the agent",
				SOFT_DEVICE_NAME, before, after
			);
	}
	if (words[0] != '\0')
		log_event(LOG_LEVEL_WARN, "soft_device_stays", log_str("what", words));
	overlay_set_own_problem(agent->overlay, OVERLAY_OWN_DEVICE, words);
}

static void address_retry_at(struct agent *agent, uint64_t at_ns) {
	if (loop_timer_set(agent->loop, &agent->address_retry_timer, at_ns) != 0)
		log_event(LOG_LEVEL_WARN, "interfaces_unwatched", log_errno("error", ENOMEM));
}

// Change to another address of this machine if the rules find one.
static void address_change(struct agent *agent, const struct netif_table *table) {
	struct sock_addr before = overlay_address(agent->overlay), after, told;
	uint64_t now_ns = loop_now_ns(agent->loop);
	char peer[SOCK_ADDR_TEXT_BYTES], detail[256];
	char before_text[SOCK_ADDR_TEXT_BYTES], after_text[SOCK_ADDR_TEXT_BYTES];
	struct listen_choice choice = {0};
	struct netif_policy policy;
	int err;

	if (!listen_address_is_automatic(agent) ||
	    listen_address_policy(agent, peer, &policy) != 0 ||
	    listen_address_choose_from(agent, table, &policy, &choice) != 0)
		return; // retried when the machine's addresses change
	if (now_ns < agent->next_address_change_ns) {
		address_retry_at(agent, agent->next_address_change_ns);
		return;
	}
	agent->next_address_change_ns = now_ns + ADDRESS_CHANGE_INTERVAL_NS;
	listen_address_advertised(agent, &choice.address, &told);
	err = overlay_change_address(
		agent->overlay, &choice.address, choice.interface, &told, detail
	);
	if (err != 0) {
		after = overlay_address(agent->overlay);
		agent->address_unannounced |= !sock_addr_equal(&before, &after);
		log_event(
			LOG_LEVEL_ERROR, "own_address_not_changed", log_errno("error", err),
			log_str("reason", detail)
		);
		address_retry_at(agent, agent->next_address_change_ns);
		return;
	}
	agent->address_is_present = true;
	agent->address_unannounced = false;
	memcpy(agent->interface, choice.interface, sizeof(agent->interface));
	sock_addr_format(&before, before_text);
	sock_addr_format(&choice.address, after_text);
	log_event(
		LOG_LEVEL_WARN, "own_address_changed", log_str("before", before_text),
		log_str("after", after_text), log_str("interface", choice.interface),
		log_str("effect", "the new address is announced as a new start of this agent")
	);
	soft_device_check_address(agent);
	if (before.family != choice.address.family && joining_restart(agent) != 0)
		log_event(LOG_LEVEL_ERROR, "join_not_refreshed", log_errno("error", ENOMEM));
}

static void address_check_present(struct agent *agent, const struct netif_table *table) {
	struct sock_addr address = overlay_address(agent->overlay);
	const struct netif_link *link = NULL; // interface that has the address
	char text[SOCK_ADDR_TEXT_BYTES], words[STATE_TEXT_BYTES];
	bool is_there;

	for (size_t n = 0; n < table->address_count && link == NULL; n++) {
		struct sock_addr local = table->addresses[n].address;

		local.port = address.port;
		if (sock_addr_equal(&local, &address))
			link = &table->links[table->addresses[n].link];
	}
	is_there = link != NULL && link->has_carrier;

	// An address in 127/8 exists as long as the loopback does, so it cannot disappear.
	if (sock_addr_is_any(&address) || sock_addr_is_loopback(&address))
		return;
	sock_addr_format(&address, text);
	if (is_there && !agent->address_is_present) {
		log_event(LOG_LEVEL_INFO, "own_address_back", log_str("address", text));
		overlay_address_restored(agent->overlay);
	} else if (!is_there && agent->address_is_present) {
		log_event(
			LOG_LEVEL_ERROR, "own_address_gone", log_str("address", text),
			log_str("effect", "this node cannot reach the overlay")
		);
		if (link == NULL)
			snprintf(
				words, sizeof(words), "%s is no longer an address of this machine",
				text
			);
		else
			snprintf(
				words, sizeof(words), "%s is on %s, which has no carrier", text,
				link->name
			);
		overlay_report_address_lost(agent->overlay, words);
	}
	agent->address_is_present = is_there;
	// An address without carrier may recover; a removed address does not.
	if (link == NULL || agent->address_unannounced)
		address_change(agent, table);
}

// Interface table gathered by a keeper. The dumps wait for the kernel's interface lock, which a
// driver may hold for long.
struct gathering {
	struct netif_policy policy; // owner of the strings in `query`
	struct netif_query query;
	struct netif_table *table;
};

static int table_gather(void *arg) {
	struct gathering *gathering = arg;

	return netif_gather(&gathering->query, &gathering->table);
}

static void gathering_drop(void *arg) {
	struct gathering *gathering = arg;

	netif_table_destroy(gathering->table);
	free(gathering);
}

static void netwatch_gather(struct agent *agent);

static void on_table_gathered(struct keeper_request *request, void *arg, int result) {
	struct agent *agent = container_of(request, struct agent, netif_request);
	const struct netif_table *table = ((const struct gathering *)arg)->table;
	struct sock_addr *addresses;
	int err = -ENOMEM;

	if (result == 0 && !agent->leaving) {
		address_check_present(agent, table);

		// The overlay gets all local addresses, to detect another node that advertises one.
		addresses = calloc(table->address_count + 1, sizeof(*addresses));
		for (size_t n = 0; addresses != NULL && n < table->address_count; n++)
			addresses[n] = table->addresses[n].address;
		if (addresses != NULL)
			err = overlay_set_own_addresses(
				agent->overlay, addresses, table->address_count
			);
		free(addresses);
		if (err != 0)
			log_event(
				LOG_LEVEL_WARN, "own_addresses_not_told", log_errno("error", err)
			);
	}
	if (!agent->netif_gather_is_queued)
		return;
	agent->netif_gather_is_queued = false;
	netwatch_gather(agent);
}

static void netwatch_gather(struct agent *agent) {
	struct sock_addr address = overlay_address(agent->overlay);
	struct keeper_call call = {.call = table_gather, .drop = gathering_drop};
	struct gathering *gathering;
	char peer[SOCK_ADDR_TEXT_BYTES];
	int err = -ENOMEM;

	if (sock_addr_is_loopback(&address))
		return; // all peers are on this machine
	if (agent->netif_request.job != NULL) {
		agent->netif_gather_is_queued = true;
		return;
	}
	agent->netif_request.ended = on_table_gathered;
	gathering = calloc(1, sizeof(*gathering));
	if (gathering != NULL) {
		if (listen_address_is_automatic(agent) &&
		    listen_address_policy(agent, peer, &gathering->policy) == 0)
			netif_policy_query(&gathering->policy, &gathering->query);
		call.arg = gathering;
		err = keeper_run(agent->netif, &call, &agent->netif_request);
	}
	if (err == 0)
		return;
	free(gathering);
	log_event(LOG_LEVEL_WARN, "interfaces_unwatched", log_errno("error", err));
}

static void on_address_retry_timer(struct loop_timer *timer, uint64_t now_ns) {
	(void)now_ns;
	netwatch_gather(container_of(timer, struct agent, address_retry_timer));
}

static void netwatch_set_timer(struct agent *agent) {
	struct deadline due = netif_watch_deadline(agent->netwatch);

	if (!deadline_is_never(due) &&
	    loop_timer_set(agent->loop, &agent->netwatch_timer, due.at_ns) != 0)
		log_event(LOG_LEVEL_WARN, "interfaces_unwatched", log_errno("error", ENOMEM));
}

static void on_netwatch_timer(struct loop_timer *timer, uint64_t now_ns) {
	struct agent *agent = container_of(timer, struct agent, netwatch_timer);
	struct netif_watch_event event;

	if (netif_watch_consume(agent->netwatch, now_ns, &event))
		netwatch_gather(agent);
	netwatch_set_timer(agent);
}

static void on_netwatch_readable(struct loop_source *source, uint32_t events) {
	struct agent *agent = container_of(source, struct agent, netwatch_source);
	int err = netif_watch_read(agent->netwatch, loop_now_ns(agent->loop));

	(void)events;
	if (err != 0)
		log_event(LOG_LEVEL_WARN, "interfaces_unwatched", log_errno("error", err));
	netwatch_set_timer(agent);
}

static void on_netwatch_stuck(void *ctx, struct keeper *keeper) {
	(void)ctx;
	(void)keeper;
	log_event(
		LOG_LEVEL_WARN, "interfaces_hang",
		log_str("reason", "the kernel does not answer the query for interfaces")
	);
}

int netwatch_start(struct agent *agent) {
	const struct keeper_ops ops = {
		.stuck = on_netwatch_stuck, .totals = &agent->keeper_counters};
	int err = netif_watch_create(SETTLE_NS, SETTLE_MAX_NS, &agent->netwatch);

	if (err != 0)
		return err;
	agent->address_is_present = true;
	agent->netwatch_timer.expired = on_netwatch_timer;
	agent->address_retry_timer.expired = on_address_retry_timer;
	agent->netwatch_source = (struct loop_source){
		.fd = netif_watch_fd(agent->netwatch),
		.events = EPOLLIN,
		.rank = LOOP_OVERLAY,
		.ready = on_netwatch_readable,
	};
	err = keeper_create(agent->loop, "tocsin-netif", &ops, &agent->netif);
	if (err == 0)
		err = loop_add(agent->loop, &agent->netwatch_source);
	if (err != 0)
		netwatch_stop(agent);
	else
		netwatch_gather(agent); // check addresses that already exist
	return err;
}

void netwatch_stop(struct agent *agent) {
	loop_timer_cancel(agent->loop, &agent->netwatch_timer);
	loop_timer_cancel(agent->loop, &agent->address_retry_timer);
	loop_remove(&agent->netwatch_source);
	agent->netif = keeper_destroy(agent->netif);
	agent->netwatch = netif_watch_destroy(agent->netwatch);
}
