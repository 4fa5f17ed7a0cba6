// SPDX-License-Identifier: BSD-3-Clause
// Finds the outliers of a matrix, and their common causes.
//
// The baseline is the median of the cells that no cause below explains. A cell is an outlier if its
// median is more than 25 % above the baseline. In addition the interval of its median must lie
// above the baseline. Then the causes are searched. The one with the most outliers comes first.
// Kinds of causes:
//
//	a process: its row and column
//	a single row or column
//	a block between two racks or inside one rack
//	all devices with one name
//
// A cause holds if 75 % of the cells that it covers are outliers. Cells explained by an earlier
// cause are ignored.
#include "mesh/mesh.h"

#include <errno.h>
#include <math.h>
#include <ranks.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define OUTLIER_FACTOR 1.25
#define CAUSE_SHARE_MIN 0.75
#define CAUSE_CELLS_MIN 3 // covered by a cause that is more than one pair
#define MESH_TWO_WAYS 2	  // directions between two processes: with only two, none is the normal one
#define FEW_NODES_MAX 4	  // nodes among which the cells of one are half of all or more
#define ROUNDS_MAX 8	  // estimates of the baseline; the second one is usually the last

// State of a cell.
enum state { NORMAL, OUTLIER, EXPLAINED };

struct search {
	const struct mesh *mesh;
	struct mesh_summary *summary;
	uint8_t *states; // enum state of each cell
	double *medians; // scratch buffer
	double baseline;
};

// The cells that a cause would cover.
struct group {
	enum mesh_cause_kind kind;
	uint32_t one, other;
};

const char *mesh_cause_name(enum mesh_cause_kind kind) {
	static const char *const names[MESH_CAUSE_KIND_COUNT] = {
		[MESH_NODE] = "node",	     [MESH_SOURCE] = "source",
		[MESH_TARGET] = "target",    [MESH_BETWEEN_RACKS] = "racks",
		[MESH_WITHIN_RACK] = "rack", [MESH_RAIL] = "rail",
		[MESH_PAIR] = "pair",
	};

	return names[kind];
}

static bool same_rack(const struct mesh *mesh, uint32_t one, uint32_t other) {
	return mesh->nodes[one].rack[0] != '\0' &&
	       strcmp(mesh->nodes[one].rack, mesh->nodes[other].rack) == 0;
}

static bool nodes_have_same_device(const struct mesh *mesh, uint32_t one, uint32_t other) {
	return strcmp(mesh->nodes[one].device, mesh->nodes[other].device) == 0;
}

static bool
group_covers(const struct mesh *mesh, const struct group *group, uint32_t from, uint32_t to) {
	switch (group->kind) {
	case MESH_NODE:
		return from == group->one || to == group->one;
	case MESH_SOURCE:
		return from == group->one;
	case MESH_TARGET:
		return to == group->one;
	case MESH_BETWEEN_RACKS:
		return (same_rack(mesh, from, group->one) && same_rack(mesh, to, group->other)) ||
		       (same_rack(mesh, from, group->other) && same_rack(mesh, to, group->one));
	case MESH_WITHIN_RACK:
		return same_rack(mesh, from, group->one) && same_rack(mesh, to, group->one);
	case MESH_RAIL:
		return nodes_have_same_device(mesh, from, group->one) ||
		       nodes_have_same_device(mesh, to, group->one);
	default:
		return from == group->one && to == group->other;
	}
}

static bool cell_is_known(const struct mesh_cell *cell) {
	return cell->measured && cell->quantiles[0].known;
}

// Count the known cells and the outliers that a group covers.
static void
count_group(const struct search *search, const struct group *group, struct mesh_cause *cause) {
	const struct mesh *mesh = search->mesh;
	uint32_t medians = 0;

	*cause = (struct mesh_cause){.kind = group->kind, .one = group->one, .other = group->other};
	for (uint32_t from = 0; from < mesh->count; from++) {
		for (uint32_t to = 0; to < mesh->count; to++) {
			const struct mesh_cell *cell = mesh_cell(mesh, from, to);

			uint8_t state = search->states[(size_t)from * mesh->count + to];

			if (from == to || !cell_is_known(cell) || state == EXPLAINED ||
			    !group_covers(mesh, group, from, to))
				continue;
			cause->of++;
			if (state != OUTLIER)
				continue;
			search->medians[medians++] = (double)cell->quantiles[0].value_ns;
		}
	}
	cause->cells = medians;
	if (medians == 0)
		return;
	qsort(search->medians, medians, sizeof(search->medians[0]), doubles_compare);
	cause->ratio = search->medians[medians / 2] / search->baseline;
}

static void
try_cause_group(const struct search *search, const struct group *group, struct mesh_cause *best) {
	struct mesh_cause cause;

	count_group(search, group, &cause);
	if (cause.cells < CAUSE_CELLS_MIN || cause.cells < CAUSE_SHARE_MIN * cause.of)
		return;

	// With as many outliers the cause with the larger share of its group is better.
	if (cause.cells != best->cells
		    ? cause.cells > best->cells
		    : (uint64_t)cause.cells * best->of > (uint64_t)best->cells * cause.of)
		*best = cause;
}

static bool is_first_of_rack(const struct mesh *mesh, uint32_t place) {
	if (mesh->nodes[place].rack[0] == '\0')
		return false;
	for (uint32_t n = 0; n < place; n++) {
		if (same_rack(mesh, n, place))
			return false;
	}
	return true;
}

static bool is_first_of_device(const struct mesh *mesh, uint32_t place) {
	for (uint32_t n = 0; n < place; n++) {
		if (nodes_have_same_device(mesh, n, place))
			return false;
	}
	return true;
}

// Return the best cause; it has no cells if there is none.
static struct mesh_cause find_best_cause(const struct search *search) {
	const struct mesh *mesh = search->mesh;
	struct mesh_cause best = {.cells = 0, .of = 1};
	bool several_devices = false;

	for (uint32_t one = 0; one < mesh->count; one++) {
		if (!is_first_of_rack(mesh, one))
			continue;
		try_cause_group(search, &(struct group){MESH_WITHIN_RACK, one, one}, &best);
		for (uint32_t other = 0; other < one; other++) {
			if (is_first_of_rack(mesh, other))
				try_cause_group(
					search, &(struct group){MESH_BETWEEN_RACKS, other, one},
					&best
				);
		}
	}

	// With two processes a single row or column says nothing about either process.
	for (uint32_t one = 0; mesh->count > 2 && one < mesh->count; one++) {
		try_cause_group(search, &(struct group){MESH_NODE, one, one}, &best);
		try_cause_group(search, &(struct group){MESH_SOURCE, one, one}, &best);
		try_cause_group(search, &(struct group){MESH_TARGET, one, one}, &best);
	}
	for (uint32_t n = 1; n < mesh->count; n++)
		several_devices |= !nodes_have_same_device(mesh, n, 0);
	for (uint32_t one = 0; several_devices && one < mesh->count; one++) {
		if (is_first_of_device(mesh, one))
			try_cause_group(search, &(struct group){MESH_RAIL, one, one}, &best);
	}
	return best;
}

// Add a cause to the summary, and mark the cells that it explains.
static void add_cause(const struct search *search, const struct mesh_cause *cause) {
	const struct group group = {cause->kind, cause->one, cause->other};
	struct mesh_summary *summary = search->summary;
	uint32_t count = search->mesh->count;

	if (summary->cause_count < MESH_CAUSES_MAX)
		summary->causes[summary->cause_count++] = *cause;
	else
		summary->unexplained += cause->cells;
	for (uint32_t from = 0; from < count; from++) {
		for (uint32_t to = 0; to < count; to++) {
			if (group_covers(search->mesh, &group, from, to))
				search->states[(size_t)from * count + to] = EXPLAINED;
		}
	}
}

static int causes_compare(const void *a, const void *b) {
	const struct mesh_cause *left = a, *right = b;

	if (left->ratio != right->ratio)
		return left->ratio < right->ratio ? 1 : -1;
	if (left->one != right->one)
		return left->one < right->one ? -1 : 1;
	return left->other < right->other ? -1 : 1;
}

// Add the remaining outliers as causes of one pair, slowest first, because reports show only the
// first ones.
static int add_pairs(const struct search *search) {
	uint32_t count = search->mesh->count, found = 0;
	struct mesh_cause *pairs = calloc(search->summary->outliers + (size_t)1, sizeof(*pairs));

	if (pairs == NULL)
		return -ENOMEM;

	for (uint32_t from = 0; from < count; from++) {
		for (uint32_t to = 0; to < count; to++) {
			const struct group group = {MESH_PAIR, from, to};

			if (search->states[(size_t)from * count + to] == OUTLIER)
				count_group(search, &group, &pairs[found++]);
		}
	}
	qsort(pairs, found, sizeof(*pairs), causes_compare);
	for (uint32_t n = 0; n < found; n++)
		add_cause(search, &pairs[n]);
	free(pairs);
	return 0;
}

static bool cell_is_beyond(const struct mesh_cell *cell, double baseline) {
	return cell_is_known(cell) &&
	       (double)cell->quantiles[0].value_ns > OUTLIER_FACTOR * baseline;
}

static bool cell_is_outlier(const struct mesh_cell *cell, double baseline) {
	return cell_is_beyond(cell, baseline) && (double)cell->quantiles[0].low_ns > baseline;
}

bool mesh_cell_is_outlier(const struct mesh_summary *summary, const struct mesh_cell *cell) {
	return summary->wanted > MESH_TWO_WAYS && cell_is_outlier(cell, (double)summary->median_ns);
}

const struct mesh_cause *mesh_cause_find(
	const struct mesh *mesh, const struct mesh_summary *summary, uint32_t from, uint32_t to
) {
	for (uint32_t n = 0; n < summary->cause_count; n++) {
		const struct mesh_cause *cause = &summary->causes[n];
		const struct group group = {cause->kind, cause->one, cause->other};

		if (group_covers(mesh, &group, from, to))
			return cause;
	}
	return NULL;
}

// Sort the medians of the known cells that are not explained, without those of `skipped`. Returns
// their number.
static uint32_t sort_medians(struct search *search, const struct group *skipped) {
	const struct mesh *mesh = search->mesh;
	uint32_t known = 0;

	for (uint32_t from = 0; from < mesh->count; from++) {
		for (uint32_t to = 0; to < mesh->count; to++) {
			const struct mesh_cell *cell = mesh_cell(mesh, from, to);

			if (from != to && cell_is_known(cell) &&
			    search->states[(size_t)from * mesh->count + to] != EXPLAINED &&
			    (skipped == NULL || !group_covers(mesh, skipped, from, to)))
				search->medians[known++] = (double)cell->quantiles[0].value_ns;
		}
	}
	qsort(search->medians, known, sizeof(search->medians[0]), doubles_compare);
	return known;
}

static double middle_median(const struct search *search, uint32_t known) {
	return (search->medians[(known - 1) / 2] + search->medians[known / 2]) / 2;
}

// Return a lower baseline if all cells of one process are slow beside all others, else `baseline`.
// Among three or four processes the cells of one are so many that the median of all is one of them.
// A share of them is not enough here: between three processes chance alone slows three of four.
static double few_nodes_baseline(struct search *search, double baseline) {
	const struct mesh *mesh = search->mesh;
	double best = baseline;

	for (uint32_t node = 0; mesh->count <= FEW_NODES_MAX && node < mesh->count; node++) {
		const struct group group = {MESH_NODE, node, node};
		uint32_t rest = sort_medians(search, &group), cells = 0, slow = 0;
		double middle = rest > 0 ? middle_median(search, rest) : INFINITY;

		if (middle >= best || search->medians[rest - 1] > OUTLIER_FACTOR * middle)
			continue;
		for (uint32_t other = 0; other < mesh->count; other++) {
			const struct mesh_cell *ways[] = {
				mesh_cell(mesh, node, other), mesh_cell(mesh, other, node)};

			for (int way = 0; other != node && way < 2; way++) {
				cells += cell_is_known(ways[way]);
				slow += cell_is_outlier(ways[way], middle);
			}
		}
		if (slow >= CAUSE_CELLS_MIN && slow == cells)
			best = middle;
	}
	return best;
}

// Mark the outliers of a baseline, and find the causes of several cells.
static void find_causes(struct search *search, double baseline) {
	struct mesh_summary *summary = search->summary;
	size_t cells = (size_t)search->mesh->count * search->mesh->count;
	struct mesh_cause best;

	search->baseline = baseline;
	summary->median_ns = (uint64_t)baseline;
	summary->outliers = summary->undecided = summary->cause_count = summary->unexplained = 0;
	for (size_t n = 0; n < cells; n++) {
		const struct mesh_cell *cell = &search->mesh->cells[n];
		bool outlier = mesh_cell_is_outlier(summary, cell);

		search->states[n] = outlier ? OUTLIER : NORMAL;
		summary->outliers += outlier;
		summary->undecided += cell->measured && summary->wanted > MESH_TWO_WAYS &&
				      !outlier &&
				      (!cell_is_known(cell) || cell_is_beyond(cell, baseline));
	}
	for (best = find_best_cause(search); best.cells > 0; best = find_best_cause(search))
		add_cause(search, &best);
}

// Estimate the baseline and find the causes in turn, until the causes explain no further cell above
// the baseline. The baseline only falls, so this ends.
static void find_baseline(struct search *search) {
	struct mesh_summary *summary = search->summary;
	uint32_t known = sort_medians(search, NULL);
	double next;

	summary->measured = mesh_count_measured(search->mesh);
	if (known == 0) {
		summary->undecided = summary->wanted > MESH_TWO_WAYS ? summary->measured : 0;
		return;
	}
	summary->min_ns = (uint64_t)search->medians[0];
	summary->max_ns = (uint64_t)search->medians[known - 1];
	next = middle_median(search, known);
	if (summary->wanted > MESH_TWO_WAYS)
		next = few_nodes_baseline(search, next);
	for (int round = 0; round < ROUNDS_MAX; round++) {
		find_causes(search, next);
		known = sort_medians(search, NULL);
		if (known == 0 || middle_median(search, known) >= search->baseline)
			return;
		next = middle_median(search, known);
	}
}

int mesh_summarize(const struct mesh *mesh, struct mesh_summary *ret_summary) {
	size_t cells = (size_t)mesh->count * mesh->count;
	struct search search = {
		.mesh = mesh,
		.summary = ret_summary,
		.states = calloc(cells, sizeof(*search.states)),
		.medians = calloc(cells, sizeof(*search.medians)),
	};
	int err = -ENOMEM;

	memset(ret_summary, 0, sizeof(*ret_summary));
	if (search.states != NULL && search.medians != NULL) {
		ret_summary->wanted = mesh->count * (mesh->count - 1);
		find_baseline(&search);
		err = add_pairs(&search);
	}
	free(search.states);
	free(search.medians);
	return err;
}

void mesh_cause_format_subject(
	const struct mesh *mesh, const struct mesh_cause *cause, char *text, size_t size
) {
	const struct mesh_node *one = &mesh->nodes[cause->one];
	const struct mesh_node *other = &mesh->nodes[cause->other];

	switch (cause->kind) {
	case MESH_NODE:
		snprintf(
			text, size, "process %u (%.40s), from it and to it", cause->one, one->host
		);
		break;
	case MESH_SOURCE:
		snprintf(text, size, "process %u (%.40s), from it alone", cause->one, one->host);
		break;
	case MESH_TARGET:
		snprintf(text, size, "process %u (%.40s), to it alone", cause->one, one->host);
		break;
	case MESH_BETWEEN_RACKS:
		snprintf(text, size, "between racks %.30s and %.30s", one->rack, other->rack);
		break;
	case MESH_WITHIN_RACK:
		snprintf(text, size, "inside of rack %.40s", one->rack);
		break;
	case MESH_RAIL:
		snprintf(text, size, "devices named %.40s", one->device);
		break;
	default:
		snprintf(
			text, size, "from process %u (%.24s) to %u (%.24s)", cause->one, one->host,
			cause->other, other->host
		);
	}
}

void mesh_cause_format(
	const struct mesh *mesh, const struct mesh_cause *cause, char *text, size_t size
) {
	char what[128], share[48] = "", factor[48];

	mesh_cause_format_subject(mesh, cause, what, sizeof(what));
	if (cause->kind != MESH_PAIR)
		snprintf(share, sizeof(share), "%u of %u, ", cause->cells, cause->of);
	if (mesh_is_bandwidth(mesh))
		snprintf(factor, sizeof(factor), "%.0f %% of the baseline", 100 / cause->ratio);
	else
		snprintf(factor, sizeof(factor), "%.2f times the baseline", cause->ratio);
	snprintf(text, size, "%s: %s%s", what, share, factor);
}
