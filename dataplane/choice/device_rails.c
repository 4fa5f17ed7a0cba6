// SPDX-License-Identifier: BSD-3-Clause
// Builds the list of rails from all ports of all devices.
#include <dataplane/device_rails.h>
#include <lib/scoped.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GATHERED_MAX 128 // limit of ports examined

struct rail_collection {
	const struct device_facts *facts;
	uint32_t count;
	struct device_rail rails[GATHERED_MAX];
	uint32_t rail_count, left_out;
};

static void rail_add(
	struct rail_collection *rail_collection, uint32_t device, const struct device_facts *as_port
) {
	struct device_rail *rail;

	if ((!as_port->usable && !as_port->awaits_port) ||
	    as_port->responder == DEVICE_RESPONDER_IN_PROCESS)
		return;
	if (rail_collection->rail_count == GATHERED_MAX) {
		rail_collection->left_out++;
		return;
	}
	rail = &rail_collection->rails[rail_collection->rail_count++];
	*rail = (struct device_rail){
		.device = device,
		.port = as_port->port.number,
		.link = as_port->port.link,
		.waits = !as_port->usable,
	};
}

// List all devices as seen by one port number, which not all devices have.
static int add_port_rails(
	const struct verbs_calls *calls, struct rail_collection *rail_collection, uint8_t port
) {
	struct device_settings settings = device_settings_default;
	scoped_mem struct device_facts *seen = NULL;
	uint32_t count;
	int err;

	settings.port = port;
	err = device_list(calls, &settings, &seen, &count);
	for (uint32_t n = 0; err == 0 && n < count; n++) {
		for (uint32_t k = 0; k < rail_collection->count; k++)
			if (rail_collection->facts[k].port_count > 1 &&
			    strcmp(rail_collection->facts[k].name, seen[n].name) == 0)
				rail_add(rail_collection, k, &seen[n]);
	}
	return err;
}

static int compare_rail_names(const void *a, const void *b, void *ctx) {
	const struct device_facts *facts = ctx;
	const struct device_rail *left = a, *right = b;
	int order = strverscmp(facts[left->device].name, facts[right->device].name);

	return order != 0 ? order : left->port - right->port;
}

// Usable rails come before waiting ones.
static int compare_rail_use(const void *a, const void *b, void *ctx) {
	const struct device_rail *left = a, *right = b;

	return left->waits != right->waits ? left->waits - right->waits
					   : compare_rail_names(a, b, ctx);
}

// Name the rails. The first port of a device has the device's plain name, so a single port keeps
// its usual name.
static void name_rails(struct rail_collection *rail_collection) {
	uint32_t kept = 0;

	for (uint32_t n = 0; n < rail_collection->rail_count; n++) {
		struct device_rail rail = rail_collection->rails[n];
		const char *device = rail_collection->facts[rail.device].name;
		bool first = kept == 0 || rail_collection->rails[kept - 1].device != rail.device;
		char suffix[8] = "";

		if (!first)
			snprintf(suffix, sizeof(suffix), ":%u", rail.port);
		if (strlen(device) + strlen(suffix) > DEVICE_NAME_MAX) {
			rail_collection->left_out++;
			continue;
		}
		memcpy(rail.name, device, strlen(device) + 1);
		memcpy(rail.name + strlen(device), suffix, strlen(suffix) + 1);
		rail_collection->rails[kept++] = rail;
	}
	rail_collection->rail_count = kept;
}

int device_rails(
	const struct verbs_calls *calls,
	const struct device_facts *facts,
	uint32_t count,
	struct device_rail ret_rails[static DEVICE_RAILS_MAX],
	uint32_t *ret_count,
	uint32_t *ret_left_out
) {
	struct rail_collection rail_collection = {.facts = facts, .count = count};
	struct device_rail *rails = rail_collection.rails;
	uint8_t ports = 1;
	int err = 0;

	for (uint32_t n = 0; n < count; n++) {
		if (facts[n].port_count <= 1)
			rail_add(&rail_collection, n, &facts[n]);
		else if (facts[n].port_count > ports)
			ports = facts[n].port_count;
	}
	for (uint8_t port = 1; ports > 1 && port <= ports && port < UINT8_MAX && err == 0; port++)
		err = add_port_rails(calls, &rail_collection, port);
	if (err != 0)
		return err;

	// Drop surplus rails, the waiting ones first.
	qsort_r(rails, rail_collection.rail_count, sizeof(rails[0]), compare_rail_use,
		(void *)facts);
	if (rail_collection.rail_count > DEVICE_RAILS_MAX) {
		rail_collection.left_out += rail_collection.rail_count - DEVICE_RAILS_MAX;
		rail_collection.rail_count = DEVICE_RAILS_MAX;
	}
	qsort_r(rails, rail_collection.rail_count, sizeof(rails[0]), compare_rail_names,
		(void *)facts);

	// A device with only one rail gets port 0, that is, whichever port is active.
	for (uint32_t n = 0; n < rail_collection.rail_count; n++) {
		uint32_t same_device = 0;

		for (uint32_t k = 0; k < rail_collection.rail_count; k++)
			same_device += rails[k].device == rails[n].device;
		if (same_device == 1)
			rails[n].port = 0;
	}
	name_rails(&rail_collection);
	memcpy(ret_rails, rails, rail_collection.rail_count * sizeof(ret_rails[0]));
	*ret_count = rail_collection.rail_count;
	*ret_left_out = rail_collection.left_out;
	return 0;
}
