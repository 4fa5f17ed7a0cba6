// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes reports of NCCL's RAS. The result must not depend on the pieces in which the report
// arrives.
#include <lib/must.h>
#include <support/fuzz.h>

#include <jobs/host/nccl_report.h>
#include <string.h>

struct seen {
	uint32_t count;
	uint64_t sum;
};

static void see(void *ctx, const struct nccl_rank *rank) {
	struct seen *seen = ctx;

	must(rank->rank < rank->size && rank->cuda_device >= -1 && rank->nvml_device >= -1);
	seen->count++;
	seen->sum = seen->sum * 31 + rank->comm_hash + rank->rank + (uint32_t)rank->pid;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct seen whole = {0}, pieces = {0};
	struct nccl_report report;
	int err, again = 0;
	bool over;

	nccl_report_begin(&report, see, &whole);
	err = nccl_report_feed(&report, (const char *)data, size);
	over = nccl_report_is_complete(&report);
	nccl_report_begin(&report, see, &pieces);
	for (size_t n = 0; n < size && again == 0; n++)
		again = nccl_report_feed(&report, (const char *)data + n, 1);
	must(err == again && over == nccl_report_is_complete(&report));
	must(whole.count == pieces.count && whole.sum == pieces.sum);
	return 0;
}
