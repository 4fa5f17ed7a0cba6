// SPDX-License-Identifier: BSD-3-Clause
// Reads congestion counters: hw_counters in sysfs, and statistics of the port's network interface.
// The latter need the ethtool ioctl, since only it has pauses per priority. Runs in a keeper, since
// the kernel may wait for the device's firmware.
#include "checks/congestion.h"

#include <lib/error.h>
#include <lib/netif/netlink.h>
#include <lib/parse.h>
#include <lib/scoped.h>

#include <errno.h>
#include <limits.h>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define STATS_MAX 8192
#define NETDEVS_TRIED 4 // entries of the GID table; those without an interface cannot be read

static void add_statistic(void *ctx, const char *name, uint64_t value) {
	congestion_add_ethtool_counter(ctx, name, value);
}

void congestion_read_device(
	const char *root,
	const char *device,
	congestion_ethtool_fn *ethtool,
	struct congestion_read reads[LINK_DEVICE_PORTS_MAX],
	uint32_t *ret_count
) {
	uint32_t count = 0;

	for (unsigned int number = 1; number <= LINK_DEVICE_PORTS_MAX; number++) {
		char path[PATH_MAX], file[PATH_MAX], line[LINK_LINE_BYTES];
		const char *name;
		uint64_t value;

		snprintf(path, sizeof(path), "%.2000s/%s/ports/%u", root, device, number);
		if (access(path, F_OK) != 0)
			continue;
		congestion_read_init(&reads[count], device, (uint8_t)number);
		for (uint32_t n = 0; (name = congestion_hw_name(n)) != NULL; n++) {
			snprintf(file, sizeof(file), "%.3000s/hw_counters/%s", path, name);
			if (link_line_read(file, line) &&
			    parse_u64(
				    line, strlen(line), 0, CONGESTION_UNKNOWN - 1, NULL, &value
			    ) == 0)
				congestion_add_hw_counter(&reads[count], name, value);
		}
		// A port of InfiniBand has no network interface.
		for (unsigned int n = 0; n < NETDEVS_TRIED; n++) {
			snprintf(file, sizeof(file), "%.3000s/gid_attrs/ndevs/%u", path, n);
			if (!link_line_read(file, line) || strlen(line) >= IF_NAMESIZE)
				continue;
			// An interface without counters is ignored.
			ethtool(line, add_statistic, &reads[count]);
			break;
		}
		count++;
	}
	*ret_count = count;
}

// Kernels before 6.19 write all current values, whatever size was requested (ethtool_get_stats(),
// ethtool_get_strings()). The buffers have room for twice as many.
struct table {
	struct ethtool_gstrings *names;
	struct ethtool_stats *values;
};

static int ethtool_ioctl(int fd, const char *netdev, void *data) {
	struct ifreq request = {.ifr_data = data};

	snprintf(request.ifr_name, sizeof(request.ifr_name), "%.15s", netdev);
	return ioctl(fd, SIOCETHTOOL, &request) != 0 ? neg_errno() : 0;
}

static int ethtool_count_values(int fd, const char *netdev, uint32_t *ret_count) {
	union {
		struct ethtool_sset_info info;
		char bytes[sizeof(struct ethtool_sset_info) + sizeof(uint32_t)];
	} set = {.info = {.cmd = ETHTOOL_GSSET_INFO, .sset_mask = UINT64_C(1) << ETH_SS_STATS}};
	int err = ethtool_ioctl(fd, netdev, &set);

	if (err != 0)
		return err;
	if (set.info.sset_mask == 0)
		return -EOPNOTSUPP;
	memcpy(ret_count, set.bytes + sizeof(set.info), sizeof(*ret_count));
	return *ret_count == 0 || *ret_count > STATS_MAX ? -E2BIG : 0;
}

static int ethtool_read_table(int fd, const char *netdev, uint32_t count, struct table *table) {
	int err;

	table->names = calloc(1, sizeof(*table->names) + (size_t)2 * STATS_MAX * ETH_GSTRING_LEN);
	table->values =
		calloc(1, sizeof(*table->values) + (size_t)2 * STATS_MAX * sizeof(uint64_t));
	if (table->names == NULL || table->values == NULL)
		return -ENOMEM;
	*table->names = (struct ethtool_gstrings
	){.cmd = ETHTOOL_GSTRINGS, .string_set = ETH_SS_STATS, .len = count};
	*table->values = (struct ethtool_stats){.cmd = ETHTOOL_GSTATS, .n_stats = count};
	err = ethtool_ioctl(fd, netdev, table->names);
	if (err == 0)
		err = ethtool_ioctl(fd, netdev, table->values);
	// The number of counters changed between the calls, so names and values may not match.
	if (err == 0 && (table->names->len != count || table->values->n_stats != count))
		err = -EAGAIN;
	return err;
}

int congestion_ethtool(
	const char *netdev, void (*take_one)(void *ctx, const char *name, uint64_t value), void *ctx
) {
	scoped_fd int fd = -1;
	struct table table = {NULL, NULL};
	uint32_t index, count;
	// A device is visible in every network namespace, its interface in only one. For an unknown
	// interface the ioctl would start modprobe twice and wait for it.
	int err = netif_netlink_index(netdev, &index);

	if (err != 0)
		return err;
	fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	err = fd < 0 ? neg_errno() : ethtool_count_values(fd, netdev, &count);
	if (err == 0)
		err = ethtool_read_table(fd, netdev, count, &table);
	for (uint32_t n = 0; err == 0 && n < count; n++) {
		char name[ETH_GSTRING_LEN + 1] = {0};

		memcpy(name, table.names->data + (size_t)n * ETH_GSTRING_LEN, ETH_GSTRING_LEN);
		take_one(ctx, name, table.values->data[n]);
	}
	free(table.names);
	free(table.values);
	return err;
}
