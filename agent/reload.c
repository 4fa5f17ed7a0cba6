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
static void reload_keys(struct agent *agent) {
	char detail[SEAL_KEYS_DETAIL_BYTES];
	const struct seal_keys *keys;

	if (agent->key_path == NULL)
		return;
	if (seal_keys_load(agent->key_path, detail, &keys) != 0) {
		log_event(
			LOG_LEVEL_ERROR, "key_not_reloaded", log_str("reason", detail),
			log_str("effect", "the keys of before stay")
		);
		return;
	}
	overlay_use_keys(agent->overlay, keys);
	seal_keys_put(agent->keys);
	agent->keys = keys;
}

void agent_reload(struct agent *agent) {
	struct reloading reloading = {0};
	struct config *fresh;
	size_t waiting;

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
	waiting = config_compare(agent->config, fresh, on_change, &reloading);
	config_destroy(agent->config);
	agent->config = fresh;
	reload_keys(agent);
	if (reloading.level)
		log_set_level((enum log_level)config_get_enum(agent->config, "log", "level"));
	if (reloading.expect &&
	    overlay_expect(agent->overlay, config_get_string(agent->config, "overlay", "expect")) !=
		    0)
		log_event(LOG_LEVEL_ERROR, "expect_not_reloaded");
	if (reloading.join && joining_restart(agent) != 0)
		log_event(LOG_LEVEL_ERROR, "join_not_reloaded");
	log_event(LOG_LEVEL_INFO, "reloaded", log_u64("waiting_for_restart", waiting));
	service_notify("READY=1\nSTATUS=running");
}
