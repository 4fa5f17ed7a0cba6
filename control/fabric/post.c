// SPDX-License-Identifier: BSD-3-Clause
// Requests to workers. If a worker's ring is full, its requests wait here in order and are tried
// again.
#include "fabric/inside.h"

#include <lib/container.h>
#include <lib/must.h>

#include <stdlib.h>

#define POST_RETRY_NS RAS_NS_PER_MS

static void post_set_timer(struct fabric *fabric) {
	must(loop_timer_set(
		     fabric->loop, &fabric->post_retry, loop_now_ns(fabric->loop) + POST_RETRY_NS
	     ) == 0);
}

// Returns true if the ring took the record.
static bool
worker_try_post(struct fabric *fabric, uint32_t worker, const struct worker_record *record) {
	return worker_post_request(fabric->config.workers[worker], record) == 0;
}

static void post_retry(struct loop_timer *timer, uint64_t now_ns) {
	struct fabric *fabric = container_of(timer, struct fabric, post_retry);

	(void)now_ns;
	while (fabric->waiting != NULL) {
		struct waiting_record *waiting = fabric->waiting;

		if (!worker_try_post(fabric, waiting->worker, &waiting->record)) {
			post_set_timer(fabric);
			return;
		}
		fabric->waiting = waiting->next;
		free(waiting);
	}
	fabric->waiting_last = &fabric->waiting;
}

void fabric_post(struct fabric *fabric, uint32_t worker, const struct worker_record *record) {
	struct waiting_record *waiting;

	// Queue behind waiting records, because a worker must receive its requests in order.
	if (fabric->waiting == NULL && worker_try_post(fabric, worker, record))
		return;
	fabric->counters.records_waited++;
	waiting = malloc(sizeof(*waiting));
	must(waiting != NULL); // without this request a pair could never be destroyed
	*waiting = (struct waiting_record){.worker = worker, .record = *record};
	*fabric->waiting_last = waiting;
	fabric->waiting_last = &waiting->next;
	post_set_timer(fabric);
}

void posts_init(struct fabric *fabric) {
	fabric->waiting = NULL;
	fabric->waiting_last = &fabric->waiting;
	fabric->post_retry.expired = post_retry;
}

void posts_fini(struct fabric *fabric) {
	while (fabric->waiting != NULL) {
		struct waiting_record *waiting = fabric->waiting;

		fabric->waiting = waiting->next;
		free(waiting);
	}
	loop_timer_cancel(fabric->loop, &fabric->post_retry);
}
