// SPDX-License-Identifier: BSD-3-Clause
// Detects loss that a device hides by retransmission: the lost probe is answered late. Pure.
//
// Answer times of such a path have two modes: the usual one, and the queue pair's timeout. The
// device keeps that timeout, so most late answers are alike, with almost nothing in between. A slow
// path has one mode. A busy machine has a tail that fills the range in between and beyond. An agent
// short of processor time also sees late reads of its own device, so the path must exceed these. If
// the port counts retransmissions and ever counted one, it must have counted some now.
#include "path_inside.h"

#define RESEND_WINDOW_NS (120 * RAS_NS_PER_SEC)
#define RESEND_LATE_MIN 5	   // least number of late answers; fewer may occur by chance
#define RESEND_LATE_TIMEOUTS_MAX 5 // timeouts: devices wait up to four; later answers are tail
#define RESEND_TAIL_SHARE 32	   // later than timeout / this, but outside the mode, is tail
#define RESEND_TAIL_TIMES 6	   // the mode must outnumber the tail by this factor
// Tenths of the late answers that must be alike; the rest were lost twice.
#define RESEND_ALIKE_TENTHS 6
#define RESEND_OWN_WEIGHT 4  // factor on the own device's late share, since its reads are fewer
#define RESEND_CLEAN_TIMES 3 // e^-3: chance of one in twenty
#define RESEND_CLEAN_LEAST 4

struct answers {
	uint64_t late_ns[2 * PATH_SIZES * PATH_OUTCOMES_KEPT];
	uint32_t all, late, tail; // answers of each class; the rest are usual
	uint32_t since, clean;	  // answers from the first late one on, and after the last one
	uint64_t first_ns, last_ns;
};

static bool answer_is_late(const struct path_memory *memory, uint64_t latency_ns) {
	return latency_ns >= memory->timeout_ns / PATH_RESEND_EARLY_SHARE &&
	       latency_ns <= memory->timeout_ns * RESEND_LATE_TIMEOUTS_MAX;
}

static void answers_count(
	const struct path_memory *memory,
	const struct size_past *past,
	uint64_t from_ns,
	struct answers *answers
) {
	uint32_t held = past->count < PATH_OUTCOMES_KEPT ? past->count : PATH_OUTCOMES_KEPT;

	for (uint32_t n = 0; n < held; n++) {
		if (!past->answered[n] || past->at_ns[n] < from_ns)
			continue;
		answers->all++;
		if (!answer_is_late(memory, past->latency_ns[n])) {
			if (past->latency_ns[n] >= memory->timeout_ns / RESEND_TAIL_SHARE)
				answers->tail++;
			continue;
		}
		answers->late_ns[answers->late++] = past->latency_ns[n];
		if (answers->first_ns == 0 || past->at_ns[n] < answers->first_ns)
			answers->first_ns = past->at_ns[n];
		if (past->at_ns[n] > answers->last_ns)
			answers->last_ns = past->at_ns[n];
	}
}

static uint32_t count_answers_since(const struct path_memory *memory, uint64_t from_ns) {
	uint32_t answered = 0;

	for (uint32_t n = 0; n < 2 * PATH_SIZES; n++) {
		const struct size_past *past =
			n < PATH_SIZES ? &memory->sizes[n] : &memory->writes[n - PATH_SIZES];
		uint32_t held = past->count < PATH_OUTCOMES_KEPT ? past->count : PATH_OUTCOMES_KEPT;

		for (uint32_t place = 0; place < held; place++)
			answered += past->answered[place] && past->at_ns[place] >= from_ns;
	}
	return answered;
}

static void
answers_classify(const struct path_memory *memory, uint64_t now_ns, struct answers *answers) {
	uint64_t from_ns = now_ns > RESEND_WINDOW_NS ? now_ns - RESEND_WINDOW_NS : 0;

	answers->all = answers->late = answers->tail = answers->since = answers->clean = 0;
	answers->first_ns = answers->last_ns = 0;
	if (from_ns < memory->resend_from_ns)
		from_ns = memory->resend_from_ns;
	for (uint32_t n = 0; n < PATH_SIZES && memory->timeout_ns != 0; n++) {
		answers_count(memory, &memory->sizes[n], from_ns, answers);
		answers_count(memory, &memory->writes[n], from_ns, answers);
	}
	if (answers->late == 0)
		return;
	answers->since = count_answers_since(memory, answers->first_ns);
	answers->clean = count_answers_since(memory, answers->last_ns + 1);
}

// Return whether most late answers lie within an eighth of their median, and the tail is small
// against them.
static bool late_answers_are_alike(struct answers *answers) {
	uint32_t alike = 0, tail = answers->tail;
	uint64_t median_ns, least_ns;

	path_sort(answers->late_ns, answers->late);
	median_ns = path_median(answers->late_ns, answers->late);
	least_ns = median_ns - median_ns / 8;
	for (uint32_t n = 0; n < answers->late; n++) {
		uint64_t late_ns = answers->late_ns[n];

		alike += late_ns >= least_ns && late_ns <= median_ns + median_ns / 8;
		tail += late_ns < least_ns;
	}
	return alike * 10 >= answers->late * RESEND_ALIKE_TENTHS &&
	       tail * RESEND_TAIL_TIMES <= alike;
}

static uint32_t late_permille(const struct answers *answers) {
	return answers->all > 0 ? (uint32_t)((uint64_t)answers->late * 1000 / answers->all) : 0;
}

static bool answers_have_two_modes(const struct path_memory *memory, struct answers *answers) {
	// The number of late answers that the own machine would have caused.
	uint32_t own_late =
		(uint32_t)(((uint64_t)answers->all * memory->own_permille + 999) / 1000);

	// The first mode is unknown without a baseline, or if the baseline is that slow itself.
	return memory->baseline_ns != 0 &&
	       memory->baseline_ns < memory->timeout_ns / RESEND_TAIL_SHARE &&
	       answers->late >= RESEND_LATE_MIN + RESEND_OWN_WEIGHT * own_late &&
	       late_permille(answers) >= memory->config.lossy_permille &&
	       2 * answers->late <= answers->since && // otherwise the path is slow by now
	       late_answers_are_alike(answers);
}

// Usually there is no late answer, which avoids the search.
static bool has_late_answer(const struct path_memory *memory, uint64_t now_ns) {
	return memory->late_at_ns != 0 && memory->late_at_ns + RESEND_WINDOW_NS >= now_ns;
}

void path_record_late_answer(struct path_memory *memory, const struct path_probe *probe) {
	if (memory->timeout_ns != 0 && answer_is_late(memory, probe->latency_ns))
		memory->late_at_ns = probe->at_ns;
}

uint32_t path_resent_permille(struct path_memory *memory, uint64_t now_ns) {
	struct answers answers;

	if (!memory->resends && !has_late_answer(memory, now_ns))
		return 0;
	answers_classify(memory, now_ns, &answers);
	if (!memory->resends) {
		// A port that ever counted a retransmission must have counted one now.
		memory->resends =
			answers_have_two_modes(memory, &answers) &&
			(memory->resent_total == 0 || memory->resent_ns >= answers.first_ns);
	} else {
		uint32_t before = answers.all - answers.clean;
		uint64_t clean_weight = (uint64_t)answers.clean * answers.late;

		if (answers.late == 0 || (answers.clean >= RESEND_CLEAN_LEAST &&
					  clean_weight >= (uint64_t)RESEND_CLEAN_TIMES * before)) {
			memory->resends = false;
			memory->resend_from_ns = now_ns;
		}
	}
	if (!memory->resends)
		return 0;
	return late_permille(&answers) > 0 ? late_permille(&answers) : 1;
}

uint32_t path_memory_late_permille(const struct path_memory *memory, uint64_t now_ns) {
	struct answers answers;

	if (!has_late_answer(memory, now_ns))
		return 0;
	answers_classify(memory, now_ns, &answers);
	return late_permille(&answers);
}

void path_memory_set_resend(struct path_memory *memory, uint64_t timeout_ns) {
	if (timeout_ns != memory->timeout_ns)
		memory->resends = false;
	memory->timeout_ns = timeout_ns;
}

void path_memory_set_context(
	struct path_memory *memory, uint64_t now_ns, uint32_t own_permille, uint64_t resent_total
) {
	memory->own_permille = own_permille;
	// The first value predates this history, and a smaller value belongs to a counter that was
	// reset.
	if (resent_total > memory->resent_total && memory->resent_known)
		memory->resent_ns = now_ns;
	memory->resent_known = resent_total != PATH_RESENT_UNKNOWN;
	memory->resent_total = memory->resent_known ? resent_total : 0;
}
