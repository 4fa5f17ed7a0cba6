// SPDX-License-Identifier: BSD-3-Clause
// Prints the answer of `tocsin devices` as JSON.
#include "json_put.h"
#include "local/devices.h"

#include <dataplane/gid.h>
#include <records/devices.h>

#include <jansson.h>

#include <errno.h>
#include <string.h>

static const char *text_or_null(const char *text) {
	return text[0] != '\0' ? text : NULL;
}

static uint64_t number_or_unknown(uint32_t value) {
	return value != 0 ? value : RECORD_UNKNOWN;
}

// Returns NULL if memory is short.
static json_t *device_json(const struct devices *devices, uint32_t n) {
	const struct device_choice *choice = devices->choice;
	const struct device_judgement *judgement = &choice->judgements[n];
	const struct device_facts *device = &choice->facts[judgement->device];
	const struct device_port *port = &device->port;
	bool known = port->number != 0;
	int node = devices_node(devices, device);
	char why[DEVICE_CHOICE_TEXT_BYTES], address[GID_TEXT_MAX + 1];
	struct machine_device_row row = {
		.name = text_or_null(device->name),
		.kind = devices_kind(device),
		.transport = device_transport_name(device->transport),
		.port = number_or_unknown(port->number),
		.state = known ? device_port_state_name(port->state) : NULL,
		.link = known ? device_link_name(port->link) : NULL,
		.speed_mbps = number_or_unknown(port->speed_mbps),
		.mtu_bytes = number_or_unknown(port->active_mtu),
		.lid = number_or_unknown(port->lid),
		.gid = json_null(),
		.netdev = text_or_null(device->netdev),
		.pci = text_or_null(device->pci),
		.numa_node = node >= 0 ? (uint64_t)node : RECORD_UNKNOWN,
		.responder = device_responder_name(device->responder),
		.usable = device->usable,
		.reason = text_or_null(device->reason),
		.chosen = n < choice->best_count,
		.verdict = device_eligibility_name(judgement->verdict),
		.class = topology_class_name(judgement->way.class),
		.pci_mbps = number_or_unknown(judgement->way.pci_mbps),
		.pci_assumed = judgement->way.assumed,
		.bandwidth_mbps = number_or_unknown(judgement->bandwidth_mbps),
		.why = why,
	};
	json_t *object;

	if (known && port->gid_index >= 0)
		row.gid = json_pack(
			"{s:i,s:s,s:s}", "index", port->gid_index, "type",
			gid_type_name(port->gid_type), "address", gid_format(&port->gid, address)
		);
	object = record_to_json(&machine_device_record, &row);
	if (!devices->explain)
		return object;
	device_choice_say_one(choice, n, why);
	if (json_object_update_new(object, record_to_json(&machine_choice_record, &row)) == 0)
		return object;
	json_decref(object);
	return NULL;
}

int devices_print_json(const struct devices *devices, FILE *out) {
	const struct device_choice *choice = devices->choice;
	json_t *rails = json_array(), *waiting = json_array();
	json_t *list = json_array(), *chosen = json_array(), *steps = NULL, *root;
	const char *taken = devices_agent_choice(choice);
	char target[DEVICE_TARGET_TEXT_BYTES], why[DEVICE_CHOICE_TEXT_BYTES];
	bool failed = false;

	device_target_format(&choice->target, target);
	device_choice_say(choice, why);
	for (uint32_t n = 0; n < choice->count; n++)
		failed |= json_array_append_new(list, device_json(devices, n)) != 0;
	for (uint32_t n = 0; n < choice->best_count; n++)
		failed |= json_array_append_new(
				  chosen,
				  string_json(choice->facts[choice->judgements[n].device].name)
			  ) != 0;
	for (uint32_t n = 0; n < devices->rail_count; n++) {
		const struct device_rail *rail = &devices->rails[n];

		failed |= json_array_append_new(rails, string_json(rail->name)) != 0;
		if (rail->waits)
			failed |= json_array_append_new(waiting, string_json(rail->name)) != 0;
	}
	if (devices->explain)
		steps = json_pack(
			"{s:i,s:i,s:i,s:i}", "devices", (int)choice->count, "eligible",
			(int)choice->eligible_count, "nearest", (int)choice->nearest_count, "best",
			(int)choice->best_count
		);
	root = json_pack(
		"{s:o,s:o,s:o,s:o,s:o,s:o,s:o,s:o*,s:o}", "for", string_json(target), "for_pci",
		choice->target_pci[0] != '\0' ? string_json(choice->target_pci) : json_null(),
		"chosen", chosen, "rails", rails, "rails_waiting", waiting, "agents_take",
		string_json(taken), "why", why[0] != '\0' ? string_json(why) : json_null(), "steps",
		steps, "devices", list
	);
	failed |= root == NULL || (devices->explain && steps == NULL);
	if (!failed) {
		json_dumpf(root, out, JSON_INDENT(2));
		fputc('\n', out);
	}
	json_decref(root);
	return failed ? -ENOMEM : 0;
}
