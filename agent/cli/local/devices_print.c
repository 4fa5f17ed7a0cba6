// SPDX-License-Identifier: BSD-3-Clause
// Prints the answer of `tocsin devices` as text of at most 80 columns.
#include "local/devices.h"

#include <dataplane/gid.h>
#include <dataplane/soft.h>
#include <lib/show.h>

#include <string.h>

#define COLUMNS 80
#define NAME_COLUMNS_MAX 16 // the other columns of a row take 64
#define DETAIL_BYTES 256
#define NUMBER_BYTES 16
#define WAITS " (waits)" // a rail that waits for its port or an address

const char *devices_kind(const struct device_facts *device) {
	if (device->transport != IBV_TRANSPORT_IB || device->port.number == 0)
		return device_transport_name(device->transport);
	return device->port.link == DEVICE_LINK_ETHERNET ? "RoCE" : "InfiniBand";
}

// The kernel reports -1 on a machine with one NUMA node; hwloc knows the node.
int devices_node(const struct devices *devices, const struct device_facts *device) {
	if (device->numa_node >= 0 || device->pci[0] == '\0')
		return device->numa_node;
	return topology_pci_node(devices->topology, device->pci);
}

static const struct device_facts *device_at(const struct devices *devices, uint32_t n) {
	return &devices->choice->facts[devices->choice->judgements[n].device];
}

static bool device_is_chosen(const struct devices *devices, uint32_t n) {
	return n < devices->choice->best_count;
}

// Print text wrapped at COLUMNS. The first line is already `indent` columns long.
static void print_wrapped(FILE *out, const char *text, size_t indent) {
	size_t column = indent;

	while (*text != '\0') {
		size_t length = strcspn(text, " ");

		if (column > indent && column + 1 + length > COLUMNS) {
			fprintf(out, "\n%*s", (int)indent, "");
			column = indent;
		}
		column += (size_t
		)fprintf(out, "%s%.*s", column > indent ? " " : "", (int)length, text);
		text += length + (text[length] == ' ');
	}
	fputc('\n', out);
}

// Format a number; 0 means unknown and gives "-".
static const char *
format_known_number(uint32_t value, const char *before, char text[static NUMBER_BYTES]) {
	if (value == 0)
		snprintf(text, NUMBER_BYTES, "-");
	else
		snprintf(text, NUMBER_BYTES, "%s%u", before, value);
	return text;
}

// Print the GIDs that peers use and who answers their reads, or why the device is unusable.
static void print_detail(const struct device_facts *device, FILE *out) {
	const struct device_port *port = &device->port;
	char address[GID_TEXT_MAX + 1], lid[NUMBER_BYTES] = "", gid[DETAIL_BYTES / 2] = "";
	char detail[DETAIL_BYTES];

	if (!device->usable) {
		print_wrapped(out, device->reason, (size_t)fprintf(out, "    not usable: "));
		return;
	}
	if (port->lid != 0)
		snprintf(lid, sizeof(lid), "LID %u; ", port->lid);
	if (port->gid_index >= 0)
		snprintf(
			gid, sizeof(gid), "GID %d, %s, %s", port->gid_index,
			gid_type_name(port->gid_type), gid_format(&port->gid, address)
		);
	snprintf(
		detail, sizeof(detail), "%s%s%s%s%sresponder: %s", lid, gid,
		device->netdev[0] != '\0' ? ", of " : "", device->netdev,
		gid[0] != '\0' || device->netdev[0] != '\0' ? "; " : "",
		device_responder_name(device->responder)
	);
	print_wrapped(out, detail, (size_t)fprintf(out, "    "));
}

static void print_table(const struct devices *devices, int name_width, FILE *out) {
	fprintf(out, "  %-*s %-10s %4s %-12s %7s %5s %4s %s\n", name_width, "DEVICE", "KIND",
		"PORT", "STATE", "Mb/s", "MTU", "NUMA", "PCI");
	for (uint32_t n = 0; n < devices->choice->count; n++) {
		const struct device_facts *device = device_at(devices, n);
		const struct device_port *port = &device->port;
		char port_number[NUMBER_BYTES], speed[NUMBER_BYTES], mtu[NUMBER_BYTES];
		char name[SHOW_BYTES], state[SHOW_BYTES], node[NUMBER_BYTES] = "-";

		if (devices_node(devices, device) >= 0)
			snprintf(node, sizeof(node), "%d", devices_node(devices, device));
		show_truncated(device->name, (size_t)name_width, name);
		show_truncated(
			port->number == 0 ? "-" : device_port_state_name(port->state), 12, state
		);
		fprintf(out, "%c %-*s %-10s %4s %-12s %7s %5s %4s %s\n",
			device_is_chosen(devices, n) ? '*' : ' ', name_width, name,
			devices_kind(device), format_known_number(port->number, "", port_number),
			state, format_known_number(port->speed_mbps, "", speed),
			format_known_number(port->active_mtu, "", mtu), node,
			device->pci[0] == '\0' ? "-" : device->pci);
		print_detail(device, out);
	}
}

static void print_steps(const struct devices *devices, FILE *out) {
	const struct device_choice *choice = devices->choice;
	const struct device_judgement *best = &choice->judgements[0];
	char target[DEVICE_TARGET_TEXT_BYTES];

	device_target_format(&choice->target, target);
	fprintf(out, "\nStep by step, for %s%s%s\n", target,
		choice->target_pci[0] != '\0' ? " at " : "", choice->target_pci);
	fprintf(out, "  1. may be taken  %u of %u\n", choice->eligible_count, choice->count);
	if (choice->best_count == 0)
		return;
	fprintf(out, "  2. the nearest   %u of %u: %s\n", choice->nearest_count,
		choice->eligible_count, device_choice_location_text(choice, best->way.class));
	fprintf(out, "  3. the fastest   %u of %u: ", choice->best_count, choice->nearest_count);
	if (best->bandwidth_mbps == 0)
		fprintf(out, "speed not known\n");
	else
		fprintf(out, "%u Mb/s\n", best->bandwidth_mbps);
	if (choice->best_count > 1)
		fprintf(out, "  4. equal ones    all of them, in natural order of their names\n");
}

static void print_judgements(const struct devices *devices, int name_width, FILE *out) {
	const struct device_choice *choice = devices->choice;

	fprintf(out, "\n  %-*s %-11s %-29s %9s %9s\n", name_width, "DEVICE", "VERDICT", "PLACE",
		"PCIe Mb/s", "path Mb/s");
	for (uint32_t n = 0; n < choice->count; n++) {
		const struct device_judgement *judgement = &choice->judgements[n];
		const struct device_facts *device = device_at(devices, n);
		char pci[NUMBER_BYTES], path[NUMBER_BYTES], name[SHOW_BYTES];

		show_truncated(device->name, (size_t)name_width, name);
		fprintf(out, "%c %-*s %-11s %-29s %9s %9s\n",
			device_is_chosen(devices, n) ? '*' : ' ', name_width, name,
			device_eligibility_name(judgement->verdict),
			device_choice_location_text(choice, judgement->way.class),
			format_known_number(
				judgement->way.pci_mbps, judgement->way.assumed ? "~" : "", pci
			),
			format_known_number(judgement->bandwidth_mbps, "", path));
	}
}

// Return true if an agent creates the software device, which no driver lists.
static bool agents_create_soft(const struct device_choice *choice) {
	return choice->target.kind == DEVICE_TARGET_SOFT ||
	       ((choice->target.kind == DEVICE_TARGET_AUTO ||
		 choice->target.kind == DEVICE_TARGET_BEST) &&
		device_choice_needs_soft(choice->facts, choice->count));
}

const char *devices_agent_choice(const struct device_choice *choice) {
	if (choice->best_count > 0)
		return choice->facts[choice->judgements[0].device].name;
	return agents_create_soft(choice) ? SOFT_DEVICE_NAME : NULL;
}

void devices_print(const struct devices *devices, FILE *out) {
	const struct device_choice *choice = devices->choice;
	char target[DEVICE_TARGET_TEXT_BYTES], why[DEVICE_CHOICE_TEXT_BYTES];
	char rails[DEVICE_RAILS_MAX * (DEVICE_NAME_MAX + sizeof(WAITS)) + 64] = "";
	int name_width = (int)strlen("DEVICE");
	size_t indent, used = 0;

	for (uint32_t n = 0; n < choice->count; n++) {
		int length = (int)strlen(device_at(devices, n)->name);

		if (length > name_width)
			name_width = length < NAME_COLUMNS_MAX ? length : NAME_COLUMNS_MAX;
	}
	if (choice->count > 0)
		print_table(devices, name_width, out);
	if (devices->explain && choice->count > 0) {
		print_steps(devices, out);
		print_judgements(devices, name_width, out);
	}
	device_target_format(&choice->target, target);
	device_choice_say(choice, why);
	if (choice->count > 0)
		fputc('\n', out);
	indent = (size_t)fprintf(out, "For %s: ", target);
	print_wrapped(out, why, indent);
	if (choice->target.kind == DEVICE_TARGET_AUTO && devices->rail_count > 0) {
		indent = (size_t)fprintf(out, "An agent here uses %u rails: ", devices->rail_count);
		for (uint32_t n = 0; n < devices->rail_count; n++)
			used += (size_t)snprintf(
				rails + used, sizeof(rails) - used, "%s%s%s", n > 0 ? ", " : "",
				devices->rails[n].name, devices->rails[n].waits ? WAITS : ""
			);
		if (devices->rails_left_out > 0)
			snprintf(
				rails + used, sizeof(rails) - used, "; %u more are left out",
				devices->rails_left_out
			);
		print_wrapped(out, rails, indent);
	}
	if (choice->target.kind == DEVICE_TARGET_SOFT)
		fputs("Programs get one from tocsin soft-run.\n", out);
	else if (choice->best_count == 0 && agents_create_soft(choice))
		fputs("Agents take the software device then, and tocsin soft-run gives it to programs.\n",
		      out);
}
