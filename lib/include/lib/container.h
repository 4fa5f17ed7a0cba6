// SPDX-License-Identifier: BSD-3-Clause
// From a member to the struct that embeds it: how handlers of the loop find their object.
#pragma once

#include <stddef.h>

// DPDK brings its own, of the same meaning, unless there is one.
#ifndef container_of
#define container_of(pointer, type, member)                                 \
	({                                                                  \
		__typeof__(((type *)0)->member) *member_ = (pointer);       \
		(type *)(void *)((char *)member_ - offsetof(type, member)); \
	})
#endif
