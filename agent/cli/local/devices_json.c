// SPDX-License-Identifier: BSD-3-Clause
// Prints the answer of `tocsin devices` as JSON.
#include "local/devices.h"

#include <dataplane/gid.h>
#include <lib/escape.h>

#include <jansson.h>

#include <errno.h>
#include <string.h>

// Add a member to an object. jansson takes the new reference even if it fails. The object is then
// incomplete, and *failed is set.
static void json_put(json_t *object, const char *key, json_t *value, bool *failed) {
	if (json_object_set_new(object, key, value) != 0)
		*failed = true;
}

static void json_append(json_t *array, json_t *value, bool *failed) {
	if (json_array_append_new(array, value) != 0)
		*failed = true;
}

// Return text of the kernel or a driver as JSON; "" becomes null. Text that is not UTF-8 is
// escaped.
static json_t *string_json(const char *text) {
	json_t *string;
	char quoted[DEVICE_CHOICE_TEXT_BYTES + 64];

	if (text[0] == '\0')
		return json_null();
	string = json_string(text);
	if (string != NULL)
		return string;
	escape_quote(text, strlen(text), quoted, sizeof(quoted));
	return json_string(quoted);
}

static json_t *nonzero_json(uint32_t value) {
	return value == 0 ? json_null() : json_integer(value);
}

static void
add_judgement(json_t *object, const struct device_choice *choice, uint32_t n, bool *failed) {
	const struct device_judgement *judgement = &choice->judgements[n];
	char why[DEVICE_CHOICE_TEXT_BYTES];

	device_choice_say_one(choice, n, why);
	json_put(
		object, "verdict", json_string(device_eligibility_name(judgement->verdict)), failed
	);
	json_put(object, "class", json_string(topology_class_name(judgement->way.class)), failed);
	json_put(object, "pci_mbps", nonzero_json(judgement->way.pci_mbps), failed);
	json_put(object, "pci_assumed", json_boolean(judgement->way.assumed), failed);
	json_put(object, "bandwidth_mbps", nonzero_json(judgement->bandwidth_mbps), failed);
	json_put(object, "why", string_json(why), failed);
}

static json_t *device_json(const struct devices *devices, uint32_t n, bool *failed) {
	const struct device_choice *choice = devices->choice;
	const struct device_facts *device = &choice->facts[choice->judgements[n].device];
	const struct device_port *port = &device->port;
	int node = devices_node(devices, device);
	json_t *object = json_object(), *gid = json_null();
	bool known = port->number != 0;
	char address[GID_TEXT_MAX + 1];

	json_put(object, "name", string_json(device->name), failed);
	json_put(object, "kind", json_string(devices_kind(device)), failed);
	json_put(
		object, "transport", json_string(device_transport_name(device->transport)), failed
	);
	json_put(object, "port", nonzero_json(port->number), failed);
	json_put(
		object, "state",
		known ? json_string(device_port_state_name(port->state)) : json_null(), failed
	);
	json_put(
		object, "link", known ? json_string(device_link_name(port->link)) : json_null(),
		failed
	);
	json_put(object, "speed_mbps", nonzero_json(port->speed_mbps), failed);
	json_put(object, "mtu_bytes", nonzero_json(port->active_mtu), failed);
	json_put(object, "lid", nonzero_json(port->lid), failed);
	if (known && port->gid_index >= 0) {
		gid = json_object();
		json_put(gid, "index", json_integer(port->gid_index), failed);
		json_put(gid, "type", json_string(gid_type_name(port->gid_type)), failed);
		json_put(gid, "address", json_string(gid_format(&port->gid, address)), failed);
	}
	json_put(object, "gid", gid, failed);
	json_put(object, "netdev", string_json(device->netdev), failed);
	json_put(object, "pci", string_json(device->pci), failed);
	json_put(object, "numa_node", node < 0 ? json_null() : json_integer(node), failed);
	json_put(
		object, "responder", json_string(device_responder_name(device->responder)), failed
	);
	json_put(object, "usable", json_boolean(device->usable), failed);
	json_put(object, "reason", string_json(device->reason), failed);
	json_put(object, "chosen", json_boolean(n < choice->best_count), failed);
	if (devices->explain)
		add_judgement(object, choice, n, failed);
	return object;
}

int devices_print_json(const struct devices *devices, FILE *out) {
	const struct device_choice *choice = devices->choice;
	json_t *rails = json_array(), *waiting = json_array();
	json_t *root = json_object(), *list = json_array(), *chosen = json_array();
	const char *taken = devices_agent_choice(choice);
	char target[DEVICE_TARGET_TEXT_BYTES], why[DEVICE_CHOICE_TEXT_BYTES];
	bool failed = false;

	device_target_format(&choice->target, target);
	device_choice_say(choice, why);
	for (uint32_t n = 0; n < choice->count; n++)
		json_append(list, device_json(devices, n, &failed), &failed);
	for (uint32_t n = 0; n < choice->best_count; n++)
		json_append(
			chosen, string_json(choice->facts[choice->judgements[n].device].name),
			&failed
		);
	json_put(root, "for", string_json(target), &failed);
	json_put(root, "for_pci", string_json(choice->target_pci), &failed);
	json_put(root, "chosen", chosen, &failed);
	for (uint32_t n = 0; n < devices->rail_count; n++)
		json_append(rails, string_json(devices->rails[n].name), &failed);
	json_put(root, "rails", rails, &failed);
	for (uint32_t n = 0; n < devices->rail_count; n++) {
		if (devices->rails[n].waits)
			json_append(waiting, string_json(devices->rails[n].name), &failed);
	}
	json_put(root, "rails_waiting", waiting, &failed);
	json_put(root, "agents_take", taken == NULL ? json_null() : string_json(taken), &failed);
	json_put(root, "why", string_json(why), &failed);
	if (devices->explain) {
		json_t *steps = json_object();

		json_put(steps, "devices", json_integer(choice->count), &failed);
		json_put(steps, "eligible", json_integer(choice->eligible_count), &failed);
		json_put(steps, "nearest", json_integer(choice->nearest_count), &failed);
		json_put(steps, "best", json_integer(choice->best_count), &failed);
		json_put(root, "steps", steps, &failed);
	}
	json_put(root, "devices", list, &failed);
	if (!failed) {
		json_dumpf(root, out, JSON_INDENT(2));
		fputc('\n', out);
	}
	json_decref(root);
	return failed ? -ENOMEM : 0;
}
