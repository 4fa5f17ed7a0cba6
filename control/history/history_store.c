// SPDX-License-Identifier: BSD-3-Clause
// Writes blocks to the disk: at most one in a second, by calls of the keeper.
#include "history/inside.h"

#include <lib/container.h>
#include <lib/log.h>
#include <lib/must.h>
#include <lib/show.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define WRITE_INTERVAL_NS RAS_NS_PER_SEC
#define PENDING_MAX 8			    // blocks that wait for the disk; the oldest is dropped
#define OPEN_LIMIT_NS (30 * RAS_NS_PER_SEC) // a disk may need long to reserve the space
#define WRITE_LIMIT_NS (10 * RAS_NS_PER_SEC)

struct disk *disk_get(struct disk *disk) {
	atomic_fetch_add_explicit(&disk->references, 1, memory_order_relaxed);
	return disk;
}

void disk_put(struct disk *disk) {
	if (disk == NULL ||
	    atomic_fetch_sub_explicit(&disk->references, 1, memory_order_acq_rel) > 1)
		return;
	history_file_close(disk->file);
	free(disk->directory);
	free(disk);
}

static void drop_disk(void *arg) {
	disk_put(arg);
}

// Opening.

static int call_open(void *arg) {
	struct disk *disk = arg;
	int err = 0;

	if (disk->file == NULL)
		err = history_file_open(
			disk->directory, disk->size_bytes, disk->owner, &disk->file, &disk->report
		);
	for (int n = 0; n < HISTORY_TIERS && err == 0; n++)
		disk->next_sequence[n] =
			history_file_next_sequence(disk->file, (enum history_tier)n);
	return err;
}

static void log_opened(const struct history *history) {
	const struct history_file_report *report = &history->disk->report;
	bool is_odd = report->damaged + report->foreign + report->other_version > 0;

	log_event(
		is_odd ? LOG_LEVEL_WARN : LOG_LEVEL_INFO, "history_opened",
		log_u64("blocks", report->blocks), log_u64("damaged", report->damaged),
		log_u64("other_version", report->other_version),
		log_u64("of_other_nodes", report->foreign)
	);
	if (report->is_short)
		log_event(
			LOG_LEVEL_WARN, "history_is_short",
			log_str("directory", history->config.directory),
			log_str("effect",
				"the file takes half of the free space at most, so less is kept")
		);
}

static void on_opened(struct keeper_request *request, void *arg, int result) {
	struct history *history = container_of(request, struct history, open_request);
	const struct disk *disk = arg;

	history->is_asked_to_open = false;
	if (result != 0) {
		if (result != history->last_open_err)
			log_event(
				LOG_LEVEL_WARN, "history_open_failed",
				log_str("directory", disk->directory), log_errno("error", result),
				log_str("effect", "no history is kept until this succeeds")
			);
		history->last_open_err = result;
		return;
	}
	history->last_open_err = 0;
	history->is_open = true;
	log_opened(history);
	for (int n = 0; n < HISTORY_TIERS; n++) {
		enum history_tier tier = (enum history_tier)n;
		uint64_t next = disk->next_sequence[n];

		// If the file was removed and created anew, keep filling the present block.
		if (history->blocks[n]->sequence >= next)
			continue;
		history_block_begin(history->blocks[n], tier, disk->owner, next);
		if (tier == HISTORY_COARSE)
			history->coarse_mark = history_block_mark(history->blocks[n]);
	}
}

void history_open_file(struct history *history) {
	const struct keeper_call call = {
		.call = call_open,
		.drop = drop_disk,
		.arg = history->disk,
		.limit_ns = OPEN_LIMIT_NS,
	};

	if (history->is_asked_to_open)
		return;
	history->open_request.ended = on_opened;
	disk_get(history->disk);
	if (keeper_run(history->keeper, &call, &history->open_request) != 0)
		disk_put(history->disk);
	else
		history->is_asked_to_open = true;
}

// Writing.

struct write_job {
	struct disk *disk;
	struct pending_block *block;
};

static int call_write(void *arg) {
	const struct write_job *job = arg;
	struct disk *disk = job->disk;
	int err;

	if (disk->file == NULL)
		return -ESTALE;
	err = history_file_write(disk->file, job->block->bytes, job->block->size);
	if (err == -ESTALE)
		disk->file = history_file_close(disk->file);
	return err;
}

static void write_job_drop(void *arg) {
	struct write_job *job = arg;

	disk_put(job->disk);
	free(job->block);
	free(job);
}

static void schedule_write(struct history *history) {
	uint64_t now_ns = loop_now_ns(history->loop), at_ns = history->wrote_ns + WRITE_INTERVAL_NS;

	if (history->pending == NULL || history->write_request.job != NULL)
		return;
	must(loop_timer_set(
		     history->loop, &history->write_timer, at_ns > now_ns ? at_ns : now_ns
	     ) == 0);
}

// Put a block whose write failed back at the front of the queue, unless a newer copy of this block
// is queued.
static void block_put_back(struct history *history, struct write_job *job) {
	struct pending_block *block = job->block;

	for (const struct pending_block *at = history->pending; at != NULL; at = at->next) {
		if (at->tier == block->tier && at->sequence == block->sequence)
			return;
	}
	job->block = NULL;
	block->next = history->pending;
	history->pending = block;
}

static void on_written(struct keeper_request *request, void *arg, int result) {
	struct history *history = container_of(request, struct history, write_request);

	history->was_stuck = false;
	if (result != 0)
		block_put_back(history, arg);
	if (result == 0 && history->write_failures > 0)
		log_event(
			LOG_LEVEL_INFO, "history_is_written_again",
			log_u64("failures", history->write_failures)
		);
	if (result == 0)
		history->write_failures = 0;
	else if (history->write_failures++ == 0)
		log_event(
			LOG_LEVEL_WARN, "history_write_failed",
			log_str("directory", history->config.directory), log_errno("error", result),
			log_str("effect",
				"records stay in memory until they can be written; older records "
				"stay in the file")
		);
	if (result == -ESTALE) { // the file was removed: create it again
		history->is_open = false;
		history_open_file(history);
	}
	schedule_write(history);
}

static void on_write_time(struct loop_timer *timer, uint64_t now_ns) {
	struct history *history = container_of(timer, struct history, write_timer);
	struct pending_block *block = history->pending;
	struct write_job *job = calloc(1, sizeof(*job));
	const struct keeper_call call = {
		.call = call_write,
		.drop = write_job_drop,
		.arg = job,
		.limit_ns = WRITE_LIMIT_NS,
	};

	history->wrote_ns = now_ns;
	if (job == NULL) {
		schedule_write(history);
		return;
	}
	history->pending = block->next;
	job->disk = disk_get(history->disk);
	job->block = block;
	history->write_request.ended = on_written;
	if (keeper_run(history->keeper, &call, &history->write_request) != 0)
		write_job_drop(job); // the next copy of the block holds its records too
}

void history_store_block(struct history *history, enum history_tier tier) {
	struct history_block *block = history->blocks[tier];
	size_t size = history_block_seal(block);
	struct pending_block *copy = malloc(sizeof(*copy) + size);
	struct pending_block **place = &history->pending;
	uint32_t count = 0;

	if (copy == NULL)
		return; // the next copy of the block holds its records too
	copy->next = NULL;
	copy->tier = tier;
	copy->sequence = block->sequence;
	copy->size = size;
	memcpy(copy->bytes, block->bytes, size);
	while (*place != NULL) {
		struct pending_block *other = *place;

		if (other->tier == tier && other->sequence == copy->sequence) {
			*place = other->next;
			free(other);
			continue;
		}
		count++;
		place = &other->next;
	}
	*place = copy;
	if (count >= PENDING_MAX) {
		copy = history->pending;
		history->pending = copy->next;
		free(copy);
	}
	history->write_timer.expired = on_write_time;
	schedule_write(history);
}

void history_store_stop(struct history *history) {
	struct pending_block *block;

	keeper_cancel(&history->open_request);
	keeper_cancel(&history->write_request);
	loop_timer_cancel(history->loop, &history->write_timer);
	while ((block = history->pending) != NULL) {
		history->pending = block->next;
		free(block);
	}
}
