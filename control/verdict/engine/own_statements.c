// SPDX-License-Identifier: BSD-3-Clause
// Statements of this agent about itself, and their publication.
#include "exchange_parts.h"

#include <lib/must.h>

#include <errno.h>
#include <string.h>

// Time in which the news of a start reach all agents. A notice of the start that comes before is
// dropped with the earlier start.
#define REPEAT_SOON_NS SEC

// Return whether receivers keep nothing if the slot is reused: they never got the statement, or got
// its withdrawal.
static bool own_statement_is_settled(const struct own_statement *own) {
	return own->statement.verdict == VERDICT_HEALTHY &&
	       (own->told_ns == 0 || own->clears < CLEAR_REPEATS);
}

// Among withdrawn statements the one told first is the least important: most of its receivers have
// the withdrawal, although the repeat may still be due.
static struct own_statement *least_important_statement(struct observation_exchange *exchange) {
	struct own_statement *least = &exchange->own_statements[0];

	for (uint32_t n = 1; n < exchange->own_statement_count; n++) {
		struct own_statement *own = &exchange->own_statements[n];
		uint32_t weight = statement_weight(&own->statement);
		uint32_t least_weight = statement_weight(&least->statement);

		bool settled = own_statement_is_settled(own);
		bool least_settled = own_statement_is_settled(least);

		if (weight < least_weight ||
		    (weight == least_weight && settled && !least_settled) ||
		    (weight == least_weight && settled == least_settled &&
		     own->told_ns < least->told_ns))
			least = own;
	}
	return least;
}

// Free a slot of the full table for a statement. Receivers first get a withdrawal of the evicted
// statement: without one they keep it until it expires, and then may call the node unknown. Returns
// 0, or -ENOSPC if every statement is at least as important as the new one.
static int own_statements_make_room(
	struct observation_exchange *exchange, uint64_t now_ns, const struct statement *statement
) {
	struct own_statement *least = least_important_statement(exchange);

	if (statement_weight(&least->statement) >= statement_weight(statement))
		return -ENOSPC;
	if (!own_statement_is_settled(least)) {
		if (least->statement.verdict != VERDICT_HEALTHY) {
			least->statement.verdict = VERDICT_HEALTHY;
			least->statement.evidence[0] = '\0';
			least->clears = CLEAR_REPEATS;
			(void)verdict_statement(exchange->engine, now_ns, &least->statement);
		}
		// Send all waiting withdrawals in one notice, since the next statement may need
		// room as well.
		for (uint32_t n = 0; n < exchange->own_statement_count; n++) {
			if (exchange->own_statements[n].statement.verdict == VERDICT_HEALTHY &&
			    exchange->own_statements[n].clears == CLEAR_REPEATS)
				exchange->own_statements[n].due_ns = now_ns;
		}
		exchange_tell(exchange, now_ns);
		if (exchange->own_statement_count < VERDICT_STATEMENTS_MAX)
			return 0;
		least = least_important_statement(exchange);
	}
	*least = exchange->own_statements[--exchange->own_statement_count];
	return 0;
}

int observation_exchange_statement(
	struct observation_exchange *exchange, uint64_t now_ns, const struct statement *statement
) {
	struct own_statement *own;
	uint32_t at = 0;
	int err;

	must(statement->subject == exchange->self);
	err = verdict_statement(exchange->engine, now_ns, statement);
	// A withdrawal never fails: an engine that has no such node has nothing to withdraw.
	if (err != 0 && statement->verdict != VERDICT_HEALTHY)
		return err;
	while (at < exchange->own_statement_count &&
	       strcmp(exchange->own_statements[at].statement.reason, statement->reason) != 0)
		at++;
	if (at == exchange->own_statement_count && statement->verdict == VERDICT_HEALTHY)
		return 0;
	if (at == VERDICT_STATEMENTS_MAX) {
		err = own_statements_make_room(exchange, now_ns, statement);
		if (err != 0)
			return err;
		at = exchange->own_statement_count;
	}
	own = &exchange->own_statements[at];
	if (at == exchange->own_statement_count)
		exchange->own_statements[exchange->own_statement_count++] =
			(struct own_statement){.due_ns = RAS_NEVER};
	else if (own->statement.verdict == statement->verdict &&
		 strcmp(own->statement.evidence, statement->evidence) == 0)
		return 0;
	own->statement = *statement;
	own->clears = statement->verdict == VERDICT_HEALTHY ? CLEAR_REPEATS : 0;
	if (own->due_ns > now_ns + REPORT_WAIT_MAX_NS)
		own->due_ns = now_ns + exchange_random_below(exchange, REPORT_WAIT_MAX_NS);
	exchange_wake(exchange, own->due_ns);
	return 0;
}

void observation_exchange_repeat_statements(
	struct observation_exchange *exchange, uint64_t now_ns
) {
	for (uint32_t n = 0; n < exchange->own_statement_count; n++) {
		struct own_statement *own = &exchange->own_statements[n];

		if (own->due_ns > now_ns + REPEAT_SOON_NS)
			own->due_ns = now_ns + REPEAT_SOON_NS;
		exchange_wake(exchange, own->due_ns);
	}
}

// A statement holds until it is withdrawn, so the own engine always gets it with age 0.
void own_statements_publish(
	struct observation_exchange *exchange, uint64_t now_ns, struct notice *notice
) {
	for (uint32_t n = 0; n < exchange->own_statement_count; n++) {
		struct own_statement *own = &exchange->own_statements[n];
		bool bad = own->statement.verdict != VERDICT_HEALTHY;
		int err;

		if (own->due_ns > now_ns)
			continue;
		own->statement.age_s = 0;
		if (bad)
			(void)verdict_statement(exchange->engine, now_ns, &own->statement);
		err = statement_put(&notice->writer, &own->statement);
		if (err != 0) {
			own->due_ns = err == -EINVAL ? RAS_NEVER : now_ns + REPORT_WAIT_MAX_NS;
			continue;
		}
		exchange->counters.told++;
		exchange->counters.repeated += own->told_ns != 0 && bad;
		own->told_ns = now_ns;
		own->due_ns = RAS_NEVER;
		if (bad || own->clears-- > 0)
			own->due_ns = now_ns + OBSERVATION_REPEAT_NS;
	}
	for (uint32_t n = exchange->own_statement_count; n-- > 0;) {
		if (exchange->own_statements[n].due_ns == RAS_NEVER)
			exchange->own_statements[n] =
				exchange->own_statements[--exchange->own_statement_count];
	}
}
