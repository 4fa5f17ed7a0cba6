// SPDX-License-Identifier: BSD-3-Clause
// The mark that PAIRS and PATHS have in common.
#include <lib/fact.h>
#include <records/shared.h>

const char *congestion_mark(const json_t *row) {
	if (fact_is(row, "port_congestion", "congested"))
		return "^";
	return fact_is(row, "port_congestion", "pause-storm") ? "!" : "";
}
