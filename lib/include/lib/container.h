// SPDX-License-Identifier: BSD-3-Clause
// Access from a member to the struct that embeds it, as loop handlers find their object.
#pragma once

#include <stddef.h>

// DPDK defines the same macro.
#ifndef container_of
#define container_of(pointer, type, member)                                 \
	({                                                                  \
		__typeof__(((type *)0)->member) *member_ = (pointer);       \
		(type *)(void *)((char *)member_ - offsetof(type, member)); \
	})
#endif
