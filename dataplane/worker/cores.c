// SPDX-License-Identifier: BSD-3-Clause
// Chooses the processors of workers.
#include <dataplane/cores.h>
#include <lib/scoped.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

// Take up to `count` processors, except 0, with this nearness and isolation. Returns their number.
static uint32_t cores_add_matching(
	const struct cores_constraints *places,
	bool is_near,
	bool is_isolated,
	uint32_t count,
	struct cpu_set *cores
) {
	uint32_t taken = 0;

	for (uint32_t cpu = CPU_SET_CPUS_MAX; cpu-- > 1 && taken < count;) {
		if (!cpu_set_has(&places->allowed, cpu) ||
		    cpu_set_has(&places->near, cpu) != is_near ||
		    cpu_set_has(&places->isolated, cpu) != is_isolated)
			continue;
		cpu_set_add(cores, cpu);
		taken++;
	}
	return taken;
}

static uint32_t cores_add_kind(
	const struct cores_constraints *places,
	bool is_isolated,
	uint32_t count,
	struct cpu_set *cores
) {
	uint32_t taken = cores_add_matching(places, true, is_isolated, count, cores);

	taken += cores_add_matching(places, false, is_isolated, count - taken, cores);
	if (taken < count && cpu_set_has(&places->allowed, 0) &&
	    cpu_set_has(&places->isolated, 0) == is_isolated) {
		cpu_set_add(cores, 0);
		taken++;
	}
	return taken;
}

int cores_choose(
	const struct cores_constraints *places, uint32_t count, struct cpu_set *ret_cores
) {
	struct cpu_set cores = {{0}};
	uint32_t taken;

	if (count == 0 || count > cpu_set_count(&places->allowed))
		return -ERANGE;
	taken = cores_add_kind(places, places->spins, count, &cores);
	cores_add_kind(places, !places->spins, count - taken, &cores);
	*ret_cores = cores;
	return 0;
}

const char *cores_why(const struct cores_constraints *places, uint32_t cpu) {
	if (cpu_set_has(&places->isolated, cpu))
		return places->spins ? "isolated, because the worker spins"
				     : "isolated, because no other processor is allowed";
	if (cpu == 0)
		return "processor 0, because no other processor is allowed and not isolated";
	return cpu_set_has(&places->near, cpu) ? "near the device, not isolated" : "not isolated";
}

static void cpus_add_from_file(const char *root, const char *name, struct cpu_set *set) {
	scoped_file FILE *file = NULL;
	struct parse_error error;
	struct cpu_set listed;
	char text[4096];

	snprintf(text, sizeof(text), "%s/%s", root, name);
	file = fopen(text, "re");
	if (file == NULL || fgets(text, sizeof(text), file) == NULL ||
	    cpu_set_parse(text, strcspn(text, "\n"), &error, &listed) != 0)
		return;
	for (uint32_t cpu = cpu_set_next(&listed, 0); cpu < CPU_SET_CPUS_MAX;
	     cpu = cpu_set_next(&listed, cpu + 1))
		cpu_set_add(set, cpu);
}

void cores_read_isolated(const char *root, struct cpu_set *ret_isolated) {
	struct cpu_set isolated = {{0}};

	cpus_add_from_file(root, "devices/system/cpu/isolated", &isolated);
	cpus_add_from_file(root, "devices/system/cpu/nohz_full", &isolated);
	cpus_add_from_file(root, "fs/cgroup/cpuset.cpus.isolated", &isolated);
	*ret_isolated = isolated;
}
