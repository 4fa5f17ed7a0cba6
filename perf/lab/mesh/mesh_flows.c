// SPDX-License-Identifier: BSD-3-Clause
// Congestion and incast: storage, text and JSON.
#include "mesh/mesh_flows.h"

#include <jansson.h>

#include <errno.h>
#include <ranks.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_SHOWN 16u
#define HOST_SHOWN 20 // bytes of a host name in a row

int mesh_flows_create(struct mesh *mesh, bool congestion, bool incast) {
	if (congestion)
		mesh->flows = calloc(mesh->count, sizeof(*mesh->flows));
	if (incast)
		mesh->incasts = calloc(mesh->count, sizeof(*mesh->incasts));
	return (congestion && mesh->flows == NULL) || (incast && mesh->incasts == NULL) ? -ENOMEM
											: 0;
}

uint32_t mesh_flows_choose_round(const struct mesh *mesh, struct mesh_pair *ret_pairs) {
	uint32_t best = 0, most = 0;

	for (uint32_t round = 0; round < mesh_rounds(mesh->count); round++) {
		uint32_t pairs = mesh_round(mesh->count, round, ret_pairs), between = 0;

		for (uint32_t n = 0; n < pairs; n++)
			between += strcmp(mesh->nodes[ret_pairs[n].one].rack,
					  mesh->nodes[ret_pairs[n].other].rack) != 0;
		if (between > most) {
			most = between;
			best = round;
		}
	}
	return mesh_round(mesh->count, best, ret_pairs);
}

void mesh_flows_store(
	struct mesh *mesh, enum mesh_flow_kind kind, uint32_t from, uint32_t to, uint64_t value_ns
) {
	struct mesh_flow *flow = &mesh->flows[from];
	struct mesh_incast *incast = &mesh->incasts[to];

	value_ns = value_ns > 0 ? value_ns : 1;
	if (kind == MESH_FLOW_INCAST) {
		incast->flows++;
		incast->gbits += mesh_gbits(value_ns);
		if (value_ns > incast->slowest_ns)
			incast->slowest_ns = value_ns;
		return;
	}
	flow->to = to;
	if (kind == MESH_FLOW_ALONE)
		flow->alone_ns = value_ns;
	else
		flow->together_ns = value_ns;
}

// A row of a table; the worst rows are printed first.
struct flow_row {
	uint32_t process;
	double share; // of the rate without other flows
};

static int flow_rows_compare(const void *left, const void *right) {
	const struct flow_row *one = left, *other = right;

	if (one->share != other->share)
		return one->share < other->share ? -1 : 1;
	return one->process < other->process ? -1 : 1;
}

static void print_hidden_count(uint32_t count) {
	if (count > ROWS_SHOWN)
		printf("  and %u more\n", count - ROWS_SHOWN);
}

static void print_congestion(const struct mesh *mesh) {
	struct flow_row rows[MESH_NODES_MAX];
	uint32_t count = 0;

	for (uint32_t n = 0; n < mesh->count; n++) {
		const struct mesh_flow *flow = &mesh->flows[n];

		if (flow->alone_ns > 0 && flow->together_ns > 0)
			rows[count++] = (struct flow_row
			){n, (double)flow->alone_ns / (double)flow->together_ns};
	}
	printf("\ncongestion: the pairs of one round, each alone and all at once\n");
	if (count == 0) {
		printf("  no direction was measured\n");
		return;
	}
	qsort(rows, count, sizeof(rows[0]), flow_rows_compare);
	printf("  half of %u directions keep %.0f %% of their rate or more\n"
	       "  %4s %-*s %4s %-*s %7s %7s %5s\n",
	       count, 100 * rows[count / 2].share, "from", HOST_SHOWN, "", "to", HOST_SHOWN, "",
	       "alone", "at once", "share");
	for (uint32_t n = 0; n < count && n < ROWS_SHOWN; n++) {
		uint32_t from = rows[n].process, to = mesh->flows[from].to;

		printf("  %4u %-*.*s %4u %-*.*s %7.4g %7.4g %3.0f %%\n", from, HOST_SHOWN,
		       HOST_SHOWN, mesh->nodes[from].host, to, HOST_SHOWN, HOST_SHOWN,
		       mesh->nodes[to].host, mesh_gbits(mesh->flows[from].alone_ns),
		       mesh_gbits(mesh->flows[from].together_ns), 100 * rows[n].share);
	}
	print_hidden_count(count);
}

// Return the highest rate to a process in the matrix, in Gbit/s; 0 if none is known.
static double best_gbits_to(const struct mesh *mesh, uint32_t to) {
	double best = 0;

	for (uint32_t from = 0; from < mesh->count; from++) {
		const struct mesh_quantile *p50 = &mesh_cell(mesh, from, to)->quantiles[0];

		if (from != to && p50->known && mesh_gbits(p50->value_ns) > best)
			best = mesh_gbits(p50->value_ns);
	}
	return best;
}

static void print_incast(const struct mesh *mesh) {
	struct flow_row rows[MESH_NODES_MAX];
	uint32_t count = 0;

	for (uint32_t n = 0; n < mesh->count; n++) {
		double best = best_gbits_to(mesh, n);

		if (mesh->incasts[n].flows > 0)
			rows[count++] =
				(struct flow_row){n, best > 0 ? mesh->incasts[n].gbits / best : 0};
	}
	printf("\nincast: all to one at once; share: of the best rate from one process alone\n");
	if (count == 0) {
		printf("  no target was measured\n");
		return;
	}
	qsort(rows, count, sizeof(rows[0]), flow_rows_compare);
	printf("  %4s %-*s %5s %8s %10s %13s\n", "to", HOST_SHOWN, "", "flows", "sum", "share",
	       "slowest flow");
	for (uint32_t n = 0; n < count && n < ROWS_SHOWN; n++) {
		const struct mesh_incast *incast = &mesh->incasts[rows[n].process];

		printf("  %4u %-*.*s %5u %8.4g %8.0f %% %13.4g\n", rows[n].process, HOST_SHOWN,
		       HOST_SHOWN, mesh->nodes[rows[n].process].host, incast->flows, incast->gbits,
		       100 * rows[n].share, mesh_gbits(incast->slowest_ns));
	}
	print_hidden_count(count);
}

void mesh_flows_print(const struct mesh *mesh) {
	if (mesh->flows != NULL)
		print_congestion(mesh);
	if (mesh->incasts != NULL)
		print_incast(mesh);
	if ((mesh->flows != NULL || mesh->incasts != NULL) && mesh_is_shared_host(mesh))
		printf("rates in Gbit/s; flows at once may need more processors than there are\n");
	else if (mesh->flows != NULL || mesh->incasts != NULL)
		printf("rates in Gbit/s\n");
}

static json_t *rate_or_null(uint64_t value_ns) {
	return value_ns > 0 ? json_real(mesh_gbits(value_ns)) : json_null();
}

int mesh_flows_put(json_t *root, const struct mesh *mesh) {
	json_t *congestion = json_array(), *incast = json_array();
	int failed = 0;

	for (uint32_t n = 0; n < mesh->count; n++) {
		const struct mesh_flow *flow = mesh->flows != NULL ? &mesh->flows[n] : NULL;
		const struct mesh_incast *sum = mesh->incasts != NULL ? &mesh->incasts[n] : NULL;

		if (flow != NULL && (flow->alone_ns > 0 || flow->together_ns > 0))
			failed |= json_array_append_new(
				congestion, json_pack(
						    "{s:I s:I s:o s:o}", "from", (json_int_t)n,
						    "to", (json_int_t)flow->to, "alone_gbits",
						    rate_or_null(flow->alone_ns), "together_gbits",
						    rate_or_null(flow->together_ns)
					    )
			);
		if (sum != NULL && sum->flows > 0)
			failed |= json_array_append_new(
				incast,
				json_pack(
					"{s:I s:I s:f s:o s:f}", "to", (json_int_t)n, "flows",
					(json_int_t)sum->flows, "gbits", sum->gbits,
					"slowest_gbits", rate_or_null(sum->slowest_ns),
					"best_pair_gbits", best_gbits_to(mesh, n)
				)
			);
	}
	if (mesh->flows != NULL)
		failed |= json_object_set(root, "congestion", congestion);
	if (mesh->incasts != NULL)
		failed |= json_object_set(root, "incast", incast);
	json_decref(congestion);
	json_decref(incast);
	return failed == 0 ? 0 : -ENOMEM;
}
