// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes interface selection: Netlink bytes and a selector list pass through every decision.
//
// Input: one byte of options, the length of a list, the list, Netlink messages.
#include <lib/must.h>
#include <lib/netif/classify.h>
#include <lib/netif/diff.h>
#include <lib/netif/nccl.h>
#include <lib/netif/netlink.h>
#include <lib/netif/tocsin.h>
#include <lib/scoped.h>
#include <support/fuzz.h>

#include <stdlib.h>
#include <string.h>

#define LIST_BYTES (UINT8_MAX + 1)

static void check_choice(const struct netif_table *table, const struct netif_choice *choice) {
	must(choice->chosen_count <= NETIF_CHOSEN_MAX);
	for (size_t n = 0; n < choice->chosen_count; n++) {
		char text[NETIF_CANDIDATE_BYTES];

		must(choice->chosen[n] < choice->count);
		must(choice->judgements[choice->chosen[n]].reason == NETIF_TAKEN);
		netif_candidate_print(table, &choice->judgements[choice->chosen[n]], text);
	}
}

static void choose_nccl(const struct netif_table *table, const char *list, bool as_comm_id) {
	struct netif_nccl_settings settings = {
		{as_comm_id ? NULL : list, "ifname"},
		{NULL, "family"},
		{NULL, "comm id"},
	};
	struct netif_choice *choice;

	// Names would need the resolver, so only numeric addresses are used.
	if (as_comm_id && list[0] == '[')
		settings.comm_id.value = list;
	if (netif_choose_nccl(table, &settings, &choice) != 0)
		return;
	check_choice(table, choice);
	netif_choice_destroy(choice);
}

static void choose_tocsin(const struct netif_table *table, const char *list, const char *peer) {
	struct netif_tocsin_settings settings = {
		{list, "ifname"}, {NULL, "family"}, {peer, "peer"}};
	struct netif_policy policy;
	struct netif_choice *choice;
	struct netif_error error;

	if (netif_policy_parse(&settings, &policy, &error) != 0) {
		must(strnlen(error.text, sizeof(error.text)) < sizeof(error.text));
		return;
	}
	if (netif_choose(table, &policy, &choice, &error) != 0)
		return;
	check_choice(table, choice);
	for (size_t n = 1; n < choice->chosen_count; n++)
		must(choice->judgements[choice->chosen[n - 1]].score.value >=
		     choice->judgements[choice->chosen[n]].score.value);
	netif_choice_destroy(choice);
}

static void no_change(void *context, const struct netif_change *change) {
	(void)context;
	(void)change;
	must(false); // a table differs from itself
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
	scoped_mem uint8_t *messages = NULL; // aligned, as the parser demands
	char list[LIST_BYTES];
	struct sock_addr peer = {.family = SOCK_ADDR_V4, .address = {10, 0, 0, 1}};
	struct netif_table *table;
	bool done = false;
	uint8_t choices;
	size_t length;

	if (size < 2)
		return 0;
	choices = bytes[0];
	length = bytes[1] < size - 2 ? bytes[1] : size - 2;
	memcpy(list, bytes + 2, length);
	list[length] = '\0';
	size -= 2 + length;
	messages = malloc(size + 1);
	if (messages == NULL || netif_table_create(&table) != 0)
		return 0;
	memcpy(messages, bytes + 2 + length, size);
	// Routes are parsed after the dumps; the same bytes are used for both.
	if (netif_netlink_parse(messages, size, NULL, table, &done) == 0 &&
	    ((choices & 1) == 0 || netif_netlink_parse(messages, size, &peer, table, &done) == 0)) {
		netif_classify(table);
		choose_nccl(table, list, (choices & 2) != 0);
		choose_tocsin(
			table, (choices & 4) != 0 ? NULL : list,
			(choices & 1) != 0 ? "10.0.0.1" : NULL
		);
		must(netif_diff(table, table, no_change, NULL) == 0);
	}
	netif_table_destroy(table);
	return 0;
}
