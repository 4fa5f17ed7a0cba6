// SPDX-License-Identifier: BSD-3-Clause
// The ports are opened as the software device opens its own, by the same code.
#include "floor_memif.h"

#include "wire/wire_dpdk_port.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FRAME_BYTES 64
#define LINK_NS UINT64_C(3000000000)

struct memif_pair {
	struct dpdk_port ports[2];
};

static int no_interface(const char *iface) {
	(void)iface;
	return -ENODEV;
}

static int port_open(struct memif_pair *pair, int end, struct lab_why *why) {
	char text[DPDK_DEVARGS_MAX], reason[SOFT_HOLDER_MAX + 1] = "";
	struct parse_error error = {.text = ""};
	struct dpdk_args args;
	int err;

	// The name is abstract: of no file system, and of this process alone.
	snprintf(
		text, sizeof(text), "net_memif%d,role=%s,socket=tocsin-floor-%d", end,
		end == 0 ? "server" : "client", (int)getpid()
	);
	err = dpdk_args_parse(text, no_interface, &error, &args);
	if (err != 0)
		return lab_fail(why, err, "%s", error.text);
	err = dpdk_port_open(&args, reason, &pair->ports[end]);
	return err == 0 ? 0 : lab_fail(why, err, "%s", reason);
}

static int link_await(struct memif_pair *pair, const struct clock *clock, struct lab_why *why) {
	uint64_t end_ns = clock_now_ns(clock) + LINK_NS, now_ns;

	while (!pair->ports[0].link || !pair->ports[1].link) {
		now_ns = clock_now_ns(clock);
		if (now_ns > end_ns)
			return lab_fail(why, -ETIMEDOUT, "its two ends did not meet within 3 s");
		for (int end = 0; end < 2; end++)
			dpdk_port_tend(&pair->ports[end], now_ns);
		usleep(1000);
	}
	return 0;
}

int memif_pair_create(
	const struct clock *clock, struct memif_pair **ret_pair, struct lab_why *why
) {
	struct memif_pair *pair = calloc(1, sizeof(*pair));
	int err = pair == NULL ? -ENOMEM : 0;

	for (int end = 0; end < 2 && err == 0; end++)
		err = port_open(pair, end, why);
	if (err == 0)
		err = link_await(pair, clock, why);
	if (err != 0) {
		memif_pair_destroy(pair);
		return err;
	}
	*ret_pair = pair;
	return 0;
}

struct memif_pair *memif_pair_destroy(struct memif_pair *pair) {
	if (pair == NULL)
		return NULL;
	for (int end = 1; end >= 0; end--)
		dpdk_port_close(&pair->ports[end]);
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
