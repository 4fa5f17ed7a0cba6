// SPDX-License-Identifier: BSD-3-Clause
#include "nic/wire.h"
#include "wire/wire_dpdk_args.h"

#include <support/cmocka.h>

#include <errno.h>
#include <string.h>

static int mtu_of_machine(const char *iface) {
	if (strcmp(iface, "jumbo0") == 0)
		return 9000;
	return strcmp(iface, "veth0") == 0 ? 1500 : -ENODEV;
}

static void what_was_not_named_is_completed(void **state) {
	static const struct {
		const char *text, *devargs;
		uint32_t frame_bytes, ring_frames;
	} rows[] = {
		{"net_memif0,role=server,id=7", "net_memif0,role=server,id=7,bsize=4608", 4608,
		 1024},
		{"net_memif0,rsize=9,bsize=2048,gateway=192.0.2.1/24",
		 "net_memif0,rsize=9,bsize=2048", 2048, 512},
		{"net_af_packet0,iface=veth0",
		 "net_af_packet0,iface=veth0,framesz=2048,blocksz=65536,framecnt=512", 1514, 512},
		{"net_af_packet1,iface=jumbo0",
		 "net_af_packet1,iface=jumbo0,framesz=8192,blocksz=65536,framecnt=512",
		 14 + FRAME_BYTES_MAX, 512},
		{"net_af_packet0,iface=jumbo0,framesz=2048,framecnt=64,blocksz=4096",
		 "net_af_packet0,iface=jumbo0,framesz=2048,framecnt=64,blocksz=4096", 2048 - 96,
		 64},
		{"0000:03:00.0", "0000:03:00.0", 0, 0},
		{"net_ring0", "net_ring0", 0, 0},
	};
	struct parse_error error;
	struct dpdk_args args;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(dpdk_args_parse(rows[i].text, mtu_of_machine, &error, &args), 0);
		assert_string_equal(args.devargs, rows[i].devargs);
		assert_int_equal(args.frame_bytes, rows[i].frame_bytes);
		assert_int_equal(args.ring_frames, rows[i].ring_frames);
	}
}

static void each_kind_is_known_by_its_name(void **state) {
	struct parse_error error;
	struct dpdk_args args;

	(void)state;
	assert_int_equal(
		dpdk_args_parse("net_memif9,role=server,socket=x", mtu_of_machine, &error, &args), 0
	);
	assert_int_equal(args.kind, DPDK_MEMIF);
	assert_true(args.memif_server);
	assert_string_equal(args.socket, "x");
	assert_string_equal(args.name, "net_memif9");
}

static void a_pci_address_gets_the_name_that_its_port_will_have(void **state) {
	static const struct {
		const char *text, *name;
	} rows[] = {
		{"0000:03:00.1", "0000:03:00.1"},
		{"03:00.1", "0000:03:00.1"},
		{"3:0.1", "0000:03:00.1"},
		{"1:A:1F.7", "0001:0a:1f.7"},
		{"10000:03:00.1", NULL},
		{"03:00", NULL},
		{"3:0.12", NULL},
		{"0:3:0:1", NULL},
		{":03:00.1", NULL},
		{"03:00.1x", NULL},
	};
	struct parse_error error;
	struct dpdk_args args;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		bool is_pci = rows[i].name != NULL;

		assert_int_equal(dpdk_args_parse(rows[i].text, mtu_of_machine, &error, &args), 0);
		assert_int_equal(args.kind, is_pci ? DPDK_PCI : DPDK_OTHER);
		assert_string_equal(args.devargs, is_pci ? rows[i].name : rows[i].text);
	}
}

static void the_gateway_is_ours_and_not_the_drivers(void **state) {
	struct parse_error error;
	struct dpdk_args args;

	(void)state;
	assert_int_equal(
		dpdk_args_parse(
			"net_memif0,gateway=2001:db8::1/64,id=1", mtu_of_machine, &error, &args
		),
		0
	);
	assert_int_equal(args.gateway.family, SOCK_ADDR_V6);
	assert_int_equal(args.prefix_bits, 64);
	assert_string_equal(args.devargs, "net_memif0,id=1,bsize=4608");
}

// The MTU of a cable is unknown, so the default is 1500, as in the kernel.
static void an_mtu_is_ours_and_not_the_drivers(void **state) {
	static const struct {
		const char *text, *devargs;
		uint32_t mtu, frame_bytes;
	} rows[] = {
		{"0000:03:00.0", "0000:03:00.0", 1500, 0},
		{"0000:03:00.0,mtu=4100", "0000:03:00.0", 4100, 0},
		{"0000:03:00.0,mtu=9000", "0000:03:00.0", FRAME_BYTES_MAX, 0},
		{"net_memif0,mtu=1500", "net_memif0,bsize=4608", 0, 1514},
		{"net_memif0,mtu=9000", "net_memif0,bsize=4608", 0, 14 + FRAME_BYTES_MAX},
		{"net_af_packet1,iface=jumbo0,mtu=1280",
		 "net_af_packet1,iface=jumbo0,framesz=8192,blocksz=65536,framecnt=512", 0, 1294},
	};
	struct parse_error error;
	struct dpdk_args args;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(dpdk_args_parse(rows[i].text, mtu_of_machine, &error, &args), 0);
		assert_string_equal(args.devargs, rows[i].devargs);
		assert_int_equal(args.mtu, rows[i].mtu);
		assert_int_equal(args.frame_bytes, rows[i].frame_bytes);
	}
}

static void a_memif_gets_an_address_that_stays(void **state) {
	static const union ibv_gid gid = {.raw = {[10] = 0xff, [11] = 0xff, 192, 0, 2, 7}};
	struct parse_error error;
	struct dpdk_args args;

	(void)state;
	assert_int_equal(dpdk_args_parse("net_memif0", mtu_of_machine, &error, &args), 0);
	assert_int_equal(dpdk_args_set_mac(&args, &gid), 0);
	assert_string_equal(args.devargs, "net_memif0,bsize=4608,mac=02:ff:c0:00:02:07");
	assert_int_equal(
		dpdk_args_parse("net_memif0,mac=02:1:2:3:4:5", mtu_of_machine, &error, &args), 0
	);
	assert_int_equal(dpdk_args_set_mac(&args, &gid), 0);
	assert_string_equal(args.devargs, "net_memif0,mac=02:1:2:3:4:5,bsize=4608");
}

static void what_cannot_be_is_said(void **state) {
	static const struct {
		const char *text, *says;
		int err;
	} rows[] = {
		{"", "net_memif0", -EINVAL},
		{",id=1", "net_memif0", -EINVAL},
		{"net_memif0,id", "KEY=VALUE", -EINVAL},
		{"net_memif0,,id=1", "KEY=VALUE", -EINVAL},
		{"net_memif0,id=x", "\"x\"", -EINVAL},
		{"net_memif0,bsize=70000", "65535", -EINVAL},
		{"net_memif0,rsize=15", "14", -EINVAL},
		{"net_memif0,socket=", "socket", -EINVAL},
		{"net_memif0,gateway=192.0.2.1", "ADDRESS/PREFIX", -EINVAL},
		{"net_memif0,gateway=192.0.2.1/33", "32", -EINVAL},
		{"net_memif0,gateway=nowhere/24", "nowhere", -EINVAL},
		{"0000:03:00.0,mtu=255", "256", -EINVAL},
		{"net_af_packet0", "iface=NAME", -EINVAL},
		{"net_af_packet0,iface=", "iface", -EINVAL},
		{"net_af_packet0,iface=veth7", "veth7", -ENODEV},
		{"net_af_packet0,iface=veth0,framesz=12", "512", -EINVAL},
	};
	struct parse_error error;
	struct dpdk_args args;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		memset(&args, 0x5a, sizeof(args));
		assert_int_equal(
			dpdk_args_parse(rows[i].text, mtu_of_machine, &error, &args), rows[i].err
		);
		assert_non_null(strstr(error.text, rows[i].says));
		assert_int_equal(args.memif_id, 0x5a5a5a5a);
	}
}

static void too_much_is_refused_and_not_cut(void **state) {
	char text[SOFT_WIRE_ARGS_MAX * 3];
	struct parse_error error;
	struct dpdk_args args;

	(void)state;
	memset(text, 'x', sizeof(text));
	memcpy(text, "net_ring0,a=", 12);
	text[sizeof(text) - 1] = '\0';
	assert_int_equal(dpdk_args_parse(text, mtu_of_machine, &error, &args), -EINVAL);
}

UNIT_GROUP(soft_wire_dpdk_args) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_not_named_is_completed),
		cmocka_unit_test(each_kind_is_known_by_its_name),
		cmocka_unit_test(a_pci_address_gets_the_name_that_its_port_will_have),
		cmocka_unit_test(the_gateway_is_ours_and_not_the_drivers),
		cmocka_unit_test(an_mtu_is_ours_and_not_the_drivers),
		cmocka_unit_test(a_memif_gets_an_address_that_stays),
		cmocka_unit_test(what_cannot_be_is_said),
		cmocka_unit_test(too_much_is_refused_and_not_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
