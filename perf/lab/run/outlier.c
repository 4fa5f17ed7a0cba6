// SPDX-License-Identifier: BSD-3-Clause
// Read the kernel's counters of this thread, and store them for the largest samples.
#include "run/outlier.h"

#include <lib/fields.h>
#include <lib/show.h>

#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define READ_INTERVAL_NS UINT64_C(10000000)
#define PATH_BYTES 96
#define WARM_SAMPLES 255
#define TEXT_BYTES 512
#define KEY_BYTES 32
#define STEAL_FIELD 8 // field of a line of /proc/stat, counted without the name
#define NS_PER_SEC UINT64_C(1000000000)

const char *outlier_key(enum outlier_evidence kind) {
	static const char *const keys[OUTLIER_EVIDENCE_COUNT] = {
		[OUTLIER_INVOLUNTARY] = "involuntary_switches",
		[OUTLIER_VOLUNTARY] = "voluntary_switches",
		[OUTLIER_WAITED_NS] = "waited_ns",
		[OUTLIER_MINOR] = "minor_faults",
		[OUTLIER_MAJOR] = "major_faults",
		[OUTLIER_MIGRATED] = "migrated",
		[OUTLIER_STEAL_NS] = "steal_ns",
		[OUTLIER_STEAL_WITHIN_NS] = "steal_within_ns",
		[OUTLIER_KHZ] = "khz",
	};

	return keys[kind];
}

// Return the number at a place, counted from 1, in a line of numbers.
static uint64_t field_number(const char *text, int place) {
	uint64_t value = OUTLIER_UNKNOWN;

	for (int n = 0; n < place; n++) {
		if (!field_read_u64(&text, UINT64_MAX, &value))
			return OUTLIER_UNKNOWN;
	}
	return value;
}

static void file_reread(int fd, char text[static TEXT_BYTES]) {
	ssize_t length = fd >= 0 ? pread(fd, text, TEXT_BYTES - 1, 0) : 0;

	text[length > 0 ? length : 0] = '\0';
}

// Return true if /proc/cpuinfo shows a hypervisor, which could steal time.
static bool machine_is_virtual(void) {
	int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
	char text[8 * TEXT_BYTES];
	ssize_t length = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;

	if (fd >= 0)
		close(fd);
	text[length > 0 ? length : 0] = '\0';
	return strstr(text, " hypervisor") != NULL;
}

void outlier_watch_open(struct outlier_watch *watch, pid_t tid, uint32_t cpu) {
	char path[PATH_BYTES];

	memset(watch, 0, sizeof(*watch));
	snprintf(path, sizeof(path), "/proc/self/task/%d/schedstat", (int)tid);
	watch->sched_fd = open(path, O_RDONLY | O_CLOEXEC);
	// A physical machine has no stolen time. Reading /proc/stat is slow on machines with many
	// processors.
	watch->stat_fd = machine_is_virtual() ? open("/proc/stat", O_RDONLY | O_CLOEXEC) : -1;
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/cpufreq/scaling_cur_freq", cpu);
	watch->khz_fd = open(path, O_RDONLY | O_CLOEXEC);
}

void outlier_watch_close(struct outlier_watch *watch) {
	const int fds[] = {watch->sched_fd, watch->stat_fd, watch->khz_fd};

	for (size_t n = 0; n < sizeof(fds) / sizeof(fds[0]); n++) {
		if (fds[n] > 0)
			close(fds[n]);
	}
	memset(watch, 0, sizeof(*watch));
}

void outlier_watch_begin(struct outlier_watch *watch, uint64_t bound_ns) {
	watch->bound_ns = bound_ns;
	watch->due_ns = 0; // reads the counters after the first sample
	watch->count = 0;
	watch->before.at_ns = watch->steal.at_ns = 0;
}

static int values_compare(const void *a, const void *b) {
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return (left > right) - (left < right);
}

uint64_t outlier_bound_ns(const uint64_t *samples, uint32_t count) {
	uint64_t sorted[WARM_SAMPLES];

	if (count > WARM_SAMPLES) { // the last samples, which are the warmest
		samples += count - WARM_SAMPLES;
		count = WARM_SAMPLES;
	}
	if (count == 0)
		return 0;
	memcpy(sorted, samples, count * sizeof(*sorted));
	qsort(sorted, count, sizeof(*sorted), values_compare);
	return 2 * sorted[count / 2];
}

// Read the counters that are cheap enough for every 10 ms, for the calling thread.
static void
read_thread_counters(const struct outlier_watch *watch, struct outlier_reading *reading) {
	char text[TEXT_BYTES];
	struct rusage usage;

	getrusage(RUSAGE_THREAD, &usage);
	reading->counts[OUTLIER_INVOLUNTARY] = (uint64_t)usage.ru_nivcsw;
	reading->counts[OUTLIER_VOLUNTARY] = (uint64_t)usage.ru_nvcsw;
	reading->counts[OUTLIER_MINOR] = (uint64_t)usage.ru_minflt;
	reading->counts[OUTLIER_MAJOR] = (uint64_t)usage.ru_majflt;
	reading->counts[OUTLIER_MIGRATED] = (uint64_t)sched_getcpu();
	file_reread(watch->sched_fd, text);
	reading->counts[OUTLIER_WAITED_NS] = field_number(text, 2);
}

static uint64_t count_difference(uint64_t before, uint64_t after) {
	bool known = before != OUTLIER_UNKNOWN && after != OUTLIER_UNKNOWN && after >= before;

	return known ? after - before : OUTLIER_UNKNOWN;
}

// Return the clock ticks stolen from one processor, by its line in /proc/stat. A sum over all
// processors may exceed the elapsed time.
static uint64_t read_stolen_ticks(int fd, uint64_t cpu) {
	char key[KEY_BYTES], text[TEXT_BYTES];
	size_t used = 0, key_length;
	ssize_t length;
	off_t at = 0;

	key_length = (size_t)snprintf(key, sizeof(key), "cpu%" PRIu64 " ", cpu);
	while (fd >= 0 && (length = pread(fd, text + used, TEXT_BYTES - 1 - used, at)) > 0) {
		const char *line = text, *end;

		at += length;
		text[used + (size_t)length] = '\0';
		for (; (end = strchr(line, '\n')) != NULL; line = end + 1) {
			if (strncmp(line, key, key_length) == 0)
				return field_number(line + key_length, STEAL_FIELD);
		}
		// The kernel writes the file again for a read that does not continue the previous
		// one, so the beginning of the next line is kept. A full buffer ends the loop.
		used = strlen(line);
		memmove(text, line, used);
	}
	return OUTLIER_UNKNOWN;
}

static void store_steal(
	struct outlier_watch *watch, const struct outlier_reading *now, struct outlier *outlier
) {
	uint64_t cpu = now->counts[OUTLIER_MIGRATED], within_ns = now->at_ns - watch->steal.at_ns;
	uint64_t ticks = read_stolen_ticks(watch->stat_fd, cpu), steal_ns = OUTLIER_UNKNOWN;
	long per_second = sysconf(_SC_CLK_TCK);

	if (ticks != OUTLIER_UNKNOWN && per_second > 0)
		steal_ns = ticks * (NS_PER_SEC / (uint64_t)per_second);
	if (watch->steal.at_ns != 0 && watch->steal.counts[OUTLIER_MIGRATED] == cpu) {
		uint64_t stolen_ns =
			count_difference(watch->steal.counts[OUTLIER_STEAL_NS], steal_ns);

		// A counter of whole ticks may grow by one tick more than the elapsed time.
		if (stolen_ns != OUTLIER_UNKNOWN && stolen_ns > within_ns)
			stolen_ns = within_ns;
		outlier->evidence[OUTLIER_STEAL_NS] = stolen_ns;
		outlier->evidence[OUTLIER_STEAL_WITHIN_NS] = within_ns;
	}
	watch->steal.counts[OUTLIER_STEAL_NS] = steal_ns;
	watch->steal.counts[OUTLIER_MIGRATED] = cpu;
	watch->steal.at_ns = now->at_ns;
}

static struct outlier *outlier_smallest(struct outlier_watch *watch) {
	struct outlier *found = &watch->outliers[0];

	for (uint32_t n = 1; n < watch->count; n++) {
		if (watch->outliers[n].took_ns < found->took_ns)
			found = &watch->outliers[n];
	}
	return found;
}

void outlier_watch_sample(
	struct outlier_watch *watch,
	uint64_t sample,
	uint64_t took_ns,
	uint64_t end_ns,
	uint64_t at_ns
) {
	struct outlier outlier = {.sample = sample, .at_ns = at_ns, .took_ns = took_ns};
	struct outlier_reading now = {.at_ns = end_ns};
	char text[TEXT_BYTES];

	read_thread_counters(watch, &now);
	for (int n = 0; n < OUTLIER_EVIDENCE_COUNT; n++)
		outlier.evidence[n] = OUTLIER_UNKNOWN;
	if (took_ns >= watch->bound_ns) {
		for (int n = 0; n <= OUTLIER_MAJOR && watch->before.at_ns != 0; n++)
			outlier.evidence[n] =
				count_difference(watch->before.counts[n], now.counts[n]);
		if (watch->before.at_ns != 0) {
			outlier.within_ns = end_ns - watch->before.at_ns;
			outlier.evidence[OUTLIER_MIGRATED] =
				watch->before.counts[OUTLIER_MIGRATED] !=
				now.counts[OUTLIER_MIGRATED];
		}
		store_steal(watch, &now, &outlier);
		file_reread(watch->khz_fd, text);
		outlier.evidence[OUTLIER_KHZ] = field_number(text, 1);
		if (watch->count < OUTLIERS_MAX)
			watch->outliers[watch->count++] = outlier;
		else
			*outlier_smallest(watch) = outlier;
		if (watch->count == OUTLIERS_MAX) // from now on only longer samples are stored
			watch->bound_ns = outlier_smallest(watch)->took_ns + 1;
	}
	watch->before = now;
	watch->due_ns = end_ns + READ_INTERVAL_NS;
}

static int outliers_compare(const void *a, const void *b) {
	const struct outlier *left = a, *right = b;

	if (left->took_ns != right->took_ns)
		return left->took_ns < right->took_ns ? 1 : -1;
	return (left->sample > right->sample) - (left->sample < right->sample);
}

uint32_t
outlier_watch_sorted(const struct outlier_watch *watch, struct outlier ret_outliers[OUTLIERS_MAX]) {
	memcpy(ret_outliers, watch->outliers, watch->count * sizeof(*ret_outliers));
	qsort(ret_outliers, watch->count, sizeof(*ret_outliers), outliers_compare);
	return watch->count;
}

static bool evidence_is_positive(const struct outlier *outlier, enum outlier_evidence kind) {
	return outlier->evidence[kind] != OUTLIER_UNKNOWN && outlier->evidence[kind] > 0;
}

static bool evidence_explains_half(const struct outlier *outlier, enum outlier_evidence kind) {
	return evidence_is_positive(outlier, kind) &&
	       outlier->evidence[kind] >= outlier->took_ns / 2;
}

// Describe only the strongest evidence; the order of the branches is the order of strength.
void outlier_format(const struct outlier *outlier, char text[static OUTLIER_TEXT_BYTES]) {
	const uint64_t *evidence = outlier->evidence;
	bool preempted = evidence_is_positive(outlier, OUTLIER_INVOLUNTARY);
	bool switched = preempted || evidence_is_positive(outlier, OUTLIER_VOLUNTARY);
	char time[SHOW_BYTES], within[SHOW_BYTES];

	show_duration(evidence[OUTLIER_WAITED_NS], time);
	show_duration(outlier->within_ns, within);
	if (evidence_explains_half(outlier, OUTLIER_WAITED_NS) && preempted) {
		snprintf(
			text, OUTLIER_TEXT_BYTES,
			"waited %s for its processor, preempted %" PRIu64 " time%s", time,
			evidence[OUTLIER_INVOLUNTARY], evidence[OUTLIER_INVOLUNTARY] == 1 ? "" : "s"
		);
	} else if (evidence_explains_half(outlier, OUTLIER_WAITED_NS)) {
		snprintf(text, OUTLIER_TEXT_BYTES, "waited %s for its processor", time);
	} else if (evidence_explains_half(outlier, OUTLIER_STEAL_NS)) {
		show_duration(evidence[OUTLIER_STEAL_NS], time);
		show_duration(evidence[OUTLIER_STEAL_WITHIN_NS], within);
		snprintf(text, OUTLIER_TEXT_BYTES, "the hypervisor stole %s of %s", time, within);
	} else if (evidence_is_positive(outlier, OUTLIER_MAJOR)) {
		snprintf(
			text, OUTLIER_TEXT_BYTES, "%" PRIu64 " page faults from disk",
			evidence[OUTLIER_MAJOR]
		);
	} else if (evidence_is_positive(outlier, OUTLIER_MIGRATED)) {
		snprintf(text, OUTLIER_TEXT_BYTES, "moved to another processor");
	} else if (switched) {
		snprintf(
			text, OUTLIER_TEXT_BYTES,
			"%" PRIu64 " involuntary and %" PRIu64
			" voluntary context switches within %s",
			preempted ? evidence[OUTLIER_INVOLUNTARY] : 0,
			evidence_is_positive(outlier, OUTLIER_VOLUNTARY)
				? evidence[OUTLIER_VOLUNTARY]
				: 0,
			within
		);
	} else if (evidence_is_positive(outlier, OUTLIER_MINOR)) {
		snprintf(
			text, OUTLIER_TEXT_BYTES, "%" PRIu64 " page faults within %s",
			evidence[OUTLIER_MINOR], within
		);
	} else {
		snprintf(text, OUTLIER_TEXT_BYTES, "no cause in the kernel's counters of this end");
	}
}
