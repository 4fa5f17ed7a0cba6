// SPDX-License-Identifier: BSD-3-Clause
// Reads the answer of MATRIX into the cells of a heat map and rates each cell.
#include "show/heat.h"

#include <lib/fact.h>
#include <lib/must.h>
#include <lib/show.h>

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define NODES_MAX 100000
#define SPAN_LEAST 8
#define TIME_MAX_NS (UINT64_C(86400) * 1000000000)
#define CELL_COLUMNS 8 // columns of every protocol version; rails come after these

static const struct {
	const char *seen; // string in the agent's answer; NULL: no agent sends the kind
	const char *words;
} kinds[HEAT_KIND_COUNT] = {
	[HEAT_NOTHING] = {NULL, "not read yet"},
	[HEAT_SELF] = {NULL, "itself"},
	[HEAT_DEAD] = {NULL, "dead"},
	[HEAT_GOOD] = {"good", "good"},
	[HEAT_NO_PAIR] = {"no-pair", "no pair"},
	[HEAT_DEGRADED] = {"degraded", "degraded"},
	[HEAT_LOSSY] = {"lossy", "lossy"},
	[HEAT_STANDING] = {"standing", "standing"},
	[HEAT_SILENT] = {"silent", "silent"},
};

const char *heat_kind_words(enum heat_kind kind) {
	return kinds[kind].words;
}

// Nodes.

static int compare_nodes(const void *left, const void *right) {
	return strverscmp(
		((const struct heat_node *)left)->name, ((const struct heat_node *)right)->name
	);
}

static int heat_read_nodes(struct heat *heat) {
	const json_t *rows = json_object_get(heat->answer, "nodes"), *row;
	size_t n;

	if (!json_is_array(rows) || json_array_size(rows) > NODES_MAX)
		return -EPROTO;
	heat->nodes = calloc(json_array_size(rows) + 1, sizeof(heat->nodes[0]));
	if (heat->nodes == NULL)
		return -ENOMEM;
	json_array_foreach(rows, n, row) {
		const char *name = json_string_value(json_object_get(row, "node"));
		const char *state = json_string_value(json_object_get(row, "state"));

		if (name == NULL || state == NULL)
			return -EPROTO;
		heat->nodes[n] =
			(struct heat_node){.name = name, .dead = strcmp(state, "dead") == 0};
	}
	heat->node_count = (uint32_t)n;
	qsort(heat->nodes, n, sizeof(heat->nodes[0]), compare_nodes);
	return 0;
}

// Map node indices of the answer to indices sorted by name. Nodes with equal names share one index.
static uint32_t *heat_node_positions(const struct heat *heat) {
	const json_t *rows = json_object_get(heat->answer, "nodes"), *row;
	uint32_t *places = calloc((size_t)heat->node_count + 1, sizeof(places[0]));
	size_t n;

	if (places == NULL)
		return NULL;
	json_array_foreach(rows, n, row) {
		struct heat_node key = {.name = json_string_value(json_object_get(row, "node"))};
		const struct heat_node *node =
			bsearch(&key, heat->nodes, heat->node_count, sizeof(key), compare_nodes);

		must(node != NULL);
		places[n] = (uint32_t)(node - heat->nodes);
	}
	return places;
}

// Cells.

bool heat_is_timed(const struct heat_path *path) {
	return path->median_ns > 0 &&
	       (path->kind == HEAT_GOOD || path->kind == HEAT_DEGRADED || path->kind == HEAT_LOSSY);
}

static bool path_is_worse(const struct heat_path *a, const struct heat_path *b) {
	return a->kind != b->kind ? a->kind > b->kind : a->median_ns > b->median_ns;
}

static uint64_t row_number(const json_t *row, size_t column) {
	json_int_t value = json_integer_value(json_array_get(row, column));

	return value > 0 ? (uint64_t)value : 0;
}

// Return a time, capped at one day.
static uint64_t row_time_ns(const json_t *row, size_t column) {
	uint64_t time_ns = row_number(row, column);

	return time_ns < TIME_MAX_NS ? time_ns : TIME_MAX_NS;
}

static int row_read_path(
	const struct heat *heat,
	const uint32_t *places,
	const json_t *row,
	struct heat_path *ret_path
) {
	uint64_t node = row_number(row, 0), peer = row_number(row, 1);
	const char *seen = json_string_value(
		json_array_get(json_object_get(heat->answer, "seen"), row_number(row, 2))
	);

	if (json_array_size(row) < CELL_COLUMNS || node >= heat->node_count ||
	    peer >= heat->node_count)
		return -EPROTO;
	*ret_path = (struct heat_path){
		.node = places[node],
		.peer = places[peer],
		.kind = HEAT_NO_PAIR, // also for an unknown string
		.median_ns = row_time_ns(row, 3),
		.baseline_ns = row_time_ns(row, 4),
		.lost_permille = (uint32_t)(row_number(row, 5) % 1001),
		.answered = row_number(row, 6),
		.lost = row_number(row, 7),
	};
	for (enum heat_kind kind = 0; seen != NULL && kind < HEAT_KIND_COUNT; kind++) {
		if (kinds[kind].seen != NULL && strcmp(kinds[kind].seen, seen) == 0)
			ret_path->kind = kind;
	}
	return 0;
}

static void heat_keep_worst(struct heat *heat, const struct heat_worst *worst) {
	uint32_t at = heat->worst_count;

	while (at > 0 && path_is_worse(&worst->path, &heat->worst[at - 1].path))
		at--;
	if (at == HEAT_WORST_MAX || worst->readers == 0)
		return;
	if (heat->worst_count < HEAT_WORST_MAX)
		heat->worst_count++;
	memmove(&heat->worst[at + 1], &heat->worst[at],
		(heat->worst_count - 1 - at) * sizeof(heat->worst[0]));
	heat->worst[at] = *worst;
}

static struct heat_cell *path_cell(struct heat *heat, uint32_t node, uint32_t peer) {
	return &heat
			->cells[(size_t)(node / heat->group_size) * heat->group_count +
				peer / heat->group_size];
}

static void heat_add_path(struct heat *heat, struct heat_path *path) {
	struct heat_cell *cell = path_cell(heat, path->node, path->peer);
	struct heat_worst *worst = &heat->nodes[path->peer].worst;

	if (heat->nodes[path->node].dead || heat->nodes[path->peer].dead)
		path->kind = HEAT_DEAD;
	heat->counts[path->kind]++;
	if (heat_is_timed(path)) {
		if (heat->least_ns == 0 || path->median_ns < heat->least_ns)
			heat->least_ns = path->median_ns;
		if (path->median_ns > heat->most_ns)
			heat->most_ns = path->median_ns;
	}
	if (path->kind > HEAT_GOOD && (worst->readers++ == 0 || path_is_worse(path, &worst->path)))
		worst->path = *path;
	if (cell->told++ == 0 || path_is_worse(path, &cell->worst))
		cell->worst = *path;
}

static int heat_read_cells(struct heat *heat) {
	const json_t *rows = json_object_get(heat->answer, "cells"), *row;
	uint32_t *places = heat_node_positions(heat);
	struct heat_path path;
	int err = 0;
	size_t n;

	if (places == NULL)
		return -ENOMEM;
	json_array_foreach(rows, n, row) {
		err = row_read_path(heat, places, row, &path);
		if (err != 0)
			break;
		if (path.node != path.peer)
			heat_add_path(heat, &path);
	}
	json_array_foreach(json_object_get(heat->answer, "rails"), n, row) {
		const char *signs = json_string_value(json_array_get(row, 2));
		uint64_t node = row_number(row, 0), peer = row_number(row, 1);
		size_t length = signs != NULL ? strlen(signs) : 0;

		// A malformed row is ignored.
		if (length == 0 || length > HEAT_RAILS_MAX || strspn(signs, ".SDLX?") != length ||
		    node == peer || node >= heat->node_count || peer >= heat->node_count ||
		    heat->group_size > 1)
			continue;
		memcpy(path_cell(heat, places[node], places[peer])->rails, signs, length + 1);
		heat->has_rails = true;
	}
	free(places);
	return err;
}

// Fill the cells that no agent reported: dead nodes and the diagonal.
static void heat_fill_unreported(struct heat *heat) {
	for (uint32_t node = 0; node < heat->group_count; node++) {
		for (uint32_t peer = 0; peer < heat->group_count; peer++) {
			struct heat_path *worst =
				&heat->cells[(size_t)node * heat->group_count + peer].worst;

			if (worst->kind != HEAT_NOTHING)
				continue;
			worst->node = node * heat->group_size;
			worst->peer = peer * heat->group_size;
			if (heat->group_size > 1)
				continue;
			if (heat->nodes[node].dead || heat->nodes[peer].dead)
				worst->kind = HEAT_DEAD;
			if (node == peer)
				worst->kind = HEAT_SELF;
		}
	}
}

static uint32_t answer_number(const json_t *answer, const char *key) {
	return (uint32_t)json_integer_value(json_object_get(answer, key));
}

int heat_create(json_t *answer, uint32_t groups_max, struct heat **ret_heat) {
	struct heat *heat = calloc(1, sizeof(*heat));
	int err;

	if (heat == NULL)
		return -ENOMEM;
	heat->answer = json_incref(answer);
	heat->cluster = fact_name(answer, "cluster");
	heat->at = fact_name(answer, "at");
	heat->members = answer_number(answer, "members");
	heat->answered = answer_number(answer, "answered");
	heat->left_out = answer_number(answer, "left_out");
	err = heat_read_nodes(heat);
	if (err != 0)
		goto fail;

	heat->group_size = (heat->node_count + groups_max - 1) / groups_max;
	if (heat->group_size == 0)
		heat->group_size = 1;
	heat->group_count = (heat->node_count + heat->group_size - 1) / heat->group_size;
	heat->cells =
		calloc((size_t)heat->group_count * heat->group_count + 1, sizeof(heat->cells[0]));
	err = heat->cells != NULL ? heat_read_cells(heat) : -ENOMEM;
	if (err != 0)
		goto fail;

	heat_fill_unreported(heat);
	for (uint32_t n = 0; n < heat->node_count; n++)
		heat_keep_worst(heat, &heat->nodes[n].worst);
	if (heat->most_ns < SPAN_LEAST * heat->least_ns)
		heat->most_ns = SPAN_LEAST * heat->least_ns;
	*ret_heat = heat;
	return 0;
fail:
	heat_destroy(heat);
	return err;
}

struct heat *heat_destroy(struct heat *heat) {
	if (heat == NULL)
		return NULL;
	json_decref(heat->answer);
	free(heat->nodes);
	free(heat->cells);
	free(heat);
	return NULL;
}

const struct heat_cell *heat_get_cell(const struct heat *heat, uint32_t node, uint32_t peer) {
	must(node < heat->group_count && peer < heat->group_count);
	return &heat->cells[(size_t)node * heat->group_count + peer];
}

// Scale.

uint64_t heat_level_ns(const struct heat *heat, uint32_t level) {
	double span = (double)heat->most_ns / (double)(heat->least_ns > 0 ? heat->least_ns : 1);

	return (uint64_t)((double)heat->least_ns * pow(span, (double)level / HEAT_LEVELS));
}

uint32_t heat_level(const struct heat *heat, uint64_t median_ns) {
	uint32_t level = 0;

	while (level + 1 < HEAT_LEVELS && median_ns >= heat_level_ns(heat, level + 1))
		level++;
	return level;
}

// Words.

void heat_group_name(const struct heat *heat, uint32_t group, char text[static HEAT_NAME_BYTES]) {
	uint32_t first = group * heat->group_size, last = first + heat->group_size - 1;
	const char *name = heat->nodes[first].name, *end;
	size_t at = 0;

	if (last >= heat->node_count)
		last = heat->node_count - 1;
	if (first == last) {
		snprintf(text, HEAT_NAME_BYTES, "%s", name);
		return;
	}
	// If the two names differ only in the number at their ends, only that number is shown.
	end = heat->nodes[last].name;
	while (end[at] != '\0' && end[at] == name[at] && !isdigit((unsigned char)end[at]))
		at++;
	if (at > 0 && end[at] != '\0' && strspn(end + at, "0123456789") == strlen(end + at))
		end += at;
	snprintf(text, HEAT_NAME_BYTES, "%.70s..%.70s", name, end);
}

void heat_summary_line(const struct heat *heat, char text[static HEAT_LINE_BYTES]) {
	size_t used = 0;
	uint32_t total = 0;
	const char *before = ": ";

	for (enum heat_kind kind = 0; kind < HEAT_KIND_COUNT; kind++)
		total += heat->counts[kind];
	used = (size_t)snprintf(text, HEAT_LINE_BYTES, "%u path%s", total, total == 1 ? "" : "s");
	for (enum heat_kind kind = HEAT_KIND_COUNT; kind-- > 0;) {
		if (heat->counts[kind] == 0)
			continue;
		used += (size_t)snprintf(
			text + used, HEAT_LINE_BYTES - used, "%s%u %s", before, heat->counts[kind],
			kinds[kind].words
		);
		before = ", ";
	}
}

void heat_path_words(
	const struct heat *heat, const struct heat_path *path, char text[static HEAT_LINE_BYTES]
) {
	char median[SHOW_BYTES], usual[SHOW_BYTES];
	size_t used = (size_t)snprintf(
		text, HEAT_LINE_BYTES, "%.70s reads %.70s: %s", heat->nodes[path->node].name,
		heat->nodes[path->peer].name, kinds[path->kind].words
	);

	if (heat_is_timed(path)) {
		show_duration(path->median_ns, median);
		used += (size_t)snprintf(text + used, HEAT_LINE_BYTES - used, ", %s", median);
	}
	if (heat_is_timed(path) && path->baseline_ns > 0) {
		show_duration(path->baseline_ns, usual);
		used += (size_t
		)snprintf(text + used, HEAT_LINE_BYTES - used, ", usually %s", usual);
	}
	if (path->answered + path->lost > 0)
		snprintf(
			text + used, HEAT_LINE_BYTES - used, ", %" PRIu64 " of %" PRIu64 " lost",
			path->lost, path->answered + path->lost
		);
}

void heat_worst_words(
	const struct heat *heat, const struct heat_worst *worst, char text[static HEAT_LINE_BYTES]
) {
	uint32_t others = worst->readers - 1;
	size_t used;

	heat_path_words(heat, &worst->path, text);
	used = strlen(text);
	if (others > 0)
		snprintf(
			text + used, HEAT_LINE_BYTES - used, "; %u other%s it badly too", others,
			others == 1 ? " reads" : "s read"
		);
}

bool heat_omission_text(const struct heat *heat, uint32_t n, char text[static HEAT_LINE_BYTES]) {
	uint32_t said = 0;

	if (heat->group_size > 1 && said++ == n) {
		snprintf(
			text, HEAT_LINE_BYTES,
			"%u nodes in %u groups of %u, by name: a cell shows the worst of up to %u paths",
			heat->node_count, heat->group_count, heat->group_size,
			heat->group_size * heat->group_size
		);
		return true;
	}
	if (heat->answered < heat->members && said++ == n) {
		snprintf(
			text, HEAT_LINE_BYTES,
			"%u of %u agents did not answer: how they read others is not shown",
			heat->members - heat->answered, heat->members
		);
		return true;
	}
	if (heat->left_out > 0 && said++ == n) {
		snprintf(
			text, HEAT_LINE_BYTES,
			"%u parts of answers were left out: there were too many paths",
			heat->left_out
		);
		return true;
	}
	return false;
}
