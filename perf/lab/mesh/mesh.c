// SPDX-License-Identifier: BSD-3-Clause
// Matrix of a mesh: memory, rounds and the figures of a cell.
#include "mesh/mesh.h"

#include <lib/must.h>

#include <errno.h>
#include <quantile.h>
#include <record.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEVEL 0.95

const uint32_t mesh_per_million[MESH_QUANTILES] = {500000, 900000, 990000};

int mesh_create(const struct plan *plan, uint32_t count, struct mesh *ret_mesh) {
	struct mesh mesh = {.plan = *plan, .count = count};

	must(count >= 2 && count <= MESH_NODES_MAX);
	mesh.nodes = calloc(count, sizeof(*mesh.nodes));
	mesh.cells = calloc((size_t)count * count, sizeof(*mesh.cells));
	if (mesh.nodes == NULL || mesh.cells == NULL) {
		mesh_release(&mesh);
		return -ENOMEM;
	}
	*ret_mesh = mesh;
	return 0;
}

void mesh_release(struct mesh *mesh) {
	for (size_t n = 0; mesh->cells != NULL && n < (size_t)mesh->count * mesh->count; n++)
		histogram_destroy(mesh->cells[n].kept);
	free(mesh->cells);
	free(mesh->nodes);
	free(mesh->flows);
	free(mesh->incasts);
	mesh->flows = NULL;
	mesh->incasts = NULL;
	mesh->cells = NULL;
	mesh->nodes = NULL;
}

// Compare two machines by the identity that agents report, else by host name.
static bool nodes_share_machine(const struct mesh_node *one, const struct mesh_node *other) {
	if (one->machine[0] != '\0' && other->machine[0] != '\0')
		return strcmp(one->machine, other->machine) == 0;
	return strcmp(one->host, other->host) == 0;
}

bool mesh_is_shared_host(const struct mesh *mesh) {
	for (uint32_t one = 0; one < mesh->count; one++) {
		for (uint32_t other = 0; other < one; other++) {
			if (mesh->nodes[one].joined && mesh->nodes[other].joined &&
			    nodes_share_machine(&mesh->nodes[one], &mesh->nodes[other]))
				return true;
		}
	}
	return false;
}

int mesh_histogram_create(struct histogram **ret_kept) {
	const struct histogram_shape shape = {
		.value_min = 1,
		.value_max = HISTOGRAM_VALUE_MAX,
		.precision_bits = 7,
		.counter_bits = 64,
	};

	return histogram_create(&shape, ret_kept);
}

int mesh_samples_to_histogram(struct run_record *times, double scale, struct histogram **ret_kept) {
	struct indicator_block blocks[RECORD_BLOCKS_MAX];
	uint32_t count = run_record_blocks(times, blocks);
	int err = mesh_histogram_create(ret_kept);

	for (uint32_t n = 0; n < count && err == 0; n++) {
		for (uint32_t at = 0; at < blocks[n].count; at++)
			histogram_record(
				*ret_kept, (uint64_t)((double)blocks[n].samples[at] * scale + 0.5)
			);
	}
	return err;
}

static struct histogram_span bucket_of_rank(const struct histogram *kept, uint64_t rank) {
	struct histogram_span span = {.lowest = 0};

	must(histogram_at_rank(kept, rank, &span) == 0);
	return span;
}

void mesh_cell_compute(struct mesh_cell *cell) {
	struct histogram_summary all;

	histogram_summarize(cell->kept, &all);
	cell->count = all.count;
	cell->measured = all.count > 0;
	cell->min_ns = all.min;
	cell->max_ns = all.max;
	for (uint32_t n = 0; n < MESH_QUANTILES && cell->measured; n++) {
		struct mesh_quantile *quantile = &cell->quantiles[n];
		uint64_t share = cell->count * mesh_per_million[n];
		uint64_t rank = (share + QUANTILE_ONE - 1) / QUANTILE_ONE;
		double effective = (double)cell->count / cell->taus[n];
		struct histogram_span bucket;
		struct quantile_ranks ranks;

		*quantile = (struct mesh_quantile){.known = false};
		effective = effective >= 1 ? effective : 1;
		if (quantile_interval(cell->count, effective, mesh_per_million[n], LEVEL, &ranks) !=
		    0)
			continue;

		// A histogram does not show where in a bucket a sample lies, so the interval
		// includes whole buckets.
		bucket = bucket_of_rank(cell->kept, rank);
		*quantile = (struct mesh_quantile){
			.known = true,
			.value_ns = bucket.lowest + (bucket.highest - bucket.lowest) / 2,
			.low_ns = bucket_of_rank(cell->kept, ranks.low).lowest,
			.high_ns = bucket_of_rank(cell->kept, ranks.high).highest,
		};
	}
}

void mesh_cell_add_run(struct mesh_cell *cell, struct histogram *kept, const double *taus) {
	struct mesh_cell run = {.kept = kept};

	memcpy(run.taus, taus, sizeof(run.taus));
	mesh_cell_compute(&run);
	if (cell->measured && (!run.quantiles[0].known ||
			       (cell->quantiles[0].known &&
				run.quantiles[0].value_ns >= cell->quantiles[0].value_ns))) {
		histogram_destroy(run.kept);
		return;
	}
	histogram_destroy(cell->kept);
	*cell = run;
}

uint32_t mesh_count_measured(const struct mesh *mesh) {
	uint32_t count = 0;

	for (size_t n = 0; n < (size_t)mesh->count * mesh->count; n++)
		count += mesh->cells[n].measured;
	return count;
}

uint32_t mesh_rounds(uint32_t count) {
	return count % 2 == 0 ? count - 1 : count;
}

// Circle method: with an even count the last process is fixed, and the others rotate. Opposite
// processes meet. With an odd count there is no fixed process, and the process opposite to its
// place pauses.
uint32_t mesh_round(uint32_t count, uint32_t round, struct mesh_pair *ret_pairs) {
	uint32_t circle = mesh_rounds(count), pairs = 0;

	if (count % 2 == 0)
		ret_pairs[pairs++] = (struct mesh_pair){round % circle, count - 1};
	for (uint32_t step = 1; step <= (circle - 1) / 2; step++)
		ret_pairs[pairs++] = (struct mesh_pair
		){(round + step) % circle, (round + circle - step) % circle};
	return pairs;
}

// Return the length of a host name without its domain. If another host has the same short name,
// include the domain.
static int host_label_length(const struct mesh *mesh, uint32_t place) {
	const char *host = mesh->nodes[place].host;
	size_t length = strcspn(host, ".");

	for (uint32_t n = 0; n < mesh->count; n++) {
		const char *other = mesh->nodes[n].host;

		if (strcmp(host, other) != 0 && strcspn(other, ".") == length &&
		    memcmp(host, other, length) == 0)
			return (int)strlen(host);
	}
	return (int)length;
}

void mesh_name_processes(const struct mesh *mesh, char (*ret_names)[MESH_NAME_BYTES]) {
	bool several = false;

	for (uint32_t n = 1; n < mesh->count; n++)
		several |= strcmp(mesh->nodes[n].host, mesh->nodes[0].host) != 0;
	for (uint32_t n = 0; n < mesh->count; n++) {
		const char *host = mesh->nodes[n].host;
		int length = host_label_length(mesh, n);
		bool alone = length > 0;

		for (uint32_t other = 0; other < mesh->count; other++)
			alone &= other == n || strcmp(host, mesh->nodes[other].host) != 0;
		if (alone)
			snprintf(ret_names[n], MESH_NAME_BYTES, "%.*s", length, host);
		else if (several)
			snprintf(ret_names[n], MESH_NAME_BYTES, "%.*s:%u", length, host, n);
		else
			snprintf(ret_names[n], MESH_NAME_BYTES, "%u", n);
	}
}
