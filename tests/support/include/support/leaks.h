// SPDX-License-Identifier: BSD-3-Clause
// Whether anything was allocated that nobody knows any more; where no sanitizer looks, never.
#pragma once

#include <stdbool.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LEAKS_ARE_FOUND
#endif
#elif defined(__SANITIZE_ADDRESS__)
#define LEAKS_ARE_FOUND
#endif

#ifdef LEAKS_ARE_FOUND
#include <sanitizer/lsan_interface.h>
#endif

// The threads that there are stand still meanwhile. Each leak is told again by later calls.
static inline bool leaks_are_there(void) {
#ifdef LEAKS_ARE_FOUND
	return __lsan_do_recoverable_leak_check() != 0;
#else
	return false;
#endif
}
