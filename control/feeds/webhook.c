// SPDX-License-Identifier: BSD-3-Clause
// Runs the webhook program for each verdict change, one at a time.
#include <control/checks.h>
#include <control/webhook.h>
#include <lib/container.h>
#include <lib/log.h>

#include <jansson.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define OUTPUT_BYTES 256 // part of its stderr kept for the log

struct webhook {
	struct spawn *spawn;
	uint64_t timeout_ns;
	char *user;			      // NULL: the agent's own
	const char *by_name[2];		      // of the root helper; empty: the words are run
	char *command;			      // split into words, in place
	char *words[SPAWN_ARGUMENTS_MAX + 1]; // point into `command`; NULL-terminated
	struct spawn_request request;	      // its job is NULL: the program does not run
	json_t *queue[WEBHOOK_QUEUE];
	uint32_t first, count;
	uint64_t lost; // changes dropped since the last one that was reported
	bool failing;  // the webhook fails, and that was logged
	uint64_t failed_in_a_row;
	struct webhook_counters *counters;
};

static void run_next_change(struct webhook *webhook);

// Log only the first failure of a series; its end is logged too. A webhook may run every second.
static void
webhook_failed(struct webhook *webhook, const char *how, int status, struct spawn_text said) {
	webhook->counters->failed++;
	webhook->failed_in_a_row++;
	if (webhook->failing)
		return;
	webhook->failing = true;
	log_event(
		LOG_LEVEL_WARN, "webhook_failed", log_str("command", webhook->words[0]),
		log_str("how", how), log_i64("status", status),
		log_bytes("said", said.bytes, said.size)
	);
}

static void program_ended(struct spawn_request *request, const struct spawn_result *result) {
	struct webhook *webhook = container_of(request, struct webhook, request);

	if (result->end != SPAWN_EXITED || result->status != 0) {
		webhook_failed(webhook, spawn_end_name(result->end), result->status, result->err);
	} else {
		webhook->counters->told++;
		if (webhook->failing)
			log_event(
				LOG_LEVEL_INFO, "webhook_works_again",
				log_u64("failures", webhook->failed_in_a_row)
			);
		webhook->failing = false;
		webhook->failed_in_a_row = 0;
	}
	run_next_change(webhook);
}

static json_t *queue_pop_change(struct webhook *webhook) {
	json_t *change = webhook->queue[webhook->first];

	webhook->first = (webhook->first + 1) % WEBHOOK_QUEUE;
	webhook->count--;
	return change;
}

static void run_next_change(struct webhook *webhook) {
	const struct spawn_text nothing = {.bytes = "", .size = 0};
	bool is_named = webhook->by_name[0] != NULL;
	struct spawn_program program = {
		.argv = is_named ? webhook->by_name : (const char *const *)webhook->words,
		.user = is_named ? NULL : webhook->user,
		.timeout_ns = webhook->timeout_ns,
		.output_max = OUTPUT_BYTES,
	};

	// A change whose program cannot be started is not tried again.
	while (webhook->request.job == NULL && webhook->count > 0) {
		json_t *change = queue_pop_change(webhook);
		char *text, *line = NULL;
		int err = -ENOMEM;

		json_object_set_new(change, "lost", json_integer((json_int_t)webhook->lost));
		text = json_dumps(change, JSON_COMPACT | JSON_ENSURE_ASCII);
		if (text == NULL || asprintf(&line, "%s\n", text) < 0)
			line = NULL;
		free(text);
		if (line != NULL) {
			program.input = line;
			program.input_bytes = strlen(line);
			err = spawn_run(webhook->spawn, &program, &webhook->request);
		}
		free(line);
		json_decref(change);
		if (err == 0)
			webhook->lost = 0;
		else
			webhook_failed(webhook, "not-started", err, nothing);
	}
}

void webhook_notify(struct webhook *webhook, const struct webhook_change *change) {
	const struct verdict_view *now = change->now;
	char seconds[24], time[40];
	struct timespec clock;
	struct tm utc;
	json_t *object;

	clock_gettime(CLOCK_REALTIME, &clock);
	gmtime_r(&clock.tv_sec, &utc);
	strftime(seconds, sizeof(seconds), "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(time, sizeof(time), "%s.%03ldZ", seconds, clock.tv_nsec / 1000000);
	object = json_pack(
		"{s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:s,s:b,s:b,s:o}", "time", time, "cluster",
		change->cluster, "observer", change->observer, "node", change->node, "verdict",
		verdict_name(now->verdict), "was", verdict_name(change->before), "reason",
		now->reason, "evidence", now->evidence, "advice",
		verdict_advice_name(change->advice), "confidence",
		now->confidence == VERDICT_SURE ? "sure" : "likely", "both_planes",
		now->both_planes, "maint", now->maint, "would",
		change->would != VERDICT_ADVICE_NOTHING
			? json_string(verdict_advice_name(change->would))
			: json_null()
	);
	if (object == NULL || webhook->count == WEBHOOK_QUEUE) {
		webhook->counters->dropped++;
		webhook->lost++;
	}
	if (object == NULL)
		return;
	if (webhook->count == WEBHOOK_QUEUE)
		json_decref(queue_pop_change(webhook));
	webhook->queue[(webhook->first + webhook->count++) % WEBHOOK_QUEUE] = object;
	run_next_change(webhook);
}

int webhook_create(
	struct spawn *spawn, const struct webhook_config *config, struct webhook **ret_webhook
) {
	struct webhook *webhook = calloc(1, sizeof(*webhook));
	const char *why;
	int err = -ENOMEM;

	if (webhook == NULL)
		return -ENOMEM;
	webhook->spawn = spawn;
	webhook->timeout_ns = config->timeout_ns;
	webhook->counters = config->counters;
	webhook->request.ended = program_ended;
	webhook->by_name[0] = config->root_name;
	webhook->command = strdup(config->command);
	if (webhook->command != NULL)
		err = check_command_split(webhook->command, webhook->words, &why);
	if (config->user != NULL && (webhook->user = strdup(config->user)) == NULL)
		err = -ENOMEM;
	if (err != 0)
		webhook_destroy(webhook);
	else
		*ret_webhook = webhook;
	return err;
}

struct webhook *webhook_destroy(struct webhook *webhook) {
	if (webhook == NULL)
		return NULL;
	spawn_cancel(&webhook->request);
	while (webhook->count > 0)
		json_decref(queue_pop_change(webhook));
	free(webhook->command);
	free(webhook->user);
	free(webhook);
	return NULL;
}
