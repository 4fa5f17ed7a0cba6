// SPDX-License-Identifier: BSD-3-Clause
// Statements of this agent about itself, and their publication.
#include "exchange_parts.h"

#include <lib/must.h>

#include <errno.h>
#include <string.h>

// Return whether receivers keep nothing if the slot is reused: they never got the statement, or got
// its withdrawal.
static bool own_words_are_settled(const struct own_words *words) {
	return words->statement.verdict == VERDICT_HEALTHY &&
	       (words->told_ns == 0 || words->clears < CLEAR_REPEATS);
}

static struct own_words *least_important_words(struct observation_exchange *exchange) {
	struct own_words *least = &exchange->words[0];

	for (uint32_t n = 1; n < exchange->word_count; n++) {
		struct own_words *words = &exchange->words[n];
		uint32_t weight = statement_weight(&words->statement);
		uint32_t least_weight = statement_weight(&least->statement);

		if (weight < least_weight ||
		    (weight == least_weight && !own_words_are_settled(least) &&
		     own_words_are_settled(words)))
			least = words;
	}
	return least;
}

// Free a slot of the full table for a statement. Receivers first get a withdrawal of the evicted
// statement: without one they keep it until it expires, and then may call the node unknown. Returns
// 0, or -ENOSPC if every statement is at least as important as the new one.
static int own_words_make_room(
	struct observation_exchange *exchange, uint64_t now_ns, const struct statement *statement
) {
	struct own_words *least = least_important_words(exchange);

	if (statement_weight(&least->statement) >= statement_weight(statement))
		return -ENOSPC;
	if (!own_words_are_settled(least)) {
		if (least->statement.verdict != VERDICT_HEALTHY) {
			least->statement.verdict = VERDICT_HEALTHY;
			least->statement.evidence[0] = '\0';
			least->clears = CLEAR_REPEATS;
			(void)verdict_statement(exchange->engine, now_ns, &least->statement);
		}
		// Send all waiting withdrawals in one notice, since the next statement may need
		// room as well.
		for (uint32_t n = 0; n < exchange->word_count; n++) {
			if (exchange->words[n].statement.verdict == VERDICT_HEALTHY &&
			    exchange->words[n].clears == CLEAR_REPEATS)
				exchange->words[n].due_ns = now_ns;
		}
		exchange_tell(exchange, now_ns);
		if (exchange->word_count < VERDICT_STATEMENTS_MAX)
			return 0;
		least = least_important_words(exchange);
	}
	*least = exchange->words[--exchange->word_count];
	return 0;
}

int observation_exchange_statement(
	struct observation_exchange *exchange, uint64_t now_ns, const struct statement *statement
) {
	struct own_words *words;
	uint32_t at = 0;
	int err;

	must(statement->subject == exchange->self);
	err = verdict_statement(exchange->engine, now_ns, statement);
	// A withdrawal never fails: an engine that has no such node has nothing to withdraw.
	if (err != 0 && statement->verdict != VERDICT_HEALTHY)
		return err;
	while (at < exchange->word_count &&
	       strcmp(exchange->words[at].statement.reason, statement->reason) != 0)
		at++;
	if (at == exchange->word_count && statement->verdict == VERDICT_HEALTHY)
		return 0;
	if (at == VERDICT_STATEMENTS_MAX) {
		err = own_words_make_room(exchange, now_ns, statement);
		if (err != 0)
			return err;
		at = exchange->word_count;
	}
	words = &exchange->words[at];
	if (at == exchange->word_count)
		exchange->words[exchange->word_count++] = (struct own_words){.due_ns = RAS_NEVER};
	else if (words->statement.verdict == statement->verdict &&
		 strcmp(words->statement.evidence, statement->evidence) == 0)
		return 0;
	words->statement = *statement;
	words->clears = statement->verdict == VERDICT_HEALTHY ? CLEAR_REPEATS : 0;
	if (words->due_ns > now_ns + REPORT_WAIT_MAX_NS)
		words->due_ns = now_ns + exchange_random_below(exchange, REPORT_WAIT_MAX_NS);
	exchange_wake(exchange, words->due_ns);
	return 0;
}

// A statement holds until it is withdrawn, so the own engine always gets it with age 0.
void own_statements_publish(
	struct observation_exchange *exchange, uint64_t now_ns, struct notice *notice
) {
	for (uint32_t n = 0; n < exchange->word_count; n++) {
		struct own_words *words = &exchange->words[n];
		bool bad = words->statement.verdict != VERDICT_HEALTHY;
		int err;

		if (words->due_ns > now_ns)
			continue;
		words->statement.age_s = 0;
		if (bad)
			(void)verdict_statement(exchange->engine, now_ns, &words->statement);
		err = statement_put(&notice->writer, &words->statement);
		if (err != 0) {
			words->due_ns = err == -EINVAL ? RAS_NEVER : now_ns + REPORT_WAIT_MAX_NS;
			continue;
		}
		exchange->counters.told++;
		exchange->counters.repeated += words->told_ns != 0 && bad;
		words->told_ns = now_ns;
		words->due_ns = RAS_NEVER;
		if (bad || words->clears-- > 0)
			words->due_ns = now_ns + OBSERVATION_REPEAT_NS;
	}
	for (uint32_t n = exchange->word_count; n-- > 0;) {
		if (exchange->words[n].due_ns == RAS_NEVER)
			exchange->words[n] = exchange->words[--exchange->word_count];
	}
}
