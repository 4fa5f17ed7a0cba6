// SPDX-License-Identifier: BSD-3-Clause
// Builds the list of rails from all ports of all devices.
#include <dataplane/device_rails.h>
#include <lib/scoped.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GATHERED_MAX 128 // limit of ports examined

struct gathering {
	const struct device_facts *facts;
	uint32_t count;
	struct device_rail rails[GATHERED_MAX];
	uint32_t rail_count, left_out;
};

static bool may_be_rail(const struct device_facts *facts) {
	return (facts->usable || facts->awaits_port) &&
	       facts->responder != DEVICE_RESPONDER_IN_PROCESS;
}

static void
rail_add(struct gathering *gathering, uint32_t device, const struct device_facts *as_port) {
	struct device_rail *rail;

	if (!may_be_rail(as_port))
		return;
	if (gathering->rail_count == GATHERED_MAX) {
		gathering->left_out++;
		return;
	}
	rail = &gathering->rails[gathering->rail_count++];
	*rail = (struct device_rail){
		.device = device,
		.port = as_port->port.number,
		.link = as_port->port.link,
		.waits = !as_port->usable,
	};
}

// List all devices as seen by one port number, which not all devices have.
static int add_port(const struct verbs_calls *calls, struct gathering *gathering, uint8_t port) {
	struct device_settings settings = device_settings_default;
	scoped_mem struct device_facts *seen = NULL;
	uint32_t count;
	int err;

	settings.port = port;
	err = device_list(calls, &settings, &seen, &count);
	for (uint32_t n = 0; err == 0 && n < count; n++) {
		for (uint32_t k = 0; k < gathering->count; k++)
			if (gathering->facts[k].port_count > 1 &&
			    strcmp(gathering->facts[k].name, seen[n].name) == 0)
				rail_add(gathering, k, &seen[n]);
	}
	return err;
}

static int by_name(const void *a, const void *b, void *ctx) {
	const struct device_facts *facts = ctx;
	const struct device_rail *left = a, *right = b;
	int order = strverscmp(facts[left->device].name, facts[right->device].name);

	return order != 0 ? order : left->port - right->port;
}

// Usable rails come before waiting ones.
static int by_use(const void *a, const void *b, void *ctx) {
	const struct device_rail *left = a, *right = b;

	return left->waits != right->waits ? left->waits - right->waits : by_name(a, b, ctx);
}

static void keep_as_many_as_there_may_be(struct gathering *gathering) {
	void *facts = (void *)gathering->facts;

	qsort_r(gathering->rails, gathering->rail_count, sizeof(gathering->rails[0]), by_use,
		facts);
	if (gathering->rail_count > DEVICE_RAILS_MAX) {
		gathering->left_out += gathering->rail_count - DEVICE_RAILS_MAX;
		gathering->rail_count = DEVICE_RAILS_MAX;
	}
	qsort_r(gathering->rails, gathering->rail_count, sizeof(gathering->rails[0]), by_name,
		facts);
}

// Name the rails. The first port of a device has the device's plain name, so a single port keeps
// its usual name.
static void name_rails(struct gathering *gathering) {
	uint32_t kept = 0;

	for (uint32_t n = 0; n < gathering->rail_count; n++) {
		struct device_rail rail = gathering->rails[n];
		const char *device = gathering->facts[rail.device].name;
		bool first = kept == 0 || gathering->rails[kept - 1].device != rail.device;
		char suffix[8] = "";

		if (!first)
			snprintf(suffix, sizeof(suffix), ":%u", rail.port);
		if (strlen(device) + strlen(suffix) > DEVICE_NAME_MAX) {
			gathering->left_out++;
			continue;
		}
		memcpy(rail.name, device, strlen(device) + 1);
		memcpy(rail.name + strlen(device), suffix, strlen(suffix) + 1);
		gathering->rails[kept++] = rail;
	}
	gathering->rail_count = kept;
}

// A device with only one rail gets port 0, that is, whichever port is active.
static void free_lone_ports(struct gathering *gathering) {
	for (uint32_t n = 0; n < gathering->rail_count; n++) {
		uint32_t ports = 0;

		for (uint32_t k = 0; k < gathering->rail_count; k++)
			ports += gathering->rails[k].device == gathering->rails[n].device;
		if (ports == 1)
			gathering->rails[n].port = 0;
	}
}

int device_rails(
	const struct verbs_calls *calls,
	const struct device_facts *facts,
	uint32_t count,
	struct device_rail ret_rails[static DEVICE_RAILS_MAX],
	uint32_t *ret_count,
	uint32_t *ret_left_out
) {
	struct gathering gathering = {.facts = facts, .count = count};
	uint8_t ports = 1;
	int err = 0;

	for (uint32_t n = 0; n < count; n++) {
		if (facts[n].port_count <= 1)
			rail_add(&gathering, n, &facts[n]);
		else if (facts[n].port_count > ports)
			ports = facts[n].port_count;
	}
	for (uint8_t port = 1; ports > 1 && port <= ports && port < UINT8_MAX && err == 0; port++)
		err = add_port(calls, &gathering, port);
	if (err != 0)
		return err;
	keep_as_many_as_there_may_be(&gathering);
	free_lone_ports(&gathering);
	name_rails(&gathering);
	memcpy(ret_rails, gathering.rails, gathering.rail_count * sizeof(ret_rails[0]));
	*ret_count = gathering.rail_count;
	*ret_left_out = gathering.left_out;
	return 0;
}
