// SPDX-License-Identifier: BSD-3-Clause
// Cut a history where the ranks before and after differ most.
#include "changes.h"

#include "compare.h"
#include "ranks.h"

#include <lib/must.h>
#include <lib/splitmix.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

// Permutations per 1/alpha.
#define ORDERS_EACH 40
#define ORDERS_MAX 200000u
#define SEED 0x9e3779b97f4a7c15ULL

struct cut {
	uint32_t at; // number of values before the cut
	double height;
};

// Return the position at which ranks differ most, in standard deviations of U at this position.
static struct cut highest_cut(const double *ranks, uint32_t count) {
	struct cut best = {.at = 0, .height = 0};
	double sum = 0, mean = (count + 1) / 2.0;

	for (uint32_t n = 1; n <= count - CHANGES_LENGTH_MIN; n++) {
		double deviation = sqrt((double)n * (count - n) * (count + 1.0) / 12), height;

		sum += ranks[n - 1] - mean;
		height = fabs(sum) / deviation;
		if (n >= CHANGES_LENGTH_MIN && height > best.height)
			best = (struct cut){.at = n, .height = height};
	}
	return best;
}

// Return the share of permutations whose highest cut is at least as high. Stop early if the share
// is clearly above alpha.
static double cut_probability(double height, double *ranks, uint32_t count, double alpha) {
	uint64_t state = SEED ^ count;
	double wanted = ceil(ORDERS_EACH / alpha);
	uint32_t orders = wanted < ORDERS_MAX ? (uint32_t)wanted : ORDERS_MAX;
	uint32_t as_high = 1, drawn = 1; // the given order is one of the permutations

	while (drawn < orders && as_high <= 4 * ORDERS_EACH) {
		for (uint32_t left = count; left > 1; left--) {
			uint32_t other = (uint32_t)(splitmix_next(&state) % left);
			double rank = ranks[left - 1];

			ranks[left - 1] = ranks[other];
			ranks[other] = rank;
		}
		as_high += highest_cut(ranks, count).height >= height - 1e-9;
		drawn++;
	}
	return (double)as_high / drawn;
}

struct cutter {
	const double *values;
	uint32_t whole, most, count;
	double alpha;
	double *scratch, *ranks;
	struct change_part *parts;
};

// Cut a part in two if it has a change. Returns 1 if it was cut, 0 if not, or -E2BIG.
static int part_try_cut(struct cutter *cutter, uint32_t place) {
	struct change_part *part = &cutter->parts[place];
	double alpha = cutter->alpha * part->count / cutter->whole, p;
	struct cut cut;

	if (part->count < 2 * CHANGES_LENGTH_MIN)
		return 0;
	ranks_compute(cutter->values + part->first, part->count, cutter->scratch, cutter->ranks);
	cut = highest_cut(cutter->ranks, part->count);
	if (cut.at == 0)
		return 0;
	p = cut_probability(cut.height, cutter->ranks, part->count, alpha);
	if (p > alpha)
		return 0;
	if (cutter->count == cutter->most)
		return -E2BIG;
	memmove(part + 2, part + 1, (cutter->count - place - 1) * sizeof(*part));
	part[1] = (struct change_part
	){.first = part->first + cut.at, .count = part->count - cut.at, .p = p};
	part->count = cut.at;
	cutter->count++;
	return 1;
}

uint32_t changes_values_min(double alpha) {
	return 2 * compare_runs_min(1 - alpha, 1);
}

int changes_find(
	const double *values,
	uint32_t count,
	double alpha,
	struct change_part *ret_parts,
	uint32_t most
) {
	struct cutter cutter = {
		.values = values,
		.whole = count,
		.most = most,
		.count = 1,
		.alpha = alpha,
		.parts = ret_parts,
	};
	uint32_t place = 0;
	int err = 0;

	must(alpha > 0 && alpha < 1);
	if (count < changes_values_min(alpha))
		return -ERANGE;
	if (most == 0)
		return -E2BIG;
	cutter.scratch = calloc(2 * (size_t)count, sizeof(*cutter.scratch));
	if (cutter.scratch == NULL)
		return -ENOMEM;
	cutter.ranks = cutter.scratch + count;
	ret_parts[0] = (struct change_part){.first = 0, .count = count, .p = 1};
	while (place < cutter.count && err >= 0) {
		err = part_try_cut(&cutter, place);
		place += err == 0;
	}
	free(cutter.scratch);
	return err < 0 ? err : (int)cutter.count;
}
