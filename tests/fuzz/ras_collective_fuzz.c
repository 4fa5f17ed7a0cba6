// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes collectives. One node runs collectives between two peers that send arbitrary bytes. The
// input is a sequence of steps: flags, size of 16 bits, that many bytes.
#include <lib/must.h>
#include <support/collective_net.h>
#include <support/fuzz.h>

#define VICTIM 1
#define STEP_FROM 0x01	// node 2 sends, else node 0
#define STEP_CLOCK 0x02 // one second passes first
#define STEP_CUT 0x04	// the link is cut afterwards
#define STEP_ASK 0x08	// the victim starts a collective first
#define STEPS_MAX 64

static void arrived(struct net *net, const struct ras_collected_part *part) {
	(void)net;
	must(part->size <= RAS_COLLECT_PART_BYTES_MAX);
}

static void step(struct net *net, uint8_t what, const uint8_t *bytes, size_t size) {
	uint32_t from = (what & STEP_FROM) != 0 ? 2 : 0;
	struct ras *victim = net->nodes[VICTIM].ras;
	uint64_t id;

	if ((what & STEP_ASK) != 0 && ras_collect_counters(victim)->started < NET_RESULTS_MAX)
		(void)ras_collect(victim, net->now_ns, RAS_COLLECT_COMMS, 0, &id);
	if ((what & STEP_CLOCK) != 0)
		net_turn(net, 1000000000);
	if (size > 0)
		(void)net_inject(net, from, VICTIM, bytes, size);
	if ((what & STEP_CUT) != 0)
		net_cut(net, from, VICTIM);
	// Messages that the victim forwards must be well-formed, else its neighbour's must()
	// aborts.
	net_run(net);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct net *net = net_create(3);
	size_t at = 0;

	net_connect(net, 0, VICTIM);
	net_connect(net, VICTIM, 2);
	net->arrived = arrived;
	net->nodes[2].deaf = true; // keeps legs open for the injected bytes
	for (uint32_t n = 0; n < STEPS_MAX && size - at >= 3; n++) {
		uint8_t what = data[at];
		size_t length = data[at + 1] | (size_t)data[at + 2] << 8;

		at += 3;
		if (length > size - at)
			length = size - at;
		step(net, what, data + at, length);
		at += length;
	}
	must(net->used_bytes_max < 1u << 20);
	net_run_out(net);
	must(net_idle(net));
	net_destroy(net);
	return 0;
}
