// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/choice/machine.h"

#include <support/cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 16
#define DRAWING_BYTES 4096

struct writer {
	FILE *out;
	const char *open[DEPTH_MAX]; // closing tag of each open object
	unsigned depth;
	unsigned all_cpus;
	unsigned nodes;
};

static void close_down_to(struct writer *writer, unsigned depth) {
	while (writer->depth > depth)
		fputs(writer->open[--writer->depth], writer->out);
}

static void write_sets(FILE *out, unsigned cpus, unsigned nodes) {
	fprintf(out,
		" cpuset=\"0x%x\" complete_cpuset=\"0x%x\" nodeset=\"0x%x\" "
		"complete_nodeset=\"0x%x\"",
		cpus, cpus, nodes, nodes);
}

// The processor of a node has the number of the node.
static void write_node(struct writer *writer) {
	const char *types[] = {writer->depth == 0 ? "Package" : "Die", "NUMANode", "PU"};
	unsigned number = writer->nodes++;

	for (size_t n = 0; n < sizeof(types) / sizeof(types[0]); n++) {
		fprintf(writer->out, "<object type=\"%s\" os_index=\"%u\"", types[n], number);
		write_sets(writer->out, 1U << number, 1U << number);
		fputs(n == 0 ? ">\n" : "/>\n", writer->out);
	}
}

static void write_pair(struct writer *writer) {
	unsigned mask = 3U << writer->nodes;

	fprintf(writer->out, "<object type=\"Package\" os_index=\"%u\"", writer->nodes);
	write_sets(writer->out, mask, mask);
	fputs(">\n", writer->out);
}

static void write_memory(struct writer *writer) {
	unsigned number = writer->nodes++;

	fprintf(writer->out, "<object type=\"NUMANode\" os_index=\"%u\"", number);
	write_sets(writer->out, writer->all_cpus, 1U << number);
	fputs(">\n", writer->out);
}

// Write an object that has no PCI address; false for any other kind.
static bool write_plain(struct writer *writer, const char *kind) {
	if (strcmp(kind, "node") == 0 || strcmp(kind, "barred") == 0)
		write_node(writer);
	else if (strcmp(kind, "pair") == 0)
		write_pair(writer);
	else if (strcmp(kind, "memory") == 0)
		write_memory(writer);
	else if (strcmp(kind, "host") == 0)
		fprintf(writer->out, "<object type=\"Bridge\" bridge_type=\"0-1\" depth=\"0\" "
				     "bridge_pci=\"0000:[00-ff]\">\n");
	else
		return false;
	return true;
}

// Return the speed of 16 lanes in GB/s, the unit of hwloc.
static double speed_of(const char *generation) {
	static const struct {
		const char *word;
		double speed;
	} words[] = {
		{"-", 0},
		{"gen1", 4},
		{"gen3", 15.753846},
		{"gen4", 31.507692},
		{"gen5", 63.015385}};

	for (size_t n = 0; n < sizeof(words) / sizeof(words[0]); n++) {
		if (strcmp(words[n].word, generation) == 0)
			return words[n].speed;
	}
	fail_msg("%s is no generation of PCIe", generation);
	return 0;
}

static void write_object(struct writer *writer, const char *line) {
	char kind[8] = "", pci[16] = "", generation[8] = "";
	int words = sscanf(line, " %7s %15s %7s", kind, pci, generation);

	if (words == 1 && write_plain(writer, kind))
		return;
	assert_int_equal(words, 3);
	if (strcmp(kind, "bridge") == 0)
		fprintf(writer->out,
			"<object type=\"Bridge\" bridge_type=\"1-1\" depth=\"%u\" "
			"bridge_pci=\"0000:[00-ff]\"",
			writer->depth);
	else
		fprintf(writer->out, "<object type=\"PCIDev\"");
	fprintf(writer->out,
		" pci_busid=\"%s\" pci_type=\"0207 [15b3:1021] [15b3:0000] 00\" "
		"pci_link_speed=\"%f\">\n",
		pci, speed_of(generation));
}

static void write_line(struct writer *writer, const char *line) {
	unsigned depth = (unsigned)strspn(line, " ");

	assert_in_range(depth, 0, writer->depth);
	close_down_to(writer, depth);
	assert_in_range(writer->depth, 0, DEPTH_MAX - 1);
	write_object(writer, line);
	writer->open[writer->depth++] = "</object>\n";
}

static unsigned count(const char *drawing, const char *kind) {
	unsigned found = 0;

	for (const char *at = drawing; (at = strstr(at, kind)) != NULL; at++)
		found++;
	return found;
}

// Read the drawing of a machine without its comments.
static void read_drawing(const char *name, char drawing[static DRAWING_BYTES]) {
	char path[256], line[128];
	size_t used = 0;
	FILE *file;

	snprintf(path, sizeof(path), MACHINES "/%s", name);
	file = fopen(path, "re");
	assert_non_null(file);
	drawing[0] = '\0';
	while (fgets(line, sizeof(line), file) != NULL) {
		size_t length = strcspn(line, "#\n");

		while (length > 0 && line[length - 1] == ' ')
			length--;
		if (length == 0)
			continue;
		used += (size_t
		)snprintf(drawing + used, DRAWING_BYTES - used, "%.*s\n", (int)length, line);
		assert_in_range(used, 1, DRAWING_BYTES - 1);
	}
	fclose(file);
}

struct topology *machine_create(const char *name) {
	char drawing[DRAWING_BYTES], *rest = NULL;

	unsigned usable, cpu_count, nodes;
	struct topology *topology = NULL;
	struct writer writer = {0};
	char *xml = NULL;
	size_t size;

	read_drawing(name, drawing);
	usable = (1U << count(drawing, "node")) - 1;
	cpu_count = count(drawing, "node") + count(drawing, "barred");
	nodes = (1U << (cpu_count + count(drawing, "memory"))) - 1;
	writer.all_cpus = (1U << cpu_count) - 1;
	writer.out = open_memstream(&xml, &size);
	assert_non_null(writer.out);
	fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
	      "<!DOCTYPE topology SYSTEM \"hwloc2.dtd\">\n"
	      "<topology version=\"2.0\">\n"
	      "<object type=\"Machine\" os_index=\"0\"",
	      writer.out);
	write_sets(writer.out, writer.all_cpus, nodes);
	fprintf(writer.out, " allowed_cpuset=\"0x%x\" allowed_nodeset=\"0x%x\">\n", usable, usable);
	for (char *line = strtok_r(drawing, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		write_line(&writer, line);
	close_down_to(&writer, 0);
	fputs("</object>\n</topology>\n", writer.out);
	assert_int_equal(fclose(writer.out), 0);
	assert_int_equal(topology_create_xml(xml, &topology), 0);
	free(xml);
	return topology;
}
