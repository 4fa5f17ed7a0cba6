// SPDX-License-Identifier: BSD-3-Clause
// Selects which statements of all checks are published. Receivers keep few statements per node and
// refuse more, so only the most severe ones are published. A failure thus never waits behind an
// unknown check.
#include "checks/check.h"

#include <lib/must.h>

#include <string.h>

static void statement_publish(struct check_reporter *reporter, const struct statement *statement) {
	reporter->statements++;
	reporter->say(reporter->ctx, statement);
}

static void statement_withdraw(struct check_reporter *reporter, struct check_row *row) {
	struct statement statement = row->statement;

	row->told = false;
	reporter->told_count--;
	statement.verdict = VERDICT_HEALTHY;
	statement.evidence[0] = '\0';
	statement_publish(reporter, &statement);
}

static struct check_row *worst_unpublished_row(struct check_reporter *reporter) {
	struct check_row *found = NULL;

	for (uint32_t n = 0; n < reporter->count; n++) {
		struct check_row *row = &reporter->rows[n];

		if (!row->told &&
		    (found == NULL || row->statement.verdict > found->statement.verdict))
			found = row;
	}
	return found;
}

static struct check_row *mildest_published_row(struct check_reporter *reporter) {
	struct check_row *found = NULL;

	for (uint32_t n = 0; n < reporter->count; n++) {
		struct check_row *row = &reporter->rows[n];

		if (row->told &&
		    (found == NULL || row->statement.verdict < found->statement.verdict))
			found = row;
	}
	return found;
}

// Publish the most severe statements. The loop ends: each turn publishes one more statement, or
// replaces one by a more severe one.
static void publish_most_severe(struct check_reporter *reporter) {
	struct check_row *untold, *told;

	while ((untold = worst_unpublished_row(reporter)) != NULL) {
		if (reporter->told_count == CHECKS_STATEMENTS_MAX) {
			told = mildest_published_row(reporter);
			if (told->statement.verdict >= untold->statement.verdict)
				return;
			statement_withdraw(reporter, told);
		}
		untold->told = true;
		reporter->told_count++;
		statement_publish(reporter, &untold->statement);
	}
}

static struct check_row *row_find(struct check_reporter *reporter, const char *reason) {
	for (uint32_t n = 0; n < reporter->count; n++) {
		if (strcmp(reporter->rows[n].statement.reason, reason) == 0)
			return &reporter->rows[n];
	}
	return NULL;
}

static void row_remove(struct check_reporter *reporter, struct check_row *row) {
	if (row == NULL)
		return;
	if (row->told)
		statement_withdraw(reporter, row);
	*row = reporter->rows[--reporter->count];
}

void check_reporter_add(struct check_reporter *reporter, const struct statement *statement) {
	struct check_row *row = row_find(reporter, statement->reason);

	if (statement->verdict == VERDICT_HEALTHY) {
		row_remove(reporter, row);
	} else if (row != NULL) {
		row->statement = *statement;
		if (row->told)
			statement_publish(reporter, statement);
	} else {
		must(reporter->count < CHECK_STATEMENT_ROWS_MAX);
		reporter->rows[reporter->count++] = (struct check_row){.statement = *statement};
	}
	publish_most_severe(reporter);
}
