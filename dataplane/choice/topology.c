// SPDX-License-Identifier: BSD-3-Clause
// The only file that includes hwloc.
#include <dataplane/topology.h>
#include <lib/error.h>
#include <lib/must.h>

#include <hwloc.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Payload rate of one GB/s of link speed. A third-generation lane has 8 Gb/s, of which 6 reach the
// payload; hwloc already subtracted the coding overhead (2 bits in 130).
#define GIGABYTE_MBPS (8000.0 * 6.0 / 8.0 * 130.0 / 128.0)
#define ASSUMED_LANE_MBPS 6000
#define ASSUMED_LANES 16
#define LINK_GIGABYTES_MAX 1e5 // larger values are errors and would overflow

struct topology {
	hwloc_topology_t tree;
};

static int tree_load(hwloc_topology_t tree) {
	// Disable plugins that query drivers or an X server, and one that repeats the kernel's
	// files. Disabling a plugin that is not installed fails, which is ignored.
	static const char *const silenced[] = {"pci",  "gl",   "opencl",   "cuda",
					       "nvml", "rsmi", "levelzero"};

	for (size_t n = 0; n < sizeof(silenced) / sizeof(silenced[0]); n++)
		hwloc_topology_set_components(
			tree, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST, silenced[n]
		);
	// Include processors that this process may not use: devices near them keep their location.
	if (hwloc_topology_set_flags(tree, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) != 0 ||
	    hwloc_topology_set_type_filter(tree, HWLOC_OBJ_BRIDGE, HWLOC_TYPE_FILTER_KEEP_ALL) !=
		    0 ||
	    hwloc_topology_set_type_filter(
		    tree, HWLOC_OBJ_PCI_DEVICE, HWLOC_TYPE_FILTER_KEEP_ALL
	    ) != 0 ||
	    hwloc_topology_load(tree) != 0)
		return neg_errno();
	return 0;
}

static int
topology_create_from(const char *xml, const char *description, struct topology **ret_topology) {
	struct topology *topology = calloc(1, sizeof(*topology));
	int err;

	if (topology == NULL)
		return -ENOMEM;
	if (hwloc_topology_init(&topology->tree) != 0) {
		err = neg_errno();
		free(topology);
		return err;
	}
	err = 0;
	if (xml != NULL &&
	    (strlen(xml) >= INT32_MAX ||
	     hwloc_topology_set_xmlbuffer(topology->tree, xml, (int)strlen(xml) + 1)))
		err = -EINVAL;
	if (description != NULL && hwloc_topology_set_synthetic(topology->tree, description) != 0)
		err = -EINVAL;
	if (err == 0)
		err = tree_load(topology->tree);
	if (err != 0) {
		topology_destroy(topology);
		return err;
	}
	*ret_topology = topology;
	return 0;
}

int topology_create(struct topology **ret_topology) {
	return topology_create_from(NULL, NULL, ret_topology);
}

int topology_create_xml(const char *xml, struct topology **ret_topology) {
	return topology_create_from(xml, NULL, ret_topology);
}

int topology_create_synthetic(const char *description, struct topology **ret_topology) {
	return topology_create_from(NULL, description, ret_topology);
}

struct topology *topology_destroy(struct topology *topology) {
	if (topology == NULL)
		return NULL;
	hwloc_topology_destroy(topology->tree);
	free(topology);
	return NULL;
}

bool topology_has_node(const struct topology *topology, uint32_t node) {
	return hwloc_get_numanode_obj_by_os_index(topology->tree, node) != NULL;
}

void topology_nodes(const struct topology *topology, char text[static TOPOLOGY_NODES_TEXT_BYTES]) {
	hwloc_bitmap_list_snprintf(
		text, TOPOLOGY_NODES_TEXT_BYTES, hwloc_topology_get_topology_nodeset(topology->tree)
	);
}

static hwloc_obj_t object_find(const struct topology *topology, const char *pci) {
	return hwloc_get_pcidev_by_busidstring(topology->tree, pci);
}

// Return the processors near a PCI device.
static hwloc_const_cpuset_t cpus_near_device(const struct topology *topology, hwloc_obj_t device) {
	return hwloc_get_non_io_ancestor_obj(topology->tree, device)->cpuset;
}

int topology_pci_node(const struct topology *topology, const char *pci) {
	hwloc_obj_t device = object_find(topology, pci);
	hwloc_obj_t node = NULL;

	if (device == NULL)
		return -1;
	while ((node = hwloc_get_next_obj_by_type(topology->tree, HWLOC_OBJ_NUMANODE, node))) {
		if (hwloc_bitmap_isequal(node->cpuset, cpus_near_device(topology, device)))
			return (int)node->os_index;
	}
	return -1;
}

// Return true if these processors denote a location. With several nodes, "near all processors" is
// the kernel's answer for an unknown location.
static bool cpus_are_location(const struct topology *topology, hwloc_const_cpuset_t cpus) {
	hwloc_const_cpuset_t all = hwloc_topology_get_topology_cpuset(topology->tree);
	hwloc_obj_t node = NULL;

	if (!hwloc_bitmap_isequal(cpus, all))
		return true;
	// Memory without processors counts as part of the node that it is attached to.
	while ((node = hwloc_get_next_obj_by_type(topology->tree, HWLOC_OBJ_NUMANODE, node))) {
		if (!hwloc_bitmap_isequal(node->cpuset, all))
			return false;
	}
	return true;
}

int topology_near_cpus(const struct topology *topology, const char *pci, struct cpu_set *ret_cpus) {
	hwloc_obj_t device = object_find(topology, pci);
	struct cpu_set cpus = {{0}};
	hwloc_const_cpuset_t near;

	if (device == NULL)
		return -ENOENT;
	near = cpus_near_device(topology, device);
	if (!cpus_are_location(topology, near))
		return -ENOENT;
	for (int cpu = hwloc_bitmap_first(near); cpu >= 0 && cpu < CPU_SET_CPUS_MAX;
	     cpu = hwloc_bitmap_next(near, cpu))
		cpu_set_add(&cpus, (uint32_t)cpu);
	*ret_cpus = cpus;
	return 0;
}

static enum topology_class
class_by_cpus(const struct topology *topology, hwloc_const_cpuset_t a, hwloc_const_cpuset_t b) {
	if (cpus_are_location(topology, a) && cpus_are_location(topology, b) &&
	    hwloc_bitmap_intersects(a, b))
		return TOPOLOGY_HOST;
	return TOPOLOGY_FAR;
}

static bool object_is_pci(hwloc_obj_t object) {
	return object->type == HWLOC_OBJ_PCI_DEVICE ||
	       (object->type == HWLOC_OBJ_BRIDGE &&
		object->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI);
}

static hwloc_obj_t common_ancestor(hwloc_obj_t a, hwloc_obj_t b) {
	for (; a != NULL; a = a->parent) {
		for (hwloc_obj_t other = b; other != NULL; other = other->parent) {
			if (other == a)
				return a;
		}
	}
	must(false); // a tree has one root
	return NULL;
}

// Count the bridges between a device and one of its ancestors.
static unsigned bridges_below(hwloc_obj_t device, hwloc_obj_t ancestor) {
	unsigned count = 0;

	for (; device != ancestor && device->parent != ancestor; device = device->parent)
		count++;
	return count;
}

static enum topology_class
class_between(const struct topology *topology, hwloc_obj_t a, hwloc_obj_t b, hwloc_obj_t common) {
	if (object_is_pci(common)) {
		// On one switch, at most one bridge lies between a device and `common`: the
		// downstream port of the switch that the device is plugged into.
		if (bridges_below(a, common) <= 1 && bridges_below(b, common) <= 1)
			return TOPOLOGY_SWITCH;
		return TOPOLOGY_BRIDGES;
	}
	if (common->type == HWLOC_OBJ_BRIDGE)
		return TOPOLOGY_HOST;
	return class_by_cpus(
		topology, cpus_near_device(topology, a), cpus_near_device(topology, b)
	);
}

// Return the minimum of `narrowest` and the links from here up to `end` or the PCI root. Both ends
// of a link report its speed. Ends without a speed (virtual functions, emulated devices) are
// skipped.
static double narrowest_link_up(hwloc_obj_t from, hwloc_obj_t end, double narrowest) {
	for (; from != end && object_is_pci(from); from = from->parent) {
		double gigabytes = (double)from->attr->pcidev.linkspeed;

		if (from->type == HWLOC_OBJ_BRIDGE)
			gigabytes = (double)from->attr->bridge.upstream.pci.linkspeed;
		if (gigabytes > 0 && gigabytes < LINK_GIGABYTES_MAX)
			narrowest = fmin(narrowest, gigabytes);
	}
	return narrowest;
}

static void path_set_speed(double narrowest_gigabytes, struct topology_path *way) {
	way->assumed = !isfinite(narrowest_gigabytes);
	way->pci_mbps = way->assumed ? ASSUMED_LANE_MBPS * ASSUMED_LANES
				     : (uint32_t)lround(narrowest_gigabytes * GIGABYTE_MBPS);
}

void topology_path_to_host(
	const struct topology *topology, const char *pci, struct topology_path *ret_way
) {
	hwloc_obj_t device = object_find(topology, pci);

	ret_way->class = device == NULL ? TOPOLOGY_UNKNOWN : TOPOLOGY_HOST;
	path_set_speed(
		device == NULL ? INFINITY : narrowest_link_up(device, NULL, INFINITY), ret_way
	);
}

void topology_path_to_node(
	const struct topology *topology,
	const char *pci,
	uint32_t node,
	struct topology_path *ret_way
) {
	hwloc_obj_t place = hwloc_get_numanode_obj_by_os_index(topology->tree, node);
	hwloc_obj_t device = object_find(topology, pci);

	must(place != NULL);
	topology_path_to_host(topology, pci, ret_way);
	if (device != NULL)
		ret_way->class =
			class_by_cpus(topology, cpus_near_device(topology, device), place->cpuset);
}

void topology_path_to_device(
	const struct topology *topology,
	const char *pci,
	const char *to_pci,
	struct topology_path *ret_way
) {
	hwloc_obj_t device = object_find(topology, pci);
	hwloc_obj_t to = object_find(topology, to_pci);
	hwloc_obj_t common;
	double narrowest;

	topology_path_to_host(topology, pci, ret_way);
	ret_way->class = TOPOLOGY_UNKNOWN;
	if (device == NULL || to == NULL)
		return;
	common = common_ancestor(device, to);
	ret_way->class = class_between(topology, device, to, common);
	narrowest = narrowest_link_up(device, common, INFINITY);
	// Skip the device's own link, which the port above it reports too.
	if (to != common && to->parent != common)
		narrowest = narrowest_link_up(to->parent->parent, common, narrowest);
	path_set_speed(narrowest, ret_way);
}

const char *topology_class_name(enum topology_class class) {
	switch (class) {
	case TOPOLOGY_SWITCH:
		return "switch";
	case TOPOLOGY_BRIDGES:
		return "bridges";
	case TOPOLOGY_HOST:
		return "host";
	case TOPOLOGY_FAR:
		return "far";
	case TOPOLOGY_UNKNOWN:
		break;
	}
	return "unknown";
}

const char *topology_class_text(enum topology_class class) {
	switch (class) {
	case TOPOLOGY_SWITCH:
		return "same PCI switch";
	case TOPOLOGY_BRIDGES:
		return "several PCI bridges between";
	case TOPOLOGY_HOST:
		return "same host bridge or NUMA node";
	case TOPOLOGY_FAR:
		return "another NUMA node";
	case TOPOLOGY_UNKNOWN:
		break;
	}
	return "not in the PCI tree";
}
