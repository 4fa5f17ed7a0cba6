// SPDX-License-Identifier: BSD-3-Clause
// Reads capabilities by the system call, without libcap.
#include <lib/capability.h>

#include <linux/capability.h>
#include <sys/syscall.h>
#include <unistd.h>

bool capability_is_effective(unsigned capability) {
	struct __user_cap_header_struct head = {.version = _LINUX_CAPABILITY_VERSION_3};
	struct __user_cap_data_struct data[_LINUX_CAPABILITY_U32S_3] = {0};

	return syscall(SYS_capget, &head, data) == 0 &&
	       (data[CAP_TO_INDEX(capability)].effective & CAP_TO_MASK(capability)) != 0;
}
