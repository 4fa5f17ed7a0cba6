// SPDX-License-Identifier: BSD-3-Clause
// Leak detection; without a sanitizer, no leak is ever found.
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

// Return true if there is a leak. All threads are stopped meanwhile. Later calls report the same
// leak again.
static inline bool leaks_are_there(void) {
#ifdef LEAKS_ARE_FOUND
	return __lsan_do_recoverable_leak_check() != 0;
#else
	return false;
#endif
}
