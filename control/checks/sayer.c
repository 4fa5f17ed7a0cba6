// SPDX-License-Identifier: BSD-3-Clause
// What the checks say together. Who listens keeps few statements of one node, and refuses more: so
// of all that stand only those that weigh most are told, and a failure never waits behind what is
// not known.
#include "checks/check.h"

#include <lib/must.h>

#include <string.h>

static void statement_report(struct check_sayer *sayer, const struct statement *statement) {
	sayer->statements++;
	sayer->say(sayer->ctx, statement);
}

static void take_back(struct check_sayer *sayer, struct check_row *row) {
	struct statement statement = row->statement;

	row->told = false;
	sayer->told_count--;
	statement.verdict = VERDICT_HEALTHY;
	statement.evidence[0] = '\0';
	statement_report(sayer, &statement);
}

static struct check_row *heaviest_untold(struct check_sayer *sayer) {
	struct check_row *found = NULL;

	for (uint32_t n = 0; n < sayer->count; n++) {
		struct check_row *row = &sayer->rows[n];

		if (!row->told &&
		    (found == NULL || row->statement.verdict > found->statement.verdict))
			found = row;
	}
	return found;
}

static struct check_row *lightest_told(struct check_sayer *sayer) {
	struct check_row *found = NULL;

	for (uint32_t n = 0; n < sayer->count; n++) {
		struct check_row *row = &sayer->rows[n];

		if (row->told &&
		    (found == NULL || row->statement.verdict < found->statement.verdict))
			found = row;
	}
	return found;
}

// Ends: each turn tells one more, or a heavier one for a lighter one.
static void rows_balance(struct check_sayer *sayer) {
	struct check_row *untold, *told;

	while ((untold = heaviest_untold(sayer)) != NULL) {
		if (sayer->told_count == CHECKS_TOLD_MAX) {
			told = lightest_told(sayer);
			if (told->statement.verdict >= untold->statement.verdict)
				return;
			take_back(sayer, told);
		}
		untold->told = true;
		sayer->told_count++;
		statement_report(sayer, &untold->statement);
	}
}

static struct check_row *row_find(struct check_sayer *sayer, const char *reason) {
	for (uint32_t n = 0; n < sayer->count; n++) {
		if (strcmp(sayer->rows[n].statement.reason, reason) == 0)
			return &sayer->rows[n];
	}
	return NULL;
}

static void row_end(struct check_sayer *sayer, struct check_row *row) {
	if (row == NULL)
		return;
	if (row->told)
		take_back(sayer, row);
	*row = sayer->rows[--sayer->count];
}

void check_sayer_say(struct check_sayer *sayer, const struct statement *statement) {
	struct check_row *row = row_find(sayer, statement->reason);

	if (statement->verdict == VERDICT_HEALTHY) {
		row_end(sayer, row);
	} else if (row != NULL) {
		row->statement = *statement;
		if (row->told)
			statement_report(sayer, statement);
	} else {
		must(sayer->count < CHECK_ROWS_MAX);
		sayer->rows[sayer->count++] = (struct check_row){.statement = *statement};
	}
	rows_balance(sayer);
}
