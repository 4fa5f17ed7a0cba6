// SPDX-License-Identifier: BSD-3-Clause
// Reads facts from sysfs that libibverbs does not offer.
#include "device/device_impl.h"

#include <lib/parse.h>
#include <lib/scoped.h>

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SPEED_GBPS_MAX 1000000

// Read the first line of a small file without newline. Returns false if there is none.
static bool read_line(const char *path, char *line, size_t size) {
	scoped_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length;

	if (fd < 0)
		return false;
	length = read(fd, line, size - 1);
	if (length <= 0)
		return false;
	line[length] = '\0';
	line[strcspn(line, "\n")] = '\0';
	return line[0] != '\0';
}

// Check for the form "0000:17:00.0"; domains behind Intel's VMD have five digits.
static bool is_pci_address(const char *text) {
	static const char form[] = ":xx:xx.x";
	size_t domain = strspn(text, "0123456789abcdef");

	if (domain < 4 || strlen(text + domain) != sizeof(form) - 1)
		return false;
	for (size_t i = 0; form[i] != '\0'; i++) {
		char c = text[domain + i];

		if (form[i] == 'x' ? !isxdigit((unsigned char)c) : c != form[i])
			return false;
	}
	return true;
}

void device_sysfs_inspect(struct device_inspection *look) {
	struct device_facts *facts = look->facts;
	char link[DEVICE_PATH_MAX + 16], path[PATH_MAX], file[PATH_MAX + 16], line[32];
	char *address;
	int64_t node;

	facts->numa_node = -1;
	snprintf(facts->path, sizeof(facts->path), "%s", look->device->ibdev_path);
	if (look->calls->in_process) {
		facts->responder = DEVICE_RESPONDER_IN_PROCESS;
		return;
	}
	// A device that the kernel implements in software has no parent device, so it has no link
	// `device`. Older kernels give it the parent device of its network interface. Soft-RoCE is
	// then recognized by its file `parent`.
	snprintf(link, sizeof(link), "%s/device", facts->path);
	snprintf(file, sizeof(file), "%s/parent", facts->path);
	if (facts->path[0] == '\0' || access(link, F_OK) != 0 || access(file, F_OK) == 0) {
		facts->responder = DEVICE_RESPONDER_KERNEL;
		return;
	}
	facts->responder = DEVICE_RESPONDER_HARDWARE;
	if (realpath(link, path) == NULL)
		return;

	// The PCI function is the last one in the path, because auxiliary devices may be below it.
	// Cut the path behind it.
	address = strrchr(path, '/');
	while (address != NULL && !is_pci_address(address + 1)) {
		*address = '\0';
		address = strrchr(path, '/');
	}
	if (address == NULL || strlen(address + 1) >= sizeof(facts->pci))
		return;
	snprintf(facts->pci, sizeof(facts->pci), "%s", address + 1);
	snprintf(file, sizeof(file), "%s/numa_node", path);
	if (read_line(file, line, sizeof(line)) &&
	    parse_i64(line, strlen(line), 0, INT_MAX, NULL, &node) == 0)
		facts->numa_node = (int)node;
}

static bool read_interface_name(const char *file, char *netdev, size_t size) {
	char line[64];

	if (!read_line(file, line, sizeof(line)) || strlen(line) >= size)
		return false;
	snprintf(netdev, size, "%s", line);
	return true;
}

// Find an interface of the same PCI function, for example one of IPoIB.
static void find_by_dev_port(const char *path, uint8_t port, char *netdev, size_t size) {
	char directory[DEVICE_PATH_MAX + 16], file[PATH_MAX], line[16];
	scoped_dir DIR *dir = NULL;
	struct dirent *entry;
	uint64_t number;

	snprintf(directory, sizeof(directory), "%s/device/net", path);
	dir = opendir(directory);
	if (dir == NULL)
		return;
	while ((entry = readdir(dir)) != NULL) { // NOLINT(concurrency-mt-unsafe): ours alone
		if (entry->d_name[0] == '.' || strlen(entry->d_name) >= size)
			continue;
		snprintf(file, sizeof(file), "%s/%s/dev_port", directory, entry->d_name);
		if (read_line(file, line, sizeof(line)) &&
		    parse_u64(line, strlen(line), 0, UINT8_MAX, NULL, &number) == 0 &&
		    number + 1 == port) // dev_port counts from 0
			snprintf(netdev, size, "%s", entry->d_name);
	}
}

void device_sysfs_netdev(
	const char *path,
	uint8_t port,
	int gid_index,
	char netdev[static sizeof(((struct device_facts *)0)->netdev)]
) {
	const size_t size = sizeof(((struct device_facts *)0)->netdev);
	char file[DEVICE_PATH_MAX + 64];

	netdev[0] = '\0';
	if (path[0] == '\0')
		return;
	snprintf(file, sizeof(file), "%s/ports/%u/gid_attrs/ndevs/%d", path, port, gid_index);
	if (gid_index >= 0 && read_interface_name(file, netdev, size))
		return;
	snprintf(file, sizeof(file), "%s/parent", path); // only Soft-RoCE has it
	if (!read_interface_name(file, netdev, size))
		find_by_dev_port(path, port, netdev, size);
}

// Parses "100 Gb/sec (4X EDR)", "2.5 Gb/sec (1X SDR)".
uint32_t device_sysfs_speed_mbps(const char *path, uint8_t port) {
	char file[DEVICE_PATH_MAX + 32], line[64];
	uint64_t whole;
	size_t digits;

	snprintf(file, sizeof(file), "%s/ports/%u/rate", path, port);
	if (path[0] == '\0' || !read_line(file, line, sizeof(line)) ||
	    strstr(line, " Gb/sec") == NULL)
		return 0;
	digits = strspn(line, "0123456789");
	if (parse_u64(line, digits, 0, SPEED_GBPS_MAX, NULL, &whole) != 0)
		return 0;
	if (line[digits] == '.' && isdigit((unsigned char)line[digits + 1]))
		return (uint32_t)whole * 1000 + 100 * (uint32_t)(line[digits + 1] - '0');
	return (uint32_t)whole * 1000;
}
