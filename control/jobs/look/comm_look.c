// SPDX-License-Identifier: BSD-3-Clause
// Judges the communicators of an answer, together with the bad paths between their nodes.
#include "jobs/look/comm_look.h"

#include <control/health.h>
#include <control/overlay.h>
#include <lib/show.h>

#include <errno.h>
#include <inttypes.h>
#include <jobs/report.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define PAIRS_MAX 256
#define NAME_BYTES 80
#define HASH_DIGITS_MIN 4
#define HASH_DIGITS 16

// A dead agent does not mean a dead node: require a node-down verdict on both planes.
static bool is_dead(void *ctx, uint64_t node) {
	const struct health *health = ((const struct comm_look *)ctx)->config.health;
	struct verdict_view view;

	return health != NULL && verdict_view_get(health_engine(health), node, &view) == 0 &&
	       view.verdict == VERDICT_NODE_DOWN && view.both_planes;
}

static void format_observation(
	const struct observation *observation, uint64_t lasted_ns, char *text, size_t size
) {
	char median[SHOW_BYTES], baseline[SHOW_BYTES];

	show_duration(observation->median_ns, median);
	show_duration(observation->baseline_ns, baseline);
	switch (observation->kind) {
	case OBSERVATION_DEGRADED:
		snprintf(text, size, "answers in %s, usually in %s", median, baseline);
		break;
	case OBSERVATION_LOSSY:
		snprintf(
			text, size, "loses %u.%u %% of probes, answers in %s",
			observation->lost_permille / 10, observation->lost_permille % 10, median
		);
		break;
	case OBSERVATION_SILENT:
		snprintf(
			text, size, "has not answered for %" PRIu64 ".%" PRIu64 " s%s%s",
			lasted_ns / RAS_NS_PER_SEC,
			lasted_ns % RAS_NS_PER_SEC / (100 * RAS_NS_PER_MS),
			observation->baseline_ns != 0 ? ", usually in " : "",
			observation->baseline_ns != 0 ? baseline : ""
		);
		break;
	default:
		snprintf(text, size, "is %s", observation_kind_name(observation->kind));
		break;
	}
}

static void make_pair(
	const struct comm_look *look,
	const struct verdict_path_view *path,
	struct jobs_pair *ret_pair
) {
	const struct observation *observation = &path->observation;
	const struct jobs_name_resolver *words = &look->config.words;
	uint64_t now_ns = look->config.now_ns;
	uint64_t lasted_ns = now_ns > path->since_ns ? now_ns - path->since_ns : 0;
	char observer[NAME_BYTES], subject[NAME_BYTES], seen[256];

	words->node_name(words->ctx, observation->observer, observer, sizeof(observer));
	words->node_name(words->ctx, observation->subject, subject, sizeof(subject));
	format_observation(observation, lasted_ns, seen, sizeof(seen));
	*ret_pair = (struct jobs_pair){
		.node = observation->observer,
		.peer = observation->subject,
		.median_ns = observation->median_ns,
		.baseline_ns = observation->baseline_ns,
		.lost_permille = observation->lost_permille,
		.silent = observation->kind == OBSERVATION_SILENT,
	};
	snprintf(
		ret_pair->words, sizeof(ret_pair->words),
		"the path %.20s %.15s -> %.20s %.15s %.75s", observer, observation->device, subject,
		observation->peer_device[0] != '\0' ? observation->peer_device : "?", seen
	);
}

static int compare_order(const void *left, const void *right, void *ctx) {
	const struct comm_look *look = ctx;
	uint32_t a = *(const uint32_t *)left, b = *(const uint32_t *)right;
	const struct jobs_finding *one = &look->findings[a], *other = &look->findings[b];

	if (one->grade != other->grade)
		return one->grade > other->grade ? -1 : 1;
	// The communicator where a chain of waits begins comes before those that wait for it.
	if ((one->via == JOBS_NOBODY) != (other->via == JOBS_NOBODY))
		return one->via == JOBS_NOBODY ? -1 : 1;
	if ((one->cause != JOBS_CAUSE_NONE) != (other->cause != JOBS_CAUSE_NONE))
		return one->cause != JOBS_CAUSE_NONE ? -1 : 1;
	if (look->comms[a].size != look->comms[b].size)
		return look->comms[a].size > look->comms[b].size ? -1 : 1;
	return a < b ? -1 : a > b;
}

static void *heap_allocate(void *ctx, size_t size) {
	(void)ctx;
	return calloc(1, size);
}

static void heap_release(void *ctx, void *memory, size_t size) {
	(void)ctx;
	(void)size;
	free(memory);
}

static const struct ras_memory heap = {.allocate = heap_allocate, .release = heap_release};

struct jobs_wait_history *comm_wait_history_create(void) {
	struct jobs_wait_history *book;

	return jobs_wait_history_create(&heap, &book) == 0 ? book : NULL;
}

int comm_look_init(
	struct comm_look *look,
	const struct comm_look_config *config,
	const struct overlay_answer *answer
) {
	const struct health *health = config->health;
	struct verdict_path_view path;
	uint32_t cursor = 0;
	int err;

	*look = (struct comm_look){
		.config = *config,
		.count = ras_comms_count(answer->comms),
	};
	look->comms = calloc((size_t)look->count + 1, sizeof(*look->comms));
	look->findings = calloc((size_t)look->count + 1, sizeof(*look->findings));
	look->order = calloc((size_t)look->count + 1, sizeof(*look->order));
	look->pairs = calloc(PAIRS_MAX, sizeof(*look->pairs));
	if (look->comms == NULL || look->findings == NULL || look->order == NULL ||
	    look->pairs == NULL) {
		comm_look_fini(look);
		return -ENOMEM;
	}
	for (uint32_t n = 0; n < look->count; n++) {
		ras_comms_at(answer->comms, n, &look->comms[n]);
		look->order[n] = n;
	}
	// Collect the bad paths of all observers, whichever side is blamed for them.
	while (health != NULL && look->look.pair_count < PAIRS_MAX &&
	       verdict_bad_path_next(health_engine(health), &cursor, &path)) {
		enum observation_kind kind = path.observation.kind;

		if (path.observation.device[0] != '\0' &&
		    (kind == OBSERVATION_DEGRADED || kind == OBSERVATION_LOSSY ||
		     kind == OBSERVATION_SILENT))
			make_pair(look, &path, &look->pairs[look->look.pair_count++]);
	}
	look->look.limits = &look->config.limits;
	look->look.comms = look->comms;
	look->look.comm_count = look->count;
	look->look.pairs = look->pairs;
	look->look.is_dead = is_dead;
	look->look.ctx = look;
	look->look.book = look->config.book;
	look->look.memory = &heap;
	err = jobs_judging_create(&look->look, look->findings, &look->judging);
	if (err != 0)
		comm_look_fini(look);
	return err;
}

bool comm_look_step(struct comm_look *look) {
	uint32_t ranks = 0;

	if (look->judging == NULL)
		return true;
	// Update the wait history before the communicators are judged.
	if (look->noted < look->count) {
		while (look->noted < look->count && ranks < JOBS_STEP_RANKS) {
			const struct ras_merged_comm *comm = &look->comms[look->noted++];

			if (look->config.book != NULL)
				jobs_wait_history_add(look->config.book, comm);
			ranks += comm->rank_count + 1;
		}
		return false;
	}
	if (!jobs_judging_step(look->judging, JOBS_STEP_RANKS))
		return false;
	look->judging = jobs_judging_destroy(look->judging);
	qsort_r(look->order, look->count, sizeof(*look->order), compare_order, look);
	return true;
}

void comm_look_fini(struct comm_look *look) {
	jobs_judging_destroy(look->judging);
	free(look->comms);
	free(look->findings);
	free(look->order);
	free(look->pairs);
	*look = (struct comm_look){0};
}

void comm_look_describe(
	const struct comm_look *look, uint32_t place, char text[static JOBS_SENTENCE_BYTES]
) {
	jobs_describe_finding(
		&look->look, place, &look->findings[place], &look->config.words, text
	);
}

static bool word_is_hash(const char *word) {
	size_t length = strlen(word);

	return length >= HASH_DIGITS_MIN && length <= HASH_DIGITS &&
	       strspn(word, "0123456789abcdefABCDEF") == length;
}

static bool word_is_number(const char *word) {
	size_t digits = strspn(word, "0123456789");

	return digits > 0 && (word[digits] == '\0' || word[digits] == '.');
}

bool comm_name_is_plausible(const char *word) {
	return strchr(word, ':') != NULL || strncasecmp(word, "0x", 2) == 0 || word_is_hash(word) ||
	       word_is_number(word);
}

// The job "slurm:1234.0" also matches "1234.0", and "1234" as all steps of the job do. The job
// "given:NAME" also matches "NAME".
static bool job_matches_word(const char *job, const char *word) {
	const char *number = strchr(job, ':');
	size_t length = strlen(word);

	if (strcmp(job, word) == 0)
		return true;
	if (number == NULL || strncmp(number + 1, word, length) != 0)
		return false;
	return number[1 + length] == '\0' ||
	       (word_is_number(word) && strchr(word, '.') == NULL && number[1 + length] == '.');
}

bool comm_matches_name(const struct ras_merged_comm *comm, const char *word) {
	char hash[HASH_DIGITS + 1];

	if (comm->job[0] != '\0' && job_matches_word(comm->job, word))
		return true;
	// With 0x the hash is written as in NCCL's report, without leading zeros.
	if (strncasecmp(word, "0x", 2) == 0) {
		snprintf(hash, sizeof(hash), "%" PRIx64, comm->id.hash);
		for (word += 2; *word == '0' && word[1] != '\0'; word++) {
		}
		return strcasecmp(word, hash) == 0;
	}
	snprintf(hash, sizeof(hash), "%016" PRIx64, comm->id.hash);
	return word_is_hash(word) && strncasecmp(word, hash, strlen(word)) == 0;
}
