// SPDX-License-Identifier: BSD-3-Clause
// Reads the state of links from sysfs. Runs in a keeper, since the kernel may wait for the device's
// counters.
#include "checks/links.h"

#include <lib/fields.h>
#include <lib/parse.h>
#include <lib/scoped.h>

#include <assert.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// Limits per hour, after the examples of the InfiniBand tools: 10, and 100 for counters that
// congestion also raises. Counters that a sound busy network raises, such as out_of_sequence, are
// not listed.
const struct link_counter link_counters[] = {
	{"counters", "symbol_error", 10, 1000},
	{"counters", "link_error_recovery", 10, 1000},
	{"counters", "link_downed", 2, 1000},
	{"counters", "port_rcv_errors", 10, 1000},
	{"counters", "port_rcv_remote_physical_errors", 100, 500},
	{"counters", "local_link_integrity_errors", 10, 1000},
	{"counters", "excessive_buffer_overrun_errors", 10, 1000},
	{"counters", "port_rcv_constraint_errors", 100, 500},
	{"counters", "port_xmit_constraint_errors", 100, 500},
	{"hw_counters", "rx_icrc_encapsulated", 10, 1000},
	// Symptoms of bad paths, lost peers, and this agent's own probes to lost peers.
	{"hw_counters", "packet_seq_err", 100, 0},
	{"hw_counters", "local_ack_timeout_err", 100, 0},
};
const uint32_t link_counter_count = sizeof(link_counters) / sizeof(link_counters[0]);
static_assert(sizeof(link_counters) / sizeof(link_counters[0]) <= LINK_COUNTERS_MAX, "places");

void link_list_devices(const char *root, struct link_device_list *ret_list) {
	scoped_dir DIR *directory = opendir(root);
	struct link_device_list list = {.count = 0};
	struct dirent *entry;

	// NOLINTNEXTLINE(concurrency-mt-unsafe): the stream is local
	while (directory != NULL && list.count < LINK_DEVICES_MAX && (entry = readdir(directory))) {
		if (entry->d_name[0] == '.' || strlen(entry->d_name) >= CHECKS_NAME_MAX)
			continue;
		snprintf(list.names[list.count], CHECKS_NAME_MAX, "%.63s", entry->d_name);
		list.count++;
	}
	*ret_list = list;
}

bool link_line_read(const char *path, char line[static LINK_LINE_BYTES]) {
	scoped_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t got = fd < 0 ? -1 : read(fd, line, LINK_LINE_BYTES - 1);

	if (got <= 0)
		return false;
	line[got] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return line[0] != '\0';
}

// Parse "4: ACTIVE". Returns the number, or 0.
static uint8_t read_state(const char *path, char *name, size_t size) {
	char line[LINK_LINE_BYTES];
	uint64_t number;
	size_t digits;

	snprintf(name, size, "?");
	if (!link_line_read(path, line))
		return 0;
	digits = strspn(line, "0123456789");
	if (parse_u64(line, digits, 0, UINT8_MAX, NULL, &number) != 0 || line[digits] != ':')
		return 0;
	snprintf(name, size, "%s", line + digits + 1 + strspn(line + digits + 1, " "));
	return (uint8_t)number;
}

// Parse "100 Gb/sec (4X EDR)" or "2.5 Gb/sec (1X SDR)". Returns Mb/s, or 0.
static uint32_t read_rate(const char *path) {
	char line[LINK_LINE_BYTES];
	const char *at = line, *word;
	uint32_t mbps;
	size_t size;

	if (!link_line_read(path, line) || !field_next(&at, &word, &size) ||
	    !thousandths_parse(word, size, &mbps) || !field_match_word(&at, "Gb/sec"))
		return 0;
	return mbps;
}

// Parse "5054:00ff:fe12:3456". Returns the GUID, or 0.
static uint64_t read_guid(const char *path) {
	static const char hex[] = "0123456789abcdef";
	char line[LINK_LINE_BYTES];
	unsigned int digits = 0;
	uint64_t guid = 0;

	if (!link_line_read(path, line))
		return 0;
	for (const char *at = line; *at != '\0'; at++) {
		const char *digit = strchr(hex, *at);

		if (*at == ':')
			continue;
		if (digit == NULL || ++digits > 16)
			return 0;
		guid = guid << 4 | (uint64_t)(digit - hex);
	}
	return digits == 16 ? guid : 0;
}

uint32_t link_read_device(
	const char *root, const char *device, struct link_port ports[LINK_DEVICE_PORTS_MAX]
) {
	char path[PATH_MAX], file[PATH_MAX], line[LINK_LINE_BYTES];
	uint32_t count = 0;
	uint64_t guid;

	snprintf(path, sizeof(path), "%.2000s/%s/node_guid", root, device);
	guid = read_guid(path);
	for (unsigned number = 1; number <= LINK_DEVICE_PORTS_MAX; number++) {
		struct link_port *port = &ports[count];

		snprintf(path, sizeof(path), "%.2000s/%s/ports/%u", root, device, number);
		if (access(path, F_OK) != 0)
			continue;
		*port = (struct link_port){.number = (uint8_t)number, .guid = guid};
		snprintf(port->device, sizeof(port->device), "%s", device);
		snprintf(file, sizeof(file), "%.3000s/state", path);
		port->state = read_state(file, port->state_name, sizeof(port->state_name));
		snprintf(file, sizeof(file), "%.3000s/phys_state", path);
		read_state(file, port->phys_name, sizeof(port->phys_name));
		snprintf(file, sizeof(file), "%.3000s/rate", path);
		port->rate_mbps = read_rate(file);
		for (uint32_t n = 0; n < link_counter_count; n++) {
			snprintf(
				file, sizeof(file), "%.3000s/%s/%s", path,
				link_counters[n].directory, link_counters[n].name
			);
			if (!link_line_read(file, line) ||
			    parse_u64(
				    line, strlen(line), 0, UINT64_MAX - 1, NULL, &port->counters[n]
			    ) != 0)
				port->counters[n] = UINT64_MAX;
		}
		count++;
	}
	return count;
}
