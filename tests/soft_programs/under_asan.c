// SPDX-License-Identifier: BSD-3-Clause
// A program of gcc's AddressSanitizer in a build without sanitizer. It aborts before main() if a
// library is loaded before the sanitizer's. Returns 0 if it found the device.
#include <dataplane/verbs.h>

#include <string.h>

int main(void) {
	struct ibv_device **devices = ibv_get_device_list(NULL);
	int found = devices != NULL && devices[0] != NULL &&
		    strcmp(ibv_get_device_name(devices[0]), "soft0") == 0;

	if (devices != NULL)
		ibv_free_device_list(devices);
	return found ? 0 : 1;
}
