// SPDX-License-Identifier: BSD-3-Clause
// Reads the properties of a link from sysfs.
#pragma once

#include <lib/netif/table.h>

#define NETIF_SYSFS_ROOT "/sys/class/net"

// Fill link->sysfs from the directory root/NAME. All fields are zero if the directory does not
// exist or has another ifindex: a process that changed its network namespace still sees the old
// /sys.
void netif_sysfs_read(const char *root, struct netif_link *link);

// Copy the files of one link that netif_sysfs_read() uses to another root, as plain files. Returns
// 0 or -errno.
int netif_sysfs_record(const char *root, const char *name, const char *to_root);
