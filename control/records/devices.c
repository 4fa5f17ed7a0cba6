// SPDX-License-Identifier: BSD-3-Clause
// The fields of DEVICES and of `tocsin devices`.
#include <records/devices.h>

#define MEMBER(...) RECORD_MEMBER(struct agent_device_row, __VA_ARGS__)

static const struct record_field agent_fields[] = {
	MEMBER(name, UNIT_NONE, "name of the rail"),
	MEMBER(state, UNIT_NONE, "waiting, opening, up, down, closing or stuck"),
	MEMBER(since, UNIT_NONE, "when the state began, UTC"),
	MEMBER(reason, UNIT_NONE, "reason for the state, or \"\""),
	MEMBER(worker, UNIT_NONE, "number of the worker that polls it"),
	MEMBER(open, UNIT_NONE, "whether it is open; else the members after gpu are missing"),
	MEMBER(opened, UNIT_COUNT, "times that it was opened"),
	MEMBER(driver_events, UNIT_COUNT, "events that its driver reported"),
	MEMBER(gpu, UNIT_NONE, "GPU memory that peers read: ordinal, state, pci, reason; or null"),
};

static const struct record_field agent_port_fields[] = {
	MEMBER(responder, UNIT_NONE, "what answers reads: hardware, kernel, in-process"),
	MEMBER(port, UNIT_NONE, "number of its port"),
	MEMBER(speed_mbps, UNIT_COUNT, "speed of the port in megabits per second"),
	MEMBER(mtu_bytes, UNIT_BYTES, "MTU of pairs"),
	MEMBER(gid_index, UNIT_NONE, "index of its GID; -1 for none"),
	MEMBER(pair_max, UNIT_COUNT, "pairs that it may have"),
	MEMBER(depth, UNIT_COUNT, "operations of a pair at a time"),
	MEMBER(pairs, UNIT_COUNT, "pairs that it has"),
	MEMBER(submitted, UNIT_COUNT, "operations submitted"),
	MEMBER(unsuccessful, UNIT_COUNT, "operations that failed, timed out or were flushed"),
	MEMBER(completion_events, UNIT_NONE, "whether a sleeping worker wakes at a completion"),
};

const struct record agent_device_record = RECORD("devices", agent_fields);
const struct record agent_port_record = RECORD("devices", agent_port_fields);

#undef MEMBER
#define MEMBER(...) RECORD_MEMBER(struct machine_device_row, __VA_ARGS__)

static const struct record_field machine_fields[] = {
	MEMBER(name, UNIT_NONE, "name of the device"),
	MEMBER(kind, UNIT_NONE, "RoCE, InfiniBand or the name of its transport"),
	MEMBER(transport, UNIT_NONE, "transport as its driver names it"),
	MEMBER(port, UNIT_NONE, "number of the port that would be used, or null"),
	MEMBER(state, UNIT_NONE, "state of that port"),
	MEMBER(link, UNIT_NONE, "link layer of the port"),
	MEMBER(speed_mbps, UNIT_COUNT, "speed of the port in megabits per second"),
	MEMBER(mtu_bytes, UNIT_BYTES, "MTU of the port"),
	MEMBER(lid, UNIT_NONE, "LID, or null"),
	MEMBER(gid, UNIT_NONE, "index, type and address of the GID that pairs use, or null"),
	MEMBER(netdev, UNIT_NONE, "network interface of the port, or null"),
	MEMBER(pci, UNIT_NONE, "PCI address, or null"),
	MEMBER(numa_node, UNIT_NONE, "NUMA node, or null"),
	MEMBER(responder, UNIT_NONE, "what answers reads: hardware, kernel, in-process or unknown"),
	MEMBER(usable, UNIT_NONE, "whether it can have pairs"),
	MEMBER(reason, UNIT_NONE, "why it is not usable, or null"),
	MEMBER(chosen, UNIT_NONE, "whether it is one of the best for the target"),
};

static const struct record_field machine_choice_fields[] = {
	MEMBER(verdict, UNIT_NONE, "best, or why it is not: slower, farther and so on"),
	MEMBER(class, UNIT_NONE, "distance to the target: switch, bridges, host, far or unknown"),
	MEMBER(pci_mbps, UNIT_COUNT, "rate of the narrowest PCI link on the way, or null"),
	MEMBER(pci_assumed, UNIT_NONE, "whether that rate is assumed"),
	MEMBER(bandwidth_mbps, UNIT_COUNT, "bandwidth that counts: of the PCI link or the port"),
	MEMBER(why, UNIT_NONE, "the same as a sentence"),
};

const struct record machine_device_record = RECORD("devices", machine_fields);
const struct record machine_choice_record = RECORD("devices with --explain", machine_choice_fields);
