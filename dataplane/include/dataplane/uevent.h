// SPDX-License-Identifier: BSD-3-Clause
// What the kernel says of RDMA devices that come and go: its uevents, of which only those of the
// subsystems infiniband and infiniband_verbs matter. In network namespaces of containers without
// rights over the machine there are none.
#pragma once

#include <stdbool.h>
#include <stddef.h>

// A descriptor that does not block, readable when the kernel said something. 0 or -errno.
int uevent_open(int *ret_fd);
// All that is there to be read, up to 256 messages. True if some of it is of RDMA devices, or if
// messages were lost, which then may have been.
bool uevent_read(int fd);

// One message: "ACTION@PATH", then "NAME=VALUE", each ended by a NUL. From outside.
bool uevent_is_of_rdma(const char *bytes, size_t size);
