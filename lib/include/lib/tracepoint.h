// SPDX-License-Identifier: BSD-3-Clause
// The one door to <sys/sdt.h>: static tracepoints, which bpftrace, perf, gdb and SystemTap find in
// the notes of a program and attach to while it runs.
//
//	TRACEPOINT(worker_wake, ended_by);
//
// It costs a nop: the note, which is never loaded, says in which register or where in memory each
// argument is. So arguments are numbers and pointers to text that are at hand there anyway: what is
// computed for one is computed always. Where there is no <sys/sdt.h> they are checked and not
// evaluated.
//
// tocsind(8) lists all tracepoints. tests/smoke/tracepoints_test.py compares, and holds what the
// tools ask for: at most 6 arguments (bpftrace), of the same types wherever one name is used
// (perf), and no `__` in a name, which some tools turn into a hyphen.
#pragma once

#if __has_include(<sys/sdt.h>) && !defined(TOCSIN_NO_TRACEPOINTS)
#define SDT_USE_VARIADIC
#define STAP_SDT_ARG_CONSTRAINT or // no immediate: perf leaves out arguments that are constants
#include <sys/sdt.h>
#define TRACEPOINT(name, ...) STAP_PROBEV(tocsin, name, __VA_ARGS__)
#else
int tracepoint_arguments(int count, ...); // nowhere defined
#define TRACEPOINT(name, ...) ((void)sizeof(tracepoint_arguments(0, __VA_ARGS__)))
#endif
