// SPDX-License-Identifier: BSD-3-Clause
// Pair of memif ports. The ports are opened by the code of the software device.
#include "run/floor_memif.h"

#include "wire/wire_dpdk_port.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FRAME_BYTES 64
#define LINK_NS UINT64_C(3000000000)
#define SETTLE_TURN_US 200
#define SETTLE_TURNS 5000 // one second

struct memif_pair {
	struct dpdk_port ports[2];
};

static int reject_interface(const char *iface) {
	(void)iface;
	return -ENODEV;
}

static int port_open(struct memif_pair *pair, int end, struct lab_why *why) {
	char text[DPDK_DEVARGS_MAX], reason[SOFT_REASON_MAX + 1] = "";
	struct parse_error error = {.text = ""};
	struct dpdk_args args;
	int err;

	// The socket name is abstract: it is in no file system, and unique to this process.
	snprintf(
		text, sizeof(text), "net_memif%d,role=%s,socket=tocsin-floor-%d", end,
		end == 0 ? "server" : "client", (int)getpid()
	);
	err = dpdk_args_parse(text, reject_interface, &error, &args);
	if (err != 0)
		return lab_fail(why, err, "%s", error.text);
	err = dpdk_port_open(&args, reason, &pair->ports[end]);
	return err == 0 ? 0 : lab_fail(why, err, "%s", reason);
}

int memif_pair_create(
	const struct clock *clock, struct memif_pair **ret_pair, struct lab_why *why
) {
	struct memif_pair *pair = calloc(1, sizeof(*pair));
	uint64_t end_ns, now_ns;
	int err = pair == NULL ? -ENOMEM : 0;

	for (int end = 0; end < 2 && err == 0; end++)
		err = port_open(pair, end, why);
	end_ns = clock_now_ns(clock) + LINK_NS;
	while (err == 0 && (!pair->ports[0].link || !pair->ports[1].link)) {
		now_ns = clock_now_ns(clock);
		if (now_ns > end_ns) {
			err = lab_fail(why, -ETIMEDOUT, "its two ends did not meet within 3 s");
			break;
		}
		for (int end = 0; end < 2; end++)
			dpdk_port_maintain(&pair->ports[end], now_ns);
		usleep(1000);
	}
	if (err != 0) {
		memif_pair_destroy(pair);
		return err;
	}
	*ret_pair = pair;
	return 0;
}

static void on_cleanup_done(void *ctx) {
	atomic_store_explicit((atomic_bool *)ctx, true, memory_order_relaxed);
}

// Wait until EAL has cleaned up after the other end was closed. EAL's interrupt thread notices the
// closed end and cleans up this port. Closing this port meanwhile would let two threads clean it
// up. The same thread runs alarms, so an alarm that has run proves that the cleanup is finished.
static void peer_wait_closed(const struct dpdk_port *port) {
	atomic_bool settled = false;
	struct rte_eth_link link = {.link_status = RTE_ETH_LINK_UP};

	for (uint32_t turn = 0; turn < SETTLE_TURNS && link.link_status == RTE_ETH_LINK_UP;
	     turn++) {
		usleep(SETTLE_TURN_US);
		if (rte_eth_link_get_nowait(port->id, &link) != 0)
			return;
	}
	if (rte_eal_alarm_set(1, on_cleanup_done, &settled) != 0)
		return;
	for (uint32_t turn = 0; turn < SETTLE_TURNS; turn++) {
		if (atomic_load_explicit(&settled, memory_order_relaxed))
			return;
		usleep(SETTLE_TURN_US);
	}
	(void)rte_eal_alarm_cancel(on_cleanup_done, &settled);
}

struct memif_pair *memif_pair_destroy(struct memif_pair *pair) {
	bool both;

	if (pair == NULL)
		return NULL;
	both = pair->ports[0].started && pair->ports[1].link;
	dpdk_port_close(&pair->ports[1]);
	if (both)
		peer_wait_closed(&pair->ports[0]);
	dpdk_port_close(&pair->ports[0]);
	free(pair);
	return NULL;
}

bool memif_pair_send(struct memif_pair *pair, int end) {
	struct dpdk_port *port = &pair->ports[end];
	struct rte_mbuf *mbuf = rte_pktmbuf_alloc(port->pool);

	if (mbuf == NULL)
		return false;
	memset(rte_pktmbuf_mtod(mbuf, uint8_t *), 0xff, FRAME_BYTES);
	mbuf->data_len = FRAME_BYTES;
	mbuf->pkt_len = FRAME_BYTES;
	if (rte_eth_tx_burst(port->id, 0, &mbuf, 1) == 1)
		return true;
	rte_pktmbuf_free(mbuf);
	return false;
}

bool memif_pair_receive(struct memif_pair *pair, int end) {
	struct rte_mbuf *mbuf;

	if (rte_eth_rx_burst(pair->ports[end].id, 0, &mbuf, 1) == 0)
		return false;
	rte_pktmbuf_free(mbuf);
	return true;
}
