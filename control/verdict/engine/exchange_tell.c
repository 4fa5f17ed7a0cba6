// SPDX-License-Identifier: BSD-3-Clause
// Puts due reports into one notice, within a rate limit.
#include "exchange_parts.h"

#include <errno.h>

#define BUDGET_WINDOW_NS SEC
#define REPORTS_PER_HALVED_RATE 16 // as many reports heard in a second halve the own rate

void exchange_budget_window(struct observation_exchange *exchange, uint64_t now_ns) {
	if (now_ns < exchange->window_ns + BUDGET_WINDOW_NS)
		return;
	exchange->heard_before =
		now_ns < exchange->window_ns + 2 * BUDGET_WINDOW_NS ? exchange->heard_now : 0;
	exchange->heard_now = 0;
	exchange->window_ns = now_ns;
}

// Take one report from the budget. The rate falls as the number of received reports grows.
static bool budget_take_report(struct observation_exchange *exchange, uint64_t now_ns) {
	uint64_t heard = exchange->heard_now > exchange->heard_before ? exchange->heard_now
								      : exchange->heard_before;
	uint64_t most = OBSERVATION_BUDGET * UINT64_C(1000);
	uint64_t rate = most * REPORTS_PER_HALVED_RATE / (REPORTS_PER_HALVED_RATE + heard) + 1;
	uint64_t passed_ns = now_ns - exchange->credit_ns;
	uint64_t earned;

	exchange_budget_window(exchange, now_ns);
	if (passed_ns > 60 * SEC) {
		exchange->credit_ns = now_ns - 60 * SEC;
		passed_ns = 60 * SEC;
	}
	// Paths may become due every microsecond. Time too short to earn a thousandth is kept.
	earned = rate * passed_ns / SEC;
	exchange->credit += earned;
	exchange->credit_ns += earned * SEC / rate;
	if (exchange->credit > most)
		exchange->credit = most;
	if (exchange->credit < 1000)
		return false;
	exchange->credit -= 1000;
	return true;
}

static void path_record_report(
	struct observation_exchange *exchange, struct own_path *path, uint64_t now_ns, bool repeated
) {
	bool against = observation_reports_fault(&path->observation);

	exchange->counters.told++;
	exchange->counters.repeated += repeated;
	exchange->counters.answered +=
		!against && !own_path_reported_fault(path) && path->clears == 0;
	if (!against && !own_path_reported_fault(path) && path->clears > 0)
		path->clears--;
	path->again = repeated;
	path->told_ns = now_ns;
	path->told_seen_ns = path->seen_ns;
	path->told_kind = path->observation.kind;
	path->told_reach = path->observation.reach;
	path->due_ns = RAS_NEVER;
	own_path_schedule(exchange, path, now_ns);
}

static void path_report_due(
	struct observation_exchange *exchange,
	struct own_path *path,
	uint64_t now_ns,
	struct notice *notice
) {
	bool against = observation_reports_fault(&path->observation);
	bool repeated = own_path_reported_fault(path) && against &&
			path->told_kind == path->observation.kind &&
			path->told_reach == path->observation.reach;
	struct observation observation = path->observation;
	int err;

	path->due_ns = RAS_NEVER;
	// The reason for this report is gone, or the observation is too old.
	if (!against && !own_path_reported_fault(path) && path->clears == 0 &&
	    !own_path_answer_is_wanted(exchange, path, now_ns))
		return;
	if (now_ns >= path->seen_ns + OWN_PATH_KEEP_NS)
		return;
	if (own_path_is_redundant(exchange, path, now_ns)) {
		exchange->counters.suppressed++;
		path->quiet = true;
		path->quiet_kind = path->observation.kind;
		path->quiet_reach = path->observation.reach;
		path->due_ns = now_ns + OBSERVATION_REPEAT_NS +
			       exchange_random_below(exchange, REPORT_WAIT_MAX_NS);
		return;
	}
	if (notice->full || !budget_take_report(exchange, now_ns)) {
		exchange->counters.held_by_budget++;
		path->due_ns = now_ns + REPORT_WAIT_MAX_NS;
		if (!notice->waits)
			exchange->turn = (uint32_t)(path - exchange->paths);
		notice->waits = true;
		return;
	}
	observation.age_ms = (uint32_t)((now_ns - path->seen_ns) / MS);
	err = observation_put(&notice->writer, &observation);
	if (err == 0) {
		path_record_report(exchange, path, now_ns, repeated);
		return;
	}
	// -EINVAL: no reader would ever accept it. Other errors mean that it does not fit, so it
	// waits with the rest.
	if (err == -EINVAL)
		return;
	notice->full = true;
	path->due_ns = now_ns + REPORT_WAIT_MAX_NS;
}

void exchange_tell(struct observation_exchange *exchange, uint64_t now_ns) {
	struct notice notice;
	size_t size;

	wire_writer_init(&notice.writer, notice.bytes, sizeof(notice.bytes));
	notice.full = notice.waits = false;
	own_statements_publish(exchange, now_ns, &notice);
	for (uint32_t n = 0, from = exchange->turn; n < exchange->path_count; n++) {
		struct own_path *path = &exchange->paths[(from + n) % exchange->path_count];

		if (path->due_ns <= now_ns)
			path_report_due(exchange, path, now_ns, &notice);
	}
	if (wire_writer_finish(&notice.writer, &size) != 0 || size == 0)
		return;
	exchange->counters.told_bytes += size;
	exchange->ops.tell(exchange->ops_ctx, notice.bytes, size);
}
