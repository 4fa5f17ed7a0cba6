// SPDX-License-Identifier: BSD-3-Clause
// Collects the records of each period: bins of paths, and nodes that are not well.
#include "history/inside.h"

#include <control/finding.h>
#include <control/overlay.h>
#include <lib/container.h>
#include <lib/log.h>
#include <lib/must.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define NODES_MAX 256	     // nodes recorded in one period
#define COARSE_SAVE_TICKS 10 // fine periods after which an unfinished coarse one is stored
#define CLOCK_JUMP_S 5	     // a smaller step is slewing, or a late turn of the loop
#define STOPPED_S 5	     // delay of a period that only a stopped agent has
#define RECORD_BYTES_FINE 28 // typical size of a path's record; see docs/internals/control.md
#define RECORD_BYTES_COARSE 44
#define OVERHEAD_PERMILLE 1100 // with the names of paths and the unused ends of blocks

static int64_t realtime_s(const struct history *history) {
	const struct overlay *overlay = history->config.overlay;

	return overlay_realtime_ns(overlay, overlay_now_ns(overlay)) / (int64_t)RAS_NS_PER_SEC;
}

uint64_t history_retention_s(
	uint64_t size_bytes, uint32_t interval_s, uint32_t paths, enum history_tier tier
) {
	uint64_t bytes = (uint64_t)history_file_tier_blocks(size_bytes, tier) * HISTORY_BLOCK_BYTES;
	uint64_t record = tier == HISTORY_FINE ? RECORD_BYTES_FINE : RECORD_BYTES_COARSE;
	uint64_t period_s = tier == HISTORY_FINE ? interval_s : HISTORY_COARSE_S;

	return bytes * 1000 / OVERHEAD_PERMILLE / (record * (paths > 0 ? paths : 1)) * period_s;
}

// Paths.

static bool entry_is_of_path(const struct path_entry *entry, const struct history_path_name *path) {
	return entry->name.peer == path->peer && strcmp(entry->name.device, path->device) == 0 &&
	       strcmp(entry->name.peer_device, path->peer_device) == 0;
}

void history_add_probe(
	struct history *history,
	const struct history_path_name *path,
	bool answered,
	uint64_t latency_ns
) {
	struct path_entry *entry = NULL;

	for (uint32_t n = 0; n < history->entry_count && entry == NULL; n++) {
		if (entry_is_of_path(history->entries[n], path))
			entry = history->entries[n];
	}
	if (entry == NULL) {
		if (history->config.size_bytes == 0 || history->entry_count == HISTORY_PATHS_MAX)
			return;
		entry = calloc(1, sizeof(*entry));
		if (entry == NULL)
			return;
		entry->name = *path;
		history->entries[history->entry_count++] = entry;
	}
	history_bins_add(&entry->fine, answered, latency_ns);
}

// Add the fine bins to the coarse ones, and clear the fine ones.
static void entries_end_fine_period(struct history *history) {
	for (uint32_t n = 0; n < history->entry_count; n++) {
		struct path_entry *entry = history->entries[n];

		history_bins_merge(&entry->coarse, &entry->fine);
		memset(&entry->fine, 0, sizeof(entry->fine));
	}
}

// Clear the coarse bins, and forget paths that had no probe in this period.
static void entries_end_coarse_period(struct history *history) {
	uint32_t kept = 0;

	for (uint32_t n = 0; n < history->entry_count; n++) {
		struct path_entry *entry = history->entries[n];

		if (entry->coarse.sent == 0) {
			free(entry);
			continue;
		}
		memset(&entry->coarse, 0, sizeof(entry->coarse));
		history->entries[kept++] = entry;
	}
	history->entry_count = kept;
}

// Periods.

// Other agents choose names. A name that is not one printable word is left out, because a reader of
// the block would refuse it.
static void
node_name_copy(const char *name, size_t length, char ret_name[static RAS_NAME_MAX + 1]) {
	for (size_t n = 0; n < length; n++) {
		if (name[n] <= ' ' || name[n] > '~')
			length = 0;
	}
	if (length == 0) {
		memcpy(ret_name, "?", 2);
		return;
	}
	memcpy(ret_name, name, length);
	ret_name[length] = '\0';
}

static bool
paths_put(const struct history *history, struct history_block *block, enum history_tier tier) {
	const struct ras *ras = overlay_ras(history->config.overlay);
	struct ras_peer peer;

	for (uint32_t n = 0; n < history->entry_count; n++) {
		struct path_entry *entry = history->entries[n];
		const struct history_bins *bins =
			tier == HISTORY_FINE ? &entry->fine : &entry->coarse;

		if (bins->sent == 0)
			continue;
		if (ras_peer_find(ras, entry->name.peer, &peer) == 0)
			node_name_copy(
				peer.record->name, peer.record->name_length, entry->name.node
			);
		else if (entry->name.node[0] == '\0')
			node_name_copy("", 0, entry->name.node);
		if (!history_block_put_path(block, &entry->name, bins))
			return false;
	}
	return true;
}

static bool nodes_put(const struct history *history, struct history_block *block) {
	const struct ras *ras = overlay_ras(history->config.overlay);
	uint32_t count = 0;
	struct ras_view view;

	ras_view(ras, &view);
	for (uint32_t slot = 0; slot < view.slots_max && count <= NODES_MAX; slot++) {
		struct history_node node;
		struct finding finding;
		struct ras_peer peer;

		if (ras_peer_at(ras, slot, &peer) != 0)
			continue;
		finding_for_peer(history->config.health, &peer, &finding);
		node = (struct history_node){
			.id = peer.record->id,
			.state = (uint8_t)peer.state,
			.verdict = finding.has_view ? (uint8_t)finding.view.verdict : VERDICT_NONE,
		};
		if (peer.state == RAS_ALIVE && node.verdict <= VERDICT_HEALTHY)
			continue;
		node_name_copy(peer.record->name, peer.record->name_length, node.name);
		if (++count > NODES_MAX)
			node = (struct history_node){.id = HISTORY_NODES_CUT, .name = "?"};
		if (!history_block_put_node(block, &node))
			return false;
	}
	return true;
}

static bool period_put(
	const struct history *history, enum history_tier tier, int64_t begin_s, uint32_t seconds
) {
	struct history_block *block = history->blocks[tier];

	return history_block_put_period(block, begin_s, seconds) && nodes_put(history, block) &&
	       paths_put(history, block, tier);
}

// Store a period. A period does not span blocks: if it does not fit, the block ends before it.
static void
period_store(struct history *history, enum history_tier tier, int64_t begin_s, uint32_t seconds) {
	struct history_block *block = history->blocks[tier];
	struct history_mark mark = history_block_mark(block);

	if (tier == HISTORY_COARSE) {
		mark = history->coarse_mark;
		history_block_set_back(block, &mark);
	}
	if (!period_put(history, tier, begin_s, seconds)) {
		history_block_set_back(block, &mark);
		history_store_block(history, tier);
		history_block_begin(block, tier, block->owner, block->sequence + 1);
		if (tier == HISTORY_COARSE)
			history->coarse_mark = history_block_mark(block);
		if (!period_put(history, tier, begin_s, seconds))
			log_event(
				LOG_LEVEL_WARN, "history_period_cut",
				log_str("effect", "some paths are missing from this period")
			);
	}
	history_store_block(history, tier);
}

static void schedule_tick(struct history *history, int64_t now_s) {
	uint32_t interval_s = history->config.interval_s;
	uint64_t wait_s = interval_s - (uint64_t)now_s % interval_s;

	history->fine_begin_s = now_s;
	history->fine_begin_ns = loop_now_ns(history->loop);
	must(loop_timer_set(
		     history->loop, &history->tick, history->fine_begin_ns + wait_s * RAS_NS_PER_SEC
	     ) == 0);
}

// Return how much of a fine period of `seconds` this agent observed: all of it, unless the period
// ends more than STOPPED_S late. Then the agent was stopped, and one interval counts.
static uint32_t fine_period_s(const struct history *history, uint64_t seconds) {
	if (seconds > history->config.interval_s + STOPPED_S)
		return history->config.interval_s;
	return (uint32_t)seconds;
}

// End the fine period. Its length comes from the loop's clock, because the system's clock may jump.
static void on_tick(struct loop_timer *timer, uint64_t now_ns) {
	struct history *history = container_of(timer, struct history, tick);
	uint64_t seconds = (now_ns - history->fine_begin_ns + RAS_NS_PER_SEC / 2) / RAS_NS_PER_SEC;
	int64_t now_s = realtime_s(history);
	int64_t jump_s = now_s - history->fine_begin_s - (int64_t)seconds;
	bool ends = now_s / HISTORY_COARSE_S != history->coarse_begin_s / HISTORY_COARSE_S;
	uint32_t coarse_seconds = HISTORY_COARSE_S;

	if (jump_s > CLOCK_JUMP_S || jump_s < -CLOCK_JUMP_S)
		log_event(
			LOG_LEVEL_WARN, "history_clock_jumped", log_i64("seconds", jump_s),
			log_str("effect", jump_s < 0 ? "two records may be of the same time"
						     : "a time without records follows")
		);
	if (!history->is_open)
		history_open_file(history);
	else if (seconds > 0)
		period_store(
			history, HISTORY_FINE, history->fine_begin_s,
			fine_period_s(history, seconds)
		);
	entries_end_fine_period(history);
	history->coarse_ticks++;
	if (history->is_open && (ends || history->coarse_ticks >= COARSE_SAVE_TICKS)) {
		if (now_s > history->coarse_begin_s &&
		    now_s - history->coarse_begin_s < HISTORY_COARSE_S)
			coarse_seconds = (uint32_t)(now_s - history->coarse_begin_s);
		period_store(history, HISTORY_COARSE, history->coarse_begin_s, coarse_seconds);
		history->coarse_ticks = 0;
	}
	if (ends) {
		if (history->is_open)
			history->coarse_mark = history_block_mark(history->blocks[HISTORY_COARSE]);
		entries_end_coarse_period(history);
		history->coarse_begin_s = now_s;
	}
	schedule_tick(history, now_s);
}

static void on_stuck(void *ctx, struct keeper *keeper) {
	struct history *history = ctx;

	(void)keeper;
	if (!history->was_stuck)
		log_event(
			LOG_LEVEL_WARN, "history_disk_hangs",
			log_str("directory", history->config.directory),
			log_str("effect",
				"up to 8 blocks of records wait in memory; questions about the past "
				"are refused until the disk answers")
		);
	history->was_stuck = true;
	history_fail_queries(history, -ETIMEDOUT);
}

int history_create(
	struct loop *loop, const struct history_config *config, struct history **ret_history
) {
	struct history *history = calloc(1, sizeof(*history));
	struct keeper_ops ops = {.stuck = on_stuck, .ctx = history, .totals = config->totals};
	int err = -ENOMEM;

	if (history == NULL)
		return -ENOMEM;
	history->loop = loop;
	history->config = *config;
	history->disk = calloc(1, sizeof(*history->disk));
	if (history->disk == NULL)
		goto fail;
	atomic_init(&history->disk->references, 1);
	history->disk->size_bytes = config->size_bytes;
	history->disk->interval_s = config->interval_s;
	history->disk->owner = ras_self_id(overlay_ras(config->overlay));
	history->disk->directory = strdup(config->directory);
	if (history->disk->directory == NULL)
		goto fail;
	history->config.directory = history->disk->directory;
	for (int tier = 0; tier < HISTORY_TIERS && config->size_bytes > 0; tier++) {
		history->blocks[tier] = calloc(1, sizeof(struct history_block));
		if (history->blocks[tier] == NULL)
			goto fail;
	}
	err = keeper_create(loop, "tocsin-history", &ops, &history->keeper);
	if (err != 0)
		goto fail;
	if (config->size_bytes > 0) {
		history->tick.expired = on_tick;
		history->coarse_begin_s = realtime_s(history);
		schedule_tick(history, history->coarse_begin_s);
		history_open_file(history);
	}
	*ret_history = history;
	return 0;
fail:
	history_destroy(history);
	return err;
}

struct history *history_destroy(struct history *history) {
	if (history == NULL)
		return NULL;
	must(history->queries == NULL);
	loop_timer_cancel(history->loop, &history->tick);
	history_store_stop(history);
	if (history->keeper != NULL)
		keeper_destroy(history->keeper);
	for (uint32_t n = 0; n < history->entry_count; n++)
		free(history->entries[n]);
	for (int tier = 0; tier < HISTORY_TIERS; tier++)
		free(history->blocks[tier]);
	disk_put(history->disk);
	free(history);
	return NULL;
}
