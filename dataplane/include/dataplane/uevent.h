// SPDX-License-Identifier: BSD-3-Clause
// Receives the kernel's uevents about RDMA devices that appear or disappear: those of the
// subsystems infiniband and infiniband_verbs. Network namespaces of unprivileged containers receive
// none.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// Open a non-blocking socket that is readable when uevents wait. Returns 0 or -errno.
int uevent_open(int *ret_fd);
// Read all waiting messages, at most 256. Returns true if one concerns RDMA devices, or if messages
// were lost.
bool uevent_read(int fd);

// Return true if one message concerns RDMA devices. Format: "ACTION@PATH", then "NAME=VALUE", each
// with a NUL. The bytes are untrusted.
bool uevent_is_about_rdma(const char *bytes, size_t size);
