// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/choice/scene.h"

#include <support/cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

const struct scene scene_eight = {
	"eight",
	{{"mlx5_9", "0000:c6:00.0", 200000, USABLE},
	 {"mlx5_10", "0000:05:00.0", 200000, USABLE},
	 {"mlx5_2", "0000:06:00.0", 200000, USABLE},
	 {"mlx5_3", "0000:45:00.0", 200000, USABLE},
	 {"mlx5_4", "0000:46:00.0", 100000, USABLE},
	 {"mlx5_5", "0000:85:00.0", 100000, USABLE},
	 {"mlx5_6", "0000:86:00.0", 200000, NO_PORT},
	 {"mlx5_7", "0000:c5:00.0", 200000, NO_RC}}};

const struct scene scene_cascade = {
	"cascade",
	{{"near_slow", "0000:07:00.0", 100000, USABLE},
	 {"near_fast", "0000:08:00.0", 400000, USABLE},
	 {"virtual", "0000:08:00.1", 400000, USABLE},
	 {"above", "0000:03:00.0", 400000, USABLE},
	 {"port", "0000:09:00.0", 400000, USABLE},
	 {"other_host", "0000:21:00.0", 200000, USABLE}}};

const struct scene scene_flat = {
	"flat",
	{{"mlx5_1", "0000:00:05.0", 200000, USABLE},
	 {"mlx5_0", "0000:00:04.0", 200000, USABLE},
	 {"slow", "0000:00:07.0", 200000, USABLE}}};

const struct scene scene_unplaced = {
	"unplaced",
	{{"a", "0001:00:00.0", 100000, USABLE},
	 {"b", "7ffe:00:00.0", 100000, USABLE},
	 {"hidden", "0002:00:00.0", 100000, USABLE}}};

const struct scene scene_soft_roce = {
	"flat",
	{{"rxe1", "", 10000, USABLE},
	 {"rxe0", "", 10000, USABLE},
	 {"rxe2", "", 0, USABLE},
	 {"rxe3", "", 40000, NO_PORT},
	 {"soft0", "", 100000, IN_PROCESS}}};

const struct scene scene_mixed = {
	"flat", {{"rxe0", "", 400000, USABLE}, {"mlx4_0", "0000:00:04.0", 40000, USABLE}}};

const struct scene scene_none = {"eight", {{NULL, NULL, 0, USABLE}}};

const struct scene scene_no_rc = {
	"eight", {{"efa_0", "0000:05:00.0", 100000, NO_RC}, {"rxe0", "", 0, NO_PORT}}};

const struct scene scene_lone = {"eight", {{"efa_0", "0000:05:00.0", 100000, NO_RC}}};

static struct device_facts facts[DEVICES_MAX]; // facts of the scene in the latest call

// CUDA does not number GPUs in bus order: number 3 is the GPU at the first switch.
static const char *const gpus_of_eight[] = {
	"0000:C4:00.0", "0000:44:00.0", "0000:83:00.0", "0000:03:00.0", "0000:99:00.0"};

static int find_gpu(void *ctx, uint32_t ordinal, char ret_pci[static DEVICE_PCI_BYTES]) {
	(void)ctx;
	if (ordinal >= sizeof(gpus_of_eight) / sizeof(gpus_of_eight[0]))
		return -ENOENT;
	snprintf(ret_pci, DEVICE_PCI_BYTES, "%s", gpus_of_eight[ordinal]);
	return 0;
}

// GPUs 0 and 1 are in the cascade, below the second switch and on the other socket. GPU 2 is in the
// unplaced machine.
static int find_other_gpu(void *ctx, uint32_t ordinal, char ret_pci[static DEVICE_PCI_BYTES]) {
	static const char *const pci[] = {"0000:06:00.0", "0000:81:00.0", "7ffe:01:00.0"};

	(void)ctx;
	assert_in_range(ordinal, 0, 2);
	snprintf(ret_pci, DEVICE_PCI_BYTES, "%s", pci[ordinal]);
	return 0;
}

static int find_only_gpu(void *ctx, uint32_t ordinal, char ret_pci[static DEVICE_PCI_BYTES]) {
	(void)ctx;
	if (ordinal > 0)
		return -ENOENT;
	snprintf(ret_pci, DEVICE_PCI_BYTES, "0000:03:00.0");
	return 0;
}

static int find_no_gpu(void *ctx, uint32_t ordinal, char ret_pci[static DEVICE_PCI_BYTES]) {
	(void)ctx;
	(void)ordinal;
	(void)ret_pci;
	return -ENOENT;
}

static int ask_nobody(void *ctx, uint32_t ordinal, char ret_pci[static DEVICE_PCI_BYTES]) {
	(void)ctx;
	(void)ordinal;
	(void)ret_pci;
	return -ELIBACC;
}

const struct device_gpus scene_gpus = {find_gpu, NULL, ""};
const struct device_gpus scene_other_gpus = {find_other_gpu, NULL, ""};
const struct device_gpus scene_only_gpu = {find_only_gpu, NULL, ""};
const struct device_gpus scene_no_gpus = {find_no_gpu, NULL, ""};
const struct device_gpus scene_silent_gpus = {ask_nobody, NULL, ""};
const struct device_gpus scene_gpus_gone = {NULL, NULL, "libcuda.so.1 cannot be loaded"};

static void fill_port(const struct row *row, uint8_t place, struct device_port *port) {
	port->number = 1;
	port->state = row->state == NO_PORT ? IBV_PORT_DOWN : IBV_PORT_ACTIVE;
	port->link = DEVICE_LINK_ETHERNET;
	port->speed_mbps = row->speed_mbps;
	port->active_mtu = 4096;
	port->gid_index = 3;
	port->gid_type = IBV_GID_TYPE_ROCE_V2;
	port->gid = (union ibv_gid){.raw = {[10] = 0xff, 0xff, 10, 0, 0, place}};
}

static void fill_one(const struct row *row, uint8_t place, struct device_facts *device) {
	snprintf(device->name, sizeof(device->name), "%s", row->name);
	snprintf(device->pci, sizeof(device->pci), "%s", row->pci);
	device->numa_node = -1; // unknown here, so that hwloc finds the node
	device->transport = row->state == NO_RC ? IBV_TRANSPORT_UNSPECIFIED : IBV_TRANSPORT_IB;
	device->responder =
		row->pci[0] != '\0' ? DEVICE_RESPONDER_HARDWARE : DEVICE_RESPONDER_KERNEL;
	if (row->state == IN_PROCESS)
		device->responder = DEVICE_RESPONDER_IN_PROCESS;
	device->usable = row->state == USABLE || row->state == IN_PROCESS;
	device->awaits_port = row->state == NO_PORT;
	if (!device->usable)
		snprintf(
			device->reason, sizeof(device->reason), "%s",
			row->state == NO_PORT ? "port 1 is down" : "it has no RC"
		);
	fill_port(row, place, &device->port);
}

static uint32_t fill(const struct row *rows) {
	uint32_t count = 0;

	memset(facts, 0, sizeof(facts));
	for (; count < DEVICES_MAX && rows[count].name != NULL; count++)
		fill_one(&rows[count], (uint8_t)(count + 1), &facts[count]);
	return count;
}

int scene_choose(
	const struct scene *scene,
	const char *target,
	const struct device_gpus *gpus,
	struct parse_error *error,
	struct device_choice **ret_choice
) {
	struct topology *topology = machine_create(scene->machine);
	struct device_query query = {.topology = topology, .gpus = gpus, .facts = facts};
	int err;

	query.count = fill(scene->rows);
	assert_int_equal(device_target_parse(target, strlen(target), NULL, &query.target), 0);
	err = device_choice_create(&query, error, ret_choice);
	topology_destroy(topology);
	return err;
}
