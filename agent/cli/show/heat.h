// SPDX-License-Identifier: BSD-3-Clause
// Who reads whom how, as a square of cells: one of each ordered pair of nodes, or, where there are
// more nodes than can be drawn, of groups of nodes next to each other by name. A cell is the worst
// of the paths in it.
#pragma once

#include <jansson.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

// The larger, the worse.
enum heat_kind {
	HEAT_NOTHING, // not read yet
	HEAT_SELF,
	HEAT_DEAD, // one of the two is
	HEAT_GOOD,
	HEAT_NO_PAIR, // and so it is not known
	HEAT_DEGRADED,
	HEAT_LOSSY,
	HEAT_STANDING,
	HEAT_SILENT,
	HEAT_KIND_COUNT,
};

#define HEAT_LEVELS 8
#define HEAT_WORST_MAX 6

// One path: places of nodes by name.
struct heat_path {
	uint32_t node, peer;
	enum heat_kind kind;
	uint64_t median_ns, baseline_ns; // 0: not known
	uint64_t answered, lost;
	uint32_t lost_permille;
};

#define HEAT_RAILS_MAX 16

struct heat_cell {
	struct heat_path worst;
	uint32_t told;			// paths of it that are known
	char rails[HEAT_RAILS_MAX + 1]; // of two nodes with several: a sign for each
};

struct heat_worst {
	struct heat_path path;
	uint32_t readers; // who do not read it well
};

struct heat_node {
	const char *name; // of the answer
	bool dead;
	struct heat_worst worst;
};

struct heat {
	json_t *answer;
	const char *cluster, *at;
	struct heat_node *nodes; // by name
	bool has_rails;		 // of any two
	uint32_t node_count;
	uint32_t group_size, group_count;
	struct heat_cell *cells; // a row of group_count for each group that reads
	uint32_t counts[HEAT_KIND_COUNT];
	// Of nodes that are not read well: each by the worst path to it, and how many are like it.
	uint32_t worst_count;
	struct heat_worst worst[HEAT_WORST_MAX];
	uint64_t least_ns, most_ns; // of medians; the scale
	uint32_t members, answered, left_out;
};

// Takes its own reference to the answer of MATRIX. -EPROTO: it is none; -ENOMEM.
int heat_create(json_t *answer, uint32_t groups_max, struct heat **ret_heat);
struct heat *heat_destroy(struct heat *heat);

const struct heat_cell *heat_at(const struct heat *heat, uint32_t node, uint32_t peer);
const char *heat_kind_words(enum heat_kind kind);
// Of a time on the scale, which is logarithmic and spans at least a factor of 8.
uint32_t heat_level(const struct heat *heat, uint64_t median_ns);
// Where a level begins.
uint64_t heat_level_ns(const struct heat *heat, uint32_t level);
// Whether there is a time to be shown.
bool heat_is_timed(const struct heat_path *path);

// "n1", or "n1..n4" of a group.
#define HEAT_NAME_BYTES 160
void heat_group_name(const struct heat *heat, uint32_t group, char text[static HEAT_NAME_BYTES]);
// "12 paths: 11 good, 1 degraded"
#define HEAT_LINE_BYTES 512
void heat_sum(const struct heat *heat, char text[static HEAT_LINE_BYTES]);
// "n1 reads n3: degraded, 310 us, usually 26 us, 3 of 1203 lost"
void heat_path_words(
	const struct heat *heat, const struct heat_path *path, char text[static HEAT_LINE_BYTES]
);
// The same, and how many others do not read it well.
void heat_worst_words(
	const struct heat *heat, const struct heat_worst *worst, char text[static HEAT_LINE_BYTES]
);
// What the square does not show, the n-th sentence; false: no more.
bool heat_left_out(const struct heat *heat, uint32_t n, char text[static HEAT_LINE_BYTES]);

#define HEAT_TEXT_GROUPS_MAX 80
void heat_print(const struct heat *heat, bool colour, FILE *out);

#define HEAT_SVG_GROUPS_MAX 128
void heat_svg(const struct heat *heat, FILE *out);
