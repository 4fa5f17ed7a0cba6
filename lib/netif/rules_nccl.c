// SPDX-License-Identifier: BSD-3-Clause
// Chooses interfaces by NCCL's rules.
#include "comm_id.h"
#include "judge.h"

#include <lib/escape.h>
#include <lib/netif/nccl.h>

#include <stdio.h>
#include <string.h>

#define LIST_MAX 16
#define PREFIX_BYTES 64
#define QUOTED_BYTES 80

// Parsed list such as "^=ib0:4000,eth".
struct name_list {
	bool excludes;
	bool exact;
	char names[LIST_MAX][PREFIX_BYTES];
	size_t count; // 0: matches every name
};

static bool list_matches(const struct name_list *list, const char *name) {
	if (list->count == 0)
		return true;
	for (size_t n = 0; n < list->count; n++) {
		const char *item = list->names[n];

		if (list->exact ? strcmp(name, item) == 0 : strncmp(name, item, strlen(item)) == 0)
			return true;
	}
	return false;
}

// Return the name that getifaddrs(3) reports for an address.
static const char *
address_name(const struct netif_table *table, const struct netif_judgement *judgement) {
	const struct netif_address *address = &table->addresses[judgement->address];

	return address->label[0] != '\0' ? address->label : table->links[judgement->link].name;
}

static bool is_name_chosen(
	const struct netif_table *table, const struct netif_choice *choice, const char *name
) {
	for (size_t n = 0; n < choice->chosen_count; n++) {
		if (strcmp(address_name(table, &choice->judgements[choice->chosen[n]]), name) == 0)
			return true;
	}
	return false;
}

static enum netif_reason judge_name(
	const struct netif_table *table,
	const struct netif_choice *choice,
	const struct netif_judgement *judgement,
	const struct name_list *list,
	enum sock_addr_family family
) {
	const struct sock_addr *address = &table->addresses[judgement->address].address;
	const char *name = address_name(table, judgement);

	if (choice->chosen_count == NETIF_NCCL_INTERFACES_MAX)
		return NETIF_LIST_FULL;
	if (family != SOCK_ADDR_NONE && address->family != family)
		return NETIF_FAMILY_NOT_ASKED;
	if (address->family == SOCK_ADDR_V6 && sock_addr_is_loopback(address))
		return NETIF_ADDRESS_LOOPBACK;
	if (list_matches(list, name) == list->excludes)
		return list->excludes ? NETIF_EXCLUDED : NETIF_NOT_SELECTED;
	return is_name_chosen(table, choice, name) ? NETIF_NAME_TAKEN_BEFORE : NETIF_TAKEN;
}

static void address_choose(struct netif_choice *choice, size_t position, const char *rule) {
	choice->judgements[position].rule = rule;
	choice->chosen[choice->chosen_count++] = (uint32_t)position;
}

static void try_names(
	const struct netif_table *table,
	struct netif_choice *choice,
	const char *value,
	enum sock_addr_family family,
	const char *rule
) {
	struct name_list list = {.count = 0};
	size_t length, name_length;

	if (*value == '^') {
		list.excludes = true;
		value++;
	}
	if (*value == '=') {
		list.exact = true;
		value++;
	}
	for (;; value += length + 1) {
		length = strcspn(value, ",");
		// The port is ignored, as in NCCL's matching. A truncated name matches no
		// interface, and neither would the full name.
		name_length = strcspn(value, ":,");
		if (name_length > 0 && list.count < LIST_MAX)
			snprintf(
				list.names[list.count++], PREFIX_BYTES, "%.*s", (int)name_length,
				value
			);
		if (value[length] == '\0')
			break;
	}
	for (size_t n = 0; n < choice->count && choice->judgements[n].address >= 0; n++) {
		struct netif_judgement *judgement = &choice->judgements[n];

		judgement->reason = judge_name(table, choice, judgement, &list, family);
		if (judgement->reason == NETIF_TAKEN)
			address_choose(choice, n, rule);
	}
}

static void try_subnet(
	const struct netif_table *table, struct netif_choice *choice, const struct sock_addr *peer
) {
	for (size_t n = 0; n < choice->count && choice->judgements[n].address >= 0; n++) {
		struct netif_judgement *judgement = &choice->judgements[n];
		const struct netif_address *address = &table->addresses[judgement->address];

		if (choice->chosen_count == 0 &&
		    sock_addr_same_prefix(&address->address, peer, address->prefix_bits)) {
			judgement->reason = NETIF_TAKEN;
			address_choose(choice, n, "subnet of NCCL_COMM_ID");
		} else {
			judgement->reason = NETIF_NOT_SELECTED;
		}
	}
}

static void try_comm_id(
	const struct netif_table *table,
	struct netif_choice *choice,
	const struct netif_setting *setting
) {
	char quoted[QUOTED_BYTES];
	struct sock_addr peer;
	const char *wrong;

	if (setting->value == NULL || strlen(setting->value) <= 1)
		return;
	wrong = comm_id_parse(table, setting->value, &peer);
	if (wrong == NULL) {
		try_subnet(table, choice, &peer);
		return;
	}
	escape_quote(setting->value, strlen(setting->value), quoted, sizeof(quoted));
	choice_note(choice, "%s %s is ignored: %s", setting->origin, quoted, wrong);
}

static enum sock_addr_family
parse_family(const struct netif_setting *setting, struct netif_choice *choice) {
	char quoted[QUOTED_BYTES];

	if (setting->value == NULL)
		return SOCK_ADDR_NONE;
	if (strcmp(setting->value, "AF_INET") == 0)
		return SOCK_ADDR_V4;
	if (strcmp(setting->value, "AF_INET6") == 0)
		return SOCK_ADDR_V6;
	escape_quote(setting->value, strlen(setting->value), quoted, sizeof(quoted));
	choice_note(
		choice, "%s %s is ignored: NCCL accepts AF_INET and AF_INET6", setting->origin,
		quoted
	);
	return SOCK_ADDR_NONE;
}

static void try_steps(
	const struct netif_table *table,
	struct netif_choice *choice,
	const struct netif_setting *comm_id,
	enum sock_addr_family family
) {
	static const char *const last_steps[] = {"^docker,lo", "docker", "lo"};

	try_names(table, choice, "ib", family, "ib");
	if (choice->chosen_count == 0)
		try_comm_id(table, choice, comm_id);
	for (size_t n = 0; n < 3 && choice->chosen_count == 0; n++)
		try_names(table, choice, last_steps[n], family, last_steps[n]);
	for (size_t n = 0; n < choice->count && choice->chosen_count > 0; n++) {
		if (choice->judgements[n].reason == NETIF_NOT_SELECTED)
			choice->judgements[n].reason = NETIF_EARLIER_STEP_WON;
	}
}

int netif_choose_nccl(
	const struct netif_table *table,
	const struct netif_nccl_settings *settings,
	struct netif_choice **ret_choice
) {
	struct netif_choice *choice;
	const char *names = settings->ifname.value;
	char quoted[QUOTED_BYTES];
	enum sock_addr_family family;
	int err = choice_create(table, &choice);

	if (err != 0)
		return err;
	family = parse_family(&settings->family, choice);
	if (names != NULL && strlen(names) > 1) {
		try_names(table, choice, names, family, settings->ifname.origin);
	} else {
		if (names != NULL) {
			escape_quote(names, strlen(names), quoted, sizeof(quoted));
			choice_note(
				choice, "%s %s is ignored: it is shorter than two characters",
				settings->ifname.origin, quoted
			);
		}
		try_steps(table, choice, &settings->comm_id, family);
	}
	*ret_choice = choice;
	return 0;
}
