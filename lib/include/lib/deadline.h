// SPDX-License-Identifier: BSD-3-Clause
// A point in time on the clock of the caller, in nanoseconds.
//
// A deadline cannot overflow: a time past the last nanosecond is "never", which does not expire.
// Plain values, pure functions.
#pragma once

#include <limits.h>
#include <stdbool.h>
#include <stdint.h>

struct deadline {
	uint64_t at_ns; // UINT64_MAX: never
};

static inline struct deadline deadline_never(void) {
	return (struct deadline){UINT64_MAX};
}

// Return the time `delay_ns` after `now_ns`, or never if 64 bits cannot hold it.
static inline struct deadline deadline_after(uint64_t now_ns, uint64_t delay_ns) {
	uint64_t at_ns;

	if (__builtin_add_overflow(now_ns, delay_ns, &at_ns))
		return deadline_never();
	return (struct deadline){at_ns};
}

static inline bool deadline_is_never(struct deadline deadline) {
	return deadline.at_ns == UINT64_MAX;
}

// Return true from the nanosecond of the deadline on.
static inline bool deadline_expired(struct deadline deadline, uint64_t now_ns) {
	return now_ns >= deadline.at_ns && !deadline_is_never(deadline);
}

// Return the remaining time: 0 once expired, UINT64_MAX for never.
static inline uint64_t deadline_remaining_ns(struct deadline deadline, uint64_t now_ns) {
	if (deadline_is_never(deadline))
		return UINT64_MAX;
	return deadline.at_ns > now_ns ? deadline.at_ns - now_ns : 0;
}

static inline struct deadline deadline_earliest(struct deadline a, struct deadline b) {
	return a.at_ns <= b.at_ns ? a : b;
}

// Return the timeout for poll() and epoll_wait(): -1 for never, 0 if expired, else milliseconds.
// Milliseconds are rounded up, so that the caller does not wake before the deadline and spin.
// INT_MAX if more remains; the caller then sleeps again.
static inline int deadline_poll_timeout_ms(struct deadline deadline, uint64_t now_ns) {
	uint64_t remaining_ns = deadline_remaining_ns(deadline, now_ns);
	uint64_t remaining_ms = remaining_ns / 1000000 + (remaining_ns % 1000000 != 0);

	if (deadline_is_never(deadline))
		return -1;
	return remaining_ms < INT_MAX ? (int)remaining_ms : INT_MAX;
}
