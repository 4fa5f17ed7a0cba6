// SPDX-License-Identifier: BSD-3-Clause
// Checks a DPDK port without EAL. Cold.
#include "wire/wire_dpdk_port.h"

#include <lib/scoped.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// The only kernel driver that a port can be taken over from. Without huge pages EAL uses virtual
// addresses, but uio would need physical ones.
#define VFIO_DRIVER "vfio-pci"
#define NO_IOMMU "vfio-noiommu"

// vfio can work without an IOMMU and then gives its groups this name.
static bool device_lacks_iommu(const char *name, const char *root) {
	char path[PATH_MAX], word[32] = "";
	scoped_fd int fd = -1;

	snprintf(path, sizeof(path), "%s/%s/iommu_group/name", root, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 && read(fd, word, sizeof(word) - 1) > 0 &&
	       strncmp(word, NO_IOMMU, strlen(NO_IOMMU)) == 0;
}

static int check_pci(const char *name, const char *root, char *ret_reason) {
	char path[PATH_MAX], target[PATH_MAX], driver[DPDK_NAME_MAX + 1] = "";
	ssize_t length;

	snprintf(path, sizeof(path), "%s/%s", root, name);
	if (access(path, F_OK) != 0) {
		snprintf(
			ret_reason, SOFT_REASON_MAX + 1, "this machine has no PCI device %s", name
		);
		return -ENODEV;
	}
	snprintf(path, sizeof(path), "%s/%s/driver", root, name);
	length = readlink(path, target, sizeof(target) - 1);
	if (length > 0) {
		const char *last;

		target[length] = '\0';
		last = strrchr(target, '/');
		snprintf(
			driver, sizeof(driver), "%.*s", DPDK_NAME_MAX,
			last != NULL ? last + 1 : target
		);
	}
	if (strcmp(driver, VFIO_DRIVER) != 0) {
		snprintf(
			ret_reason, SOFT_REASON_MAX + 1,
			"%s is bound to %s%.20s; bind it to " VFIO_DRIVER
			" first: dpdk-devbind.py -b " VFIO_DRIVER " %s",
			name, driver[0] != '\0' ? "the driver " : "no driver", driver, name
		);
		return -EBUSY;
	}
	if (device_lacks_iommu(name, root)) {
		snprintf(
			ret_reason, SOFT_REASON_MAX + 1,
			"%s is not behind an IOMMU; enable the IOMMU in firmware and kernel", name
		);
		return -ENOTSUP;
	}
	return 0;
}

const char *dpdk_port_error_hint(const char *said) {
	static const struct {
		const char *says, *too, *hint;
	} known[] = {
		{"/dev/vfio/", "busy", "another program uses it"},
		{"/dev/vfio/", "Permission denied",
		 "this user may not open the group of the device in /dev/vfio"},
		{"DMA remapping", "Cannot allocate memory",
		 "RLIMIT_MEMLOCK is too low (ulimit -l, LimitMEMLOCK=)"},
		{"failed to parse device", "",
		 "no installed DPDK driver or bus accepts this device; install librte-net-... "
		 "(PCI: also librte-bus-pci...)"},
		{"failed to select IOMMU type", "",
		 "vfio_iommu_type1 is not loaded, or interrupts are not remapped"},
	};

	for (size_t n = 0; n < sizeof(known) / sizeof(known[0]); n++) {
		if (strstr(said, known[n].says) != NULL && strstr(said, known[n].too) != NULL)
			return known[n].hint;
	}
	return NULL;
}

void dpdk_port_format_unknown(const char *name, char ret_reason[static SOFT_REASON_MAX + 1]) {
	snprintf(
		ret_reason, SOFT_REASON_MAX + 1,
		"no driver supports %.20s; supported drivers: " DPDK_DRIVERS, name
	);
}

int dpdk_port_check_at(
	const struct dpdk_args *args,
	const char *pci_root,
	char ret_reason[static SOFT_REASON_MAX + 1]
) {
	switch (args->kind) {
	case DPDK_PCI:
		return check_pci(args->name, pci_root, ret_reason);
	case DPDK_OTHER:
		if (strncmp(args->name, "net_ring", 8) == 0)
			return 0;
		dpdk_port_format_unknown(args->name, ret_reason);
		return -ENODEV;
	case DPDK_MEMIF:
	case DPDK_AF_PACKET:
		break;
	}
	return 0;
}

int dpdk_port_check(const struct dpdk_args *args, char ret_reason[static SOFT_REASON_MAX + 1]) {
	return dpdk_port_check_at(args, "/sys/bus/pci/devices", ret_reason);
}
