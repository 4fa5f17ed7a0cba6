// SPDX-License-Identifier: BSD-3-Clause
#include <dataplane/cores.h>
#include <lib/scoped.h>

#include <errno.h>
#include <stdbool.h>
#include <string.h>

struct places {
	const struct cpu_set *allowed;
	const struct cpu_set *isolated;
	const struct cpu_set *near;
};

// Takes up to `count` of those that are (or are not) near and isolated; returns how many.
static uint32_t
take(const struct places *places,
     bool is_near,
     bool is_isolated,
     uint32_t count,
     struct cpu_set *cores) {
	uint32_t taken = 0;

	for (uint32_t cpu = CPU_SET_CPUS_MAX; cpu-- > 1 && taken < count;) {
		if (!cpu_set_has(places->allowed, cpu) ||
		    cpu_set_has(places->near, cpu) != is_near ||
		    cpu_set_has(places->isolated, cpu) != is_isolated)
			continue;
		cpu_set_add(cores, cpu);
		taken++;
	}
	return taken;
}

int cores_choose(
	const struct cpu_set *allowed,
	const struct cpu_set *isolated,
	const struct cpu_set *near,
	uint32_t count,
	struct cpu_set *ret_cores
) {
	const struct places places = {allowed, isolated, near};
	struct cpu_set cores = {{0}};
	uint32_t taken = 0;

	if (count == 0 || count > cpu_set_count(allowed))
		return -ERANGE;
	taken += take(&places, true, true, count, &cores);
	taken += take(&places, true, false, count - taken, &cores);
	taken += take(&places, false, true, count - taken, &cores);
	taken += take(&places, false, false, count - taken, &cores);
	if (taken < count)
		cpu_set_add(&cores, 0);
	*ret_cores = cores;
	return 0;
}

void cores_read_isolated(const char *path, struct cpu_set *ret_isolated) {
	scoped_file FILE *file = fopen(path, "re");
	struct parse_error error;
	struct cpu_set isolated;
	char text[4096];

	memset(ret_isolated, 0, sizeof(*ret_isolated));
	if (file == NULL || fgets(text, sizeof(text), file) == NULL)
		return;
	if (cpu_set_parse(text, strcspn(text, "\n"), &error, &isolated) == 0)
		*ret_isolated = isolated;
}
