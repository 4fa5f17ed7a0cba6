// SPDX-License-Identifier: BSD-3-Clause
// mesh-sample page|svg NODES: print an invented mesh to standard output. The hosts have long names,
// and the last but one is slow. One direction was not measured, and another has too few samples.
#include <errno.h>
#include <mesh/mesh.h>
#include <mesh/mesh_output.h>
#include <mesh/page_mesh.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USUAL_NS 10000
#define SLOW_NS 27000
#define SAMPLES 500

static int fill_cell(struct mesh_cell *cell, uint64_t value_ns, uint32_t samples) {
	if (mesh_histogram_create(&cell->kept) != 0)
		return -ENOMEM;
	for (uint32_t n = 0; n < samples; n++)
		histogram_record(cell->kept, value_ns + n % 16 * 20);
	for (int n = 0; n < MESH_QUANTILES; n++)
		cell->taus[n] = 1.2;
	mesh_cell_compute(cell);
	return 0;
}

static void name_node(const struct mesh *mesh, uint32_t place) {
	struct mesh_node *node = &mesh->nodes[place];

	node->joined = true;
	node->processors = 128;
	snprintf(
		node->host, sizeof(node->host), "gpu-compute-rack%02u-%04u.cluster.example.com",
		place / 16, place
	);
	snprintf(node->rack, sizeof(node->rack), "rack<%02u>", place / 16);
	snprintf(node->device, sizeof(node->device), "mlx5_%u", place % 4);
}

static int fill_mesh(struct mesh *mesh) {
	uint32_t slow = mesh->count - 2, count = mesh->count;
	int err = 0;

	for (uint32_t n = 0; n < count; n++)
		name_node(mesh, n);
	for (uint32_t n = 0; n < count * count && err == 0; n++) {
		uint32_t from = n / count, to = n % count;
		uint64_t value_ns = from == slow || to == slow ? SLOW_NS : USUAL_NS;

		if (from == to)
			continue;
		if (from == 1 && to == 0)
			snprintf(
				mesh->cells[n].why, sizeof(mesh->cells[n].why),
				"</script><b>no port</b>"
			);
		else
			err = fill_cell(
				&mesh->cells[n], value_ns + (from * 37 + to * 11) % 101 * 15,
				from == 0 && to == 2 ? 3 : SAMPLES
			);
	}
	return err;
}

int main(int argc, char **argv) {
	uint32_t count = argc == 3 ? (uint32_t)strtoul(argv[2], NULL, 10) : 0;
	struct mesh_summary summary;
	struct lab_why why = {.text = ""};
	struct mesh mesh;
	int err;

	if (count < 3 || count > MESH_NODES_MAX || mesh_create(&plan_default, count, &mesh) != 0)
		return 2;
	mesh.at_once = count / 2;
	mesh.took_ns = UINT64_C(93000000000);
	err = fill_mesh(&mesh);
	if (err == 0)
		err = mesh_summarize(&mesh, &summary);
	if (err == 0)
		err = strcmp(argv[1], "svg") == 0 ? mesh_write_svg(&mesh, &summary, "-", &why)
						  : page_mesh(&mesh, &summary, "-", &why);
	mesh_release(&mesh);
	return err == 0 ? 0 : 1;
}
