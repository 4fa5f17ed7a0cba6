// SPDX-License-Identifier: BSD-3-Clause
// Columns that PAIRS and PATHS have in common.
#include <lib/fact.h>
#include <records/shared.h>

const char *congestion_mark(const json_t *row) {
	if (fact_is(row, "port_congestion", "congested"))
		return "^";
	return fact_is(row, "port_congestion", "pause-storm") ? "!" : "";
}

void show_both_devices(const json_t *row, char text[static SHOW_BYTES]) {
	snprintf(
		text, SHOW_BYTES, "%.31s>%.31s", fact_name(row, "device"),
		fact_word(row, "peer_device")
	);
}
