// SPDX-License-Identifier: BSD-3-Clause
// Systematic search: the menu below, on each node or pair of nodes, at each moment of a grid. A
// combination is a set of such items and becomes a list of faults as of --faults.
//
// Three rules reduce the number of combinations. The first fault begins at moment 0, since a ring
// at rest does not depend on the time. Nodes are alike, except that some are seeds: of all
// combinations that differ only by a permutation of nodes that keeps seeds, the lexicographically
// smallest is played. Two items that would end each other are not combined: the same fault twice
// at once, and two partitions at once, because the simulator has one firewall.
#include "exhaust.h"

#include <lib/must.h>

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define EXHAUST_ITEMS_MAX 512
#define EXHAUST_PERMUTATIONS_MAX 12 // six of three seeds, times two of two other nodes
#define EXHAUST_SHOWN_MAX 100

struct menu_entry {
	enum fault_kind kind;
	uint32_t duration_s; // 0: permanent
};

// Short faults end before a silent node is declared dead (8.7 s), long ones after that.
static const struct menu_entry menu[] = {
	{FAULT_KILL, 0},    {FAULT_KILL, 4},	{FAULT_LEAVE, 4},   {FAULT_HOST, 0},
	{FAULT_FREEZE, 4},  {FAULT_FREEZE, 20}, {FAULT_DEAF, 4},    {FAULT_DEAF, 20},
	{FAULT_FABRIC, 20}, {FAULT_FENCE, 20},	{FAULT_ONEWAY, 20},
};
#define MENU_COUNT (sizeof(menu) / sizeof(menu[0]))

// At once, while a short fault goes on, just after its end, between the death of a silent node and
// the end of a long fault, and just after that end.
static const uint32_t moments_s[] = {0, 2, 5, 12, 21};
#define MOMENT_COUNT (sizeof(moments_s) / sizeof(moments_s[0]))

#define WITHDRAWALS_MISSED                                                                        \
	"an agent reads reports about the other node from its sockets after its own freeze, and " \
	"their withdrawals never reached it. It calls that node mgmt-net-down for up to 30 s"

// Combinations that break an invariant and are not mended yet. They are played and printed like all
// others, but do not make the search fail. A listed combination that breaks nothing is reported.
static const struct known_fault {
	uint32_t nodes;
	const char *faults;
	const char *reason;
} known_faults[] = {
	{4, "freeze:1@0s+20s,freeze:4@2s+4s", WITHDRAWALS_MISSED},
	{5, "freeze:1@0s+20s,freeze:2@2s+4s", WITHDRAWALS_MISSED},
	{5, "freeze:3@0s+20s,freeze:1@2s+4s", WITHDRAWALS_MISSED},
	{5, "freeze:3@0s+20s,freeze:5@2s+4s", WITHDRAWALS_MISSED},
};

struct item {
	uint32_t moment, entry;
	uint32_t node, other; // other: the node itself unless the fault names another one
};

// Increasing indexes of items.
struct combination {
	uint32_t count;
	uint32_t items[EXHAUST_DEPTH_MAX];
};

struct exhaust {
	uint32_t nodes, depth;
	struct item items[EXHAUST_ITEMS_MAX]; // ordered by moment
	uint32_t item_count;
	uint32_t first_count; // items at moment 0
	// Items with permuted nodes, by permutation and item.
	uint16_t images[EXHAUST_PERMUTATIONS_MAX][EXHAUST_ITEMS_MAX];
	uint32_t image_count;
};

// One run that was started and has not been consumed.
struct active_run {
	struct run_options run;
	struct run_apart apart;
	uint64_t index;
};

struct tally {
	struct verdict_matrix matrix;
	uint64_t played, broken;
	uint64_t known;	 // of the broken ones, those in known_faults
	uint64_t digest; // of the digests of all runs, in their order
	double cpu_s;
};

static volatile sig_atomic_t exhaust_stops;

static void on_stop(int signal) {
	(void)signal;
	exhaust_stops = 1;
}

// List the faults of one kind at one moment, for all nodes.
static void list_items_of(struct exhaust *exhaust, uint32_t moment, uint32_t entry) {
	bool pair = fault_names_another(menu[entry].kind);

	for (uint32_t node = 0; node < exhaust->nodes; node++) {
		for (uint32_t other = 0; other < exhaust->nodes; other++) {
			if (pair == (node == other))
				continue;
			must(exhaust->item_count < EXHAUST_ITEMS_MAX);
			exhaust->items[exhaust->item_count++] =
				(struct item){moment, entry, node, other};
		}
	}
}

static void list_items(struct exhaust *exhaust) {
	for (uint32_t moment = 0; moment < MOMENT_COUNT; moment++) {
		for (uint32_t entry = 0; entry < MENU_COUNT; entry++)
			list_items_of(exhaust, moment, entry);
		if (moment == 0)
			exhaust->first_count = exhaust->item_count;
	}
}

static uint16_t item_find(const struct exhaust *exhaust, const struct item *item) {
	uint32_t n = 0;

	while (memcmp(&exhaust->items[n], item, sizeof(*item)) != 0)
		n++;
	return (uint16_t)n;
}

// Add the permutation if it maps seeds to seeds.
static void add_permutation(struct exhaust *exhaust, const uint32_t *to) {
	for (uint32_t n = 0; n < exhaust->nodes; n++) {
		if (world_is_seed(exhaust->nodes, n) != world_is_seed(exhaust->nodes, to[n]))
			return;
	}
	must(exhaust->image_count < EXHAUST_PERMUTATIONS_MAX);
	for (uint32_t n = 0; n < exhaust->item_count; n++) {
		struct item item = exhaust->items[n];

		item.node = to[item.node];
		item.other = to[item.other];
		exhaust->images[exhaust->image_count][n] = item_find(exhaust, &item);
	}
	exhaust->image_count++;
}

// NOLINTNEXTLINE(misc-no-recursion): as deep as there are nodes
static void list_permutations(struct exhaust *exhaust, uint32_t *to, uint32_t done) {
	if (done == exhaust->nodes)
		add_permutation(exhaust, to);
	for (uint32_t n = done; n < exhaust->nodes; n++) {
		uint32_t kept = to[done];

		to[done] = to[n];
		to[n] = kept;
		list_permutations(exhaust, to, done + 1);
		to[n] = to[done];
		to[done] = kept;
	}
}

// Return whether one of the two faults would end the other one.
static bool items_collide(const struct item *a, const struct item *b) {
	enum fault_kind kind = menu[a->entry].kind;
	uint32_t a_s = moments_s[a->moment], b_s = moments_s[b->moment];

	if (kind != menu[b->entry].kind || kind == FAULT_KILL || kind == FAULT_LEAVE ||
	    kind == FAULT_HOST)
		return false;
	if (kind != FAULT_FENCE && (a->node != b->node || a->other != b->other))
		return false;
	return a_s <= b_s + menu[b->entry].duration_s && b_s <= a_s + menu[a->entry].duration_s;
}

static bool
combination_is_possible(const struct exhaust *exhaust, const struct combination *combination) {
	for (uint32_t n = 0; n < combination->count; n++) {
		for (uint32_t k = n + 1; k < combination->count; k++) {
			if (items_collide(
				    &exhaust->items[combination->items[n]],
				    &exhaust->items[combination->items[k]]
			    ))
				return false;
		}
	}
	return true;
}

static int compare_indexes(const void *a, const void *b) {
	const uint32_t *one = a, *other = b;

	return (*one > *other) - (*one < *other);
}

// Return whether no permutation of nodes yields a smaller combination.
static bool
combination_is_smallest(const struct exhaust *exhaust, const struct combination *combination) {
	for (uint32_t n = 0; n < exhaust->image_count; n++) {
		struct combination image = {.count = combination->count};

		for (uint32_t k = 0; k < image.count; k++)
			image.items[k] = exhaust->images[n][combination->items[k]];
		qsort(image.items, image.count, sizeof(image.items[0]), compare_indexes);
		for (uint32_t k = 0; k < image.count; k++) {
			if (image.items[k] < combination->items[k])
				return false;
			if (image.items[k] > combination->items[k])
				break;
		}
	}
	return true;
}

// Advance to the next set of items: first all of one item, then all of two. The first item is one
// of moment 0. Returns false after the last set.
static bool combination_advance(const struct exhaust *exhaust, struct combination *combination) {
	uint32_t count = combination->count;

	for (uint32_t k = count; k-- > 0;) {
		uint32_t limit = exhaust->item_count - (count - 1 - k);

		if (k == 0 && limit > exhaust->first_count)
			limit = exhaust->first_count;
		if (combination->items[k] + 1 >= limit)
			continue;
		combination->items[k]++;
		for (uint32_t n = k + 1; n < count; n++)
			combination->items[n] = combination->items[n - 1] + 1;
		return true;
	}
	if (count == exhaust->depth)
		return false;
	combination->count++;
	for (uint32_t n = 0; n <= count; n++)
		combination->items[n] = n;
	return true;
}

static bool combination_next(const struct exhaust *exhaust, struct combination *combination) {
	while (combination_advance(exhaust, combination)) {
		if (combination_is_possible(exhaust, combination) &&
		    combination_is_smallest(exhaust, combination))
			return true;
	}
	return false;
}

// NOLINTNEXTLINE(misc-no-recursion): twice at most
static void add_fault(struct run_options *run, const struct item *item, enum fault_kind kind) {
	bool pair = fault_names_another(kind);
	struct fault fault = {
		.kind = kind,
		.node = item->node,
		.value = pair ? item->other : 0,
		.at_ns = moments_s[item->moment] * WORLD_SEC,
		.duration_ns = menu[item->entry].duration_s * WORLD_SEC,
	};

	// The smallest percentage that is one host.
	if (kind == FAULT_FENCE)
		fault.value = (100 + run->nodes - 1) / run->nodes;
	run->faults[run->fault_count++] = fault;
	// FAULT_DEAF in the menu means that the management network fails in both directions.
	if (kind == FAULT_DEAF)
		add_fault(run, item, FAULT_MUTE);
}

static void combination_to_run(
	const struct exhaust *exhaust,
	const struct combination *combination,
	const struct run_options *base,
	struct run_options *ret_run
) {
	*ret_run = *base;
	ret_run->scenario = &scenario_of_faults;
	ret_run->fault_count = 0;
	ret_run->verdicts = true;
	ret_run->explain = ret_run->progress = false;
	for (uint32_t n = 0; n < combination->count; n++) {
		const struct item *item = &exhaust->items[combination->items[n]];

		add_fault(ret_run, item, menu[item->entry].kind);
	}
}

static const struct known_fault *known_fault_find(const struct run_options *run) {
	struct fault faults[2 * EXHAUST_DEPTH_MAX];
	uint32_t count;

	for (size_t n = 0; n < sizeof(known_faults) / sizeof(known_faults[0]); n++) {
		int err = faults_parse(
			known_faults[n].faults, EXHAUST_NODES_MAX, faults, 2 * EXHAUST_DEPTH_MAX,
			&count, NULL
		);

		must(err == 0);
		if (known_faults[n].nodes == run->nodes && count == run->fault_count &&
		    memcmp(faults, run->faults, count * sizeof(faults[0])) == 0)
			return &known_faults[n];
	}
	return NULL;
}

static int active_run_finish(struct active_run *active, struct tally *tally, FILE *to) {
	const struct known_fault *known = known_fault_find(&active->run);
	char command[RUN_COMMAND_BYTES];
	struct result result;
	int err = run_apart_wait(&active->apart, &result);

	if (err != 0)
		return err;
	matrix_add(&tally->matrix, &result.matrix);
	tally->played++;
	tally->digest = (tally->digest ^ result.digest) * UINT64_C(0x100000001b3);
	tally->cpu_s += result.cpu_s;
	tally->known += result.broken && known != NULL;
	if (!result.broken && known != NULL)
		fprintf(to, "combination %" PRIu64 " breaks nothing, but is a known fault: %s\n",
			active->index, known->faults);
	if (!result.broken || tally->broken++ >= EXHAUST_SHOWN_MAX)
		return 0;
	run_command(&active->run, command);
	fprintf(to, "combination %" PRIu64 " breaks: %s\n  tocsin-sim %s\n", active->index,
		result.broken_text, command);
	if (known != NULL)
		fprintf(to, "  known fault: %s\n", known->reason);
	fflush(to);
	return 0;
}

static void tally_print(
	const struct exhaust *exhaust,
	const struct exhaust_options *options,
	const struct tally *tally,
	uint64_t all,
	FILE *to
) {
	uint64_t end = options->from + tally->played;

	if (tally->broken > EXHAUST_SHOWN_MAX)
		fprintf(to, "%" PRIu64 " more combinations that break an invariant are not shown\n",
			tally->broken - EXHAUST_SHOWN_MAX);
	matrix_print_looks(&tally->matrix, to);
	fprintf(to,
		"\nexhaust: %u nodes, up to %u faults: %" PRIu64 " of %" PRIu64
		" combinations from %" PRIu64 " on, %" PRIu64 " broke an invariant, %" PRIu64
		" of them known\n"
		"digest %016" PRIx64 ", %.1f s of CPU\n",
		exhaust->nodes, exhaust->depth, tally->played, all, options->from, tally->broken,
		tally->known, tally->digest, tally->cpu_s);
	if (end < all)
		fprintf(to, "go on with: --from %" PRIu64 "\n", end);
}

// Start runs in the order of their indexes and consume them in this order.
static int play_all(
	const struct exhaust *exhaust,
	const struct run_options *run,
	const struct exhaust_options *options,
	struct active_run *active_runs,
	FILE *to,
	struct tally *tally
) {
	struct combination combination = {0};
	uint64_t index = 0, begun = 0;
	bool more = true;
	int err = 0;

	for (;;) {
		while (more && err == 0 && exhaust_stops == 0 &&
		       begun - tally->played < options->jobs) {
			struct active_run *active = &active_runs[begun % options->jobs];

			more = combination_next(exhaust, &combination);
			if (!more || index++ < options->from)
				continue;
			active->index = index - 1;
			combination_to_run(exhaust, &combination, run, &active->run);
			err = run_apart_start(&active->run, &active->apart);
			begun += err == 0;
		}
		if (begun == tally->played)
			return err;
		if (active_run_finish(&active_runs[tally->played % options->jobs], tally, to) != 0)
			return -EIO;
		if (run->progress) {
			fprintf(stderr, "\rexhaust: %" PRIu64 " ", options->from + tally->played);
			fflush(stderr);
		}
	}
}

int exhaust_play(
	const struct run_options *run,
	const struct exhaust_options *options,
	FILE *to,
	uint64_t *ret_broken
) {
	const struct sigaction stop = {.sa_handler = on_stop, .sa_flags = SA_RESTART};
	struct exhaust exhaust = {.nodes = run->nodes, .depth = options->depth};
	struct active_run *active_runs = calloc(options->jobs, sizeof(*active_runs));
	uint32_t to_nodes[EXHAUST_NODES_MAX] = {0, 1, 2, 3, 4};
	struct combination combination = {0};
	struct tally tally = {0};
	uint64_t all = 0;
	int err;

	if (active_runs == NULL)
		return -ENOMEM;
	list_items(&exhaust);
	list_permutations(&exhaust, to_nodes, 0);
	while (combination_next(&exhaust, &combination))
		all++;
	sigaction(SIGINT, &stop, NULL);
	sigaction(SIGTERM, &stop, NULL);
	err = play_all(&exhaust, run, options, active_runs, to, &tally);
	free(active_runs);
	if (err != 0)
		return err;
	if (run->progress)
		fprintf(stderr, "\n");
	tally_print(&exhaust, options, &tally, all, to);
	*ret_broken = tally.broken - tally.known;
	return 0;
}
