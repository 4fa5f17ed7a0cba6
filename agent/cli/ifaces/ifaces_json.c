// SPDX-License-Identifier: BSD-3-Clause
// Prints the answer of `tocsin ifaces` as JSON.
#include "ifaces/ifaces.h"
#include "json_put.h"

#include <jansson.h>

#include <errno.h>
#include <linux/if_addr.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>

static json_t *address_json(const struct sock_addr *address) {
	struct sock_addr bare = sock_addr_ip_only(address);
	char text[SOCK_ADDR_TEXT_BYTES];

	sock_addr_format_host(&bare, text);
	return json_string(text);
}

static json_t *candidate_json(
	const struct netif_table *table, const struct netif_judgement *judgement, bool *failed
) {
	const struct netif_link *link = &table->links[judgement->link];
	const struct netif_address *address;
	const char *alias = ifaces_alias(table, judgement);
	json_t *object = json_object();
	char name[NETIF_NAME_TEXT_BYTES];

	netif_name_print(link->name, name);
	json_put(object, "interface", json_string(name), failed);
	json_put(object, "index", json_integer(link->index), failed);
	json_put(object, "class", json_string(netif_class_name(link->class)), failed);
	json_put(object, "mtu_bytes", json_integer(link->mtu_bytes), failed);
	json_put(
		object, "speed_mbps",
		link->sysfs.speed_mbps == 0 ? json_null() : json_integer(link->sysfs.speed_mbps),
		failed
	);
	if (judgement->address < 0)
		return object;
	address = &table->addresses[judgement->address];
	if (alias != NULL) {
		netif_name_print(alias, name);
		json_put(object, "label", json_string(name), failed);
	}
	json_put(
		object, "family",
		json_string(address->address.family == SOCK_ADDR_V4 ? "ipv4" : "ipv6"), failed
	);
	json_put(object, "address", address_json(&address->address), failed);
	json_put(object, "prefix_bits", json_integer(address->prefix_bits), failed);
	return object;
}

static void add_facts(
	json_t *object,
	const struct netif_table *table,
	const struct netif_judgement *judgement,
	bool *failed
) {
	const struct netif_link *link = &table->links[judgement->link];
	const struct netif_link *master = NULL;
	char name[NETIF_NAME_TEXT_BYTES];
	uint32_t flags = 0;

	if (link->master_index != 0)
		master = netif_table_link_by_index(table, link->master_index);
	if (judgement->address >= 0)
		flags = table->addresses[judgement->address].flags;
	if (master != NULL)
		netif_name_print(master->name, name);
	json_put(object, "up", json_boolean((link->flags & IFF_UP) != 0), failed);
	json_put(object, "running", json_boolean((link->flags & IFF_RUNNING) != 0), failed);
	// The carrier of an interface that is down is unknown.
	json_put(
		object, "carrier",
		(link->flags & IFF_UP) == 0 ? json_null() : json_boolean(link->has_carrier), failed
	);
	json_put(object, "port_of", master == NULL ? json_null() : json_string(name), failed);
	json_put(object, "sysfs", json_boolean(link->sysfs.present), failed);
	json_put(object, "tentative", json_boolean((flags & IFA_F_TENTATIVE) != 0), failed);
	json_put(object, "duplicate", json_boolean((flags & IFA_F_DADFAILED) != 0), failed);
	json_put(object, "deprecated", json_boolean((flags & IFA_F_DEPRECATED) != 0), failed);
}

static json_t *judgement_to_json(
	const struct ifaces *ifaces,
	const struct netif_table *table,
	const struct netif_choice *choice,
	size_t position,
	bool *failed
) {
	const struct netif_judgement *judgement = &choice->judgements[position];
	const struct netif_score *score = &judgement->score;
	json_t *object = candidate_json(table, judgement, failed);
	bool taken = judgement->reason == NETIF_TAKEN;
	enum ifaces_verdict verdict = ifaces_verdict(ifaces, choice, position);

	add_facts(object, table, judgement, failed);
	json_put(object, "verdict", json_string(ifaces_verdict_word(verdict)), failed);
	json_put(object, "reason", json_string(ifaces_reason(ifaces, choice, position)), failed);
	if (taken || judgement->item >= 0)
		json_put(object, "rule", json_string(ifaces_rule(ifaces, judgement)), failed);
	if (taken && !ifaces->is_nccl) {
		json_t *parts = json_object();

		json_put(parts, "selector", json_integer(score->selector), failed);
		json_put(parts, "route", json_integer(score->route), failed);
		json_put(parts, "subnet", json_integer(score->subnet), failed);
		json_put(parts, "reach", json_integer(score->reach), failed);
		json_put(parts, "class", json_integer(score->class), failed);
		json_put(parts, "speed", json_integer(score->speed), failed);
		json_put(parts, "mtu", json_integer(score->mtu), failed);
		json_put(parts, "preference", json_integer(score->preference), failed);
		json_put(parts, "value", json_integer((json_int_t)score->value), failed);
		json_put(object, "score", parts, failed);
	}
	if (verdict == IFACES_CHOSEN && !ifaces->is_nccl)
		json_put(
			object, "decided_by", json_string(ifaces_deciding_part(ifaces, choice)),
			failed
		);
	return object;
}

static json_t *settings_json(const struct ifaces *ifaces, bool *failed) {
	struct ifaces_setting settings[IFACES_SETTINGS];
	json_t *array = json_array();

	ifaces_settings(ifaces, settings);
	for (size_t n = 0; n < IFACES_SETTINGS; n++) {
		json_t *object = json_object();

		json_put(object, "name", json_string(settings[n].name), failed);
		json_put(object, "value", string_json(settings[n].value), failed);
		json_put(object, "source", json_string(settings[n].source), failed);
		json_append(array, object, failed);
	}
	return array;
}

static json_t *routes_json(const struct netif_table *table, bool *failed) {
	json_t *array = json_array();

	for (size_t n = 0; n < table->route_count; n++) {
		const struct netif_route *route = &table->routes[n];
		json_t *object = json_object();

		json_put(object, "peer", address_json(&route->peer), failed);
		json_put(object, "index", json_integer(route->link_index), failed);
		json_put(
			object, "source",
			route->source.family == SOCK_ADDR_NONE ? json_null()
							       : address_json(&route->source),
			failed
		);
		json_put(
			object, "error",
			route->error == 0 ? json_null()
					  : json_string(strerrorname_np(-route->error)),
			failed
		);
		json_append(array, object, failed);
	}
	return array;
}

int ifaces_print_json(
	const struct ifaces *ifaces,
	const struct netif_table *table,
	const struct netif_choice *choice,
	bool explain
) {
	json_t *root = json_object(), *notes = json_array(), *chosen = json_array();
	json_t *candidates;
	bool failed = root == NULL;

	json_put(root, "rules", json_string(ifaces->is_nccl ? "nccl" : "tocsin"), &failed);
	for (size_t n = 0; n < ifaces_answer_count(ifaces, choice); n++) {
		json_t *object =
			candidate_json(table, &choice->judgements[choice->chosen[n]], &failed);

		json_put(
			object, "port",
			choice->port == 0 ? json_null() : json_integer(choice->port), &failed
		);
		json_append(chosen, object, &failed);
	}
	json_put(root, "chosen", chosen, &failed);
	for (size_t n = 0; n < choice->note_count; n++)
		json_append(notes, string_json(choice->notes[n]), &failed);
	json_put(root, "notes", notes, &failed);
	if (explain) {
		json_put(root, "settings", settings_json(ifaces, &failed), &failed);
		json_put(root, "routes", routes_json(table, &failed), &failed);
		candidates = json_array();
		for (size_t n = 0; n < choice->count; n++)
			json_append(
				candidates, judgement_to_json(ifaces, table, choice, n, &failed),
				&failed
			);
		json_put(root, "candidates", candidates, &failed);
	}
	if (!failed) {
		json_dumpf(root, stdout, JSON_INDENT(2));
		putchar('\n');
	}
	json_decref(root);
	return failed ? -ENOMEM : 0;
}
