// SPDX-License-Identifier: BSD-3-Clause
// Parses the settings of a choice of interfaces.
#include "address.h"
#include "judge.h"

#include <lib/escape.h>
#include <lib/netif/tocsin.h>

#include <errno.h>
#include <string.h>
#include <strings.h>

#define QUOTED_BYTES 80

static const struct {
	const char *word;
	enum sock_addr_family family;
} families[] = {
	{"any", SOCK_ADDR_NONE},    {"ipv4", SOCK_ADDR_V4},
	{"ipv6", SOCK_ADDR_V6},	    {"inet", SOCK_ADDR_V4},
	{"inet6", SOCK_ADDR_V6},    {"AF_INET", SOCK_ADDR_V4}, // values of NCCL_SOCKET_FAMILY
	{"AF_INET6", SOCK_ADDR_V6},
};

static int parse_family(
	const struct netif_setting *setting,
	enum sock_addr_family *ret_family,
	struct netif_error *error
) {
	char quoted[QUOTED_BYTES];

	if (setting->value == NULL)
		return 0;
	for (size_t n = 0; n < sizeof(families) / sizeof(families[0]); n++) {
		if (strcasecmp(setting->value, families[n].word) == 0) {
			*ret_family = families[n].family;
			return 0;
		}
	}
	escape_quote(setting->value, strlen(setting->value), quoted, sizeof(quoted));
	return netif_fail(
		error, -EINVAL, "%s: %s is not an address family: any, ipv4 or ipv6",
		setting->origin, quoted
	);
}

static int parse_peer(
	const struct netif_setting *setting, struct sock_addr *ret_peer, struct netif_error *error
) {
	char quoted[QUOTED_BYTES];
	struct parse_error why;
	struct sock_addr peer;
	const char *fault;

	if (setting->value == NULL)
		return 0;
	if (sock_addr_parse(setting->value, strlen(setting->value), 0, &why, &peer) != 0)
		return netif_fail(error, -EINVAL, "%s: %s", setting->origin, why.text);
	fault = address_fault_as_peer(&peer);
	if (fault != NULL) {
		escape_quote(setting->value, strlen(setting->value), quoted, sizeof(quoted));
		return netif_fail(error, -EINVAL, "%s: %s %s", setting->origin, quoted, fault);
	}
	peer.port = 0;
	*ret_peer = peer;
	return 0;
}

static const char *family_word(enum sock_addr_family family) {
	return family == SOCK_ADDR_V4 ? "IPv4" : "IPv6";
}

static int fail_conflict(
	struct netif_error *error,
	const char *what,
	enum sock_addr_family family,
	const struct netif_setting *other,
	enum sock_addr_family other_family
) {
	return netif_fail(
		error, -EINVAL, "%s is %s, but %s asks for %s", what, family_word(family),
		other->origin, family_word(other_family)
	);
}

// Check that the requested family, the peer and all items that are addresses agree.
static int check_families(const struct netif_policy *policy, struct netif_error *error) {
	const struct netif_tocsin_settings *settings = &policy->settings;
	enum sock_addr_family peer_family = (enum sock_addr_family)policy->peer.family;
	const struct netif_setting *by = &settings->family;
	enum sock_addr_family family = policy->family;

	if (family != SOCK_ADDR_NONE && peer_family != SOCK_ADDR_NONE && peer_family != family)
		return fail_conflict(error, settings->peer.origin, peer_family, by, family);
	if (family == SOCK_ADDR_NONE) {
		family = peer_family;
		by = &settings->peer;
	}
	for (size_t n = 0; n < policy->selector.count; n++) {
		const struct netif_item *item = &policy->selector.items[n];
		uint8_t own = SOCK_ADDR_NONE; // items that are names have no family

		if (item->kind == NETIF_ITEM_NETWORK)
			own = item->network.family;
		else if (item->kind == NETIF_ITEM_PEER)
			own = item->peer.family;
		if (family == SOCK_ADDR_NONE || own == SOCK_ADDR_NONE || own == family ||
		    item->excludes)
			continue;
		return fail_conflict(error, item->text, (enum sock_addr_family)own, by, family);
	}
	return 0;
}

static void add_lookup(struct netif_policy *policy, const struct sock_addr *peer) {
	for (size_t n = 0; n < policy->lookup_count; n++) {
		if (sock_addr_equal(&policy->lookups[n], peer))
			return;
	}
	policy->lookups[policy->lookup_count++] = *peer;
}

int netif_policy_parse(
	const struct netif_tocsin_settings *settings,
	struct netif_policy *ret_policy,
	struct netif_error *error
) {
	struct netif_policy policy = {.settings = *settings};
	int err = netif_selector_parse(&settings->ifname, &policy.selector, error);

	if (err == 0)
		err = parse_family(&settings->family, &policy.family, error);
	if (err == 0)
		err = parse_peer(&settings->peer, &policy.peer, error);
	if (err == 0)
		err = check_families(&policy, error);
	if (err != 0)
		return err;
	if (policy.peer.family != SOCK_ADDR_NONE)
		add_lookup(&policy, &policy.peer);
	for (size_t n = 0; n < policy.selector.count; n++) {
		if (policy.selector.items[n].kind == NETIF_ITEM_PEER)
			add_lookup(&policy, &policy.selector.items[n].peer);
	}
	*ret_policy = policy;
	return 0;
}

void netif_policy_query(const struct netif_policy *policy, struct netif_query *ret_query) {
	struct netif_query query = {
		.peers = policy->lookups,
		.peer_count = policy->lookup_count,
	};

	for (size_t n = 0; n < policy->selector.count; n++) {
		if (policy->selector.items[n].kind == NETIF_ITEM_DEFAULT_ROUTE)
			query.want_defaults = true;
	}
	*ret_query = query;
}
