// SPDX-License-Identifier: BSD-3-Clause
// Software device of this agent, used on request or if there is no other device.
#include "agent.h"

#include <dataplane/soft.h>
#include <lib/log.h>
#include <lib/must.h>
#include <lib/parse.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

const struct device_section *soft_device_section(const struct agent_settings *settings) {
	static const struct device_section none = {.wire = "", .address = "", .faults = ""};
	const struct device_section *section = device_section_find(settings, SOFT_DEVICE_NAME);

	return section != NULL ? section : &none;
}

// Return the address of the software device. By default it is the overlay's address, so that peers
// know it. A wildcard address cannot be a source address and is rejected.
static int
soft_find_address(struct agent *agent, struct parse_error *error, struct sock_addr *ret_address) {
	const char *given = soft_device_section(agent->settings)->address;
	const char *advertised = agent->settings->overlay.advertise;
	struct listen_choice choice;
	int err;

	if (given[0] != '\0') {
		must(soft_address_parse(given, strlen(given), NULL, ret_address) == 0);
		return 0;
	}
	err = listen_address_choose(agent, &choice);
	if (err != 0) {
		snprintf(
			error->text, sizeof(error->text), "%.*s", (int)sizeof(error->text) - 1,
			agent->detail
		);
		return err;
	}
	if (sock_addr_is_any(&choice.address) && advertised[0] != '\0')
		must(sock_addr_parse(
			     advertised, strlen(advertised), OVERLAY_PORT, NULL, &choice.address
		     ) == 0);
	if (sock_addr_is_any(&choice.address)) {
		snprintf(
			error->text, sizeof(error->text),
			"[overlay] listen is not a single address; set [device %s] address",
			SOFT_DEVICE_NAME
		);
		return -EADDRNOTAVAIL;
	}
	*ret_address = choice.address;
	return 0;
}

bool soft_device_uses_overlay_address(const struct agent_settings *settings) {
	return soft_device_section(settings)->address[0] == '\0';
}

static enum soft_wire_kind soft_read_wire(
	const struct agent_settings *settings, char ret_args[static SOFT_WIRE_ARGS_MAX + 1]
) {
	const char *wire = soft_device_section(settings)->wire;
	enum soft_wire_kind kind = SOFT_WIRE_UDP;

	if (wire[0] != '\0')
		must(soft_wire_parse(wire, strlen(wire), NULL, &kind, ret_args) == 0);
	return kind;
}

static struct soft_faults soft_read_faults(const struct agent_settings *settings) {
	const char *text = soft_device_section(settings)->faults;
	struct soft_faults faults = {0};

	if (text[0] != '\0')
		must(soft_faults_parse(text, strlen(text), NULL, &faults) == 0);
	return faults;
}

bool soft_device_needs_dpdk(const struct agent_settings *settings) {
	char args[SOFT_WIRE_ARGS_MAX + 1];

	return soft_read_wire(settings, args) == SOFT_WIRE_DPDK;
}

int soft_device_config(
	struct agent *agent, struct parse_error *ret_error, struct soft_config *ret_config
) {
	struct soft_config config = {.name = SOFT_DEVICE_NAME};
	int err = soft_find_address(agent, ret_error, &config.address);

	if (err != 0)
		return err;
	config.wire = soft_read_wire(agent->settings, config.wire_args);
	config.faults = soft_read_faults(agent->settings);
	config.address.port = SOFT_UDP_PORT;
	*ret_config = config;
	return 0;
}

void soft_device_reload(struct agent *agent) {
	struct soft_faults faults = soft_read_faults(agent->settings);
	int err = soft_device_set_faults(SOFT_DEVICE_NAME, &faults);

	// The faults have no effect without the device.
	if (err != 0 && err != -ENODEV)
		log_event(LOG_LEVEL_ERROR, "faults_not_reloaded", log_errno("error", err));
}

int soft_device_make(struct agent *agent, struct parse_error *ret_error) {
	struct soft_config config;
	int err = soft_device_config(agent, ret_error, &config);

	if (err != 0)
		return err;
	err = soft_device_add(&config);
	if (err != 0)
		snprintf(
			ret_error->text, sizeof(ret_error->text), "it cannot be created: %s",
			strerrordesc_np(-err)
		);
	return err;
}

void soft_device_facts(struct device_facts *ret_facts) {
	*ret_facts = (struct device_facts){
		.name = SOFT_DEVICE_NAME,
		.numa_node = -1,
		.transport = IBV_TRANSPORT_IB,
		.responder = DEVICE_RESPONDER_IN_PROCESS,
		.usable = true,
		.port = {.number = 1, .link = DEVICE_LINK_ETHERNET, .gid_index = -1},
	};
}
