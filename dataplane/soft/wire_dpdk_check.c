// SPDX-License-Identifier: BSD-3-Clause
// What can be seen of a DPDK port before EAL has to do with it. Cold.
#include "wire_dpdk_port.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// Which a port can be taken over from; nobody at all is for the driver to judge.
static const char *const givers[] = {"vfio-pci", "uio_pci_generic", "igb_uio"};

static bool is_giver(const char *driver) {
	for (size_t n = 0; n < sizeof(givers) / sizeof(givers[0]); n++) {
		if (strcmp(driver, givers[n]) == 0)
			return true;
	}
	return false;
}

// The last part of what a link of sysfs leads to, "" if there is none.
static void read_driver(const char *link, char ret_driver[static DPDK_NAME_MAX + 1]) {
	char target[PATH_MAX];
	ssize_t length = readlink(link, target, sizeof(target) - 1);
	const char *last;

	ret_driver[0] = '\0';
	if (length <= 0)
		return;
	target[length] = '\0';
	last = strrchr(target, '/');
	snprintf(
		ret_driver, DPDK_NAME_MAX + 1, "%.*s", DPDK_NAME_MAX,
		last != NULL ? last + 1 : target
	);
}

static int check_pci(const char *name, const char *root, char *ret_reason) {
	char path[PATH_MAX], driver[DPDK_NAME_MAX + 1];
	unsigned int domain, bus, device, function;

	// Its form was looked at, but leading zeroes may be missing.
	// NOLINTNEXTLINE(cert-err34-c): so few digits do not overflow
	if (sscanf(name, "%x:%x:%x.%x", &domain, &bus, &device, &function) != 4)
		return -EINVAL;
	snprintf(path, sizeof(path), "%s/%04x:%02x:%02x.%x", root, domain, bus, device, function);
	if (access(path, F_OK) != 0) {
		snprintf(
			ret_reason, SOFT_HOLDER_MAX + 1, "this machine has no PCI device %s", name
		);
		return -ENODEV;
	}
	strncat(path, "/driver", sizeof(path) - strlen(path) - 1);
	read_driver(path, driver);
	if (driver[0] != '\0' && !is_giver(driver)) {
		snprintf(
			ret_reason, SOFT_HOLDER_MAX + 1,
			"%s belongs to the kernel's driver %.20s; bind it to vfio-pci first: "
			"dpdk-devbind.py -b vfio-pci %s",
			name, driver, name
		);
		return -EBUSY;
	}
	return 0;
}

void dpdk_port_say_unknown(const char *name, char ret_reason[static SOFT_HOLDER_MAX + 1]) {
	snprintf(
		ret_reason, SOFT_HOLDER_MAX + 1, "no driver takes %.30s; linked are " DPDK_DRIVERS,
		name
	);
}

int dpdk_port_check_at(
	const struct dpdk_args *args,
	const char *pci_root,
	char ret_reason[static SOFT_HOLDER_MAX + 1]
) {
	switch (args->kind) {
	case DPDK_PCI:
		return check_pci(args->name, pci_root, ret_reason);
	case DPDK_OTHER:
		if (strncmp(args->name, "net_ring", 8) == 0)
			return 0;
		dpdk_port_say_unknown(args->name, ret_reason);
		return -ENODEV;
	case DPDK_MEMIF:
	case DPDK_AF_PACKET:
		break;
	}
	return 0;
}

int dpdk_port_check(const struct dpdk_args *args, char ret_reason[static SOFT_HOLDER_MAX + 1]) {
	return dpdk_port_check_at(args, "/sys/bus/pci/devices", ret_reason);
}
