// SPDX-License-Identifier: BSD-3-Clause
// The rows of the software device's benchmark.
#include "soft_rows.h"

#include <stdio.h>
#include <unistd.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))
#define MS UINT64_C(1000000)
#define PING_BYTES 8
#define PING_PACKET_BYTES 40 // BTH, RETH, 8 bytes, ICRC
#define BULK_BYTES 65536
#define MTU_PACKET_BYTES 4128 // BTH, a RETH in one of sixteen packets, ICRC
#define QUEUE_PAIRS 1000
#define ARGS_MAX 96

static char memif_server[ARGS_MAX], memif_client[ARGS_MAX];
static char raw_server[ARGS_MAX], raw_client[ARGS_MAX];

static const struct soft_setup udp_small = {.kind = &soft_udp, .packet_bytes = PING_PACKET_BYTES};
static const struct soft_setup udp_large = {.kind = &soft_udp, .packet_bytes = MTU_PACKET_BYTES};
static const struct soft_setup on_udp = {
	.kind = &soft_verbs, .calls = &verbs_calls_soft, .wire = SOFT_WIRE_UDP, .timeout = 17};
static const struct soft_setup on_udp_together = {
	.kind = &soft_verbs,
	.calls = &verbs_calls_soft,
	.wire = SOFT_WIRE_UDP,
	.together = true,
	.timeout = 17};
static const struct soft_setup on_udp_fast = {
	.kind = &soft_verbs, .calls = &verbs_calls_soft, .wire = SOFT_WIRE_UDP, .timeout = 10};
static const struct soft_setup on_udp_lossy = {
	.kind = &soft_verbs,
	.calls = &verbs_calls_soft,
	.wire = SOFT_WIRE_UDP,
	.timeout = 10,
	.faults = "loss=1%,seed=1"};
static const struct soft_setup on_memif = {
	.kind = &soft_verbs,
	.calls = &verbs_calls_soft,
	.wire = SOFT_WIRE_DPDK,
	.wire_args = {memif_server, memif_client},
	.address = {"10.77.0.1", "10.77.0.2"},
	.timeout = 17};
static const struct soft_setup raw_memif = {
	.kind = &soft_raw_dpdk,
	.wire = SOFT_WIRE_DPDK,
	.wire_args = {raw_server, raw_client},
	.packet_bytes = PING_PACKET_BYTES};
static const struct soft_setup on_veth = {
	.kind = &soft_verbs,
	.calls = &verbs_calls_soft,
	.wire = SOFT_WIRE_DPDK,
	.wire_args = {"net_af_packet0,iface=" SOFT_VETH, "net_af_packet0,iface=" SOFT_VETH},
	.address = {"10.77.0.1", "10.77.0.2"},
	.apart = true,
	.timeout = 17};
static const struct soft_setup raw_veth = {
	.kind = &soft_raw_dpdk,
	.wire = SOFT_WIRE_DPDK,
	.wire_args = {"net_af_packet0,iface=" SOFT_VETH, "net_af_packet0,iface=" SOFT_VETH},
	.apart = true,
	.packet_bytes = PING_PACKET_BYTES};

// The rxe devices of the guest occupy port 4791 in their namespace, and are connected by a veth
// pair, too.
static const struct soft_setup on_udp_apart = {
	.kind = &soft_verbs,
	.calls = &verbs_calls_soft,
	.wire = SOFT_WIRE_UDP,
	.address = {"10.77.0.1", "10.77.0.2"},
	.apart = true,
	.timeout = 17};
static const struct soft_setup on_rxe = {
	.kind = &soft_verbs,
	.calls = &verbs_calls_system,
	.device = {"rxe0", "rxe1"},
	.timeout = 17};

// clang-format off
static const struct soft_row rows_plain[] = {
	{{"udp: 8-byte write, one way, polling", "us", "UDP ping-pong of two sockets, spinning",
	  SOFT_JUDGED_RATIO, false, 1.5},
	 &on_udp, {SOFT_PING, 4000, PING_BYTES, 0}, 1e-3, &udp_small, {SOFT_PING, 4000, 0, 0}},
	{{"memif: 8-byte write, one way, polling", "us", "memif frames by DPDK alone, spinning",
	  SOFT_JUDGED_VALUE, false, 1.5},
	 &on_memif, {SOFT_PING, 4000, PING_BYTES, 0}, 1e-3, &raw_memif, {SOFT_PING, 4000, 0, 0}},
	{{"veth: 8-byte write, one way, polling", "us", "af_packet frames by DPDK alone, spinning",
	  SOFT_JUDGED_RATIO, false, 1.5},
	 &on_veth, {SOFT_PING, 4000, PING_BYTES, 0}, 1e-3, &raw_veth, {SOFT_PING, 4000, 0, 0}},
	{{"udp: 8-byte write, one way, on memory", "us", "one block-and-wake",
	  SOFT_JUDGED_RATIO, false, 1.3},
	 &on_udp, {SOFT_PING_MEMORY, 1000, PING_BYTES, 0}, 1e-3,
	 &udp_small, {SOFT_BLOCK_COST, 0, 0, 0}},
	{{"udp: the same", "us", "UDP ping-pong of two sockets, blocking",
	  SOFT_JUDGED_RATIO, false, 0},
	 &on_udp, {SOFT_PING_MEMORY, 1000, PING_BYTES, 0}, 1e-3,
	 &udp_small, {SOFT_PING_BLOCK, 1000, 0, 0}},
	{{"udp: both ends spin on one core, one way", "us", "the same on two cores",
	  SOFT_JUDGED_VALUE, false, 300},
	 &on_udp_together, {SOFT_PING, 100, PING_BYTES, 0}, 1e-3,
	 &on_udp, {SOFT_PING, 100, PING_BYTES, 0}},
	{{"udp: 64 KiB writes", "GB/s", "UDP blast, 4128 bytes a packet",
	  SOFT_JUDGED_RATIO, true, 0.8},
	 &on_udp, {SOFT_BULK, 0, BULK_BYTES, 100 * MS}, 1e-9,
	 &udp_large, {SOFT_BULK, 0, 0, 100 * MS}},
	{{"udp: 64 KiB writes, 1 % lost", "GB/s", "nothing lost; timeout 10 in both",
	  SOFT_JUDGED_RATIO, true, 0.6},
	 &on_udp_lossy, {SOFT_BULK, 0, BULK_BYTES, 200 * MS}, 1e-9,
	 &on_udp_fast, {SOFT_BULK, 0, BULK_BYTES, 200 * MS}},
	{{"udp: 8-byte writes, a CPU second", "M/s", NULL, SOFT_JUDGED_VALUE, true, 0},
	 &on_udp, {SOFT_RATE, 0, PING_BYTES, 100 * MS}, 1e-6, NULL, {0}},
	{{"udp: idle device", "% cpu", NULL, SOFT_JUDGED_VALUE, false, 0.1},
	 &on_udp, {SOFT_IDLE, 0, 0, 500 * MS}, 1, NULL, {0}},
	{{"udp: 1,000 queue pairs, resident", "MiB", NULL, SOFT_JUDGED_VALUE, false, 64},
	 &on_udp, {SOFT_MEMORY, QUEUE_PAIRS, 0, 0}, 1, NULL, {0}},
};

// Fewer round trips, because the guest's processor is emulated. The software device on the udp wire
// and on af_packet uses a veth pair, as the kernel's device does.
static const struct soft_row rows_rxe[] = {
	{{"udp: 8-byte write, one way, polling", "us", "the kernel's Soft-RoCE, veth",
	  SOFT_JUDGED_RATIO, false, 1},
	 &on_udp_apart, {SOFT_PING, 300, PING_BYTES, 0}, 1e-3,
	 &on_rxe, {SOFT_PING, 300, PING_BYTES, 0}},
	{{"veth: 8-byte write, one way, polling", "us", "the kernel's Soft-RoCE, veth",
	  SOFT_JUDGED_RATIO, false, 1},
	 &on_veth, {SOFT_PING, 300, PING_BYTES, 0}, 1e-3,
	 &on_rxe, {SOFT_PING, 300, PING_BYTES, 0}},
	{{"memif: 8-byte write, one way, polling", "us", "the kernel's Soft-RoCE, veth",
	  SOFT_JUDGED_RATIO, false, 1},
	 &on_memif, {SOFT_PING, 300, PING_BYTES, 0}, 1e-3,
	 &on_rxe, {SOFT_PING, 300, PING_BYTES, 0}},
	{{"udp: 8-byte write, one way, on memory", "us", "the kernel's Soft-RoCE, veth",
	  SOFT_JUDGED_RATIO, false, 0},
	 &on_udp_apart, {SOFT_PING_MEMORY, 100, PING_BYTES, 0}, 1e-3,
	 &on_rxe, {SOFT_PING_MEMORY, 100, PING_BYTES, 0}},
	{{"udp: 64 KiB writes", "MB/s", "the kernel's Soft-RoCE, veth",
	  SOFT_JUDGED_RATIO, true, 1},
	 &on_udp_apart, {SOFT_BULK, 0, BULK_BYTES, 500 * MS}, 1e-6,
	 &on_rxe, {SOFT_BULK, 0, BULK_BYTES, 500 * MS}},
	{{"veth: 64 KiB writes", "MB/s", "the kernel's Soft-RoCE, veth",
	  SOFT_JUDGED_RATIO, true, 1},
	 &on_veth, {SOFT_BULK, 0, BULK_BYTES, 500 * MS}, 1e-6,
	 &on_rxe, {SOFT_BULK, 0, BULK_BYTES, 500 * MS}},
	{{"memif: 64 KiB writes", "MB/s", "the kernel's Soft-RoCE, veth",
	  SOFT_JUDGED_RATIO, true, 1},
	 &on_memif, {SOFT_BULK, 0, BULK_BYTES, 500 * MS}, 1e-6,
	 &on_rxe, {SOFT_BULK, 0, BULK_BYTES, 500 * MS}},
};
// clang-format on

const struct soft_rows soft_rows_plain = {"soft", rows_plain, COUNT_OF(rows_plain)};
const struct soft_rows soft_rows_rxe = {"soft-rxe", rows_rxe, COUNT_OF(rows_rxe)};

// A memif socket name is valid for the whole machine, where other benchmarks may run.
static void name_memif(char *args, const char *role, const char *of) {
	snprintf(
		args, ARGS_MAX, "net_memif0,role=%s,id=0,socket=@tocsin-soft-bench-%s-%d", role, of,
		getpid()
	);
}

void soft_rows_prepare(void) {
	name_memif(memif_server, "server", "device");
	name_memif(memif_client, "client", "device");
	name_memif(raw_server, "server", "raw");
	name_memif(raw_client, "client", "raw");
}
