// SPDX-License-Identifier: BSD-3-Clause
#include "lib/netif/fixture.h"

#include <lib/netif/source.h>
#include <support/cmocka.h>

#include <errno.h>
#include <linux/if_addr.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct {
	const char *word;
	uint32_t flag;
} address_flags[] = {
	{"+tentative", IFA_F_TENTATIVE},
	{"+dadfailed", IFA_F_DADFAILED},
	{"+deprecated", IFA_F_DEPRECATED},
	{"+secondary", IFA_F_SECONDARY},
	{"+dynamic", 0}, // a dynamic address lacks IFA_F_PERMANENT
};

struct sock_addr fixture_address(const char *text) {
	struct sock_addr address;

	assert_int_equal(sock_addr_parse_host(text, strlen(text), NULL, &address), 0);
	return address;
}

static void add_address(struct netif_table *table, uint32_t link_index, const char *text) {
	struct netif_address address = {.flags = IFA_F_PERMANENT};
	size_t length = strcspn(text, "/");
	char ip[64];

	snprintf(ip, sizeof(ip), "%.*s", (int)length, text);
	address.address = fixture_address(ip);
	if (address.address.family == SOCK_ADDR_V6 && sock_addr_is_link_local(&address.address))
		address.address.scope_id = link_index;
	address.prefix_bits = (uint8_t)strtoul(text + length + 1, NULL, 10);
	for (size_t n = 0; n < sizeof(address_flags) / sizeof(address_flags[0]); n++) {
		if (strstr(text, address_flags[n].word) != NULL)
			address.flags |= address_flags[n].flag;
	}
	if (strstr(text, "+dynamic") != NULL)
		address.flags &= ~(uint32_t)IFA_F_PERMANENT;
	if (strstr(text, "@") != NULL)
		snprintf(address.label, sizeof(address.label), "%s", strstr(text, "@") + 1);
	assert_int_equal(netif_table_add_address(table, link_index, &address), 0);
}

static void
add_addresses(struct netif_table *table, const struct fixture_link *links, bool is_ipv6) {
	for (uint32_t n = 0; links[n].name != NULL; n++) {
		uint32_t index = links[n].index != 0 ? links[n].index : n + 1;

		for (size_t m = 0; m < FIXTURE_ADDRESSES_MAX && links[n].addresses[m] != NULL;
		     m++) {
			const char *text = links[n].addresses[m];
			size_t length = strcspn(text, "/");

			if ((memchr(text, ':', length) != NULL) == is_ipv6)
				add_address(table, index, text);
		}
	}
}

struct netif_table *fixture_table(const struct fixture_link *links) {
	struct netif_table *table;

	assert_int_equal(netif_table_create(&table), 0);
	for (uint32_t n = 0; links[n].name != NULL; n++) {
		struct netif_link link = {
			.index = links[n].index != 0 ? links[n].index : n + 1,
			.flags = links[n].flags != 0 ? links[n].flags : FIXTURE_UP,
			.class = links[n].class,
			.master_index = links[n].master_index,
			.mtu_bytes = links[n].mtu_bytes != 0 ? links[n].mtu_bytes : 1500,
		};

		link.has_carrier = (link.flags & IFF_RUNNING) != 0;
		link.sysfs.speed_mbps = links[n].speed_mbps;
		snprintf(link.name, sizeof(link.name), "%s", links[n].name);
		assert_int_equal(netif_table_add_link(table, &link), 0);
	}
	add_addresses(table, links, false);
	add_addresses(table, links, true);
	return table;
}

struct netif_table *fixture_recording(const char *name, const char *const *peers) {
	struct sock_addr addresses[8];
	struct netif_query query = {.peers = addresses, .want_defaults = true};
	struct netif_table *table;
	char path[512];

	for (; peers != NULL && peers[query.peer_count] != NULL; query.peer_count++)
		addresses[query.peer_count] = fixture_address(peers[query.peer_count]);
	snprintf(path, sizeof(path), "%s/%s", RECORDINGS, name);
	query.recording = path;
	assert_int_equal(netif_gather(&query, &table), 0);
	return table;
}

void fixture_add_route(
	struct netif_table *table, const char *peer, uint32_t link_index, const char *source
) {
	struct netif_route route = {.link_index = link_index};

	route.peer = fixture_address(peer);
	route.family = route.peer.family;
	if (source != NULL)
		route.source = fixture_address(source);
	if (link_index == 0)
		route.error = -ENETUNREACH;
	assert_int_equal(netif_table_add_route(table, &route), 0);
}

void fixture_add_default(
	struct netif_table *table, int version, uint32_t link_index, uint32_t metric
) {
	struct netif_route route = {.link_index = link_index, .metric = metric};

	route.family = (uint8_t)version;
	assert_int_equal(netif_table_add_default(table, &route), 0);
}

void fixture_chosen(
	const struct netif_table *table,
	const struct netif_choice *choice,
	size_t count,
	char text[static FIXTURE_TEXT_BYTES]
) {
	char candidate[NETIF_CANDIDATE_BYTES];
	size_t used = 0;

	text[0] = '\0';
	for (size_t n = 0; n < choice->chosen_count && n < count; n++) {
		netif_candidate_print(table, &choice->judgements[choice->chosen[n]], candidate);
		used += (size_t)snprintf(
			text + used, FIXTURE_TEXT_BYTES - used, "%s%s", n > 0 ? ", " : "", candidate
		);
		assert_true(used < FIXTURE_TEXT_BYTES);
	}
}

const struct netif_judgement *fixture_judgement(
	const struct netif_table *table, const struct netif_choice *choice, const char *candidate
) {
	char text[NETIF_CANDIDATE_BYTES];

	for (size_t n = 0; n < choice->count; n++) {
		netif_candidate_print(table, &choice->judgements[n], text);
		if (strcmp(text, candidate) == 0)
			return &choice->judgements[n];
	}
	fail_msg("no candidate %s", candidate);
	return NULL;
}

void fixture_policy(
	const char *ifname, const char *family, const char *peer, struct netif_policy *policy
) {
	struct netif_tocsin_settings settings = {
		{ifname, "TOCSIN_SOCKET_IFNAME"},
		{family, "TOCSIN_SOCKET_FAMILY"},
		{peer, "--peer"}};
	struct netif_error error = {""};

	if (netif_policy_parse(&settings, policy, &error) != 0)
		fail_msg("%s", error.text);
}
