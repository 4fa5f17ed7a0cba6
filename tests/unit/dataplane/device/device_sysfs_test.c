// SPDX-License-Identifier: BSD-3-Clause
// Tests of reading sysfs facts from a tree that the test makes, and of correcting port speeds.
#include "device/device_impl.h"

#include <lib/scoped.h>
#include <support/cmocka.h>
#include <support/fake_verbs.h>
#include <support/tree.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))

static char root[] = "/tmp/tocsin-sysfs-XXXXXX";
static char device_path[IBV_SYSFS_PATH_MAX];

static int make_root(void **state) {
	(void)state;
	memcpy(root + sizeof(root) - 7, "XXXXXX", 6);
	if (mkdtemp(root) == NULL)
		return -1;
	snprintf(device_path, sizeof(device_path), "%s/class/mlx5_0", root);
	return 0;
}

static int remove_root(void **state) {
	(void)state;
	return tree_remove(root);
}

// Create the directories that lead to root/name.
static void make_way(const char *name, char path[static PATH_MAX]) {
	snprintf(path, PATH_MAX, "%s/%s", root, name);
	for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0700); // the directory may exist
		*slash = '/';
	}
}

static void put_file(const char *name, const char *text) {
	char path[PATH_MAX];
	FILE *file;

	make_way(name, path);
	file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void put_link(const char *name, const char *target) {
	char path[PATH_MAX];

	make_way(name, path);
	unlink(path);
	assert_int_equal(symlink(target, path), 0);
}

static struct device_facts look(bool in_process) {
	const struct verbs_calls calls = {.in_process = in_process};
	struct ibv_device device = {.name = "mlx5_0"};
	struct device_facts facts = {.name = "mlx5_0"};
	struct device_inspection look = {.calls = &calls, .device = &device, .facts = &facts};

	snprintf(device.ibdev_path, sizeof(device.ibdev_path), "%s", device_path);
	device_sysfs_inspect(&look);
	return facts;
}

static void a_nic_has_its_pci_address_and_node(void **state) {
	static const struct {
		const char *parent, *pci, *node_file, *node_text;
		int node;
	} cases[] = {
		{"devices/pci0000:16/0000:16:02.0/0000:17:00.1", "0000:17:00.1",
		 "devices/pci0000:16/0000:16:02.0/0000:17:00.1/numa_node", "1\n", 1},
		{"devices/pci0000:16/0000:16:02.0/0000:18:00.0", "0000:18:00.0",
		 "devices/pci0000:16/0000:16:02.0/0000:18:00.0/numa_node", "-1\n", -1},
		// A subfunction is an auxiliary device of its PCI function.
		{"devices/pci0000:16/0000:19:00.0/mlx5_core.sf.4", "0000:19:00.0",
		 "devices/pci0000:16/0000:19:00.0/numa_node", "3\n", 3},
		{"devices/pci10000:00/10000:1a:1f.7", "10000:1a:1f.7",
		 "devices/pci10000:00/10000:1a:1f.7/numa_node", "none\n", -1},
		{"devices/platform/hns_roce.0", "", "devices/platform/hns_roce.0/numa_node", "1\n",
		 -1},
		{"devices/0000:17:00.8x/0000:17:00:0/000:17:00.0/0000:1g:00.0", "", "devices/other",
		 "", -1},
	};

	(void)state;
	for (size_t n = 0; n < COUNT(cases); n++) {
		char target[PATH_MAX];
		struct device_facts facts;

		put_file(cases[n].node_file, cases[n].node_text);
		snprintf(target, sizeof(target), "%s/uevent", cases[n].parent);
		put_file(target, "");
		snprintf(target, sizeof(target), "../../%s", cases[n].parent);
		put_link("class/mlx5_0/device", target);
		facts = look(false);
		assert_int_equal(facts.responder, DEVICE_RESPONDER_HARDWARE);
		assert_string_equal(facts.path, device_path);
		assert_string_equal(facts.pci, cases[n].pci);
		assert_int_equal(facts.numa_node, cases[n].node);
	}
}

static void a_device_of_software_is_answered_for_by_the_kernel(void **state) {
	struct device_facts facts;

	(void)state;
	put_file("class/mlx5_0/node_type", "1: CA\n"); // a device without a parent
	facts = look(false);
	assert_int_equal(facts.responder, DEVICE_RESPONDER_KERNEL);
	assert_string_equal(facts.pci, "");
	assert_int_equal(facts.numa_node, -1);

	// Older kernels gave a Soft-RoCE device the parent of its network interface.
	put_file("devices/pci0000:16/0000:17:00.0/numa_node", "1\n");
	put_link("class/mlx5_0/device", "../../devices/pci0000:16/0000:17:00.0");
	assert_int_equal(look(false).responder, DEVICE_RESPONDER_HARDWARE);
	put_file("class/mlx5_0/parent", "eth0\n");
	facts = look(false);
	assert_int_equal(facts.responder, DEVICE_RESPONDER_KERNEL);
	assert_string_equal(facts.pci, "");
}

static void a_device_of_this_process_is_answered_for_by_it(void **state) {
	(void)state;
	put_file("devices/pci0000:16/0000:17:00.0/numa_node", "1\n");
	put_link("class/mlx5_0/device", "../../devices/pci0000:16/0000:17:00.0");
	assert_int_equal(look(true).responder, DEVICE_RESPONDER_IN_PROCESS);
	assert_string_equal(look(true).pci, "");
}

static void a_port_has_the_interface_of_its_gid_or_of_its_number(void **state) {
	char netdev[sizeof(((struct device_facts *)0)->netdev)] = "before";

	(void)state;
	device_sysfs_netdev(device_path, 1, 3, netdev);
	assert_string_equal(netdev, "");
	put_file("class/mlx5_0/device/net/ib0/dev_port", "0\n");
	put_file("class/mlx5_0/device/net/ib1/dev_port", "1\n");
	put_file("class/mlx5_0/device/net/odd/dev_port", "many\n");
	put_file("class/mlx5_0/device/net/sixteen_letters0/dev_port", "2\n");
	device_sysfs_netdev(device_path, 2, -1, netdev);
	assert_string_equal(netdev, "ib1");
	device_sysfs_netdev(device_path, 3, -1, netdev);
	assert_string_equal(netdev, "");
	put_file("class/mlx5_0/ports/2/gid_attrs/ndevs/3", "enp23s0f1np1\n");
	put_file("class/mlx5_0/ports/2/gid_attrs/ndevs/4", "");
	device_sysfs_netdev(device_path, 2, 3, netdev);
	assert_string_equal(netdev, "enp23s0f1np1");
	device_sysfs_netdev(device_path, 2, 4, netdev);
	assert_string_equal(netdev, "ib1");
	put_file("class/mlx5_0/parent", "ve0\n");
	device_sysfs_netdev(device_path, 2, 4, netdev);
	assert_string_equal(netdev, "ve0");
	device_sysfs_netdev("", 2, 3, netdev);
	assert_string_equal(netdev, "");
}

static void width_and_speed_multiply_and_what_is_unknown_is_zero(void **state) {
	static const struct {
		uint32_t width, speed, mbps;
	} cases[] = {
		{1, 1, 2500},	  // 1x SDR
		{2, 1, 10000},	  // 4x SDR
		{2, 2, 20000},	  // 4x DDR
		{2, 4, 40000},	  // 4x QDR
		{2, 8, 40000},	  // 4x FDR10
		{2, 16, 56000},	  // 4x FDR
		{2, 32, 100000},  // 4x EDR
		{4, 32, 200000},  // 8x EDR
		{8, 4, 120000},	  // 12x QDR
		{2, 64, 200000},  // 4x HDR
		{16, 64, 100000}, // 2x HDR
		{2, 128, 400000}, // 4x NDR
		{1, 128, 100000}, // 1x NDR
		{2, 256, 800000}, // 4x XDR
		{8, 256, 2400000}, {0, 32, 0}, {2, 0, 0},   {3, 32, 0},
		{32, 32, 0},	   {2, 3, 0},  {2, 512, 0},
	};

	(void)state;
	for (size_t n = 0; n < COUNT(cases); n++)
		assert_int_equal(device_speed_mbps(cases[n].width, cases[n].speed), cases[n].mbps);
}

static void the_kernels_rate_is_read_to_a_tenth_or_not_known(void **state) {
	static const struct {
		const char *text;
		uint32_t mbps;
	} cases[] = {
		{"800 Gb/sec (4X XDR)\n", 800000},
		{"100 Gb/sec (4X EDR)\n", 100000},
		{"2.5 Gb/sec (1X SDR)\n", 2500},
		{"0 Gb/sec\n", 0},
		{"", 0},
		{"\n", 0},
		{"fast Gb/sec\n", 0},
		{"100\n", 0},
		{"99999999999999999999 Gb/sec\n", 0},
		{"-1 Gb/sec\n", 0},
		{".5 Gb/sec\n", 0},
	};

	(void)state;
	assert_int_equal(device_sysfs_speed_mbps(device_path, 1), 0);
	assert_int_equal(device_sysfs_speed_mbps("", 1), 0);
	for (size_t n = 0; n < COUNT(cases); n++) {
		put_file("class/mlx5_0/ports/1/rate", cases[n].text);
		assert_int_equal(device_sysfs_speed_mbps(device_path, 1), cases[n].mbps);
	}
}

static void a_speed_that_libibverbs_cannot_say_is_the_kernels(void **state) {
	static const struct {
		uint8_t speed;
		const char *rate;
		uint32_t mbps;
	} cases[] = {
		{128, "800 Gb/sec (4X XDR)\n", 800000}, // the kernel reports NDR in old structs
		{128, "400 Gb/sec (4X NDR)\n", 400000}, {128, "", 400000},
		{0, "1600 Gb/sec\n", 1600000},		{64, "100 Gb/sec\n", 200000},
	};
	struct fake_device *device;

	(void)state;
	fake_verbs_init(NULL);
	device = fake_device_add("fake0");
	snprintf(device->verbs.ibdev_path, sizeof(device->verbs.ibdev_path), "%s", device_path);
	device->ports[0].attr.active_width = 2;
	for (size_t n = 0; n < COUNT(cases); n++) {
		scoped_mem struct device_facts *facts = NULL;
		uint32_t count;

		put_file("class/mlx5_0/ports/1/rate", cases[n].rate);
		device->ports[0].attr.active_speed = cases[n].speed;
		assert_int_equal(device_list(&fake_verbs_calls, NULL, &facts, &count), 0);
		assert_int_equal(facts[0].port.speed_mbps, cases[n].mbps);
	}
	assert_null(fake_verbs_fini());
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_root, remove_root)

UNIT_GROUP(device_sysfs) {
	const struct CMUnitTest tests[] = {
		TEST(a_nic_has_its_pci_address_and_node),
		TEST(a_device_of_software_is_answered_for_by_the_kernel),
		TEST(a_device_of_this_process_is_answered_for_by_it),
		TEST(a_port_has_the_interface_of_its_gid_or_of_its_number),
		TEST(width_and_speed_multiply_and_what_is_unknown_is_zero),
		TEST(the_kernels_rate_is_read_to_a_tenth_or_not_known),
		TEST(a_speed_that_libibverbs_cannot_say_is_the_kernels),
	};

	return cmocka_run_group_tests_name("device_sysfs", tests, NULL, NULL);
}
