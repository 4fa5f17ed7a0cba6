// SPDX-License-Identifier: BSD-3-Clause
// Wrapper of liburcu: the only header that includes it. Flavour qsbr, with the prefix urcu_qsbr_.
// rcu_dereference(), rcu_xchg_pointer() and similar functions are inlined. liburcu permits that for
// any licence; functions that need _LGPL_SOURCE stay calls. Threads register by <lib/rcu_thread.h>,
// never by liburcu's functions.
#pragma once

#ifndef URCU_INLINE_SMALL_FUNCTIONS
#define URCU_INLINE_SMALL_FUNCTIONS
#endif

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wconversion"
#pragma GCC diagnostic ignored "-Wsign-conversion"
#pragma GCC diagnostic ignored "-Wshadow"
#pragma GCC diagnostic ignored "-Wcast-align"
#pragma GCC diagnostic ignored "-Wundef"
#include <urcu/urcu-qsbr.h>
#pragma GCC diagnostic pop
