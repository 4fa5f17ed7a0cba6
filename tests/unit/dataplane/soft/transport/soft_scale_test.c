// SPDX-License-Identifier: BSD-3-Clause
// Tests of the memory that a device allocates, as counted by the allocator. Resident memory would
// depend on use.
#include "dataplane/soft/soft_bed.h"

#include <malloc.h>

#define QPS 1000
#define BYTES_MAX ((size_t)64 << 20)

static size_t allocated(void) {
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

static void a_thousand_queue_pairs_take_64_mib_at_most(void **state) {
	static struct ibv_qp *qps[QPS];
	struct bed_end *here = &bed.ends[0];
	size_t before = allocated(), taken;

	(void)state;
	for (uint32_t n = 0; n < QPS; n++) {
		struct ibv_qp_init_attr attr = bed_qp_attr(here);

		attr.cap = (struct ibv_qp_cap){128, 128, 4, 4, 64};
		assert_int_equal(verbs_calls_soft.create_qp(here->pd, &attr, &qps[n]), 0);
	}
	taken = allocated() - before;
	print_message("# %zu bytes for %d queue pairs\n", taken, QPS);
	for (uint32_t n = 0; n < QPS; n++)
		assert_int_equal(verbs_calls_soft.destroy_qp(qps[n]), 0);
	assert_in_range(taken, 1, BYTES_MAX);
}

UNIT_GROUP(soft_scale) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_thousand_queue_pairs_take_64_mib_at_most, bed_make, bed_end
		),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
