// SPDX-License-Identifier: BSD-3-Clause
#include "wire/wire_dpdk_port.h"

#include <support/cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int iface_mtu(const char *iface) {
	(void)iface;
	return 1500;
}

static int check(const char *text, const char *root, char reason[SOFT_REASON_MAX + 1]) {
	struct parse_error error;
	struct dpdk_args args;

	reason[0] = '\0';
	assert_int_equal(dpdk_args_parse(text, iface_mtu, &error, &args), 0);
	return dpdk_port_check_at(&args, root, reason);
}

static void names_without_a_driver_are_told_those_that_have_one(void **state) {
	static const struct {
		const char *text;
		int err;
	} rows[] = {
		{"net_memif0,role=client", 0},
		{"net_af_packet0,iface=veth0", 0},
		{"net_ring0", 0},
		{"net_tap0", -ENODEV},
		{"mlx5_0", -ENODEV},
		{"a-name-that-is-longer-than-any-driver-has-one-and-is-cut", -ENODEV},
	};
	char reason[SOFT_REASON_MAX + 1];

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		assert_int_equal(check(rows[n].text, "/nowhere", reason), rows[n].err);
		if (rows[n].err == 0)
			assert_string_equal(reason, "");
		else
			assert_non_null(strstr(reason, "supported drivers: " DPDK_DRIVERS));
	}
}

// Entries of a directory of PCI devices.
static const struct pci_device {
	const char *name, *driver;
	bool without_iommu;
} devices[] = {
	{"0000:03:00.0", "vfio-pci", false}, {"0000:03:00.1", "uio_pci_generic", false},
	{"0000:03:00.2", "ixgbe", false},    {"0000:03:00.3", NULL, false},
	{"0000:03:00.4", "vfio-pci", true},  {"0001:0a:1f.7", "vfio-pci", false},
};

static void make_device(const char *root, const struct pci_device *device) {
	char path[128], target[128];
	FILE *file;

	snprintf(path, sizeof(path), "%s/%s", root, device->name);
	assert_int_equal(mkdir(path, 0700), 0);
	if (device->driver != NULL) {
		snprintf(path, sizeof(path), "%s/%s/driver", root, device->name);
		snprintf(target, sizeof(target), "../../../bus/pci/drivers/%s", device->driver);
		assert_int_equal(symlink(target, path), 0);
	}
	snprintf(path, sizeof(path), "%s/%s/iommu_group", root, device->name);
	assert_int_equal(mkdir(path, 0700), 0);
	snprintf(path, sizeof(path), "%s/%s/iommu_group/name", root, device->name);
	file = fopen(path, "w");
	assert_non_null(file);
	fputs(device->without_iommu ? "vfio-noiommu\n" : "some\n", file);
	assert_int_equal(fclose(file), 0);
}

static void remove_device(const char *root, const struct pci_device *device) {
	static const char *const below[] = {"/driver", "/iommu_group/name", "/iommu_group", ""};
	char path[128];

	for (size_t n = 0; n < sizeof(below) / sizeof(below[0]); n++) {
		snprintf(path, sizeof(path), "%s/%s%s", root, device->name, below[n]);
		(void)remove(path);
	}
}

static void a_pci_device_is_there_behind_an_iommu_and_to_be_had(void **state) {
	static const struct {
		const char *text;
		int err;
		const char *words;
	} rows[] = {
		{"0000:03:00.0", 0, ""},
		{"3:0.0,gateway=192.0.2.1/24", 0, ""},
		{"1:A:1f.7", 0, ""},
		{"0000:03:00.1", -EBUSY,
		 "0000:03:00.1 is bound to the driver uio_pci_generic; bind it to vfio-pci first: "
		 "dpdk-devbind.py -b vfio-pci 0000:03:00.1"},
		{"0000:03:00.2", -EBUSY,
		 "0000:03:00.2 is bound to the driver ixgbe; bind it to vfio-pci first: "
		 "dpdk-devbind.py -b vfio-pci 0000:03:00.2"},
		{"0000:03:00.3", -EBUSY,
		 "0000:03:00.3 is bound to no driver; bind it to vfio-pci first: "
		 "dpdk-devbind.py -b vfio-pci 0000:03:00.3"},
		{"0000:03:00.4", -ENOTSUP,
		 "0000:03:00.4 is not behind an IOMMU; enable the IOMMU in firmware and kernel"},
		{"4:0.1", -ENODEV, "this machine has no PCI device 0000:04:00.1"},
		{"ffff:ff:1f.7", -ENODEV, "this machine has no PCI device ffff:ff:1f.7"},
	};
	char root[] = "/tmp/tocsin-pci-XXXXXX", reason[SOFT_REASON_MAX + 1];

	(void)state;
	assert_non_null(mkdtemp(root));
	for (size_t n = 0; n < sizeof(devices) / sizeof(devices[0]); n++)
		make_device(root, &devices[n]);
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		assert_int_equal(check(rows[n].text, root, reason), rows[n].err);
		assert_string_equal(reason, rows[n].words);
	}
	for (size_t n = 0; n < sizeof(devices) / sizeof(devices[0]); n++)
		remove_device(root, &devices[n]);
	assert_int_equal(rmdir(root), 0);
}

// Messages as DPDK 22.11 and the kernel print them.
static void lines_of_eal_are_explained(void **state) {
	static const struct {
		const char *line, *hint;
	} rows[] = {
		{"EAL: Cannot open /dev/vfio/9: Device or resource busy",
		 "another program uses it"},
		{"EAL: Cannot open /dev/vfio/9: Permission denied", "may not open the group"},
		{"EAL: Cannot set up DMA remapping, error 12 (Cannot allocate memory)",
		 "RLIMIT_MEMLOCK"},
		{"EAL: 0000:01:00.0 failed to select IOMMU type", "interrupts"},
		{"EAL: failed to parse device \"net_af_packet0\"", "no installed DPDK driver"},
		{"EAL: Cannot open /dev/vfio/9: No such file or directory", NULL},
		{"", NULL},
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		const char *hint = dpdk_port_error_hint(rows[n].line);

		assert_int_equal(hint == NULL, rows[n].hint == NULL);
		if (hint != NULL)
			assert_non_null(strstr(hint, rows[n].hint));
	}
}

UNIT_GROUP(soft_wire_dpdk_check) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_without_a_driver_are_told_those_that_have_one),
		cmocka_unit_test(lines_of_eal_are_explained),
		cmocka_unit_test(a_pci_device_is_there_behind_an_iommu_and_to_be_had),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
