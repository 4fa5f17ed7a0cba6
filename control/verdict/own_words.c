// SPDX-License-Identifier: BSD-3-Clause
// Statements of this agent about itself, and their publication.
#include "exchange_parts.h"

#include <lib/must.h>

#include <errno.h>
#include <string.h>

int observation_exchange_statement(
	struct observation_exchange *exchange, uint64_t now_ns, const struct statement *statement
) {
	struct own_words *words;
	uint32_t at = 0;
	int err;

	must(statement->subject == exchange->self);
	err = verdict_statement(exchange->engine, now_ns, statement);
	if (err != 0)
		return err;
	while (at < exchange->word_count &&
	       strcmp(exchange->words[at].statement.reason, statement->reason) != 0)
		at++;
	if (at == exchange->word_count && statement->verdict == VERDICT_HEALTHY)
		return 0;
	if (at == VERDICT_STATEMENTS_MAX)
		return -ENOSPC;
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
