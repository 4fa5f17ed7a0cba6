// SPDX-License-Identifier: BSD-3-Clause
// Statistics of each flow label of a path.
#include "fabric/flows.h"

#include <string.h>

#define JUDGED_PROBES_MIN 30 // probes of a label before it is compared with others
#define BAD_PERMILLE 20	     // least share of lost and late probes
#define BAD_PROBES_MIN 3     // least number of lost and late probes
#define BAD_RATIO_MIN 3	     // least ratio to the loss of all other labels
#define SLOW_PERMILLE 1750   // share of the fastest other label's median
#define MEDIAN_PPM 500000
#define P99_PPM 990000

void flows_set_label(struct flows *flows, uint32_t label) {
	uint32_t place = 0;

	for (uint32_t n = 0; n < PAIRING_FLOWS; n++) {
		if (flows->all[n].used && flows->all[n].label == label) {
			flows->current = n;
			return;
		}
		if (flows->all[n].probes < flows->all[place].probes)
			place = n;
	}
	memset(&flows->all[place], 0, sizeof(flows->all[place]));
	flows->all[place].label = label;
	flows->all[place].used = true;
	histogram_log2_init(&flows->all[place].small);
	flows->current = place;
}

void flows_record(struct flows *flows, bool answered, bool late, bool small, uint64_t latency_ns) {
	if (!flows->all[flows->current].used)
		return;
	flows->all[flows->current].probes++;
	flows->all[flows->current].lost += !answered;
	flows->all[flows->current].late += answered && late;
	if (answered && small)
		histogram_log2_record(&flows->all[flows->current].small, latency_ns);
}

// Compare a label with all others together. Both sides need enough probes.
static bool label_is_lossy(const struct fabric_flow *flows, uint32_t count, uint32_t self) {
	uint64_t amiss = flows[self].lost + flows[self].late, probes = flows[self].probes;
	uint64_t other_amiss = 0, other_probes = 0;

	for (uint32_t n = 0; n < count; n++) {
		other_amiss += n != self ? flows[n].lost + flows[n].late : 0;
		other_probes += n != self ? flows[n].probes : 0;
	}
	return probes >= JUDGED_PROBES_MIN && other_probes >= JUDGED_PROBES_MIN &&
	       amiss >= BAD_PROBES_MIN && amiss * 1000 >= probes * BAD_PERMILLE &&
	       (double)amiss * (double)other_probes >=
		       BAD_RATIO_MIN * (double)other_amiss * (double)probes;
}

static bool label_is_slow(const struct fabric_flow *flows, uint32_t count, uint32_t self) {
	uint64_t least_ns = UINT64_MAX;

	for (uint32_t n = 0; n < count; n++) {
		if (n != self && flows[n].probes >= JUDGED_PROBES_MIN && flows[n].median_ns > 0 &&
		    flows[n].median_ns < least_ns)
			least_ns = flows[n].median_ns;
	}
	return least_ns != UINT64_MAX && flows[self].probes >= JUDGED_PROBES_MIN &&
	       (double)flows[self].median_ns * 1000 > (double)least_ns * SLOW_PERMILLE;
}

uint32_t flows_list(const struct flows *flows, struct fabric_flow ret_flows[static PAIRING_FLOWS]) {
	uint32_t count = 0;

	for (uint32_t n = 0; n < PAIRING_FLOWS; n++) {
		if (!flows->all[n].used)
			continue;
		ret_flows[count++] = (struct fabric_flow){
			.label = flows->all[n].label,
			.current = n == flows->current,
			.probes = flows->all[n].probes,
			.lost = flows->all[n].lost,
			.late = flows->all[n].late,
			.median_ns = histogram_log2_percentile(&flows->all[n].small, MEDIAN_PPM),
			.p99_ns = histogram_log2_percentile(&flows->all[n].small, P99_PPM),
		};
	}
	for (uint32_t n = 0; n < count; n++)
		ret_flows[n].bad =
			label_is_lossy(ret_flows, count, n) || label_is_slow(ret_flows, count, n);
	return count;
}
