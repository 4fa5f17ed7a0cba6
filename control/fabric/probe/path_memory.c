// SPDX-License-Identifier: BSD-3-Clause
// Records the outcomes of probes.
#include "path_inside.h"

#include <lib/must.h>

#include <errno.h>

#define MS UINT64_C(1000000)

static uint64_t or_default(uint64_t value, uint64_t otherwise) {
	return value != 0 ? value : otherwise;
}

int path_memory_create(
	const struct path_memory_config *config,
	const struct ras_memory *memory,
	struct path_memory **ret_memory
) {
	struct path_memory *path = memory->allocate(memory->ctx, sizeof(*path));

	if (path == NULL)
		return -ENOMEM;
	path->config = (struct path_memory_config){
		.window_ns = or_default(config->window_ns, 5 * RAS_NS_PER_SEC),
		.samples_min = (uint32_t)or_default(config->samples_min, 4),
		.ratio_permille = (uint32_t)or_default(config->ratio_permille, PATH_RATIO_PERMILLE),
		.windows = (uint32_t)or_default(config->windows, 2),
		.silent_reads = (uint32_t)or_default(config->silent_reads, 2),
		.standing_ns = or_default(config->standing_ns, 1500 * MS),
		.lossy_permille = (uint32_t)or_default(config->lossy_permille, 20),
		.lossy_window_ns = or_default(config->lossy_window_ns, 10 * RAS_NS_PER_SEC),
	};
	path->memory = *memory;
	path->last_answer_ns = path->last_probe_ns = RAS_NEVER;
	path->pulse.seen_ns = RAS_NEVER;
	path->window_begin_ns = RAS_NEVER;
	path->kind = OBSERVATION_NO_PAIR;
	path->lost_place = PATH_SIZES;
	if (histogram_create(&histogram_shape_latency, &path->histogram) != 0) {
		path_memory_destroy(path);
		return -ENOMEM;
	}
	*ret_memory = path;
	return 0;
}

struct path_memory *path_memory_destroy(struct path_memory *memory) {
	struct ras_memory source;

	if (memory == NULL)
		return NULL;
	source = memory->memory;
	histogram_destroy(memory->histogram);
	source.release(source.ctx, memory, sizeof(*memory));
	return NULL;
}

static void record_outcome(struct size_past *past, const struct path_probe *probe) {
	uint32_t place = past->count++ % PATH_OUTCOMES_KEPT;

	past->at_ns[place] = probe->at_ns;
	past->answered[place] = probe->answered;
	past->latency_ns[place] = probe->latency_ns;
}

static void record_pulse(struct pulse_past *pulse, const struct path_probe *probe) {
	if (probe->beats == 0)
		return;
	if (probe->incarnation != 0 && probe->incarnation != pulse->incarnation) {
		// A refutation changes the incarnation but keeps the counter; a restart begins at
		// 1.
		if (pulse->incarnation == 0 || probe->beats < pulse->beats) {
			*pulse = (struct pulse_past){
				.incarnation = probe->incarnation,
				.beats = probe->beats,
				.since_ns = probe->at_ns,
				.seen_ns = probe->at_ns,
			};
			return;
		}
		pulse->incarnation = probe->incarnation;
	}
	// Without a head the page is unidentified, and a counter never decreases.
	if (pulse->incarnation == 0 || probe->beats < pulse->beats)
		return;
	pulse->seen_ns = probe->at_ns;
	if (probe->beats == pulse->beats)
		return;
	pulse->beats = probe->beats;
	pulse->since_ns = pulse->advanced_ns = probe->at_ns;
	pulse->advances = true;
}

// Remove losses within [from_ns, until_ns) from the ring, and close up the rest.
static void forget_losses_between(struct size_past *past, uint64_t from_ns, uint64_t until_ns) {
	uint32_t held = past->count < PATH_OUTCOMES_KEPT ? past->count : PATH_OUTCOMES_KEPT;
	struct size_past kept = {.sent = past->sent, .lost = past->lost};

	for (uint32_t n = past->count - held; n < past->count; n++) {
		uint32_t from = n % PATH_OUTCOMES_KEPT;

		if (!past->answered[from] && past->at_ns[from] >= from_ns &&
		    past->at_ns[from] < until_ns)
			continue;
		kept.at_ns[kept.count] = past->at_ns[from];
		kept.latency_ns[kept.count] = past->latency_ns[from];
		kept.answered[kept.count++] = past->answered[from];
	}
	*past = kept;
}

static bool has_loss_between(const struct size_past *past, uint64_t from_ns, uint64_t until_ns) {
	uint32_t held = past->count < PATH_OUTCOMES_KEPT ? past->count : PATH_OUTCOMES_KEPT;

	for (uint32_t n = 0; n < held; n++) {
		if (!past->answered[n] && past->at_ns[n] >= from_ns && past->at_ns[n] < until_ns)
			return true;
	}
	return false;
}

// Called with each answer. If the answer ends a silence, the losses of the outage are removed: the
// outage was reported as silence and says nothing about the path's loss rate. They stay if the path
// already lost probes before: then loss caused the silence.
static void record_end_of_silence(struct path_memory *memory, uint64_t until_ns) {
	uint64_t window_ns = memory->config.lossy_window_ns;
	uint64_t begin_ns = memory->last_answer_ns;
	uint64_t before_ns = begin_ns > window_ns ? begin_ns - window_ns : 0;

	if (begin_ns == RAS_NEVER ||
	    (!memory->silent && memory->unexpected < memory->config.silent_reads))
		return;
	for (uint32_t n = 0; n < PATH_SIZES; n++) {
		if (has_loss_between(&memory->sizes[n], before_ns, begin_ns) ||
		    has_loss_between(&memory->writes[n], before_ns, begin_ns))
			return;
	}
	for (uint32_t n = 0; n < PATH_SIZES; n++) {
		forget_losses_between(&memory->sizes[n], begin_ns, until_ns);
		forget_losses_between(&memory->writes[n], begin_ns, until_ns);
	}
}

// Return whether the path is known to lose this size. Such a loss is no sign of silence, since
// small probes may pass.
static bool loss_is_expected(const struct path_memory *memory, uint32_t size) {
	return memory->kind == OBSERVATION_LOSSY && memory->lost_place > 0 &&
	       size >= memory->lost_place;
}

// Repeated loss of a known lossy size breaks the pair after a while. Probes in flight are then lost
// with it.
#define PAIR_BREAK_DELAY_NS RAS_NS_PER_SEC

static bool loss_is_excused(struct path_memory *memory, const struct path_probe *probe) {
	bool expected = loss_is_expected(memory, probe->size);

	if (expected && memory->excused_ns == 0)
		memory->excused_ns = probe->at_ns + PAIR_BREAK_DELAY_NS;
	return expected || probe->at_ns < memory->excused_ns;
}

static void record_answer(struct path_memory *memory, uint64_t at_ns) {
	record_end_of_silence(memory, at_ns);
	memory->last_answer_ns = at_ns;
	memory->excused_ns = 0;
}

static void record_write(struct path_memory *memory, const struct path_probe *probe) {
	struct size_past *past = &memory->writes[probe->size];

	past->sent++;
	if (!probe->answered && probe->at_ns < memory->paused_until_ns)
		return;
	if (probe->answered) {
		record_answer(memory, probe->at_ns);
	} else {
		past->lost++;
		memory->lost++;
		if (memory->unanswered == 0 && !memory->write_unanswered)
			memory->unanswered_ns = probe->at_ns;
	}
	memory->write_unanswered = !probe->answered;
	memory->write_unexpected = !probe->answered && !loss_is_excused(memory, probe);
	if (!path_loss_is_excluded(probe) &&
	    (probe->answered || memory->write_unexpected || loss_is_expected(memory, probe->size)))
		record_outcome(past, probe);
}

// Returns whether the latency was excluded.
static bool record_read(struct path_memory *memory, const struct path_probe *probe) {
	struct size_past *size = &memory->sizes[probe->size];
	bool excluded;

	size->sent++;
	if (!probe->answered && probe->at_ns < memory->paused_until_ns)
		return false;
	if (probe->answered) {
		record_answer(memory, probe->at_ns);
		memory->unanswered = memory->unexpected = 0;
		memory->write_unanswered = memory->write_unexpected = false;
		memory->silent = false;
	} else {
		memory->lost++;
		size->lost++;
		if (memory->unanswered == 0 && !memory->write_unanswered)
			memory->unanswered_ns = probe->at_ns;
		memory->unanswered++;
		if (loss_is_excused(memory, probe) && !loss_is_expected(memory, probe->size))
			return false; // lost with the pair, so it proves nothing about its own size
		memory->unexpected += !loss_is_expected(memory, probe->size);
	}
	if (!path_loss_is_excluded(probe))
		record_outcome(size, probe);
	if (!probe->answered || probe->at_ns < memory->paused_until_ns)
		return false;
	excluded = probe->size == 0 && path_sample_is_excluded(memory, probe);
	if (probe->size == 0)
		path_record_exclusion(memory, probe, excluded);
	if (probe->size == 0 && !excluded) {
		if (memory->baseline_ns == 0 ||
		    probe->latency_ns <= path_slow_threshold_ns(memory, memory->baseline_ns))
			memory->slow_run = 0;
		else if (memory->slow_run++ == 0)
			memory->slow_run_ns = probe->at_ns;
		histogram_record(memory->histogram, probe->latency_ns);
		if (memory->window_begin_ns == RAS_NEVER)
			memory->window_begin_ns = probe->at_ns;
		memory->window[memory->window_count++ % WINDOW_SAMPLES] = probe->latency_ns;
		memory->recent[memory->recent_count++ % RECENT_SAMPLES] = probe->latency_ns;
	}
	record_pulse(&memory->pulse, probe);
	return excluded;
}

bool path_memory_add(struct path_memory *memory, const struct path_probe *probe) {
	must(probe->size < PATH_SIZES);
	memory->count++;
	memory->last_probe_ns = probe->at_ns;
	if (probe->answered)
		path_record_late_answer(memory, probe);
	if (probe->is_read)
		return record_read(memory, probe);
	record_write(memory, probe);
	return false;
}

static void drop_window(struct path_memory *memory) {
	memory->window_begin_ns = RAS_NEVER;
	memory->window_count = 0;
	memory->slow_run = 0;
}

void path_memory_paused(struct path_memory *memory, uint64_t until_ns) {
	if (until_ns <= memory->paused_until_ns)
		return;
	memory->paused_until_ns = until_ns;
	for (uint32_t n = 0; n < PATH_SIZES; n++) {
		forget_losses_between(&memory->sizes[n], 0, until_ns);
		forget_losses_between(&memory->writes[n], 0, until_ns);
	}
	memory->unanswered = memory->unexpected = 0;
	memory->write_unanswered = memory->write_unexpected = false;
	drop_window(memory);
	// Nobody read the counter during the pause, so its standing time restarts.
	memory->pulse.since_ns = until_ns;
}

void path_memory_cut_off(struct path_memory *memory) {
	memory->silent = memory->silent || memory->unexpected > 0 || memory->write_unexpected;
}

void path_memory_reopened(struct path_memory *memory, uint64_t now_ns) {
	for (uint32_t n = 0; n < PATH_SIZES; n++)
		memory->sizes[n].count = memory->writes[n].count = 0;
	memory->pulse = (struct pulse_past){.seen_ns = RAS_NEVER, .since_ns = now_ns};
	memory->unanswered = memory->unexpected = 0;
	memory->write_unanswered = memory->write_unexpected = false;
	memory->excused_ns = 0;
	memory->silent = memory->resends = false;
	drop_window(memory);
}

void path_memory_summary(const struct path_memory *memory, struct path_summary *ret_summary) {
	struct path_summary summary = {
		.count = memory->count,
		.lost = memory->lost,
		.unjudged = path_latency_is_unjudged(memory),
		.excluded_ns = memory->excluded_ns,
		.min_ns = memory->min_ns,
		.median_ns = memory->median_ns,
		.lately_ns = path_recent_median_ns(memory),
		.mad_ns = memory->mad_ns,
		.p99_ns = memory->p99_ns,
		.baseline_ns = memory->baseline_ns,
		.baseline_mad_ns = memory->baseline_mad_ns,
		.last_answer_ns = memory->last_answer_ns,
		.last_probe_ns = memory->last_probe_ns,
		.advanced_ns = memory->pulse.advances ? memory->pulse.advanced_ns : RAS_NEVER,
		.kind = memory->kind,
		.since_ns = memory->since_ns,
		.turned_ns = memory->since_ns,
		.lost_permille = memory->lost_permille,
		.lost_size_index = memory->lost_place,
		.unproven_size_index = memory->unproven_size_index,
	};

	if (memory->kind == OBSERVATION_SILENT)
		summary.turned_ns = memory->unanswered_ns;
	else if (memory->kind == OBSERVATION_STANDING)
		summary.turned_ns = memory->pulse.since_ns;
	for (uint32_t n = 0; n < PATH_SIZES; n++) {
		summary.size_sent[n] = memory->sizes[n].sent;
		summary.size_lost[n] = memory->sizes[n].lost;
		summary.write_sent[n] = memory->writes[n].sent;
		summary.write_lost[n] = memory->writes[n].lost;
	}
	*ret_summary = summary;
}

const struct histogram *path_memory_histogram(const struct path_memory *memory) {
	return memory->histogram;
}
