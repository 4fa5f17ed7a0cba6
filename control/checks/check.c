// SPDX-License-Identifier: BSD-3-Clause
// One check: its level after confirmation, and its statements.
#include "checks/check.h"

#include <lib/log.h>
#include <lib/must.h>
#include <lib/utf8.h>

#include <stdio.h>
#include <string.h>

const char *check_level_name(enum check_level level) {
	static const char *const names[] = {
		[CHECK_OK] = "ok",
		[CHECK_WARNING] = "warning",
		[CHECK_CRITICAL] = "critical",
		[CHECK_UNKNOWN] = "unknown",
	};

	return names[level];
}

void check_init(struct check *check, struct check_reporter *reporter, const char *name) {
	*check = (struct check
	){.reporter = reporter,
	  .warned = VERDICT_CHECK_WARNING,
	  .failed = VERDICT_CHECK_FAILED,
	  .confirm = 1,
	  .clear = 1};
	snprintf(check->name, sizeof(check->name), "%s", name);
}

// Copy text up to VERDICT_EVIDENCE_MAX bytes, in whole characters.
static void evidence_copy(const char *text, char copy[static VERDICT_EVIDENCE_MAX + 1]) {
	size_t size = strlen(text), used = 0, width;

	while (used < size && (width = utf8_character_size(text + used, size - used)) > 0 &&
	       used + width <= VERDICT_EVIDENCE_MAX)
		used += width;
	memmove(copy, text, used);
	copy[used] = '\0';
}

static void check_make_statement(
	struct check *check, enum verdict verdict, const char *reason, const char *evidence
) {
	struct statement statement = {.subject = check->reporter->subject, .verdict = verdict};

	snprintf(statement.reason, sizeof(statement.reason), "%s", reason);
	evidence_copy(evidence, statement.evidence);
	check_reporter_add(check->reporter, &statement);
}

static void withdraw_unknown(struct check *check) {
	if (check->unknown)
		check_make_statement(check, VERDICT_HEALTHY, check->reasons.unknown, "");
	if (check->stuck)
		check_make_statement(check, VERDICT_HEALTHY, check->reasons.stuck, "");
	check->unknown = check->stuck = false;
}

void check_state_unknown(struct check *check, const char *evidence) {
	if (check->stuck)
		return; // a hanging program is the more precise report
	check->unknown = true;
	check_make_statement(check, VERDICT_UNKNOWN, check->reasons.unknown, evidence);
}

void check_state_stuck(struct check *check, const struct spawn_stuck *stuck) {
	char evidence[VERDICT_EVIDENCE_MAX + 1], comm[VERDICT_EVIDENCE_MAX + 1];

	if (!check_first_line(stuck->comm, strlen(stuck->comm), CHECK_NPD, comm))
		snprintf(comm, sizeof(comm), "?");
	snprintf(
		evidence, sizeof(evidence), "pid %d (%.32s) does not end, state %c%s%.40s",
		(int)stuck->pid, comm, stuck->state, stuck->wchan[0] != '\0' ? ", in " : "",
		stuck->wchan
	);
	withdraw_unknown(check);
	check->stuck = true;
	log_event(
		LOG_LEVEL_WARN, "check_stuck", log_str("check", check->name),
		log_str("evidence", evidence),
		log_str("effect", "the check is not started again before this process ends")
	);
	check_make_statement(check, VERDICT_UNKNOWN, check->reasons.stuck, evidence);
}

static void state_level(struct check *check) {
	const enum verdict verdicts[] = {
		[CHECK_OK] = VERDICT_HEALTHY,
		[CHECK_WARNING] = check->warned,
		[CHECK_CRITICAL] = check->failed,
	};

	check_make_statement(
		check, verdicts[check->told], check->reasons.bad,
		check->told == CHECK_OK ? "" : check->evidence
	);
}

void check_retract(struct check *check) {
	withdraw_unknown(check);
	if (check->told == CHECK_OK)
		return;
	check->told = CHECK_OK;
	state_level(check);
}

const char *check_reason(const struct check *check) {
	if (check->told == CHECK_CRITICAL)
		return check->reasons.bad; // a critical result outweighs an unknown one
	if (check->stuck)
		return check->reasons.stuck;
	if (check->unknown)
		return check->reasons.unknown;
	return check->told == CHECK_WARNING ? check->reasons.bad : "";
}

// Return the level to state after a run with this level. The caller resets all counts after an
// unknown run.
static enum check_level level_after_run(struct check *check, enum check_level level) {
	check->warnings = level >= CHECK_WARNING ? check->warnings + 1 : 0;
	check->criticals = level >= CHECK_CRITICAL ? check->criticals + 1 : 0;
	if (level >= check->told) {
		check->betters = 0;
	} else {
		check->better = check->betters > 0 && check->better > level ? check->better : level;
		check->betters++;
	}
	if (check->criticals >= check->confirm)
		return CHECK_CRITICAL;
	if (check->warnings >= check->confirm && check->told < CHECK_WARNING)
		return CHECK_WARNING;
	return check->betters >= check->clear ? check->better : check->told;
}

void check_result(struct check *check, const struct check_result *result) {
	enum check_level before = check->told;
	bool was_unknown = check->unknown || check->stuck;

	check->ran = true;
	check->level = result->level;
	check->at_ns = result->at_ns;
	check->took_ns = result->took_ns;
	check->counts[result->level]++;
	evidence_copy(result->evidence, check->evidence);
	if (result->level == CHECK_UNKNOWN) {
		check->warnings = check->criticals = check->betters = 0;
		if (check->stuck) // the hanging program ended
			withdraw_unknown(check);
		if (!was_unknown)
			log_event(
				LOG_LEVEL_WARN, "check_unknown", log_str("check", check->name),
				log_str("evidence", check->evidence)
			);
		check_state_unknown(check, check->evidence);
		return;
	}
	check->told = level_after_run(check, result->level);
	// First state the level, then withdraw unknown: otherwise the node would look well between.
	if (check->told != before) {
		check->betters = 0;
		log_event(
			check->told > before ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "check_changed",
			log_str("check", check->name), log_str("before", check_level_name(before)),
			log_str("now", check_level_name(check->told)),
			log_str("reason", check->reasons.bad), log_str("evidence", check->evidence)
		);
		state_level(check);
	} else if (check->told != CHECK_OK && result->level == check->told) {
		state_level(check);
	}
	withdraw_unknown(check);
}
