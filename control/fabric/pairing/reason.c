// SPDX-License-Identifier: BSD-3-Clause
// Reasons: names, errors, and what follows from each.
#include "fabric/pairing/pairing_inside.h"

#include <stdarg.h>
#include <stdio.h>

struct reason {
	const char *name;
	int err;
	uint32_t flags;
};

#define REASON_RETRIED (REASON_TOMBSTONE | REASON_FAULT)

static const struct reason reasons[PAIRING_REASON_COUNT] = {
	[PAIRING_REASON_NONE] = {"None", 0, 0},
	[PAIRING_TIMED_OUT] = {"TimedOut", -ETIMEDOUT, REASON_RETRIED},
	[PAIRING_UNREACHABLE] = {"Unreachable", -EHOSTUNREACH, REASON_RETRIED},
	[PAIRING_NO_DEVICE] = {"NoDevice", -ENODEV, 0},
	[PAIRING_NO_COMMON_FABRIC] =
		{"NoCommonFabric", -EPROTONOSUPPORT, REASON_TOMBSTONE | REASON_NEWS_ONLY},
	[PAIRING_NO_COMMON_VERSION] =
		{"NoCommonVersion", -EPROTO, REASON_TOMBSTONE | REASON_NEWS_ONLY},
	[PAIRING_MALFORMED] = {"Malformed", -EBADMSG, REASON_RETRIED},
	[PAIRING_NO_ROOM] = {"NoRoom", -ENOSPC, 0},
	[PAIRING_NO_MEMORY] = {"NoMemory", -ENOMEM, 0},
	[PAIRING_DRIVER] = {"Driver", -EIO, REASON_RETRIED},
	[PAIRING_DEVICE_STUCK] = {"DeviceStuck", -EBUSY, REASON_TOMBSTONE},
	[PAIRING_DEVICE_GONE] = {"DeviceGone", -ENODEV, REASON_TOMBSTONE | REASON_NEWS_ONLY},
	[PAIRING_PEER_DEAD] = {"PeerDead", -EHOSTDOWN, REASON_SILENT},
	[PAIRING_CLOSED] = {"Closed", -ECONNRESET, 0},
	[PAIRING_REPLACED] = {"Replaced", -ESTALE, REASON_KEEPS_WAITERS | REASON_SILENT},
	[PAIRING_STALE] = {"Stale", -ESTALE, REASON_KEEPS_WAITERS | REASON_FAULT},
	[PAIRING_BROKEN] = {"Broken", -EIO, REASON_RETRIED},
	[PAIRING_IDLE] = {"Idle", -ECONNABORTED, 0},
	[PAIRING_DEADLINE] = {"Deadline", -ETIME, 0},
	[PAIRING_CANCELLED] = {"Cancelled", -ECANCELED, 0},
	[PAIRING_SHUTDOWN] = {"Shutdown", -ESHUTDOWN, 0},
	[PAIRING_LIMITED_MEMBERS] =
		{"LimitedMembers", -EKEYREJECTED, REASON_TOMBSTONE | REASON_NEWS_ONLY},
};

static const char *const states[PAIRING_STATE_COUNT] = {
	[PAIRING_ABSENT] = "absent",	 [PAIRING_PENDING] = "pending", [PAIRING_READY] = "ready",
	[PAIRING_DRAINING] = "draining", [PAIRING_FAILED] = "failed",
};

const char *pairing_state_name(enum pairing_state state) {
	must(state < PAIRING_STATE_COUNT);
	return states[state];
}

const char *pairing_reason_name(enum pairing_reason reason) {
	must(reason < PAIRING_REASON_COUNT);
	return reasons[reason].name;
}

int pairing_reason_err(enum pairing_reason reason) {
	must(reason < PAIRING_REASON_COUNT);
	return reasons[reason].err;
}

uint32_t pairing_reason_flags(const struct pairing_failure *failure) {
	uint32_t flags = reasons[failure->reason].flags;

	if (!failure->by_peer)
		return flags;
	// Nothing tells us when a failure at the peer ends, so these are retried. The peer reported
	// them itself, so it needs no message.
	switch (failure->reason) {
	case PAIRING_NO_DEVICE:
	case PAIRING_NO_ROOM:
	case PAIRING_NO_MEMORY:
	case PAIRING_DEVICE_STUCK:
	case PAIRING_DEVICE_GONE:
	case PAIRING_PEER_DEAD:
	case PAIRING_SHUTDOWN:
		return REASON_RETRIED | REASON_SILENT;
	default:
		return flags | REASON_SILENT;
	}
}

void pairing_failure_set(
	struct pairing_failure *failure,
	enum pairing_reason reason,
	int err,
	const char *format,
	...
) {
	va_list arguments;

	*failure = (struct pairing_failure){
		.reason = reason,
		.err = err != 0 ? err : pairing_reason_err(reason),
	};
	va_start(arguments, format);
	// NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): the line above did
	vsnprintf(failure->text, sizeof(failure->text), format, arguments);
	va_end(arguments);
}
