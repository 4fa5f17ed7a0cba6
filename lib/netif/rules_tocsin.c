// SPDX-License-Identifier: BSD-3-Clause
// Chooses interfaces by Tocsin's rules.
#include "judge.h"
#include "score.h"

#include <lib/netif/tocsin.h>
#include <lib/suggestion.h>

#include <errno.h>
#include <linux/if_addr.h>
#include <net/if.h>
#include <stdlib.h>
#include <string.h>

// An address that is being judged.
struct candidate {
	const struct netif_table *table;
	const struct netif_policy *policy;
	const struct netif_link *link;
	const struct netif_address *address;
	const struct netif_item *item; // first item that matches it; NULL: none
};

static enum netif_reason judge_link(const struct candidate *candidate) {
	const struct netif_link *link = candidate->link;
	const struct netif_link *master = NULL;

	if (link->master_index != 0)
		master = netif_table_link_by_index(candidate->table, link->master_index);

	if ((link->flags & IFF_SLAVE) != 0 || strcmp(link->port_kind, "bond") == 0 ||
	    strcmp(link->port_kind, "team") == 0 ||
	    (master != NULL && master->class == NETIF_CLASS_BOND))
		return NETIF_LINK_IS_BOND_PORT;
	if (strcmp(link->port_kind, "bridge") == 0 ||
	    (master != NULL && (master->class == NETIF_CLASS_BRIDGE ||
				master->class == NETIF_CLASS_CONTAINER_BRIDGE)))
		return NETIF_LINK_IS_BRIDGE_PORT;
	if ((link->flags & IFF_UP) == 0)
		return NETIF_LINK_DOWN;
	if (!link->has_carrier)
		return NETIF_LINK_WITHOUT_CARRIER;
	if ((link->flags & IFF_RUNNING) == 0)
		return NETIF_LINK_NOT_RUNNING;
	return NETIF_TAKEN;
}

// Return whether the candidate's address may be link-local. The peer's address must be
// link-local, or the item that matches the candidate must give a link-local network or peer. A
// matching interface name is not enough, because other nodes cannot use the address without its
// scope.
static bool link_local_is_allowed(const struct candidate *candidate) {
	const struct netif_item *item = candidate->item;
	struct sock_addr network = {0};

	if (sock_addr_is_link_local(&candidate->policy->peer))
		return true;
	if (item == NULL)
		return false;
	if (item->kind == NETIF_ITEM_PEER)
		return sock_addr_is_link_local(&item->peer);
	if (item->kind != NETIF_ITEM_NETWORK)
		return false;
	memcpy(network.address, item->network.address, sizeof(network.address));
	network.family = item->network.family;
	return sock_addr_is_link_local(&network);
}

static enum netif_reason judge_address(const struct candidate *candidate) {
	const struct netif_policy *policy = candidate->policy;
	const struct sock_addr *ip = &candidate->address->address;
	uint32_t flags = candidate->address->flags;

	if (policy->family != SOCK_ADDR_NONE && ip->family != policy->family)
		return NETIF_FAMILY_NOT_ASKED;
	if (policy->peer.family != SOCK_ADDR_NONE && ip->family != policy->peer.family)
		return NETIF_FAMILY_NOT_ASKED;
	if ((flags & IFA_F_DADFAILED) != 0)
		return NETIF_ADDRESS_DUPLICATE;
	if ((flags & IFA_F_TENTATIVE) != 0)
		return NETIF_ADDRESS_TENTATIVE;
	if ((flags & IFA_F_DEPRECATED) != 0)
		return NETIF_ADDRESS_DEPRECATED;
	// A loopback address needs an item that matches it, or a peer with a loopback address.
	if (sock_addr_is_loopback(ip) && candidate->item == NULL &&
	    !sock_addr_is_loopback(&policy->peer))
		return NETIF_ADDRESS_LOOPBACK;
	if (sock_addr_is_link_local(ip) && !link_local_is_allowed(candidate))
		return NETIF_ADDRESS_LINK_LOCAL;
	if (candidate->link->class == NETIF_CLASS_CONTAINER_BRIDGE && candidate->item == NULL)
		return NETIF_CONTAINER_ONLY;
	return NETIF_TAKEN;
}

// Find the first item that matches a candidate; a matching exclusion is final.
static enum netif_reason
judge_selection(struct candidate *candidate, struct netif_judgement *judgement) {
	const struct netif_selector *selector = &candidate->policy->selector;
	bool any_positive = false;

	judgement->item = -1;
	for (size_t n = 0; n < selector->count; n++) {
		const struct netif_item *item = &selector->items[n];
		bool matches = netif_item_matches(
			item, candidate->table, candidate->link, candidate->address
		);

		if (item->excludes && matches) {
			judgement->item = (int32_t)n;
			return NETIF_EXCLUDED;
		}
		if (item->excludes)
			continue;
		any_positive = true;
		if (matches && judgement->item < 0)
			judgement->item = (int32_t)n;
	}
	if (judgement->item >= 0)
		candidate->item = &selector->items[judgement->item];
	return any_positive && judgement->item < 0 ? NETIF_NOT_SELECTED : NETIF_TAKEN;
}

static void judge_candidate(
	const struct netif_table *table,
	const struct netif_policy *policy,
	struct netif_judgement *judgement
) {
	struct candidate candidate = {
		.table = table,
		.policy = policy,
		.link = &table->links[judgement->link],
		.address = &table->addresses[judgement->address],
	};

	judgement->reason = judge_selection(&candidate, judgement);
	if (judgement->reason == NETIF_TAKEN)
		judgement->reason = judge_link(&candidate);
	if (judgement->reason == NETIF_TAKEN)
		judgement->reason = judge_address(&candidate);
	if (judgement->reason == NETIF_TAKEN)
		score_candidate(table, policy, judgement);
}

static bool item_has_match(const struct netif_item *item, const struct netif_table *table) {
	for (size_t n = 0; n < table->address_count; n++) {
		const struct netif_address *address = &table->addresses[n];

		if (netif_item_matches(item, table, &table->links[address->link], address))
			return true;
	}
	for (size_t n = 0; n < table->link_count; n++) {
		if (netif_item_matches(item, table, &table->links[n], NULL))
			return true;
	}
	return false;
}

static const char *missing_item_text(const struct netif_item *item) {
	switch (item->kind) {
	case NETIF_ITEM_PREFIX:
		return "matches the beginning of no interface name";
	case NETIF_ITEM_NAME:
		return "matches no interface name";
	case NETIF_ITEM_NETWORK:
		return "contains no address of this machine";
	case NETIF_ITEM_PEER:
		return "cannot be reached: no route";
	case NETIF_ITEM_DEFAULT_ROUTE:
		return "matches nothing: there is no default route";
	}
	return "matches nothing";
}

// A misspelt "default-route" is parsed as a name prefix.
static bool is_nearly_default_route(const struct netif_item *item) {
	static const char word[] = "default-route";
	struct suggestion suggestion;

	if (item->kind != NETIF_ITEM_PREFIX)
		return false;
	suggestion_init(&suggestion, item->name);
	suggestion_add(&suggestion, word, strlen(word));
	return suggestion.nearest_size > 0;
}

static int check_items(
	const struct netif_table *table,
	const struct netif_policy *policy,
	struct netif_error *error
) {
	for (size_t n = 0; n < policy->selector.count; n++) {
		const struct netif_item *item = &policy->selector.items[n];

		if (item_has_match(item, table))
			continue;
		return netif_fail_listing(
			error, -ENOENT, table, "%s: item %s %s%s", policy->settings.ifname.origin,
			item->text, missing_item_text(item),
			is_nearly_default_route(item) ? "; did you mean default-route?" : ""
		);
	}
	return 0;
}

// Return why no address of the link, in the peer's family, was chosen first.
static const char *route_reject_reason(
	const struct netif_table *table,
	const struct netif_choice *choice,
	const struct netif_link *way,
	uint8_t family
) {
	const char *why = "no address of the peer's family";

	for (size_t n = 0; n < choice->count; n++) {
		const struct netif_judgement *judgement = &choice->judgements[n];

		if (&table->links[judgement->link] != way)
			continue;
		if (judgement->reason == NETIF_TAKEN)
			return "it comes later in the list";
		if (judgement->address < 0 ||
		    table->addresses[judgement->address].address.family == family)
			why = netif_reason_text(judgement->reason);
	}
	return why;
}

// Add a note if the kernel's route to the peer did not decide the choice.
static void note_peer(
	const struct netif_table *table,
	const struct netif_policy *policy,
	struct netif_choice *choice
) {
	const struct netif_route *route = netif_table_route(table, &policy->peer);
	const struct netif_setting *setting = &policy->settings.peer;
	const struct netif_link *way;
	char name[NETIF_NAME_TEXT_BYTES];

	if (policy->peer.family == SOCK_ADDR_NONE)
		return;
	if (route == NULL || route->error != 0) {
		choice_note(
			choice, "%s %s has no route (%s), so the choice ignores it",
			setting->origin, setting->value,
			route == NULL ? "not looked up" : strerrorname_np(-route->error)
		);
		return;
	}
	way = netif_table_link_by_index(table, route->link_index);
	if (way == NULL || choice->chosen_count == 0 ||
	    choice->judgements[choice->chosen[0]].score.route != 0)
		return;
	netif_name_print(way->name, name);
	choice_note(
		choice, "%s %s is reached through %s, which was not chosen: %s", setting->origin,
		setting->value, name, route_reject_reason(table, choice, way, policy->peer.family)
	);
}

int netif_choose(
	const struct netif_table *table,
	const struct netif_policy *policy,
	struct netif_choice **ret_choice,
	struct netif_error *error
) {
	struct score_order order = {.table = table};
	struct netif_choice *choice;
	uint32_t *positions;
	size_t count = 0;
	int err = check_items(table, policy, error);

	if (err != 0)
		return err;
	err = choice_create(table, &choice);
	if (err != 0)
		return netif_fail(error, err, "out of memory");
	for (size_t n = 0; n < choice->count && choice->judgements[n].address >= 0; n++)
		judge_candidate(table, policy, &choice->judgements[n]);
	positions = calloc(choice->count + 1, sizeof(*positions));
	if (positions == NULL) {
		netif_choice_destroy(choice);
		return netif_fail(error, -ENOMEM, "out of memory");
	}

	// Sort all accepted candidates and keep the first NETIF_CHOSEN_MAX.
	for (size_t n = 0; n < choice->count; n++) {
		if (choice->judgements[n].reason == NETIF_TAKEN)
			positions[count++] = (uint32_t)n;
	}
	order.judgements = choice->judgements;
	qsort_r(positions, count, sizeof(*positions), score_compare, &order);
	if (count > NETIF_CHOSEN_MAX)
		count = NETIF_CHOSEN_MAX;
	memcpy(choice->chosen, positions, count * sizeof(*positions));
	choice->chosen_count = count;
	free(positions);
	note_peer(table, policy, choice);
	if (choice->chosen_count > 0) {
		int32_t item = choice->judgements[choice->chosen[0]].item;

		choice->port = item < 0 ? 0 : policy->selector.items[item].port;
	}
	*ret_choice = choice;
	return 0;
}
