// SPDX-License-Identifier: BSD-3-Clause
// Text for a device's transport, link and port state.
#include <dataplane/device.h>

const char *device_responder_name(enum device_responder responder) {
	switch (responder) {
	case DEVICE_RESPONDER_HARDWARE:
		return "hardware";
	case DEVICE_RESPONDER_KERNEL:
		return "kernel";
	case DEVICE_RESPONDER_IN_PROCESS:
		return "in-process";
	}
	return "unknown";
}

const char *device_link_name(enum device_link link) {
	switch (link) {
	case DEVICE_LINK_INFINIBAND:
		return "InfiniBand";
	case DEVICE_LINK_ETHERNET:
		return "Ethernet";
	}
	return "unknown";
}

const char *device_port_state_name(enum ibv_port_state state) {
	static const char *const names[] = {
		[IBV_PORT_NOP] = "in state NOP",  [IBV_PORT_DOWN] = "down",
		[IBV_PORT_INIT] = "initializing", [IBV_PORT_ARMED] = "armed",
		[IBV_PORT_ACTIVE] = "active",	  [IBV_PORT_ACTIVE_DEFER] = "deferred",
	};

	return state <= IBV_PORT_ACTIVE_DEFER ? names[state] : "in an unknown state";
}

const char *device_transport_name(enum ibv_transport_type transport) {
	switch (transport) {
	case IBV_TRANSPORT_IB:
		return "IB";
	case IBV_TRANSPORT_IWARP:
		return "iWARP";
	case IBV_TRANSPORT_USNIC:
	case IBV_TRANSPORT_USNIC_UDP:
		return "usNIC";
	case IBV_TRANSPORT_UNSPECIFIED:
		return "vendor";
	case IBV_TRANSPORT_UNKNOWN:
		break;
	}
	return "unknown";
}
