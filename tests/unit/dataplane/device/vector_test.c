// SPDX-License-Identifier: BSD-3-Clause
// Tests of choosing a completion vector, on proc and sysfs trees made by the test.
#include <dataplane/vector.h>
#include <support/cmocka.h>
#include <support/tree.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define IRQS_MAX 8

static char root[] = "/tmp/tocsin-vector-XXXXXX";

static void make_way(const char *name, char path[static PATH_MAX]) {
	snprintf(path, PATH_MAX, "%s/%s", root, name);
	for (char *slash = strchr(path + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		mkdir(path, 0700); // the directory may exist
		*slash = '/';
	}
}

static void put_file(const char *name, const char *text) {
	char path[PATH_MAX];
	FILE *file;

	make_way(name, path);
	file = fopen(path, "we");
	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static int make_root(void **state) {
	(void)state;
	memcpy(root + sizeof(root) - 7, "XXXXXX", 6);
	if (mkdtemp(root) == NULL)
		return -1;
	put_file("sys/devices/system/node/node0/cpulist", "0-3\n");
	put_file("sys/devices/system/node/node1/cpulist", "4-7\n");
	return 0;
}

static int remove_root(void **state) {
	(void)state;
	return tree_remove(root);
}

struct irq {
	uint32_t number;
	const char *handler;	// NULL: no handler
	const char *may, *goes; // smp_affinity_list, effective_affinity_list; NULL: no file
};

static void put_irq(const char *device, const struct irq *irq) {
	char name[PATH_MAX], path[PATH_MAX];

	snprintf(name, sizeof(name), "%.64s/device/msi_irqs/%u", device, irq->number);
	put_file(name, "msix\n");
	if (irq->may != NULL) {
		snprintf(name, sizeof(name), "proc/irq/%u/smp_affinity_list", irq->number);
		put_file(name, irq->may);
	}
	if (irq->goes != NULL) {
		snprintf(name, sizeof(name), "proc/irq/%u/effective_affinity_list", irq->number);
		put_file(name, irq->goes);
	}
	if (irq->handler == NULL)
		return;
	snprintf(name, sizeof(name), "proc/irq/%u/%s/x", irq->number, irq->handler);
	make_way(name, path);
}

static void vector_is_chosen_by_where_its_interrupt_goes(void **state) {
	static const struct {
		const char *what;
		struct irq irqs[IRQS_MAX];
		uint32_t count, cpu, turn, vector;
	} rows[] = {
		{"the worker's own processor, by the handlers' names",
		 {{30, "mlx5_async0@pci:0000:17:00.0", "5", "5"},
		  {31, "mlx5_comp0@pci:0000:17:00.0", "0", "0"},
		  {32, "mlx5_comp1@pci:0000:17:00.0", "5", "5"}},
		 2,
		 5,
		 0,
		 1},
		{"not in the order of numbers",
		 {{31, "bnxt_re-nq-1@pci:x", "1", "1"}, {32, "bnxt_re-nq-0@pci:x", "5", "5"}},
		 2,
		 5,
		 0,
		 0},
		{"where it goes, not where it may go",
		 {{31, "mlx5_comp0@x", "0-7", "5"}, {32, "mlx5_comp1@x", "0-7", "0"}},
		 2,
		 5,
		 1,
		 0},
		{"where it may go, if nobody says more",
		 {{31, "irdma-ceq-0@x", "0-3", NULL}, {32, "irdma-ceq-1@x", "4-7", NULL}},
		 2,
		 5,
		 0,
		 1},
		{"its processor alone before among many",
		 {{31, "mlx5_comp0@x", NULL, "0-7"}, {32, "mlx5_comp1@x", NULL, "5"}},
		 2,
		 5,
		 0,
		 1},
		{"its node, in turn",
		 {{31, "mlx5_comp0@x", NULL, "0"},
		  {32, "mlx5_comp1@x", NULL, "6"},
		  {33, "mlx5_comp2@x", NULL, "7"}},
		 3,
		 5,
		 1,
		 2},
		{"the last ones without names",
		 {{8, NULL, NULL, "5"}, {9, NULL, NULL, "0"}, {10, NULL, NULL, "5"}},
		 2,
		 5,
		 0,
		 1},
		{"all in turn where none is near",
		 {{31, "mlx5_comp0@x", NULL, "0"}, {32, "mlx5_comp1@x", NULL, "1"}},
		 2,
		 5,
		 3,
		 1},
		{"all in turn of a worker that may run anywhere",
		 {{31, "mlx5_comp0@x", NULL, "0"}, {32, "mlx5_comp1@x", NULL, "5"}},
		 2,
		 VECTOR_CPU_ANY,
		 2,
		 0},
		{"all in turn without interrupts", {{0}}, 4, 5, 6, 2},
		{"a handler beyond what there are", {{31, "mlx5_comp9@x", NULL, "5"}}, 2, 5, 1, 1},
		{"a list that makes no sense", {{31, "mlx5_comp1@x", "x", "-"}}, 2, 5, 0, 0},
		{"one vector", {{31, "mlx5_comp0@x", NULL, "5"}}, 1, 5, 7, 0},
		{"none", {{0}}, 0, 5, 7, 0},
	};

	(void)state;
	for (size_t n = 0; n < COUNT(rows); n++) {
		struct vector_preference wish = {.cpu = rows[n].cpu, .turn = rows[n].turn};
		char device[64], path[PATH_MAX];

		remove_root(NULL);
		assert_int_equal(make_root(NULL), 0);
		snprintf(device, sizeof(device), "class/infiniband/mlx5_%zu", n);
		for (size_t m = 0; m < IRQS_MAX && rows[n].irqs[m].number != 0; m++)
			put_irq(device, &rows[n].irqs[m]);
		snprintf(path, sizeof(path), "%s/%s", root, device);
		if (vector_choose(root, path, rows[n].count, &wish) != rows[n].vector)
			fail_msg(
				"%s: %u", rows[n].what,
				vector_choose(root, path, rows[n].count, &wish)
			);
	}
}

UNIT_GROUP(vector) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(vector_is_chosen_by_where_its_interrupt_goes),
	};

	return cmocka_run_group_tests_name("vector", tests, make_root, remove_root);
}
