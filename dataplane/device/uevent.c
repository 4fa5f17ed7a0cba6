// SPDX-License-Identifier: BSD-3-Clause
// Receives the kernel's uevents of RDMA devices.
#include <dataplane/uevent.h>
#include <lib/error.h>

#include <errno.h>
#include <linux/netlink.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define KERNEL_GROUP 1 // udev sends its own messages to another group
#define MESSAGE_BYTES 8192
#define MESSAGES_MAX 256

int uevent_open(int *ret_fd) {
	struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = KERNEL_GROUP};
	int fd =
		socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_KOBJECT_UEVENT);
	int err;

	if (fd < 0)
		return neg_errno();
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0) {
		err = neg_errno();
		close(fd);
		return err;
	}
	*ret_fd = fd;
	return 0;
}

bool uevent_is_about_rdma(const char *bytes, size_t size) {
	static const char *const wanted[] = {"SUBSYSTEM=infiniband", "SUBSYSTEM=infiniband_verbs"};

	while (size > 0) {
		size_t length = strnlen(bytes, size);

		if (length == size)
			return false; // truncated
		for (size_t n = 0; n < sizeof(wanted) / sizeof(wanted[0]); n++) {
			if (strcmp(bytes, wanted[n]) == 0)
				return true;
		}
		bytes += length + 1;
		size -= length + 1;
	}
	return false;
}

bool uevent_read(int fd) {
	char bytes[MESSAGE_BYTES];
	bool ours = false;

	for (int n = 0; n < MESSAGES_MAX; n++) {
		struct sockaddr_nl from = {.nl_pid = UINT32_MAX};
		socklen_t from_size = sizeof(from);
		ssize_t size =
			recvfrom(fd, bytes, sizeof(bytes), 0, (struct sockaddr *)&from, &from_size);

		if (size < 0 && errno == EINTR)
			continue;
		if (size < 0 && errno != ENOBUFS)
			break;
		// ENOBUFS: messages were lost, and any of them may have been about RDMA. Else
		// accept only messages of the kernel, whose port id is 0.
		if (size < 0 || (from.nl_pid == 0 && uevent_is_about_rdma(bytes, (size_t)size)))
			ours = true;
	}
	return ours;
}
