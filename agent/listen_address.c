// SPDX-License-Identifier: BSD-3-Clause
// Chooses the address on which the agent listens and the address that it advertises.
#include "agent.h"

#include <lib/config.h>
#include <lib/must.h>
#include <lib/netif/source.h>
#include <lib/netif/tocsin.h>
#include <lib/seal_keys.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

static void listen_set_error(struct agent *agent, const char *reason) {
	snprintf(agent->detail, sizeof(agent->detail), "%s", reason);
}

// Return the settings of the start, for keys that need a restart.
static const struct agent_settings *startup_settings(const struct agent *agent) {
	return config_settings(agent->started_with != NULL ? agent->started_with : agent->config);
}

bool listen_address_is_automatic(const struct agent *agent) {
	return startup_settings(agent)->overlay.listen[0] == '\0' &&
	       !seal_keys_is_keyless(agent->keys);
}

int listen_address_policy(
	struct agent *agent, char peer[static SOCK_ADDR_TEXT_BYTES], struct netif_policy *ret_policy
) {
	const char *interface = startup_settings(agent)->overlay.interface;
	const char *join = startup_settings(agent)->overlay.join;
	struct netif_tocsin_settings settings = {
		.ifname = {interface[0] != '\0' ? interface : NULL, "[overlay] interface"},
		.family = {NULL, "default"},
		.peer = {NULL, "[overlay] join"},
	};
	struct netif_error error;
	struct sock_addr addr;

	// A name would have to be resolved first, so the address is chosen without it.
	snprintf(peer, SOCK_ADDR_TEXT_BYTES, "%.*s", (int)strcspn(join, ", "), join);
	if (sock_addr_parse(peer, strlen(peer), OVERLAY_PORT, NULL, &addr) == 0)
		settings.peer.value = peer;
	if (netif_policy_parse(&settings, ret_policy, &error) == 0)
		return 0;
	listen_set_error(agent, error.text);
	return -EINVAL;
}

int listen_address_choose_from(
	struct agent *agent,
	const struct netif_table *table,
	const struct netif_policy *policy,
	struct listen_choice *ret_choice
) {
	struct netif_choice *choice = NULL;
	struct netif_error error = {0};
	int err = netif_choose(table, policy, &choice, &error);

	if (err == 0 && choice->chosen_count == 0) {
		snprintf(
			error.text, sizeof(error.text),
			"no interface can carry the overlay; tocsin ifaces --explain says why"
		);
		err = -EADDRNOTAVAIL;
	}
	if (err == 0) {
		const struct netif_judgement *best = &choice->judgements[choice->chosen[0]];

		ret_choice->address = table->addresses[best->address].address;
		ret_choice->address.port = choice->port != 0 ? choice->port : OVERLAY_PORT;
		snprintf(
			ret_choice->interface, sizeof(ret_choice->interface), "%s",
			table->links[best->link].name
		);
	} else {
		listen_set_error(agent, error.text[0] != '\0' ? error.text : strerrordesc_np(-err));
	}
	netif_choice_destroy(choice);
	return err;
}

// Choose the best address by the rules of `tocsin ifaces`. The route to the first join address is
// preferred.
static int listen_choose_by_rules(struct agent *agent, struct listen_choice *ret_choice) {
	char peer[SOCK_ADDR_TEXT_BYTES];
	struct netif_table *table = NULL;
	struct netif_query query = {0};
	struct netif_policy policy;
	int err = listen_address_policy(agent, peer, &policy);

	if (err != 0)
		return err;
	netif_policy_query(&policy, &query);
	err = netif_gather(&query, &table);
	if (err == 0)
		err = listen_address_choose_from(agent, table, &policy, ret_choice);
	else
		listen_set_error(agent, strerrordesc_np(-err));
	netif_table_destroy(table);
	return err;
}

int listen_address_choose(struct agent *agent, struct listen_choice *ret_choice) {
	const char *listen = startup_settings(agent)->overlay.listen;
	struct listen_choice choice = {0};
	int err = 0;

	if (listen[0] != '\0')
		must(sock_addr_parse(listen, strlen(listen), OVERLAY_PORT, NULL, &choice.address) ==
		     0);
	else if (!listen_address_is_automatic(agent))
		must(sock_addr_parse("127.0.0.1", 9, OVERLAY_PORT, NULL, &choice.address) == 0);
	else
		err = listen_choose_by_rules(agent, &choice);
	if (err == 0)
		*ret_choice = choice;
	return err;
}

void listen_address_advertised(
	const struct agent *agent, const struct sock_addr *listen, struct sock_addr *ret_told
) {
	const char *text = startup_settings(agent)->overlay.advertise;

	*ret_told = *listen;
	if (text[0] != '\0')
		must(sock_addr_parse(text, strlen(text), listen->port, NULL, ret_told) == 0);
}
