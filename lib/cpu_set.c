// SPDX-License-Identifier: BSD-3-Clause
// Sets of processors: text, affinity of threads.
#include <lib/cpu_set.h>
#include <lib/error.h>
#include <lib/must.h>

#include <assert.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#define WORD_BITS 64
#define WORD_COUNT (CPU_SET_CPUS_MAX / WORD_BITS)
#define RANGE_TEXT_BYTES 32
#define LISTED_TEXT_BYTES 64 // bytes of each list in an error text
#define ELLIPSIS "..."

// The kernel's masks are arrays of long, least significant bit first. On a 64-bit machine this
// equals our layout.
static_assert(sizeof(unsigned long) == sizeof(uint64_t), "handed to the kernel as it is");

void cpu_set_add(struct cpu_set *set, uint32_t cpu) {
	must(cpu < CPU_SET_CPUS_MAX);
	set->words[cpu / WORD_BITS] |= UINT64_C(1) << cpu % WORD_BITS;
}

bool cpu_set_has(const struct cpu_set *set, uint32_t cpu) {
	must(cpu < CPU_SET_CPUS_MAX);
	return (set->words[cpu / WORD_BITS] >> cpu % WORD_BITS & 1) != 0;
}

uint32_t cpu_set_count(const struct cpu_set *set) {
	uint32_t count = 0;

	for (uint32_t i = 0; i < WORD_COUNT; i++)
		count += (uint32_t)__builtin_popcountll(set->words[i]);
	return count;
}

uint32_t cpu_set_next(const struct cpu_set *set, uint32_t from) {
	for (uint32_t i = from / WORD_BITS; i < WORD_COUNT; i++) {
		uint64_t word = set->words[i];

		if (i == from / WORD_BITS)
			word &= UINT64_MAX << from % WORD_BITS;
		if (word != 0)
			return i * WORD_BITS + (uint32_t)__builtin_ctzll(word);
	}
	return CPU_SET_CPUS_MAX;
}

// Read digits at *at and move past them. A number that is too large is read to its end and becomes
// CPU_SET_CPUS_MAX. So the caller can distinguish it from text without a number.
static bool cpu_read(const char **at, const char *end, uint32_t *ret_cpu) {
	const char *start = *at;
	uint32_t cpu = 0;

	for (; *at < end && **at >= '0' && **at <= '9'; (*at)++) {
		cpu = 10 * cpu + (uint32_t)(**at - '0');
		if (cpu > CPU_SET_CPUS_MAX)
			cpu = CPU_SET_CPUS_MAX;
	}
	*ret_cpu = cpu;
	return *at > start;
}

// Read one number or range, which must end at a comma or at the end. Returns 0, -EINVAL or -ERANGE.
static int range_read(const char **at, const char *end, struct cpu_set *set) {
	uint32_t first;
	uint32_t last;

	if (!cpu_read(at, end, &first))
		return -EINVAL;
	last = first;
	if (*at < end && **at == '-') {
		(*at)++;
		if (!cpu_read(at, end, &last))
			return -EINVAL;
	}
	if ((*at < end && **at != ',') || last < first)
		return -EINVAL;
	if (last >= CPU_SET_CPUS_MAX)
		return -ERANGE;
	for (uint32_t cpu = first; cpu <= last; cpu++)
		cpu_set_add(set, cpu);
	return 0;
}

int cpu_set_parse(
	const char *text, size_t length, struct parse_error *error, struct cpu_set *ret_set
) {
	const char *end = text + length;
	const char *at = text;
	struct cpu_set set = {0};
	bool too_large = false;
	int err;

	// Continue after a number that is too large: the rest may be malformed, which is the better
	// error.
	for (;;) {
		err = range_read(&at, end, &set);
		if (err == -EINVAL)
			return parse_fail(
				error, -EINVAL, text, length,
				"is not a set of CPUs: numbers and ranges separated by commas "
				"are needed, such as 0-3,8"
			);
		too_large |= err == -ERANGE;
		if (at == end)
			break;
		at++;
	}
	if (too_large)
		return parse_fail(
			error, -ERANGE, text, length, "is out of range: CPUs 0 to %d are allowed",
			CPU_SET_CPUS_MAX - 1
		);
	*ret_set = set;
	return 0;
}

int cpu_set_parse_allowed(
	const char *text,
	size_t length,
	const struct cpu_set *allowed,
	struct parse_error *error,
	struct cpu_set *ret_set
) {
	char forbidden_text[LISTED_TEXT_BYTES];
	char allowed_text[LISTED_TEXT_BYTES];
	struct cpu_set forbidden;
	struct cpu_set set;
	bool all_allowed = true;
	int err;

	err = cpu_set_parse(text, length, error, &set);
	if (err != 0)
		return err;
	for (uint32_t i = 0; i < WORD_COUNT; i++) {
		forbidden.words[i] = set.words[i] & ~allowed->words[i];
		all_allowed &= forbidden.words[i] == 0;
	}
	if (all_allowed) {
		*ret_set = set;
		return 0;
	}
	cpu_set_format(&forbidden, forbidden_text, sizeof(forbidden_text));
	cpu_set_format(allowed, allowed_text, sizeof(allowed_text));
	return parse_fail(
		error, -ERANGE, text, length,
		"has CPUs that this process may not use: %s; allowed are %s", forbidden_text,
		allowed_text
	);
}

void cpu_set_format(const struct cpu_set *set, char *text, size_t text_size) {
	char range[RANGE_TEXT_BYTES];
	size_t used = 0;
	size_t cut = 0; // last position where the ellipsis still fits
	uint32_t last;

	must(text_size >= sizeof(ELLIPSIS));
	text[0] = '\0';
	for (uint32_t cpu = cpu_set_next(set, 0); cpu < CPU_SET_CPUS_MAX;
	     cpu = cpu_set_next(set, last + 1)) {
		const char *comma = used > 0 ? "," : "";
		int n;

		last = cpu;
		while (last + 1 < CPU_SET_CPUS_MAX && cpu_set_has(set, last + 1))
			last++;
		if (last > cpu)
			n = snprintf(range, sizeof(range), "%s%u-%u", comma, cpu, last);
		else
			n = snprintf(range, sizeof(range), "%s%u", comma, cpu);
		if (used + (size_t)n >= text_size) {
			memcpy(text + cut, ELLIPSIS, sizeof(ELLIPSIS));
			return;
		}
		memcpy(text + used, range, (size_t)n + 1);
		used += (size_t)n;
		if (used + sizeof(ELLIPSIS) <= text_size)
			cut = used;
	}
}

int cpu_set_get_thread(pid_t tid, struct cpu_set *ret_set) {
	struct cpu_set set = {0};

	if (sched_getaffinity(tid, sizeof(set), (cpu_set_t *)set.words) != 0)
		return neg_errno();
	*ret_set = set;
	return 0;
}

int cpu_set_get_allowed(struct cpu_set *ret_set) {
	return cpu_set_get_thread(0, ret_set);
}

int cpu_set_bind_thread(const struct cpu_set *set) {
	if (sched_setaffinity(0, sizeof(*set), (const cpu_set_t *)set->words) != 0)
		return neg_errno();
	return 0;
}
