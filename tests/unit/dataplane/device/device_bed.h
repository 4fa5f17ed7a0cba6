// SPDX-License-Identifier: BSD-3-Clause
// Shared by the tests of devices: a fake fabric per test, and a check that a device is refused both
// when listed and when opened.
#pragma once

#include <dataplane/device.h>

// Setup and teardown of a test. Teardown fails if any libibverbs object is left.
int device_bed_make(void **state);
int device_bed_end(void **state);

// Return the facts of the only device as it is listed. NULL: the default settings.
struct device_facts device_bed_list(const struct device_settings *settings);
// Open and close a device. Returns 0 or -errno; on error the reason is set.
int device_bed_open(
	const char *name,
	const struct device_settings *settings,
	char reason[static DEVICE_REASON_MAX + 1]
);
// Check that fake0 is listed as unusable and refused with this error and reason.
void device_bed_refuses(const struct device_settings *settings, int err, const char *reason);
