// SPDX-License-Identifier: BSD-3-Clause
// Reads the properties of an interface from sysfs.
#include <lib/error.h>
#include <lib/netif/sysfs.h>
#include <lib/parse.h>
#include <lib/scoped.h>

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#define SPEED_MBPS_MAX 100000000U // 100 Tb/s; drivers report larger values for an unknown speed

// Read the number in a small file. Returns false if there is none.
static bool read_number(int dir, const char *name, int64_t *ret_number) {
	scoped_fd int fd = openat(dir, name, O_RDONLY | O_CLOEXEC);
	char text[32];
	ssize_t n;

	if (fd < 0)
		return false;
	n = read(fd, text, sizeof(text));
	if (n > 0 && text[n - 1] == '\n')
		n--;
	return n > 0 && parse_i64(text, (size_t)n, INT64_MIN, INT64_MAX, NULL, ret_number) == 0;
}

static bool entry_exists(int dir, const char *name) {
	return faccessat(dir, name, F_OK, 0) == 0;
}

// Read the bus name from the link "device/subsystem"; a recording has the name in a file.
static bool read_bus(int dir, char *bus, size_t bus_size) {
	scoped_fd int fd = -1;
	char target[PATH_MAX];
	const char *last;
	ssize_t n = readlinkat(dir, "device/subsystem", target, sizeof(target) - 1);

	if (n < 0) {
		fd = openat(dir, "device/subsystem", O_RDONLY | O_CLOEXEC);
		n = fd < 0 ? -1 : read(fd, target, sizeof(target) - 1);
	}
	if (n <= 0)
		return false;
	target[n] = '\0';
	target[strcspn(target, "\n")] = '\0';
	last = strrchr(target, '/');
	last = last == NULL ? target : last + 1;
	return snprintf(bus, bus_size, "%s", last) < (int)bus_size;
}

static int open_link(const char *root, const char *name, int *ret_fd) {
	char path[PATH_MAX];
	int fd;

	// The kernel allows no '/', "." or ".." as a name, but a recording may hold one.
	if (strchr(name, '/') != NULL || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		return -EINVAL;
	if (snprintf(path, sizeof(path), "%s/%s", root, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		return neg_errno();
	*ret_fd = fd;
	return 0;
}

void netif_sysfs_read(const char *root, struct netif_link *link) {
	scoped_fd int dir = -1;
	struct netif_sysfs sysfs = {.present = true};
	char bus[NETIF_KIND_BYTES];
	int64_t number;

	memset(&link->sysfs, 0, sizeof(link->sysfs));
	if (open_link(root, link->name, &dir) != 0)
		return;
	if (!read_number(dir, "ifindex", &number) || number != (int64_t)link->index)
		return;
	sysfs.has_device = entry_exists(dir, "device");
	sysfs.on_usb = read_bus(dir, bus, sizeof(bus)) && strcmp(bus, "usb") == 0;
	sysfs.is_wireless = entry_exists(dir, "wireless") || entry_exists(dir, "phy80211");
	sysfs.is_tun = entry_exists(dir, "tun_flags");
	sysfs.is_bridge = entry_exists(dir, "bridge");
	sysfs.is_bond = entry_exists(dir, "bonding");
	// -1 and 4294967295 both mean an unknown speed.
	if (read_number(dir, "speed", &number) && number > 0 && number <= SPEED_MBPS_MAX)
		sysfs.speed_mbps = (uint32_t)number;
	link->sysfs = sysfs;
}

static int write_text(int dir, const char *name, const char *text) {
	scoped_fd int fd = openat(dir, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	ssize_t n;

	if (fd < 0)
		return neg_errno();
	n = write(fd, text, strlen(text));
	if (n < 0)
		return neg_errno();
	return n == (ssize_t)strlen(text) ? 0 : -EIO;
}

int netif_sysfs_record(const char *root, const char *name, const char *to_root) {
	static const char *const numbers[] = {"ifindex", "speed"};
	static const char *const marks[] = {
		"wireless", "phy80211", "tun_flags", "bridge", "bonding"};
	scoped_fd int from = -1;
	scoped_fd int to = -1;
	char path[PATH_MAX], text[32], bus[NETIF_KIND_BYTES];
	int64_t number;
	int err = open_link(root, name, &from);

	if (err != 0)
		return err;
	if (snprintf(path, sizeof(path), "%s/%s", to_root, name) >= (int)sizeof(path))
		return -ENAMETOOLONG;
	if (mkdir(path, 0755) != 0)
		return neg_errno();
	err = open_link(to_root, name, &to);
	if (err != 0)
		return err;
	for (size_t n = 0; n < sizeof(numbers) / sizeof(numbers[0]); n++) {
		if (!read_number(from, numbers[n], &number))
			continue;
		snprintf(text, sizeof(text), "%lld\n", (long long)number);
		err = write_text(to, numbers[n], text);
		if (err != 0)
			return err;
	}
	for (size_t n = 0; n < sizeof(marks) / sizeof(marks[0]); n++) {
		err = entry_exists(from, marks[n]) ? write_text(to, marks[n], "") : 0;
		if (err != 0)
			return err;
	}
	if (!entry_exists(from, "device"))
		return 0;
	if (mkdirat(to, "device", 0755) != 0)
		return neg_errno();
	return write_text(to, "device/subsystem", read_bus(from, bus, sizeof(bus)) ? bus : "");
}
