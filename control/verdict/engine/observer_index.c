// SPDX-License-Identifier: BSD-3-Clause
// Index from each observer to the subjects of its observations: rows in any order, each once. So an
// observer can be judged by its observations without a visit to every subject.
//
// Observations whose observer is no member are in no list. They are only counted, and searched when
// a member joins.
#include "inside.h"

#include <lib/must.h>

#include <errno.h>
#include <string.h>

#define INDEX_FIRST_CAPACITY 4

struct observer_index *
observer_index_destroy(const struct ras_memory *memory, struct observer_index *list) {
	if (list != NULL)
		memory->release(memory->ctx, list, observer_index_bytes(list->capacity));
	return NULL;
}

int observer_index_reserve(struct verdict_engine *engine, uint32_t observer, uint32_t more) {
	struct observer_index *list, *made;
	uint32_t capacity = INDEX_FIRST_CAPACITY;

	if (observer == MEMBERS_NONE)
		return 0;
	list = engine->members.rows[observer].told;
	if (list != NULL && list->count + more <= list->capacity)
		return 0;
	while (capacity < (list != NULL ? list->count : 0) + more)
		capacity *= 2;
	made = engine->memory.allocate(engine->memory.ctx, observer_index_bytes(capacity));
	if (made == NULL)
		return -ENOMEM;
	if (list != NULL) {
		made->count = list->count;
		memcpy(made->rows, list->rows, list->count * sizeof(list->rows[0]));
	}
	made->capacity = capacity;
	observer_index_destroy(&engine->memory, list);
	engine->members.rows[observer].told = made;
	return 0;
}

void observer_index_add(
	struct verdict_engine *engine, const struct subject *subject, uint64_t observer
) {
	uint32_t row = members_find(&engine->members, observer);
	struct observer_index *list;

	if (row == MEMBERS_NONE) {
		engine->nonmember_reports++;
		return;
	}
	if (subject_has_observer(subject, observer))
		return;
	list = engine->members.rows[row].told;
	must(list != NULL && list->count < list->capacity);
	list->rows[list->count++] = subject->peer;
}

void observer_index_drop(
	struct verdict_engine *engine, const struct subject *subject, uint64_t observer
) {
	uint32_t row = members_find(&engine->members, observer);
	struct observer_index *list;
	uint32_t at = 0;

	if (row == MEMBERS_NONE) {
		engine->nonmember_reports--;
		return;
	}
	if (subject_has_observer(subject, observer))
		return;
	list = engine->members.rows[row].told;
	must(list != NULL);
	while (at < list->count && list->rows[at] != subject->peer)
		at++;
	must(at < list->count);
	list->rows[at] = list->rows[--list->count];
	if (list->count == 0)
		engine->members.rows[row].told = observer_index_destroy(&engine->memory, list);
}

int observer_index_adopt(struct verdict_engine *engine, uint32_t observer) {
	uint64_t id = engine->members.rows[observer].id;
	struct observer_index *list;
	uint32_t subjects = 0;
	int err;

	if (engine->nonmember_reports == 0)
		return 0;
	for (uint32_t n = 0; n < engine->subject_count; n++)
		subjects += subject_has_observer(engine->subjects[n], id);
	err = subjects > 0 ? observer_index_reserve(engine, observer, subjects) : 0;
	if (err != 0)
		return err;
	list = engine->members.rows[observer].told;
	for (uint32_t n = 0; n < engine->subject_count; n++) {
		const struct subject *subject = engine->subjects[n];
		uint32_t observations = 0;

		for (uint32_t m = 0; m < subject->observation_count; m++) {
			if (subject->observations[m].observation.observer != id)
				continue;
			subject->observations[m].observer = observer;
			observations++;
		}
		if (observations > 0)
			list->rows[list->count++] = subject->peer;
		engine->nonmember_reports -= observations;
	}
	return 0;
}
