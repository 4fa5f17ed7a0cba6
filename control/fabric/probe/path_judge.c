// SPDX-License-Identifier: BSD-3-Clause
// Judges a path by its history.
#include "path_inside.h"

#include <string.h>

#define MAD_TIMES 6
#define MAD_FLOOR_SHARE 16 // assumed spread of a baseline that never varied: a sixteenth
#define BASELINE_RISE_FRACTION \
	10 // the baseline rises by at most a tenth of itself per BASELINE_RISE_NS
#define BASELINE_RISE_NS (3600 * RAS_NS_PER_SEC)
#define LOST_MIN 2	   // losses over all sizes from one on; a single loss is no pattern
#define LOST_CLEAN_TIMES 3 // e^-3: chance of one in twenty
#define OUTCOMES_LEAST 4   // for a rarely probed size, the last outcomes count at any age

// Arithmetic.

void path_sort(uint64_t *values, uint32_t count) {
	for (uint32_t n = 1; n < count; n++) {
		uint64_t value = values[n];
		uint32_t place = n;

		for (; place > 0 && values[place - 1] > value; place--)
			values[place] = values[place - 1];
		values[place] = value;
	}
}

uint64_t path_median(const uint64_t *sorted, uint32_t count) {
	return count > 0 ? sorted[(count - 1) / 2] : 0;
}

uint64_t path_mad(uint64_t *values, uint32_t count, uint64_t median) {
	for (uint32_t n = 0; n < count; n++)
		values[n] = values[n] > median ? values[n] - median : median - values[n];
	path_sort(values, count);
	return path_median(values, count);
}

static uint32_t min_u32(uint32_t a, uint32_t b) {
	return a < b ? a : b;
}

// Cannot overflow: latencies are below 2^48, ratios below 2^16.
static uint64_t multiply_permille(uint64_t value, uint32_t permille) {
	return value / 1000 * permille + value % 1000 * permille / 1000;
}

static uint64_t elapsed_since(uint64_t then_ns, uint64_t now_ns) {
	return now_ns > then_ns ? now_ns - then_ns : 0;
}

// Latency.

// Add a good window and update the baseline: downwards at once, upwards slowly.
static void baseline_learn(struct path_memory *memory, uint64_t median_ns, uint64_t now_ns) {
	uint32_t count;
	uint64_t sorted[PATH_PAST_WINDOWS];
	uint64_t wish_ns, most_ns, elapsed_ns;

	memory->past[memory->past_count++ % PATH_PAST_WINDOWS] = median_ns;
	memory->learnt_ns = now_ns;
	memory->learnt_before_ns = 0;
	count = min_u32(memory->past_count, PATH_PAST_WINDOWS);
	if (count < PATH_LEARN_WINDOWS)
		return;
	memcpy(sorted, memory->past, count * sizeof(sorted[0]));
	path_sort(sorted, count);
	wish_ns = path_median(sorted, count);
	if (memory->baseline_ns != 0) {
		elapsed_ns = elapsed_since(memory->baseline_at_ns, now_ns);
		most_ns = memory->baseline_ns +
			  (uint64_t
			  )((double)memory->baseline_ns / BASELINE_RISE_FRACTION *
			    ((double)elapsed_ns / (double)BASELINE_RISE_NS));
		// Postpone a rise below one nanosecond.
		if (wish_ns > memory->baseline_ns && most_ns == memory->baseline_ns)
			return;
		wish_ns = wish_ns < most_ns ? wish_ns : most_ns;
	}
	memory->baseline_ns = wish_ns > 0 ? wish_ns : 1;
	memory->baseline_at_ns = now_ns;
	memory->baseline_mad_ns = path_mad(sorted, count, path_median(sorted, count));
}

static bool median_is_slow(const struct path_memory *memory, uint64_t median_ns, uint64_t like_ns) {
	uint32_t ratio = memory->config.ratio_permille;
	uint64_t mad_ns = memory->baseline_mad_ns;

	if (memory->baseline_ns == 0)
		return false;
	if (mad_ns < memory->baseline_ns / MAD_FLOOR_SHARE)
		mad_ns = memory->baseline_ns / MAD_FLOOR_SHARE;
	return median_ns > multiply_permille(memory->baseline_ns, ratio) &&
	       median_ns > memory->baseline_ns + MAD_TIMES * mad_ns &&
	       (like_ns == 0 || median_ns > multiply_permille(like_ns, ratio));
}

static void close_window(struct path_memory *memory, uint64_t now_ns, uint64_t like_ns) {
	uint32_t count = min_u32(memory->window_count, WINDOW_SAMPLES);
	uint32_t recent_count = min_u32(memory->recent_count, RECENT_SAMPLES);
	uint64_t sorted[RECENT_SAMPLES], median_ns;

	path_sort(memory->window, count);
	median_ns = path_median(memory->window, count);
	memory->median_ns = median_ns;
	memcpy(sorted, memory->recent, recent_count * sizeof(sorted[0]));
	path_sort(sorted, recent_count);
	memory->min_ns = sorted[0];
	memory->p99_ns = sorted[(recent_count * 99 + 99) / 100 - 1]; // nearest rank
	memory->mad_ns = path_mad(sorted, recent_count, path_median(sorted, recent_count));
	memory->window_begin_ns = now_ns;
	memory->window_count = 0;
	if (path_baseline_is_outdated(memory, now_ns))
		path_forget_baseline(memory);

	// Even the quickest quarter must be slow. A slow path delays every probe. A machine short
	// of processor time delays only some.
	if (median_is_slow(memory, median_ns, like_ns) &&
	    memory->window[(count - 1) / 4] > path_slow_threshold_ns(memory, memory->baseline_ns)) {
		memory->slow_windows++;
		memory->quick_windows = 0;
	} else {
		memory->slow_windows = 0;
		memory->quick_windows++;
	}
	if (memory->slow_windows >= memory->config.windows)
		memory->degraded = true;
	else if (memory->quick_windows >= memory->config.windows)
		memory->degraded = false;

	// A window that is slow against its own baseline must not enter the baseline. Whether
	// comparable paths are as slow does not matter here.
	if (!memory->degraded && !median_is_slow(memory, median_ns, 0))
		baseline_learn(memory, median_ns, now_ns);
}

uint64_t path_slow_threshold_ns(const struct path_memory *memory, uint64_t usual_ns) {
	return multiply_permille(usual_ns, memory->config.ratio_permille);
}

static uint64_t median_of_last(const struct path_memory *memory, uint32_t reads) {
	uint64_t sorted[PATH_SLOW_READS];

	if (memory->recent_count < reads)
		return 0;
	for (uint32_t n = 0; n < reads; n++)
		sorted[n] = memory->recent[(memory->recent_count - 1 - n) % RECENT_SAMPLES];
	path_sort(sorted, reads);
	return path_median(sorted, reads);
}

uint64_t path_recent_median_ns(const struct path_memory *memory) {
	return median_of_last(memory, PATH_QUICK_READS);
}

// A degraded path that was just read quickly may have recovered.
bool path_memory_needs_reads(const struct path_memory *memory) {
	return memory->degraded ? memory->slow_run == 0 : memory->slow_run >= PATH_DOUBT_READS;
}

// Return whether quick reads in a row end the degradation before any window closes.
static bool quick_run_ends_degraded(const struct path_memory *memory) {
	uint64_t most_ns = path_slow_threshold_ns(memory, memory->baseline_ns);

	if (!memory->degraded || memory->recent_count < PATH_QUICK_READS)
		return false;
	for (uint32_t n = 1; n <= PATH_QUICK_READS; n++) {
		if (memory->recent[(memory->recent_count - n) % RECENT_SAMPLES] > most_ns)
			return false;
	}
	return true;
}

// Loss.

struct recent_outcomes {
	uint32_t sent, lost;
};

static void recent_outcomes_add(
	const struct path_memory *memory,
	const struct size_past *past,
	uint64_t now_ns,
	struct recent_outcomes *recent_outcomes
) {
	uint32_t held = min_u32(past->count, PATH_OUTCOMES_KEPT);

	for (uint32_t n = 1; n <= held; n++) {
		uint32_t place = (past->count - n) % PATH_OUTCOMES_KEPT;

		if (n > OUTCOMES_LEAST &&
		    elapsed_since(past->at_ns[place], now_ns) > memory->config.lossy_window_ns)
			break;
		recent_outcomes->sent++;
		recent_outcomes->lost +=
			!past->answered[place] && past->at_ns[place] > memory->loss_over_ns;
	}
}

// Return when the last probe began, RAS_NEVER if there was none, and whether it was answered.
static uint64_t last_outcome_ns(const struct size_past *past, bool *ret_answered) {
	uint32_t place = (past->count - 1) % PATH_OUTCOMES_KEPT;

	*ret_answered = past->count > 0 && past->answered[place];
	return past->count > 0 ? past->at_ns[place] : RAS_NEVER;
}

// Return whether the last probe of this size was answered.
static bool size_passes(const struct path_memory *memory, uint32_t size) {
	bool read, written;
	uint64_t read_ns = last_outcome_ns(&memory->sizes[size], &read);
	uint64_t written_ns = last_outcome_ns(&memory->writes[size], &written);

	if (read_ns == RAS_NEVER || written_ns == RAS_NEVER)
		return read || written;
	return read_ns > written_ns ? read : written;
}

// Outcomes of the probes of one size and of all larger sizes.
struct since_loss {
	uint64_t lost_ns;    // the last loss
	uint32_t sent, lost; // recent probes up to the last loss
	uint32_t passed;     // probes after it
	bool all_pass;	     // each size that lost has had an answered probe since
};

static void since_loss_add(const struct size_past *past, struct since_loss *since) {
	uint32_t held = min_u32(past->count, PATH_OUTCOMES_KEPT), looked = 0, passed = 0;
	bool loses = false;

	for (uint32_t n = 1; n <= held && looked < 2 * OUTCOMES_LEAST; n++) {
		uint32_t place = (past->count - n) % PATH_OUTCOMES_KEPT;

		if (past->at_ns[place] > since->lost_ns) {
			passed++;
			continue;
		}
		looked++;
		since->sent++;
		since->lost += !past->answered[place];
		loses = loses || !past->answered[place];
	}
	since->passed += passed;
	since->all_pass = since->all_pass && (!loses || passed > 0);
}

static void update_last_loss_ns(const struct size_past *past, uint64_t *lost_ns) {
	uint32_t held = min_u32(past->count, PATH_OUTCOMES_KEPT);

	for (uint32_t n = 1; n <= held; n++) {
		uint32_t place = (past->count - n) % PATH_OUTCOMES_KEPT;

		if (past->answered[place])
			continue;
		if (past->at_ns[place] > *lost_ns)
			*lost_ns = past->at_ns[place];
		return;
	}
}

// Return whether a continuing loss would have let so many probes pass by chance only once in twenty
// cases.
static bool loss_is_over(const struct path_memory *memory, uint32_t place) {
	struct since_loss since = {.all_pass = true};

	for (uint32_t n = place; n < PATH_SIZES; n++) {
		update_last_loss_ns(&memory->sizes[n], &since.lost_ns);
		update_last_loss_ns(&memory->writes[n], &since.lost_ns);
	}
	for (uint32_t n = place; n < PATH_SIZES; n++) {
		since_loss_add(&memory->sizes[n], &since);
		since_loss_add(&memory->writes[n], &since);
	}
	return since.all_pass && since.passed >= OUTCOMES_LEAST &&
	       since.passed * since.lost >= LOST_CLEAN_TIMES * since.sent;
}

// Find the smallest lossy size, and the loss over it and all larger sizes.
static bool judge_loss(struct path_memory *memory, uint64_t now_ns) {
	struct recent_outcomes from_here = {0};

	memory->lost_place = memory->unproven_size_index = PATH_SIZES;
	memory->lost_permille = 0;
	for (uint32_t n = PATH_SIZES; n-- > 0;) {
		struct recent_outcomes here = {0};

		// Reads carry large data towards this agent, writes the other way.
		recent_outcomes_add(memory, &memory->sizes[n], now_ns, &here);
		recent_outcomes_add(memory, &memory->writes[n], now_ns, &here);

		from_here.sent += here.sent;
		from_here.lost += here.lost;
		if (!size_passes(memory, n))
			memory->unproven_size_index = n;
		if (here.lost == 0 || (uint64_t)here.lost * 1000 <
					      (uint64_t)here.sent * memory->config.lossy_permille)
			continue;
		memory->lost_place = n;
		memory->lost_permille =
			(uint32_t)((uint64_t)from_here.lost * 1000 / from_here.sent);
	}
	if (memory->lost_place == PATH_SIZES || from_here.lost < LOST_MIN)
		return false;
	if (!loss_is_over(memory, memory->lost_place))
		return true;
	// A rare size keeps old losses among its last outcomes for minutes. Without this mark, one
	// unrelated loss would make the path lossy again.
	memory->loss_over_ns = now_ns;
	return false;
}

// Return whether one of the last OUTCOMES_LEAST probes was lost.
static bool has_recent_loss(const struct size_past *past) {
	uint32_t held = min_u32(past->count, OUTCOMES_LEAST);

	for (uint32_t n = 1; n <= held; n++) {
		if (!past->answered[(past->count - n) % PATH_OUTCOMES_KEPT])
			return true;
	}
	return false;
}

// Return whether this size needs an extra probe. Lossy path: each size with a recent loss. Good or
// degraded path: a large size whose last probe was lost. Other observers notice the loss within
// seconds, too. An early report avoids changes caused by their older good reads.
static bool
size_needs_retry(const struct path_memory *memory, const struct size_past *past, bool small) {
	bool answered;

	switch (memory->kind) {
	case OBSERVATION_LOSSY:
		return has_recent_loss(past);
	case OBSERVATION_GOOD:
	case OBSERVATION_DEGRADED:
		return !small && last_outcome_ns(past, &answered) != RAS_NEVER && !answered;
	default:
		return false;
	}
}

bool path_memory_next_retry(
	const struct path_memory *memory, uint64_t now_ns, struct path_retry *ret_retry
) {
	uint64_t longest_ns = 0;

	for (uint32_t n = 0; n < 2 * PATH_SIZES; n++) {
		bool is_write = n >= PATH_SIZES;
		const struct size_past *past =
			is_write ? &memory->writes[n - PATH_SIZES] : &memory->sizes[n];
		uint64_t waited_ns;

		if (!size_needs_retry(memory, past, n % PATH_SIZES == 0))
			continue;
		waited_ns =
			elapsed_since(past->at_ns[(past->count - 1) % PATH_OUTCOMES_KEPT], now_ns);
		if (waited_ns < PATH_RETRY_NS || waited_ns <= longest_ns)
			continue;
		longest_ns = waited_ns;
		*ret_retry = (struct path_retry){.size = n % PATH_SIZES, .is_write = is_write};
	}
	return longest_ns > 0;
}

// Judgement of the whole path.

static bool path_is_stale(const struct path_memory *memory, uint64_t now_ns) {
	uint64_t seen_ns = memory->pulse.seen_ns;

	if (seen_ns == RAS_NEVER)
		return true;
	// A pause of this agent does not age reads.
	if (seen_ns < memory->paused_until_ns)
		seen_ns = memory->paused_until_ns;
	return elapsed_since(seen_ns, now_ns) > PATH_STALE_NS;
}

// True also for a counter that never advanced: its reads are standing_ns apart.
static bool pulse_counter_stands(const struct path_memory *memory) {
	const struct pulse_past *pulse = &memory->pulse;

	return elapsed_since(pulse->since_ns, pulse->seen_ns) >= memory->config.standing_ns;
}

uint64_t path_memory_confirm_ns(const struct path_memory *memory) {
	const struct pulse_past *pulse = &memory->pulse;

	if (pulse->seen_ns == RAS_NEVER || pulse->seen_ns <= pulse->since_ns ||
	    pulse_counter_stands(memory))
		return RAS_NEVER;
	return pulse->since_ns + memory->config.standing_ns;
}

static enum observation_kind judge_kind(struct path_memory *memory, uint64_t now_ns) {
	bool loses = judge_loss(memory, now_ns);
	uint32_t resent_permille = path_resent_permille(memory, now_ns);

	if (memory->unexpected >= memory->config.silent_reads)
		memory->silent = true;
	if (memory->silent)
		return OBSERVATION_SILENT;
	if (path_is_stale(memory, now_ns))
		return OBSERVATION_NO_PAIR;
	if (pulse_counter_stands(memory))
		return OBSERVATION_STANDING;
	if (!memory->pulse.advances)
		return OBSERVATION_NO_PAIR;
	if (loses)
		return OBSERVATION_LOSSY;
	if (resent_permille > 0) {
		memory->lost_place = 0; // index 0: all sizes
		memory->lost_permille = resent_permille;
		return OBSERVATION_LOSSY;
	}
	return memory->degraded ? OBSERVATION_DEGRADED : OBSERVATION_GOOD;
}

enum observation_kind
path_memory_judge(struct path_memory *memory, uint64_t now_ns, uint64_t like_ns) {
	enum observation_kind kind;

	if (memory->window_begin_ns != RAS_NEVER &&
	    elapsed_since(memory->window_begin_ns, now_ns) >= memory->config.window_ns &&
	    memory->window_count >= memory->config.samples_min)
		close_window(memory, now_ns, like_ns);
	// Slow reads in a row make the path degraded at once, before any window closes.
	if (!memory->degraded && memory->slow_run >= PATH_SLOW_READS &&
	    elapsed_since(memory->slow_run_ns, memory->last_answer_ns) >= PATH_SLOW_NS &&
	    median_is_slow(memory, median_of_last(memory, PATH_SLOW_READS), like_ns)) {
		memory->degraded = true;
		memory->quick_windows = 0;
		memory->median_ns = median_of_last(memory, PATH_SLOW_READS);
	}
	if (quick_run_ends_degraded(memory)) {
		memory->degraded = false;
		memory->slow_windows = 0;
	}
	if (path_latency_is_unjudged(memory))
		path_forget_slowness(memory);
	kind = judge_kind(memory, now_ns);
	if (kind != memory->kind)
		memory->since_ns = now_ns;
	memory->kind = kind;
	return kind;
}

uint64_t path_expected_ns(const struct path_summary *paths, uint32_t count, uint32_t self) {
	uint64_t ratios[PATH_COMPARED_MAX]; // per mille
	uint64_t own_ns = paths[self].baseline_ns;
	uint32_t found = 0;

	for (uint32_t n = 0; n < count && found < PATH_COMPARED_MAX; n++) {
		uint64_t latency_ns;

		if (n == self || paths[n].baseline_ns == 0 || paths[n].median_ns == 0)
			continue;
		// Take the slower value: a common slowdown has not closed all windows yet.
		latency_ns = paths[n].lately_ns > paths[n].median_ns ? paths[n].lately_ns
								     : paths[n].median_ns;
		ratios[found++] = latency_ns * 1000 / paths[n].baseline_ns;
	}
	if (found == 0 || own_ns == 0)
		return 0;
	path_sort(ratios, found);
	// Never less than the own baseline: a path is not slow because others are quicker than
	// usual.
	if (path_median(ratios, found) <= 1000)
		return own_ns;
	return (uint64_t)((double)own_ns * (double)path_median(ratios, found) / 1000);
}
