// SPDX-License-Identifier: BSD-3-Clause
// Questions to all nodes: one of each kind at a time. Its answer is merged once and shared.
#include "overlay/inside.h"

#include <lib/container.h>
#include <lib/log.h>
#include <lib/must.h>
#include <lib/wire.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void overlay_answer_put(struct overlay_answer *answer) {
	if (answer == NULL || --answer->references > 0)
		return;
	free((void *)answer->result.missing);
	free(answer->conns);
	ras_comms_destroy(answer->comms);
	ras_paths_destroy(answer->paths);
	free(answer);
}

// Give the answer to all waiters. A waiter may ask again from its callback. It gets the same
// answer, or replaces it as the recent one.
static void ask_answer_waiting(struct overlay_ask *ask, struct overlay_answer *answer) {
	struct overlay_question *question;

	answer->references++;
	while ((question = ask->waiting) != NULL) {
		ask->waiting = question->next;
		question->overlay = NULL;
		answer->references++;
		question->answered(question, answer);
	}
	overlay_answer_put(answer);
}

// Add one part of one node. The caller leaves out and counts a part that cannot be read.
static int answer_add_part(struct overlay_answer *answer, const struct ras_collected_part *part) {
	switch (answer->kind) {
	case RAS_COLLECT_CONNS:
		return ras_conns_add(answer->conns, part);
	case RAS_COLLECT_COMMS:
		return ras_comms_add(answer->comms, part);
	case RAS_COLLECT_PATHS:
		return ras_paths_add(answer->paths, part);
	case RAS_COLLECT_KIND_END:
		break;
	}
	return -EINVAL;
}

static int answer_make_table(struct overlay *overlay, struct overlay_answer *answer) {
	switch (answer->kind) {
	case RAS_COLLECT_CONNS:
		answer->conns = calloc(1, sizeof(*answer->conns));
		return answer->conns != NULL ? 0 : -ENOMEM;
	case RAS_COLLECT_COMMS:
		return ras_comms_create(&overlay->memory, &answer->comms);
	case RAS_COLLECT_PATHS:
		return ras_paths_create(&overlay->memory, &answer->paths);
	case RAS_COLLECT_KIND_END:
		break;
	}
	return -EINVAL;
}

static int answer_merge(
	struct overlay *overlay,
	struct overlay_answer *answer,
	const struct ras_collective_result *result
) {
	size_t missing_size = result->missing_count * sizeof(*result->missing);
	struct ras_missing_peer *missing = malloc(missing_size + 1);
	struct ras_collected_cursor cursor = {0};
	struct ras_collected_part part;
	int err;

	answer->result = *result;
	answer->result.collected = NULL;
	answer->result.missing = missing;
	if (missing == NULL)
		return -ENOMEM;
	if (missing_size > 0)
		memcpy(missing, result->missing, missing_size);
	err = answer_make_table(overlay, answer);
	while (err == 0 && ras_collected_next(result->collected, &cursor, &part)) {
		if (answer_add_part(answer, &part) != 0)
			answer->bad_parts++;
	}
	if (answer->comms != NULL)
		ras_comms_settle(answer->comms);
	if (answer->paths != NULL)
		ras_paths_settle(answer->paths);
	return err;
}

// Called from inside the core, which must not be called back. So waiters get the answer at the end
// of the turn.
void overlay_collected(void *ctx, const struct ras_collective_result *result) {
	struct overlay *overlay = ctx;
	struct overlay_answer *answer;
	struct overlay_ask *ask;

	must(result->kind < RAS_COLLECT_KIND_END);
	ask = &overlay->asks[result->kind];
	if (!ask->running || ask->id != result->id)
		return;
	ask->running = false;
	answer = calloc(1, sizeof(*answer));
	if (answer == NULL) {
		// The share job reports the lack of an answer to the waiters.
		log_event(LOG_LEVEL_ERROR, "answer_lost", log_errno("error", ENOMEM));
		loop_defer(overlay->loop, &overlay->share);
		return;
	}
	answer->references = 1;
	answer->kind = (enum ras_collect_kind)result->kind;
	answer->at_ns = overlay_now_ns(overlay);
	answer->err = answer_merge(overlay, answer, result);
	overlay_answer_put(ask->recent);
	ask->recent = answer;
	loop_defer(overlay->loop, &overlay->share);
}

static void answers_share(struct loop_job *job) {
	struct overlay *overlay = container_of(job, struct overlay, share);
	static struct overlay_answer none = {.references = 1, .err = -ENOMEM};

	for (uint32_t kind = 0; kind < RAS_COLLECT_KIND_END; kind++) {
		struct overlay_ask *ask = &overlay->asks[kind];

		// End a collective in all agents when nobody waits for it any more. This job does
		// it, because the last waiter may have left from inside the core.
		if (ask->running && ask->waiting == NULL) {
			ask->running = false;
			(void)ras_collect_cancel(overlay->ras, overlay_now_ns(overlay), ask->id);
		}
		if (ask->running || ask->waiting == NULL)
			continue;
		ask_answer_waiting(ask, ask->recent != NULL ? ask->recent : &none);
	}
}

int overlay_ask_all(
	struct overlay *overlay,
	enum ras_collect_kind kind,
	uint64_t timeout_ns,
	struct overlay_question *question
) {
	struct overlay_ask *ask = &overlay->asks[kind];
	bool is_fresh;
	int err;

	must(kind > 0 && kind < RAS_COLLECT_KIND_END);
	is_fresh = ask->recent != NULL && ask->recent->err == 0 &&
		   overlay_now_ns(overlay) - ask->recent->at_ns < OVERLAY_SHARE_NS;
	if (!ask->running && is_fresh) {
		loop_defer(overlay->loop, &overlay->share);
	} else if (!ask->running) {
		overlay_answer_put(ask->recent);
		ask->recent = NULL;
		err = ras_collect(
			overlay->ras, overlay_now_ns(overlay), kind, timeout_ns, &ask->id
		);
		if (err != 0)
			return err;
		ask->running = true;
	}
	question->overlay = overlay;
	question->kind = kind;
	question->next = ask->waiting;
	ask->waiting = question;
	return 0;
}

void overlay_cancel_question(struct overlay_question *question) {
	struct overlay_question **at;

	if (question->overlay == NULL)
		return;
	at = &question->overlay->asks[question->kind].waiting;
	while (*at != NULL && *at != question)
		at = &(*at)->next;
	if (*at != NULL)
		*at = question->next;
	loop_defer(question->overlay->loop, &question->overlay->share);
	question->overlay = NULL;
}

void overlay_contributor(
	struct overlay *overlay, enum ras_collect_kind kind, overlay_contribute_fn *fn, void *ctx
) {
	overlay->contributors[kind] = (struct overlay_contributor){.fn = fn, .ctx = ctx};
}

bool overlay_contribute(
	void *ctx, const struct ras_contribution *wanted, struct wire_writer *writer
) {
	const struct overlay *overlay = ctx;
	const struct overlay_contributor *contributor;

	if (wanted->kind >= RAS_COLLECT_KIND_END)
		return false;
	contributor = &overlay->contributors[wanted->kind];
	return contributor->fn != NULL && contributor->fn(contributor->ctx, wanted, writer);
}

void overlay_ask_init(struct overlay *overlay) {
	overlay->share.run = answers_share;
}

void overlay_ask_fini(struct overlay *overlay) {
	for (uint32_t kind = 0; kind < RAS_COLLECT_KIND_END; kind++) {
		struct overlay_answer cancelled = {.references = 1, .err = -ECANCELED};

		// This answer is on the stack. No callback may keep a reference to an answer that
		// reports an error.
		ask_answer_waiting(&overlay->asks[kind], &cancelled);
		must(cancelled.references == 1);
		overlay_answer_put(overlay->asks[kind].recent);
		overlay->asks[kind].recent = NULL;
	}
	// Must come last: a callback above may forget another question, which schedules the job
	// again.
	loop_undefer(overlay->loop, &overlay->share);
}
