// SPDX-License-Identifier: BSD-3-Clause
// When the agent's own checks look. /proc is read here, since nothing there waits for long; sysfs
// and disks by keepers.
#include "checks/own_inside.h"
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
#define BOOK "links"
#define PROC "/proc"

void own_result(
	struct own_checks *own,
	enum own_check which,
	enum check_level level,
	const char *evidence,
	uint64_t took_ns
) {
	const struct check_result result = {
		.level = level,
		.evidence = evidence,
		.at_ns = loop_now_ns(own->checks->config.loop),
		.took_ns = took_ns,
	};

	if (!own->settings.off[which])
		check_result(&own->all[which], &result);
}

static const char *proc_of(const struct own_checks *own) {
	return own->checks->config.proc != NULL ? own->checks->config.proc : PROC;
}

static void look_at_machine(struct own_checks *own) {
	struct loop *loop = own->checks->config.loop;
	struct check_level_words words;
	uint64_t began_ns = loop_clock_ns(loop);

	own_judge_memory(proc_of(own), own->settings.memory_max_bytes, &words);
	own_result(own, OWN_MEMORY, words.level, words.evidence, loop_clock_ns(loop) - began_ns);
	began_ns = loop_clock_ns(loop);
	own_judge_pressure(proc_of(own), &words);
	own_result(own, OWN_PRESSURE, words.level, words.evidence, loop_clock_ns(loop) - began_ns);
}

// The disk. The call is the keeper's, which may outlive us.

struct disk_call {
	char *directory;
	char *write; // the book, NULL: it is read if `read`
	bool read;
	char *found; // what was read, NULL: none
	struct own_disk disk;
};

static void reading_drop(void *arg) {
	struct disk_call *call = arg;

	free(call->directory);
	free(call->write);
	free(call->found);
	free(call);
}

static int disk_work(void *arg) {
	struct disk_call *call = arg;
	scoped_fd int directory = open(call->directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	own_read_disk(call->directory, &call->disk);
	if (directory < 0)
		return neg_errno();
	if (call->write != NULL)
		return state_file_replace(directory, BOOK, call->write);
	if (!call->read)
		return 0;
	call->found = calloc(1, LINK_BOOK_BYTES);
	return call->found == NULL ? -ENOMEM
				   : state_file_read(directory, BOOK, call->found, LINK_BOOK_BYTES);
}

static void read_boot(const struct own_checks *own, char boot[static LINK_BOOT_BYTES]) {
	char path[256];
	scoped_file FILE *stream = NULL;

	boot[0] = '\0';
	snprintf(path, sizeof(path), "%s/sys/kernel/random/boot_id", proc_of(own));
	stream = fopen(path, "re");
	if (stream != NULL && fgets(boot, LINK_BOOT_BYTES, stream) != NULL)
		boot[strcspn(boot, " \n")] = '\0';
}

static void know_book(struct own_checks *own, const char *text) {
	char boot[LINK_BOOT_BYTES];

	read_boot(own, boot);
	link_book_parse(&own->links.book, text, boot);
	own->book_known = true;
}

static void disk_ended(struct keeper_request *request, void *arg, int result) {
	struct own_checks *own = container_of(request, struct own_checks, disk_request);
	uint64_t now_ns = loop_clock_ns(own->checks->config.loop);
	const struct disk_call *call = arg;
	struct check_level_words words;

	own_judge_disk(&call->disk, call->directory, own->settings.disk_free_bytes, &words);
	if (call->write != NULL && result != 0 && words.level == CHECK_OK) {
		words.level = CHECK_WARNING;
		snprintf(
			words.evidence, sizeof(words.evidence), "%.80s cannot be written: %s",
			call->directory, strerrordesc_np(-result)
		);
	}
	own->links.book.changed = own->links.book.changed || (call->write != NULL && result != 0);
	own_result(own, OWN_DISK, words.level, words.evidence, now_ns - own->disk_began_ns);
	if (!own->book_known) {
		know_book(own, result == 0 && call->found != NULL ? call->found : "");
		own_links_look(&own->links);
	}
}

static struct disk_call *make_call(struct own_checks *own, uint64_t now_ns) {
	struct disk_call *call = calloc(1, sizeof(*call));

	if (call == NULL)
		return NULL;
	call->directory = strdup(own->checks->config.state_directory);
	call->read = !own->book_known;
	if (call->directory == NULL) {
		free(call);
		return NULL;
	}
	if (!own->book_known || !own->links.book.changed || now_ns - own->saved_ns < SAVE_NS)
		return call;
	call->write = malloc(LINK_BOOK_BYTES);
	if (call->write == NULL)
		return call;
	link_book_format(&own->links.book, call->write);
	own->links.book.changed = false;
	own->saved_ns = now_ns;
	return call;
}

static void disk_hangs(struct own_checks *own, uint64_t now_ns) {
	char gone[SHOW_BYTES], evidence[VERDICT_EVIDENCE_MAX + 1];
	uint64_t gone_ns = now_ns - own->disk_began_ns;

	show_duration(gone_ns, gone);
	snprintf(
		evidence, sizeof(evidence), "%.80s does not answer for %.16s",
		own->checks->config.state_directory, gone
	);
	own_result(own, OWN_DISK, CHECK_UNKNOWN, evidence, gone_ns);
	if (!own->book_known) // then without what was before
		know_book(own, "");
}

static void look_at_disk(struct own_checks *own) {
	struct keeper_call call = {.call = disk_work, .drop = reading_drop};
	uint64_t now_ns = loop_clock_ns(own->checks->config.loop);

	if (own->disk_request.job != NULL) {
		if (keeper_is_stuck(own->disk))
			disk_hangs(own, now_ns);
		return;
	}
	call.arg = make_call(own, now_ns);
	own->disk_began_ns = now_ns;
	if (call.arg != NULL && keeper_run(own->disk, &call, &own->disk_request) != 0)
		reading_drop(call.arg);
}

// Drivers: calls of the fabric's keepers, and of ours.

void own_add(char *evidence, uint32_t *count, const char *text) {
	size_t used = strlen(evidence);

	if ((*count)++ < 2)
		snprintf(
			evidence + used, VERDICT_EVIDENCE_MAX + 1 - used, "%s%s",
			used > 0 ? "; " : "", text
		);
}

static uint32_t hanging_drivers(const struct own_checks *own, char *evidence) {
	const struct fabric_calls *calls = own->checks->config.fabric_calls;
	const struct fabric *fabric = own->checks->config.fabric;
	uint32_t devices = fabric != NULL ? calls->device_count(fabric) : 0, count = 0;
	char text[VERDICT_EVIDENCE_MAX / 2], gone[SHOW_BYTES];

	evidence[0] = '\0';
	for (uint32_t n = 0; n < devices; n++) {
		struct fabric_device_view view;

		calls->device_at(fabric, n, &view);
		if (view.state != FABRIC_DEVICE_STUCK)
			continue;
		show_duration(view.stuck_ns, gone);
		snprintf(
			text, sizeof(text), "a call into the driver of %.24s hangs for %.16s",
			view.name, gone
		);
		own_add(evidence, &count, text);
	}
	if (own_links_hang(&own->links, text, sizeof(text)))
		own_add(evidence, &count, text);
	return count;
}

// Said at once, and then once an interval.
static void look_at_drivers(struct own_checks *own, bool due) {
	char evidence[VERDICT_EVIDENCE_MAX + 1];
	uint32_t count = hanging_drivers(own, evidence);
	enum check_level level = count > 0 ? CHECK_CRITICAL : CHECK_OK;

	if (!due && level == own->all[OWN_DRIVERS].level)
		return;
	own_result(own, OWN_DRIVERS, level, count > 0 ? evidence : "all calls come back", 0);
}

static void set_look(struct own_checks *own, uint64_t now_ns) {
	uint64_t spread_ns = own->settings.interval_ns / 10;

	own->next_ns = now_ns + own->settings.interval_ns - spread_ns / 2 +
		       checks_random(own->checks, spread_ns);
	if (loop_timer_set(own->checks->config.loop, &own->look, own->next_ns) != 0)
		own->next_ns = UINT64_MAX; // the watch sets it again
}

static void checks_expired(struct loop_timer *timer, uint64_t now_ns) {
	struct own_checks *own = container_of(timer, struct own_checks, look);

	look_at_machine(own);
	look_at_drivers(own, true);
	own_look_at_ports(own, true);
	own_look_at_workers(own, true);
	if (own->disk != NULL)
		look_at_disk(own);
	if (own->book_known)
		own_links_look(&own->links);
	set_look(own, now_ns);
}

static void watch_expired(struct loop_timer *timer, uint64_t now_ns) {
	struct own_checks *own = container_of(timer, struct own_checks, watch);

	look_at_drivers(own, false);
	own_look_at_ports(own, false);
	own_look_at_workers(own, false);
	if (own->link_looks > 0 && own->book_known) {
		own->link_looks--;
		own_links_look(&own->links);
	}
	if (own->next_ns == UINT64_MAX)
		set_look(own, now_ns);
	loop_timer_set(own->checks->config.loop, timer, now_ns + WATCH_NS);
}

static void init_checks(struct own_checks *own) {
	for (uint32_t n = 0; n < OWN_CHECK_COUNT; n++) {
		check_init(&own->all[n], &own->checks->sayer, checks_own_name(n));
		own_check_reasons((enum own_check)n, &own->all[n].reasons);
	}
	own->all[OWN_LINKS].confirm = own->all[OWN_LINKS].clear = OWN_LINK_LOOKS;
	own->all[OWN_RATES].confirm = own->all[OWN_RATES].clear = OWN_LINK_LOOKS;
	own->all[OWN_PAUSES].confirm = own->all[OWN_PAUSES].clear = OWN_LINK_LOOKS;
	own->all[OWN_DRIVERS].failed = VERDICT_DEVICE_STUCK;
	own->all[OWN_PORTS].failed = VERDICT_FABRIC_DOWN;
}

int own_create(struct checks *checks, struct own_checks **ret_own) {
	const struct keeper_ops ops = {.totals = checks->config.keepers};
	struct own_checks *own = calloc(1, sizeof(*own));
	int err;

	if (own == NULL)
		return -ENOMEM;
	own->checks = checks;
	own->look.expired = checks_expired;
	own->watch.expired = watch_expired;
	own->disk_request.ended = disk_ended;
	init_checks(own);
	err = own_links_start(&own->links, own);
	if (err == 0 && checks->config.state_directory != NULL)
		err = keeper_create(checks->config.loop, "tocsin-disk", &ops, &own->disk);
	if (err != 0) {
		own_destroy(own);
		return err;
	}
	if (own->disk == NULL)
		know_book(own, "");
	*ret_own = own;
	return 0;
}

struct own_checks *own_destroy(struct own_checks *own) {
	if (own == NULL)
		return NULL;
	loop_timer_cancel(own->checks->config.loop, &own->look);
	loop_timer_cancel(own->checks->config.loop, &own->watch);
	own_links_stop(&own->links);
	own->disk = keeper_destroy(own->disk);
	free(own);
	return NULL;
}

int own_set(struct own_checks *own, const struct checks_own_settings *settings) {
	struct loop *loop = own->checks->config.loop;

	own->settings = *settings;
	for (uint32_t n = 0; n < OWN_CHECK_COUNT; n++) {
		if (settings->off[n])
			check_retract(&own->all[n]);
	}
	own->next_ns = loop_now_ns(loop);
	if (loop_timer_set(loop, &own->look, own->next_ns) != 0)
		return -ENOMEM;
	return loop_timer_set(loop, &own->watch, own->next_ns + WATCH_NS);
}

uint32_t own_count(const struct own_checks *own) {
	uint32_t count = 0;

	for (uint32_t n = 0; n < OWN_CHECK_COUNT; n++)
		count += !own->settings.off[n];
	return count;
}

static uint32_t place_of(const struct own_checks *own, uint32_t n) {
	uint32_t place = 0;

	while (own->settings.off[place] || n-- > 0)
		place++;
	return place;
}

const struct check *own_at(const struct own_checks *own, uint32_t n) {
	return &own->all[place_of(own, n)];
}

uint32_t own_congestion(const struct own_checks *own, const struct congestion_port **ret_ports) {
	*ret_ports = own->links.congestion.ports;
	return own->links.congestion.count;
}

void own_look(const struct own_checks *own, uint32_t n, struct check_view *ret_view) {
	checks_look(own_at(own, n), ret_view);
	ret_view->interval_ns = own->settings.interval_ns;
	ret_view->next_ns = own->next_ns;
}
