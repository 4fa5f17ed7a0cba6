// SPDX-License-Identifier: BSD-3-Clause
// Checks settings independently of the device, and formats reasons.
#include "device/device_impl.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define RETRY_MAX 7  // 3 bits
#define TIMER_MAX 31 // 5 bits
#define SERVICE_LEVEL_MAX 15

const struct device_settings device_settings_default = {
	.gid_index = DEVICE_GID_AUTO,
	.pkey_index = DEVICE_PKEY_AUTO,
	.timeout = 14,
	.retry = 6,
	.rnr_retry = 7,
	.min_rnr_timer = 12,
};

const char *device_error_name(int err) {
	const char *name = strerrorname_np(err < 0 ? -err : err);

	return name != NULL ? name : "unknown error";
}

int device_format_reason(
	char reason[static DEVICE_REASON_MAX + 1], int err, const char *format, ...
) {
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(reason, DEVICE_REASON_MAX + 1, format, arguments);
	va_end(arguments);
	return err;
}

void device_inspection_refuse(struct device_inspection *look, int err, const char *format, ...) {
	va_list arguments;

	if (look->refusal != 0)
		return;
	look->refusal = err;
	va_start(arguments, format);
	vsnprintf(look->facts->reason, sizeof(look->facts->reason), format, arguments);
	va_end(arguments);
}

int device_inspection_fail(struct device_inspection *look, int err, const char *call) {
	look->refusal = err;
	return device_format_reason(
		look->facts->reason, err, "%s of %s failed: %s", call, look->facts->name,
		device_error_name(err)
	);
}

static void check_range(struct device_inspection *look, const char *key, int value, int max) {
	if (value > max)
		device_inspection_refuse(
			look, -EINVAL, "%s %d: 0 to %d are allowed", key, value, max
		);
}

void device_settings_inspect(struct device_inspection *look) {
	const struct device_settings *settings = look->settings;

	check_range(look, "service_level", settings->service_level, SERVICE_LEVEL_MAX);
	check_range(look, "timeout", settings->timeout, TIMER_MAX);
	check_range(look, "retry", settings->retry, RETRY_MAX);
	check_range(look, "rnr_retry", settings->rnr_retry, RETRY_MAX);
	check_range(look, "min_rnr_timer", settings->min_rnr_timer, TIMER_MAX);
	if (settings->gid_index < DEVICE_GID_AUTO)
		device_inspection_refuse(
			look, -EINVAL, "gid_index %d: auto or 0 and above are allowed",
			settings->gid_index
		);
	if (settings->pkey_index < DEVICE_PKEY_AUTO)
		device_inspection_refuse(
			look, -EINVAL, "pkey_index %d: auto or 0 and above are allowed",
			settings->pkey_index
		);
	if (settings->mtu != 0 && device_mtu_code(settings->mtu) == 0)
		device_inspection_refuse(
			look, -EINVAL, "mtu %u: 256, 512, 1024, 2048 and 4096 are allowed",
			settings->mtu
		);
}

uint16_t device_mtu_bytes(enum ibv_mtu code) {
	if (code < IBV_MTU_256 || code > IBV_MTU_4096)
		return 0;
	return (uint16_t)(128U << code);
}

enum ibv_mtu device_mtu_code(uint32_t bytes) {
	for (enum ibv_mtu code = IBV_MTU_256; code <= IBV_MTU_4096; code++) {
		if (device_mtu_bytes(code) == bytes)
			return code;
	}
	return 0;
}
