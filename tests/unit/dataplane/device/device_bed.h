// SPDX-License-Identifier: BSD-3-Clause
// What tests of devices share: one fabric of fakes per test, and a refusal seen from both sides.
#pragma once

#include <dataplane/device.h>

// set_up and tear_down of a test; the latter fails if anything of libibverbs is left.
int device_bed_make(void **state);
int device_bed_end(void **state);

// The only device there is, as it is listed. NULL: the default settings.
struct device_facts device_bed_list(const struct device_settings *settings);
// Opens and closes it. 0 or -errno, then with the reason.
int device_bed_open(
	const char *name,
	const struct device_settings *settings,
	char reason[static DEVICE_REASON_MAX + 1]
);
// fake0 is listed and refused with these.
void device_bed_refuses(const struct device_settings *settings, int err, const char *reason);
