// SPDX-License-Identifier: BSD-3-Clause
// What sysfs knows of a link.
#pragma once

#include <lib/netif/table.h>

#define NETIF_SYSFS_ROOT "/sys/class/net"

// Fills link->sysfs from root/NAME. Left all zero when there is no such directory, or when its
// ifindex is another: a process that changed its network namespace still sees the old /sys.
void netif_sysfs_read(const char *root, struct netif_link *link);

// Copies the files that netif_sysfs_read reads for one link to another root, as plain files.
// 0 or -errno.
int netif_sysfs_record(const char *root, const char *name, const char *to_root);
