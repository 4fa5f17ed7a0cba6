// SPDX-License-Identifier: BSD-3-Clause
// The one door to liburcu: the qsbr flavour, spelled urcu_qsbr_...; rcu_dereference(),
// rcu_xchg_pointer() and their like are inlined (liburcu allows that to any licence; what needs
// _LGPL_SOURCE stays a call). Threads come and go by <lib/rcu_thread.h>, never by liburcu's own
// registration.
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
