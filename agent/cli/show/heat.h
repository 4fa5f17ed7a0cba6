// SPDX-License-Identifier: BSD-3-Clause
// Heat map of paths: which node reads which, and how well. A cell is an ordered pair of nodes. With
// too many nodes to draw, it is a pair of groups of nodes, in order of name. A cell shows the worst
// of its paths.
#pragma once

#include <jansson.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

// Kinds in order of increasing badness.
enum heat_kind {
	HEAT_NOTHING, // not read yet
	HEAT_SELF,
	HEAT_DEAD, // one of the two nodes is dead
	HEAT_GOOD,
	HEAT_NO_PAIR, // no pair, so the state is unknown
	HEAT_DEGRADED,
	HEAT_LOSSY,
	HEAT_STANDING,
	HEAT_SILENT,
	HEAT_KIND_COUNT,
};

#define HEAT_LEVELS 8
#define HEAT_WORST_MAX 6

// One path; nodes are indices in order of name.
struct heat_path {
	uint32_t node, peer;
	enum heat_kind kind;
	uint64_t median_ns, baseline_ns; // 0: unknown
	uint64_t answered, lost;
	uint32_t lost_permille;
};

#define HEAT_RAILS_MAX 16

struct heat_cell {
	struct heat_path worst;
	uint32_t told;			// number of known paths in the cell
	char rails[HEAT_RAILS_MAX + 1]; // one sign per rail, for two nodes with several rails
};

struct heat_worst {
	struct heat_path path;
	uint32_t readers; // number of nodes that read it badly
};

struct heat_node {
	const char *name; // points into the answer
	bool dead;
	struct heat_worst worst;
};

struct heat {
	json_t *answer;
	const char *cluster, *at;
	struct heat_node *nodes; // sorted by name
	bool has_rails;		 // some cell has rails
	uint32_t node_count;
	uint32_t group_size, group_count;
	struct heat_cell *cells; // group_count rows of group_count cells; rows are readers
	uint32_t counts[HEAT_KIND_COUNT];
	// Nodes that are read badly, worst first. Each has the worst path to it and its number of
	// bad readers.
	uint32_t worst_count;
	struct heat_worst worst[HEAT_WORST_MAX];
	uint64_t least_ns, most_ns; // range of the medians, which is the scale
	uint32_t members, answered, left_out;
};

// Read an answer of MATRIX and keep a reference to it. Returns 0, -EPROTO if it is malformed, or
// -ENOMEM.
int heat_create(json_t *answer, uint32_t groups_max, struct heat **ret_heat);
struct heat *heat_destroy(struct heat *heat);

const struct heat_cell *heat_get_cell(const struct heat *heat, uint32_t node, uint32_t peer);
const char *heat_kind_words(enum heat_kind kind);
// Return the level of a time on the scale, which is logarithmic and spans at least a factor of 8.
uint32_t heat_level(const struct heat *heat, uint64_t median_ns);
// Return the lowest time of a level.
uint64_t heat_level_ns(const struct heat *heat, uint32_t level);
// Return true if the path has a time to show.
bool heat_is_timed(const struct heat_path *path);

// Format the name of a group: "n1", or "n1..n4".
#define HEAT_NAME_BYTES 160
void heat_group_name(const struct heat *heat, uint32_t group, char text[static HEAT_NAME_BYTES]);
// Format the summary: "12 paths: 11 good, 1 degraded".
#define HEAT_LINE_BYTES 512
void heat_summary_line(const struct heat *heat, char text[static HEAT_LINE_BYTES]);
// Describe a path: "n1 reads n3: degraded, 310 us, usually 26 us, 3 of 1203 lost".
void heat_path_words(
	const struct heat *heat, const struct heat_path *path, char text[static HEAT_LINE_BYTES]
);
// Like heat_path_words(), and append how many others read the node badly.
void heat_worst_words(
	const struct heat *heat, const struct heat_worst *worst, char text[static HEAT_LINE_BYTES]
);
// Return the n-th sentence about what the heat map omits. Returns false if there are no more.
bool heat_omission_text(const struct heat *heat, uint32_t n, char text[static HEAT_LINE_BYTES]);

#define HEAT_TEXT_GROUPS_MAX 80
#define HEAT_TERMINAL_GROUPS_MAX 60
// Print the heat map. Without `whole` no line has more than 80 columns, which needs at most
// HEAT_TERMINAL_GROUPS_MAX groups.
void heat_print(const struct heat *heat, bool whole, bool colour, FILE *out);

#define HEAT_SVG_GROUPS_MAX 128
void heat_svg(const struct heat *heat, FILE *out);
