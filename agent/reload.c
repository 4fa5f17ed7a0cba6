// SPDX-License-Identifier: BSD-3-Clause
#include "agent.h"
#include "config_schema.h"
#include "load.h"

#include <control/overlay.h>
#include <control/seal_keys.h>
#include <lib/log.h>

#include <string.h>

struct reloading {
	bool join, expect, level;
};

static void on_change(void *ctx, const struct config_change *change) {
	struct reloading *reloading = ctx;

	log_event(
		change->reloadable ? LOG_LEVEL_INFO : LOG_LEVEL_WARN, "config_changed",
		log_str("section", change->section), log_str("key", change->key),
		log_str("before", change->before), log_str("after", change->after),
		log_str("effect", change->reloadable ? "now" : "at the next start")
	);
	if (!change->reloadable)
		return;
	reloading->join = reloading->join || strcmp(change->key, "join") == 0;
	reloading->expect = reloading->expect || strcmp(change->key, "expect") == 0;
	reloading->level = reloading->level || strcmp(change->key, "level") == 0;
}

// The file may hold other keys under the same name: that is how keys are rotated. Another name
// waits for the next start, and so does a first key: members without it would be cut off.
// Returns what became of them, for the log.
static const char *reload_keys(struct agent *agent) {
	char detail[SEAL_KEYS_DETAIL_BYTES];
	const struct seal_keys *keys;

	if (agent->key_path == NULL)
		return "none";
	if (seal_keys_load(agent->key_path, detail, &keys) != 0) {
		log_event(
			LOG_LEVEL_ERROR, "key_not_reloaded", log_str("reason", detail),
			log_str("effect", "the keys of before stay")
		);
		return "refused";
	}
	overlay_use_keys(agent->overlay, keys);
	seal_keys_put(agent->keys);
	agent->keys = keys;
	return "read";
}

static void ignore(void *ctx, const struct config_change *change) {
	(void)ctx;
	(void)change;
}

// What the process was started with is kept: what waits for a restart differs from that, in
// whichever reload it came.
static size_t use_config(struct agent *agent, struct config *fresh, struct reloading *reloading) {
	config_compare(agent->config, fresh, on_change, reloading);
	if (agent->started_with == NULL)
		agent->started_with = agent->config;
	else
		config_destroy(agent->config);
	agent->config = fresh;
	return config_compare(agent->started_with, fresh, ignore, NULL);
}

static void say_reloaded(const char *key, size_t waiting) {
	bool refused = strcmp(key, "refused") == 0;

	log_event(
		refused || waiting > 0 ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "reloaded",
		log_str("key", key), log_u64("waiting_for_restart", waiting)
	);
	if (refused)
		service_notify("READY=1\nSTATUS=running; the key file was refused");
	else if (waiting > 0)
		service_notify("READY=1\nSTATUS=running; changes wait for a restart");
	else
		service_notify("READY=1\nSTATUS=running");
}

void agent_reload(struct agent *agent) {
	struct reloading reloading = {0};
	struct config *fresh;
	size_t waiting;
	const char *key;

	if (agent->leaving)
		return; // and joins nothing any more
	service_notify_reloading();
	if (load_config(agent->options, &fresh) != 0) {
		log_event(
			LOG_LEVEL_ERROR, "reload_failed",
			log_str("effect", "the configuration of before stays")
		);
		service_notify("READY=1\nSTATUS=running; the last reload failed");
		return;
	}
	waiting = use_config(agent, fresh, &reloading);
	key = reload_keys(agent);
	if (reloading.level)
		log_set_level((enum log_level)config_get_enum(agent->config, "log", "level"));
	if (reloading.expect &&
	    overlay_expect(agent->overlay, config_get_string(agent->config, "overlay", "expect")) !=
		    0)
		log_event(LOG_LEVEL_ERROR, "expect_not_reloaded");
	if (reloading.join && joining_restart(agent) != 0)
		log_event(LOG_LEVEL_ERROR, "join_not_reloaded");
	say_reloaded(key, waiting);
}
