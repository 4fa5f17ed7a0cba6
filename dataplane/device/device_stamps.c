// SPDX-License-Identifier: BSD-3-Clause
// Whether a device stamps its completions with a clock of its own, and what that clock is.
#include "device/device_impl.h"

#include <errno.h>

int device_stamps(const struct device *device, struct device_stamps *ret_stamps) {
	const struct verbs_calls *calls = device_calls(device);
	struct device_stamps stamps = {.mask = 0};
	int err;

	if (calls->query_stamp_clock == NULL || calls->create_cq_ex == NULL)
		return -EOPNOTSUPP;
	err = calls->query_stamp_clock(device_context(device), &stamps.mask, &stamps.khz);
	if (err == 0 && (stamps.mask == 0 || stamps.khz == 0))
		err = -EOPNOTSUPP;
	if (err == 0)
		*ret_stamps = stamps;
	return err;
}
