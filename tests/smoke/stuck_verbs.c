// SPDX-License-Identifier: BSD-3-Clause
// Preloaded into an agent by a test: a driver that hangs when its devices are listed.
#include <dataplane/verbs.h>

#include <stdint.h>
#include <unistd.h>

struct ibv_device **ibv_get_device_list(int *count) {
	(void)count;
	for (;;)
		pause();
}
