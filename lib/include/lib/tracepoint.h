// SPDX-License-Identifier: BSD-3-Clause
// Wrapper of <sys/sdt.h>: the only header that includes it. bpftrace, perf, gdb and SystemTap find
// static tracepoints in the notes of a program, and attach to them at run time.
//
//	TRACEPOINT(worker_wake, ended_by);
//
// A tracepoint costs a nop. Its note, which is never loaded, gives the register or memory location
// of each argument. Arguments should be numbers and pointers to text that exist anyway: the program
// computes them even without a tool. Without <sys/sdt.h>, arguments are type-checked and not
// evaluated.
//
// tocsind(8) lists all tracepoints. tests/smoke/tracepoints_test.py compares the list and checks
// the limits of the tools. bpftrace allows at most 6 arguments. perf needs the same types for each
// use of a name. Some tools replace `__` in a name by a hyphen, so it is not allowed.
#pragma once

#if __has_include(<sys/sdt.h>) && !defined(TOCSIN_NO_TRACEPOINTS)
#define SDT_USE_VARIADIC
#define STAP_SDT_ARG_CONSTRAINT or // no immediate operands, because perf drops constant arguments
#include <sys/sdt.h>
#define TRACEPOINT(name, ...) STAP_PROBEV(tocsin, name, __VA_ARGS__)
#else
int tracepoint_arguments(int count, ...); // never defined
#define TRACEPOINT(name, ...) ((void)sizeof(tracepoint_arguments(0, __VA_ARGS__)))
#endif
