// SPDX-License-Identifier: BSD-3-Clause
// Schedule of the built-in checks. /proc is read directly, since it does not block for long.
// Keepers read sysfs and the disk.
#include "checks/builtin_inside.h"
#include "overlay/state_file.h"

#include <lib/container.h>
#include <lib/error.h>
#include <lib/scoped.h>
#include <lib/show.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WATCH_NS UINT64_C(1000000000)
#define SAVE_NS UINT64_C(60000000000)
#define LINK_BOOK_FILE "links"
#define PROC_PATH "/proc"

void builtin_check_result(
	struct builtin_checks *builtin,
	enum builtin_check which,
	enum check_level level,
	const char *evidence,
	uint64_t took_ns
) {
	const struct check_result result = {
		.level = level,
		.evidence = evidence,
		.at_ns = loop_now_ns(builtin->checks->config.loop),
		.took_ns = took_ns,
	};

	if (!builtin->settings.off[which])
		check_result(&builtin->all[which], &result);
}

static const char *proc_path(const struct builtin_checks *builtin) {
	return builtin->checks->config.proc != NULL ? builtin->checks->config.proc : PROC_PATH;
}

// Disk check. The call belongs to the keeper and may outlive the checks.

struct disk_call {
	char *directory;
	char *write; // link book to write; NULL: read it if `read` is set
	bool read;
	char *found; // link book that was read; NULL: none
	struct builtin_disk disk;
};

static void disk_call_destroy(void *arg) {
	struct disk_call *call = arg;

	free(call->directory);
	free(call->write);
	free(call->found);
	free(call);
}

static int disk_call_run(void *arg) {
	struct disk_call *call = arg;
	scoped_fd int directory = open(call->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	builtin_read_disk(call->directory, &call->disk);
	if (directory < 0)
		return neg_errno();
	if (call->write != NULL)
		return state_file_replace(directory, LINK_BOOK_FILE, call->write);
	if (!call->read)
		return 0;
	call->found = calloc(1, LINK_BOOK_BYTES);
	return call->found == NULL
		       ? -ENOMEM
		       : state_file_read(directory, LINK_BOOK_FILE, call->found, LINK_BOOK_BYTES);
}

// Load the link book, and note which boot of the machine this is.
static void link_book_load(struct builtin_checks *builtin, const char *text) {
	char path[256], boot[LINK_BOOT_BYTES] = "";
	scoped_file FILE *stream = NULL;

	snprintf(path, sizeof(path), "%s/sys/kernel/random/boot_id", proc_path(builtin));
	stream = fopen(path, "re");
	if (stream != NULL && fgets(boot, LINK_BOOT_BYTES, stream) != NULL)
		boot[strcspn(boot, " \n")] = '\0';
	link_book_parse(&builtin->links.book, text, boot);
	builtin->book_known = true;
}

static void disk_call_ended(struct keeper_request *request, void *arg, int result) {
	struct builtin_checks *builtin = container_of(request, struct builtin_checks, disk_request);
	uint64_t now_ns = loop_clock_ns(builtin->checks->config.loop);
	const struct disk_call *call = arg;
	struct check_level_words words;

	builtin_judge_disk(&call->disk, call->directory, builtin->settings.disk_free_bytes, &words);
	if (call->write != NULL && result != 0 && words.level == CHECK_OK) {
		words.level = CHECK_WARNING;
		snprintf(
			words.evidence, sizeof(words.evidence), "%.80s cannot be written: %s",
			call->directory, strerrordesc_np(-result)
		);
	}
	builtin->links.book.changed =
		builtin->links.book.changed || (call->write != NULL && result != 0);
	builtin_check_result(
		builtin, BUILTIN_DISK, words.level, words.evidence, now_ns - builtin->disk_began_ns
	);
	if (!builtin->book_known) {
		link_book_load(builtin, result == 0 && call->found != NULL ? call->found : "");
		builtin_links_start_read(&builtin->links);
	}
}

static struct disk_call *disk_call_create(struct builtin_checks *builtin, uint64_t now_ns) {
	struct disk_call *call = calloc(1, sizeof(*call));

	if (call == NULL)
		return NULL;
	call->directory = strdup(builtin->checks->config.state_directory);
	call->read = !builtin->book_known;
	if (call->directory == NULL) {
		free(call);
		return NULL;
	}
	if (!builtin->book_known || !builtin->links.book.changed ||
	    now_ns - builtin->saved_ns < SAVE_NS)
		return call;
	call->write = malloc(LINK_BOOK_BYTES);
	if (call->write == NULL)
		return call;
	link_book_format(&builtin->links.book, call->write);
	builtin->links.book.changed = false;
	builtin->saved_ns = now_ns;
	return call;
}

static void check_disk(struct builtin_checks *builtin) {
	struct keeper_call call = {.call = disk_call_run, .drop = disk_call_destroy};
	uint64_t now_ns = loop_clock_ns(builtin->checks->config.loop);

	if (builtin->disk_request.job == NULL) {
		call.arg = disk_call_create(builtin, now_ns);
		builtin->disk_began_ns = now_ns;
		if (call.arg != NULL &&
		    keeper_run(builtin->disk, &call, &builtin->disk_request) != 0)
			disk_call_destroy(call.arg);
	} else if (keeper_is_stuck(builtin->disk)) {
		char gone[SHOW_BYTES], evidence[VERDICT_EVIDENCE_MAX + 1];
		uint64_t gone_ns = now_ns - builtin->disk_began_ns;

		show_duration(gone_ns, gone);
		snprintf(
			evidence, sizeof(evidence), "%.80s has not answered for %.16s",
			builtin->checks->config.state_directory, gone
		);
		builtin_check_result(builtin, BUILTIN_DISK, CHECK_UNKNOWN, evidence, gone_ns);
		if (!builtin->book_known) // continue without an earlier link book
			link_book_load(builtin, "");
	}
}

// Drivers: hanging calls of the fabric's keepers and of the sysfs keeper.

void builtin_evidence_add(char *evidence, uint32_t *count, const char *text) {
	size_t used = strlen(evidence);

	if ((*count)++ < 2)
		snprintf(
			evidence + used, VERDICT_EVIDENCE_MAX + 1 - used, "%s%s",
			used > 0 ? "; " : "", text
		);
}

// Reports a change of level at once, and else when `due`.
static void check_drivers(struct builtin_checks *builtin, bool due) {
	const struct fabric_calls *calls = builtin->checks->config.fabric_calls;
	const struct fabric *fabric = builtin->checks->config.fabric;
	uint32_t devices = fabric != NULL ? calls->device_count(fabric) : 0, count = 0;
	char evidence[VERDICT_EVIDENCE_MAX + 1] = "";
	char text[VERDICT_EVIDENCE_MAX / 2], gone[SHOW_BYTES];
	enum check_level level;

	for (uint32_t n = 0; n < devices; n++) {
		struct fabric_device_view view;

		calls->device_at(fabric, n, &view);
		if (view.state != FABRIC_DEVICE_STUCK)
			continue;
		show_duration(view.stuck_ns, gone);
		snprintf(
			text, sizeof(text), "a driver call of %.24s has hung for %.16s", view.name,
			gone
		);
		builtin_evidence_add(evidence, &count, text);
	}
	if (builtin_links_describe_hang(&builtin->links, text, sizeof(text)))
		builtin_evidence_add(evidence, &count, text);
	level = count > 0 ? CHECK_CRITICAL : CHECK_OK;
	if (!due && level == builtin->all[BUILTIN_DRIVERS].level)
		return;
	builtin_check_result(
		builtin, BUILTIN_DRIVERS, level,
		count > 0 ? evidence : "all calls into drivers return", 0
	);
}

static void schedule_interval(struct builtin_checks *builtin, uint64_t now_ns) {
	uint64_t spread_ns = builtin->settings.interval_ns / 10;

	builtin->next_ns = now_ns + builtin->settings.interval_ns - spread_ns / 2 +
			   checks_random(builtin->checks, spread_ns);
	if (loop_timer_set(builtin->checks->config.loop, &builtin->look, builtin->next_ns) != 0)
		builtin->next_ns = UINT64_MAX; // watch_expired() sets it again
}

static void checks_expired(struct loop_timer *timer, uint64_t now_ns) {
	struct builtin_checks *builtin = container_of(timer, struct builtin_checks, look);
	struct loop *loop = builtin->checks->config.loop;
	struct check_level_words words;
	uint64_t began_ns = loop_clock_ns(loop);

	builtin_judge_memory(proc_path(builtin), builtin->settings.memory_max_bytes, &words);
	builtin_check_result(
		builtin, BUILTIN_MEMORY, words.level, words.evidence, loop_clock_ns(loop) - began_ns
	);
	began_ns = loop_clock_ns(loop);
	builtin_judge_pressure(proc_path(builtin), &words);
	builtin_check_result(
		builtin, BUILTIN_PRESSURE, words.level, words.evidence,
		loop_clock_ns(loop) - began_ns
	);
	check_drivers(builtin, true);
	builtin_check_ports(builtin, true);
	builtin_check_workers(builtin, true);
	builtin_check_processor(builtin, true);
	if (builtin->disk != NULL)
		check_disk(builtin);
	if (builtin->book_known)
		builtin_links_start_read(&builtin->links);
	schedule_interval(builtin, now_ns);
}

static void watch_expired(struct loop_timer *timer, uint64_t now_ns) {
	struct builtin_checks *builtin = container_of(timer, struct builtin_checks, watch);

	check_drivers(builtin, false);
	builtin_check_ports(builtin, false);
	builtin_check_workers(builtin, false);
	builtin_check_processor(builtin, false);
	if (builtin->link_looks > 0 && builtin->book_known) {
		builtin->link_looks--;
		builtin_links_start_read(&builtin->links);
	}
	check_reporter_retry(&builtin->checks->reporter);
	if (builtin->next_ns == UINT64_MAX)
		schedule_interval(builtin, now_ns);
	loop_timer_set(builtin->checks->config.loop, timer, now_ns + WATCH_NS);
}

int builtin_checks_create(struct checks *checks, struct builtin_checks **ret_own) {
	const struct keeper_ops ops = {.totals = checks->config.keepers};
	struct builtin_checks *builtin = calloc(1, sizeof(*builtin));
	int err;

	if (builtin == NULL)
		return -ENOMEM;
	builtin->checks = checks;
	builtin->look.expired = checks_expired;
	builtin->watch.expired = watch_expired;
	builtin->disk_request.ended = disk_call_ended;
	for (uint32_t n = 0; n < BUILTIN_CHECK_COUNT; n++) {
		check_init(&builtin->all[n], &checks->reporter, checks_builtin_name(n));
		builtin_check_reasons((enum builtin_check)n, &builtin->all[n].reasons);
	}
	builtin->all[BUILTIN_LINKS].confirm = builtin->all[BUILTIN_LINKS].clear =
		BUILTIN_LINK_READS;
	builtin->all[BUILTIN_RATES].confirm = builtin->all[BUILTIN_RATES].clear =
		BUILTIN_LINK_READS;
	builtin->all[BUILTIN_PAUSES].confirm = builtin->all[BUILTIN_PAUSES].clear =
		BUILTIN_LINK_READS;
	builtin->all[BUILTIN_DRIVERS].failed = VERDICT_DEVICE_STUCK;
	builtin->all[BUILTIN_PORTS].failed = VERDICT_FABRIC_DOWN;
	builtin->all[BUILTIN_PROCESSOR].warned = VERDICT_NODE_BUSY;
	err = builtin_links_start(&builtin->links, builtin);
	if (err == 0 && checks->config.state_directory != NULL)
		err = keeper_create(checks->config.loop, "tocsin-disk", &ops, &builtin->disk);
	if (err != 0) {
		builtin_checks_destroy(builtin);
		return err;
	}
	if (builtin->disk == NULL)
		link_book_load(builtin, "");
	*ret_own = builtin;
	return 0;
}

struct builtin_checks *builtin_checks_destroy(struct builtin_checks *builtin) {
	if (builtin == NULL)
		return NULL;
	loop_timer_cancel(builtin->checks->config.loop, &builtin->look);
	loop_timer_cancel(builtin->checks->config.loop, &builtin->watch);
	builtin_links_stop(&builtin->links);
	builtin->disk = keeper_destroy(builtin->disk);
	free(builtin);
	return NULL;
}

int builtin_checks_configure(
	struct builtin_checks *builtin, const struct checks_builtin_settings *settings
) {
	struct loop *loop = builtin->checks->config.loop;

	builtin->settings = *settings;
	for (uint32_t n = 0; n < BUILTIN_CHECK_COUNT; n++) {
		if (settings->off[n])
			check_retract(&builtin->all[n]);
	}
	builtin->next_ns = loop_now_ns(loop);
	if (loop_timer_set(loop, &builtin->look, builtin->next_ns) != 0)
		return -ENOMEM;
	return loop_timer_set(loop, &builtin->watch, builtin->next_ns + WATCH_NS);
}

uint32_t builtin_check_count(const struct builtin_checks *builtin) {
	uint32_t count = 0;

	for (uint32_t n = 0; n < BUILTIN_CHECK_COUNT; n++)
		count += !builtin->settings.off[n];
	return count;
}

const struct check *builtin_check_at(const struct builtin_checks *builtin, uint32_t n) {
	uint32_t place = 0;

	while (builtin->settings.off[place] || n-- > 0)
		place++;
	return &builtin->all[place];
}

uint32_t
builtin_congestion(const struct builtin_checks *builtin, const struct congestion_port **ret_ports) {
	*ret_ports = builtin->links.congestion.ports;
	return builtin->links.congestion.count;
}

void builtin_view_fill(
	const struct builtin_checks *builtin, uint32_t n, struct check_view *ret_view
) {
	check_view_fill(builtin_check_at(builtin, n), ret_view);
	ret_view->interval_ns = builtin->settings.interval_ns;
	ret_view->next_ns = builtin->next_ns;
}
