// SPDX-License-Identifier: BSD-3-Clause
// Chooses a completion vector near the worker's processor.
#include <dataplane/vector.h>
#include <lib/cpu_set.h>
#include <lib/parse.h>
#include <lib/scoped.h>

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define IRQS_MAX 4096
#define LIST_BYTES 8192
#define NODES_MAX 1024

struct irqs {
	uint32_t numbers[IRQS_MAX]; // ascending
	uint32_t count;
};

// Nearness of an interrupt: to the worker's processor only, to it and others, to its node, or
// unknown.
enum nearness {
	NEAR_UNKNOWN,
	NEAR_NODE,
	NEAR_CPU,
	NEAR_CPU_ALONE,
};

static bool read_cpus(const char *path, struct cpu_set *ret_cpus) {
	scoped_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[LIST_BYTES];
	ssize_t size;

	if (fd < 0)
		return false;
	size = read(fd, text, sizeof(text) - 1);
	if (size <= 0)
		return false;
	text[size] = '\0';
	text[strcspn(text, "\n")] = '\0';
	return text[0] != '\0' && cpu_set_parse(text, strlen(text), NULL, ret_cpus) == 0;
}

static int compare_numbers(const void *a, const void *b) {
	const uint32_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

static bool parse_number(const char *text, size_t length, uint32_t *ret_number) {
	int64_t number;

	if (length == 0 || parse_i64(text, length, 0, INT_MAX, NULL, &number) != 0)
		return false;
	*ret_number = (uint32_t)number;
	return true;
}

// Return the vector in a handler's name: 3 in "mlx5_comp3@pci:0000:17:00.0".
static bool vector_of_handler(const char *name, uint32_t *ret_vector) {
	static const char *const marks[] = {"comp", "nq-", "ceq-", "CEQ-"};

	for (size_t n = 0; n < sizeof(marks) / sizeof(marks[0]); n++) {
		const char *found = strstr(name, marks[n]);

		if (found == NULL)
			continue;
		found += strlen(marks[n]);
		if (parse_number(found, strspn(found, "0123456789"), ret_vector))
			return true;
	}
	return false;
}

// Find the vector of an interrupt; its handlers are subdirectories of its directory.
static bool vector_of_irq(const char *root, uint32_t irq, uint32_t *ret_vector) {
	char path[PATH_MAX];
	const struct dirent *entry;
	DIR *directory;
	bool found = false;

	snprintf(path, sizeof(path), "%s/proc/irq/%u", root, irq);
	directory = opendir(path);
	if (directory == NULL)
		return false;
	// NOLINTNEXTLINE(concurrency-mt-unsafe): a stream of our own
	while (!found && (entry = readdir(directory)) != NULL)
		found = vector_of_handler(entry->d_name, ret_vector);
	closedir(directory);
	return found;
}

// Return the processors that receive an interrupt, or may receive it if the kernel reports no
// effective affinity.
static bool cpus_of_irq(const char *root, uint32_t irq, struct cpu_set *ret_cpus) {
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/proc/irq/%u/effective_affinity_list", root, irq);
	if (read_cpus(path, ret_cpus))
		return true;
	snprintf(path, sizeof(path), "%s/proc/irq/%u/smp_affinity_list", root, irq);
	return read_cpus(path, ret_cpus);
}

static bool cpus_of_node(const char *root, uint32_t cpu, struct cpu_set *ret_cpus) {
	char path[PATH_MAX];

	for (uint32_t node = 0; node < NODES_MAX; node++) {
		snprintf(
			path, sizeof(path), "%s/sys/devices/system/node/node%u/cpulist", root, node
		);
		if (read_cpus(path, ret_cpus) && cpu_set_has(ret_cpus, cpu))
			return true;
		if (node > 0 && access(path, F_OK) != 0)
			return false;
	}
	return false;
}

static bool cpu_sets_overlap(const struct cpu_set *a, const struct cpu_set *b) {
	for (uint32_t cpu = 0; cpu < CPU_SET_CPUS_MAX; cpu++) {
		if (cpu_set_has(a, cpu) && cpu_set_has(b, cpu))
			return true;
	}
	return false;
}

// Judge each vector by the processors that its interrupt of the device goes to.
static void vectors_judge(
	const char *root,
	const char *device,
	uint32_t cpu,
	uint32_t count,
	struct irqs *irqs,
	uint8_t *nearness
) {
	uint32_t named = 0, first, vector;
	const struct dirent *entry;
	struct cpu_set node, goes_to;
	bool node_known;
	char path[PATH_MAX];
	DIR *directory;

	snprintf(path, sizeof(path), "%s/device/msi_irqs", device);
	directory = opendir(path);
	if (directory == NULL)
		return;
	irqs->count = 0;
	// NOLINTNEXTLINE(concurrency-mt-unsafe): a stream of our own
	while ((entry = readdir(directory)) != NULL && irqs->count < IRQS_MAX) {
		if (parse_number(entry->d_name, strlen(entry->d_name), &irqs->numbers[irqs->count]))
			irqs->count++;
	}
	closedir(directory);
	qsort(irqs->numbers, irqs->count, sizeof(irqs->numbers[0]), compare_numbers);

	node_known = cpus_of_node(root, cpu, &node);
	first = irqs->count > count ? irqs->count - count : 0;
	for (uint32_t n = 0; n < irqs->count; n++)
		named += vector_of_irq(root, irqs->numbers[n], &vector);
	for (uint32_t n = 0; n < irqs->count; n++) {
		vector = n - first; // wraps for interrupts before the vectors
		if (named > 0 && !vector_of_irq(root, irqs->numbers[n], &vector))
			continue;
		if (vector >= count || !cpus_of_irq(root, irqs->numbers[n], &goes_to))
			continue;
		if (cpu_set_has(&goes_to, cpu))
			nearness[vector] = cpu_set_count(&goes_to) == 1 ? NEAR_CPU_ALONE : NEAR_CPU;
		else
			nearness[vector] = node_known && cpu_sets_overlap(&goes_to, &node)
						   ? NEAR_NODE
						   : NEAR_UNKNOWN;
	}
}

uint32_t vector_choose(
	const char *root, const char *device, uint32_t count, const struct vector_preference *wish
) {
	scoped_mem struct irqs *irqs = NULL;
	scoped_mem uint8_t *nearness = NULL;
	uint32_t alike = 0, vector = 0, turn;
	uint8_t best = NEAR_UNKNOWN;

	if (count <= 1)
		return 0;
	nearness = calloc(count, sizeof(*nearness));
	irqs = malloc(sizeof(*irqs));
	if (nearness == NULL || irqs == NULL)
		return wish->turn % count;
	if (wish->cpu != VECTOR_CPU_ANY && device[0] != '\0')
		vectors_judge(root, device, wish->cpu, count, irqs, nearness);

	// Callers take turns among the nearest vectors.
	for (uint32_t n = 0; n < count; n++)
		best = nearness[n] > best ? nearness[n] : best;
	for (uint32_t n = 0; n < count; n++)
		alike += nearness[n] == best;
	turn = wish->turn % alike;
	while (nearness[vector] != best || turn-- > 0)
		vector++;
	return vector;
}
