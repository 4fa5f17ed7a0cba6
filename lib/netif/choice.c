// SPDX-License-Identifier: BSD-3-Clause
// Result of a choice of interfaces, and its texts.
#include "address.h"

#include <lib/escape.h>
#include <lib/must.h>
#include <lib/netif/choice.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct netif_choice *netif_choice_destroy(struct netif_choice *choice) {
	if (choice == NULL)
		return NULL;
	free(choice->judgements);
	free(choice);
	return NULL;
}

const char *netif_reason_text(enum netif_reason reason) {
	static const char *const texts[NETIF_REASON_COUNT] = {
		[NETIF_TAKEN] = "taken",
		[NETIF_LINK_WITHOUT_ADDRESS] = "no IP address",
		[NETIF_LINK_DOWN] = "down",
		[NETIF_LINK_NOT_RUNNING] = "not running",
		[NETIF_LINK_WITHOUT_CARRIER] = "no carrier",
		[NETIF_LINK_IS_BOND_PORT] = "port of a bond",
		[NETIF_LINK_IS_BRIDGE_PORT] = "port of a bridge",
		[NETIF_ADDRESS_TENTATIVE] = "address is tentative",
		[NETIF_ADDRESS_DUPLICATE] = "address is a duplicate",
		[NETIF_ADDRESS_DEPRECATED] = "address is deprecated",
		[NETIF_ADDRESS_LOOPBACK] = "loopback address",
		[NETIF_ADDRESS_LINK_LOCAL] = "link-local address",
		[NETIF_FAMILY_NOT_ASKED] = "other address family",
		[NETIF_NOT_SELECTED] = "not in the list",
		[NETIF_EXCLUDED] = "excluded by the list",
		[NETIF_CONTAINER_ONLY] = "bridge without hardware",
		[NETIF_NAME_TAKEN_BEFORE] = "not the first address of its name",
		[NETIF_EARLIER_STEP_WON] = "an earlier step found an interface",
		[NETIF_LIST_FULL] = "more than 16 interfaces",
	};

	must((size_t)reason < NETIF_REASON_COUNT);
	return texts[reason];
}

void netif_name_print(const char *name, char text[static NETIF_NAME_TEXT_BYTES]) {
	char quoted[NETIF_NAME_TEXT_BYTES + 2];
	size_t length;

	escape_quote(name, strlen(name), quoted, sizeof(quoted));
	length = strlen(quoted) - 2; // without the quotes
	memcpy(text, quoted + 1, length);
	text[length] = '\0';
}

void netif_candidate_print(
	const struct netif_table *table,
	const struct netif_judgement *judgement,
	char text[static NETIF_CANDIDATE_BYTES]
) {
	char name[NETIF_NAME_TEXT_BYTES];
	const struct netif_address *address;
	char ip[SOCK_ADDR_TEXT_BYTES];

	netif_name_print(table->links[judgement->link].name, name);
	if (judgement->address < 0) {
		snprintf(text, NETIF_CANDIDATE_BYTES, "%s", name);
		return;
	}
	address = &table->addresses[judgement->address];
	address_print(&address->address, ip);
	snprintf(text, NETIF_CANDIDATE_BYTES, "%s %s/%u", name, ip, address->prefix_bits);
}
