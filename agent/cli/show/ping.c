// SPDX-License-Identifier: BSD-3-Clause
// Shows the answers of PING and PROBE, one line each.
#include "show/answers.h"

#include <inttypes.h>

void show_ping(struct page *page, const json_t *answer) {
	uint64_t hops = fact_number(answer, "hops");
	char took[SHOW_BYTES];

	fact_duration(answer, "round_trip_ns", took);
	page_print(
		page, "%s answers: %s there and back, %" PRIu64 " hop%s%s\n",
		fact_name(answer, "node"), took, hops, hops == 1 ? "" : "s",
		fact_number(answer, "tries") > 1 ? ", tried again" : ""
	);
}

void show_rdma_ping(struct page *page, const json_t *answer) {
	char min[SHOW_BYTES], p50[SHOW_BYTES], p99[SHOW_BYTES], max[SHOW_BYTES];

	fact_duration(answer, "min_ns", min);
	fact_duration(answer, "p50_ns", p50);
	fact_duration(answer, "p99_ns", p99);
	fact_duration(answer, "max_ns", max);
	page_print(
		page,
		"%s answers by RDMA, %s to %s: %" PRIu64 " reads of %" PRIu64
		" bytes, min %s, p50 %s, p99 %s, max %s\n",
		fact_name(answer, "node"), fact_name(answer, "device"),
		fact_name(answer, "peer_device"), fact_number(answer, "answered"),
		fact_number(answer, "bytes"), min, p50, p99, max
	);
}
