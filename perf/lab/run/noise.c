// SPDX-License-Identifier: BSD-3-Clause
// Read noise from /proc: status, stat, sched and schedstat of a thread, and the steal time.
#include "run/noise.h"

#include <lib/clock.h>
#include <lib/parse.h>
#include <lib/scoped.h>
#include <lib/show.h>

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define FILE_BYTES 8192
#define PATH_BYTES 64
// Fields of /proc/self/task/TID/stat, counted from 1. The fields behind the name in parentheses
// begin with STAT_BEHIND_NAME.
#define STAT_BEHIND_NAME 3
#define STAT_MINOR 10
#define STAT_MAJOR 12
// Field of the first line of /proc/stat.
#define STEAL_FIELD 8
// Stolen time below 1/STEAL_DIVISOR of the elapsed time hardly changes a median.
#define STEAL_DIVISOR 1000

static const char *const keys[NOISE_KIND_COUNT] = {
	[NOISE_INVOLUNTARY] = "involuntary_switches",
	[NOISE_VOLUNTARY] = "voluntary_switches",
	[NOISE_MIGRATIONS] = "migrations",
	[NOISE_MINOR] = "minor_faults",
	[NOISE_MAJOR] = "major_faults",
	[NOISE_STEAL_NS] = "steal_ns",
	[NOISE_CPU_NS] = "cpu_ns",
	[NOISE_TIME_NS] = "time_ns",
	[NOISE_BLOCKS] = "worker_sleeps",
	[NOISE_CLOCK_OFF_NS] = "clock_off_ns",
	[NOISE_CLOCK_JUMPS] = "clock_jumps",
};

const char *noise_key(enum noise_kind kind) {
	return keys[kind];
}

// Read as much as fits and terminate it; "" if the file cannot be read.
static void read_file(const char *path, char text[static FILE_BYTES]) {
	scoped_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = fd >= 0 ? read(fd, text, FILE_BYTES - 1) : 0;

	text[length > 0 ? length : 0] = '\0';
}

static void read_task_file(pid_t tid, const char *name, char text[static FILE_BYTES]) {
	char path[PATH_BYTES];

	snprintf(path, sizeof(path), "/proc/self/task/%d/%s", tid, name);
	read_file(path, text);
}

static uint64_t number_at(const char *text) {
	size_t blanks = strspn(text, " \t:"), digits = strspn(text + blanks, "0123456789");
	uint64_t value;

	if (parse_u64(text + blanks, digits, 0, UINT64_MAX, NULL, &value) != 0)
		return NOISE_UNKNOWN;
	return value;
}

// Return the number behind a key and a colon.
static uint64_t number_after_key(const char *text, const char *key) {
	const char *found = strstr(text, key);

	return found != NULL ? number_at(found + strlen(key)) : NOISE_UNKNOWN;
}

// Return the n-th of the fields separated by blanks, counted from 1.
static uint64_t read_nth_field(const char *text, uint32_t n) {
	for (; n > 1 && *text != '\0'; n--) {
		text += strcspn(text, " ");
		text += strspn(text, " ");
	}
	return number_at(text);
}

void noise_read(pid_t tid, const struct worker *worker, struct noise *ret_noise) {
	long ticks = sysconf(_SC_CLK_TCK);
	uint64_t steal = NOISE_UNKNOWN;
	struct worker_counters counters;
	char text[FILE_BYTES];
	const char *behind;
	struct noise noise;

	for (int n = 0; n < NOISE_KIND_COUNT; n++)
		noise.counts[n] = NOISE_UNKNOWN;
	read_task_file(tid, "status", text);
	noise.counts[NOISE_VOLUNTARY] = number_after_key(text, "\nvoluntary_ctxt_switches");
	noise.counts[NOISE_INVOLUNTARY] = number_after_key(text, "nonvoluntary_ctxt_switches");
	read_task_file(tid, "stat", text);
	behind = strrchr(text, ')');
	if (behind != NULL && behind[1] == ' ') {
		noise.counts[NOISE_MINOR] =
			read_nth_field(behind + 2, STAT_MINOR - STAT_BEHIND_NAME + 1);
		noise.counts[NOISE_MAJOR] =
			read_nth_field(behind + 2, STAT_MAJOR - STAT_BEHIND_NAME + 1);
	}
	read_task_file(tid, "sched", text);
	noise.counts[NOISE_MIGRATIONS] = number_after_key(text, "se.nr_migrations");
	read_task_file(tid, "schedstat", text);
	noise.counts[NOISE_CPU_NS] = number_at(text);
	read_file("/proc/stat", text);
	if (strncmp(text, "cpu ", 4) == 0)
		steal = read_nth_field(text + 4 + strspn(text + 4, " "), STEAL_FIELD);
	if (steal != NOISE_UNKNOWN && ticks > 0)
		noise.counts[NOISE_STEAL_NS] = steal * (UINT64_C(1000000000) / (uint64_t)ticks);
	worker_counters(worker, &counters);
	noise.counts[NOISE_BLOCKS] = counters.blocks + counters.sleeps;
	noise.counts[NOISE_CLOCK_OFF_NS] = counters.clock_off_ns;
	noise.counts[NOISE_CLOCK_JUMPS] = counters.clock_jumps;
	noise.counts[NOISE_TIME_NS] = clock_monotonic_ns();
	*ret_noise = noise;
}

struct noise noise_between(const struct noise *before, const struct noise *after) {
	struct noise between;

	for (int n = 0; n < NOISE_KIND_COUNT; n++) {
		uint64_t from = before->counts[n], to = after->counts[n];
		bool known = from != NOISE_UNKNOWN && to != NOISE_UNKNOWN && to >= from;

		between.counts[n] = known ? to - from : NOISE_UNKNOWN;
	}
	between.counts[NOISE_CLOCK_OFF_NS] = after->counts[NOISE_CLOCK_OFF_NS];
	return between;
}

static bool count_is_positive(const struct noise *noise, enum noise_kind kind) {
	return noise->counts[kind] != NOISE_UNKNOWN && noise->counts[kind] > 0;
}

static void append_count(
	const struct noise *noise,
	enum noise_kind kind,
	const char *words,
	char text[static NOISE_TEXT_BYTES]
) {
	size_t used = strlen(text);

	if (count_is_positive(noise, kind))
		snprintf(
			text + used, NOISE_TEXT_BYTES - used, "%s%" PRIu64 " %s",
			used > 0 ? ", " : "", noise->counts[kind], words
		);
}

bool noise_format(const struct noise *noise, char text[static NOISE_TEXT_BYTES]) {
	uint64_t steal_ns = noise->counts[NOISE_STEAL_NS];
	char steal[SHOW_BYTES];
	size_t used;

	text[0] = '\0';
	append_count(noise, NOISE_INVOLUNTARY, "involuntary switches", text);
	append_count(noise, NOISE_MIGRATIONS, "migrations", text);
	append_count(noise, NOISE_MINOR, "page faults", text);
	append_count(noise, NOISE_MAJOR, "page faults from disk", text);
	append_count(noise, NOISE_CLOCK_JUMPS, "jumps of the clock", text);
	used = strlen(text);
	if (count_is_positive(noise, NOISE_STEAL_NS) &&
	    steal_ns >= noise->counts[NOISE_TIME_NS] / STEAL_DIVISOR) {
		show_duration(steal_ns, steal);
		snprintf(
			text + used, NOISE_TEXT_BYTES - used, "%s%s stolen by the hypervisor",
			used > 0 ? ", " : "", steal
		);
	}
	return text[0] != '\0';
}

void noise_encode(const struct noise *noise, struct wire_writer *writer) {
	for (int n = 0; n < NOISE_KIND_COUNT; n++)
		wire_put_u64(writer, noise->counts[n]);
}

void noise_decode(struct wire_reader *reader, struct noise *ret_noise) {
	struct noise noise;

	for (int n = 0; n < NOISE_KIND_COUNT; n++)
		noise.counts[n] = wire_get_u64(reader);
	if (wire_reader_ok(reader))
		*ret_noise = noise;
}
