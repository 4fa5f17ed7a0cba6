// SPDX-License-Identifier: BSD-3-Clause
// Queue of judgements: a binary heap by time, so that the cost of a wake-up depends on the due
// subjects only.
#include "inside.h"

static void due_heap_set(struct verdict_engine *engine, uint32_t at, struct subject *subject) {
	engine->due[at] = subject;
	subject->due_place = at + 1;
}

static void due_heap_sift_up(struct verdict_engine *engine, uint32_t at, struct subject *subject) {
	while (at > 0 && engine->due[(at - 1) / 2]->next_ns > subject->next_ns) {
		due_heap_set(engine, at, engine->due[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
	due_heap_set(engine, at, subject);
}

static void
due_heap_sift_down(struct verdict_engine *engine, uint32_t at, struct subject *subject) {
	for (;;) {
		uint32_t child = 2 * at + 1;

		if (child + 1 < engine->due_count &&
		    engine->due[child + 1]->next_ns < engine->due[child]->next_ns)
			child++;
		if (child >= engine->due_count || engine->due[child]->next_ns >= subject->next_ns)
			break;
		due_heap_set(engine, at, engine->due[child]);
		at = child;
	}
	due_heap_set(engine, at, subject);
}

void due_queue_remove(struct verdict_engine *engine, struct subject *subject) {
	uint32_t at = subject->due_place - 1;
	struct subject *last;

	if (subject->due_place == 0)
		return;
	subject->due_place = 0;
	last = engine->due[--engine->due_count];
	if (last == subject)
		return;
	due_heap_sift_up(engine, at, last);
	due_heap_sift_down(engine, last->due_place - 1, last);
}

void due_queue_update(struct verdict_engine *engine, struct subject *subject) {
	if (subject->next_ns == RAS_NEVER) {
		due_queue_remove(engine, subject);
		return;
	}
	due_heap_sift_up(
		engine, subject->due_place > 0 ? subject->due_place - 1 : engine->due_count++,
		subject
	);
	due_heap_sift_down(engine, subject->due_place - 1, subject);
}
