// SPDX-License-Identifier: BSD-3-Clause
// Selects which statements of all checks are published. Receivers keep few statements per node and
// refuse more, so only the most important ones are published. Statements that a check's state is
// unknown come last.
#include "checks/check.h"

#include <lib/must.h>

#include <string.h>

static int statement_publish(struct check_reporter *reporter, const struct statement *statement) {
	reporter->statements++;
	return reporter->say(reporter->ctx, statement);
}

static void row_publish(struct check_reporter *reporter, struct check_row *row) {
	row->unsent = statement_publish(reporter, &row->statement) != 0;
}

static void statement_withdraw(struct check_reporter *reporter, struct check_row *row) {
	struct statement statement = row->statement;

	row->told = false;
	reporter->told_count--;
	statement.verdict = VERDICT_HEALTHY;
	statement.evidence[0] = '\0';
	(void)statement_publish(reporter, &statement); // a withdrawal never fails
}

// Publish the most important statements. The loop ends: each turn publishes one more statement, or
// replaces one by a more important one.
static void publish_most_severe(struct check_reporter *reporter) {
	for (;;) {
		struct check_row *worst_untold = NULL, *mildest_told = NULL;

		for (uint32_t n = 0; n < reporter->count; n++) {
			struct check_row *row = &reporter->rows[n];
			uint32_t weight = statement_weight(&row->statement);

			if (!row->told && (worst_untold == NULL ||
					   weight > statement_weight(&worst_untold->statement)))
				worst_untold = row;
			if (row->told && (mildest_told == NULL ||
					  weight < statement_weight(&mildest_told->statement)))
				mildest_told = row;
		}
		if (worst_untold == NULL)
			return;
		if (reporter->told_count == CHECKS_STATEMENTS_MAX) {
			must(mildest_told != NULL);
			if (statement_weight(&mildest_told->statement) >=
			    statement_weight(&worst_untold->statement))
				return;
			statement_withdraw(reporter, mildest_told);
		}
		worst_untold->told = true;
		reporter->told_count++;
		row_publish(reporter, worst_untold);
	}
}

void check_reporter_add(struct check_reporter *reporter, const struct statement *statement) {
	struct check_row *row = NULL;

	for (uint32_t n = 0; n < reporter->count && row == NULL; n++) {
		if (strcmp(reporter->rows[n].statement.reason, statement->reason) == 0)
			row = &reporter->rows[n];
	}
	if (statement->verdict == VERDICT_HEALTHY) {
		if (row != NULL && row->told)
			statement_withdraw(reporter, row);
		if (row != NULL)
			*row = reporter->rows[--reporter->count];
	} else if (row != NULL) {
		row->statement = *statement;
		if (row->told)
			row_publish(reporter, row);
	} else {
		must(reporter->count < CHECK_STATEMENT_ROWS_MAX);
		reporter->rows[reporter->count++] = (struct check_row){.statement = *statement};
	}
	publish_most_severe(reporter);
}

// The loop ends: each turn publishes one statement, or stops.
void check_reporter_retry(struct check_reporter *reporter) {
	for (;;) {
		struct check_row *worst = NULL;

		for (uint32_t n = 0; n < reporter->count; n++) {
			struct check_row *row = &reporter->rows[n];

			if (row->told && row->unsent &&
			    (worst == NULL || statement_weight(&row->statement) >
						      statement_weight(&worst->statement)))
				worst = row;
		}
		if (worst == NULL)
			return;
		row_publish(reporter, worst);
		if (worst->unsent)
			return;
	}
}
