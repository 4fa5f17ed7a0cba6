// SPDX-License-Identifier: BSD-3-Clause
// Printable names of the values that ranks report.
#include <jobs/judge.h>
#include <jobs/report.h>
#include <stddef.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const char *name_at(const char *const *names, size_t count, uint32_t number) {
	return number < count ? names[number] : "unknown";
}

const char *jobs_kind_name(uint32_t kind) {
	static const char *const names[] = {
		"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce",
		"Send",	     "Recv",   "AllToAll",  "Gather",	     "Scatter",
		"Barrier",   "Scan",   "OneSided",  "Other",
	};

	return name_at(names, COUNT_OF(names), kind);
}

const char *jobs_datatype_name(uint32_t datatype) {
	static const char *const names[] = {
		"int8",	   "uint8",   "int32",	 "uint32",   "int64",	   "uint64",
		"float16", "float32", "float64", "bfloat16", "float8e4m3", "float8e5m2",
	};

	return name_at(names, COUNT_OF(names), datatype);
}

const char *jobs_process_name(uint32_t state) {
	static const char *const names[] = {
		"unknown",  "running",
		"sleeping", "in uninterruptible sleep",
		"stopped",  "held by a debugger",
		"a zombie", "gone",
	};

	return name_at(names, COUNT_OF(names), state);
}

const char *jobs_cause_name(enum jobs_cause cause) {
	static const char *const names[] = {
		[JOBS_CAUSE_NONE] = "none",
		[JOBS_CAUSE_DEAD_MEMBER] = "dead-member",
		[JOBS_CAUSE_STOPPED_MEMBER] = "stopped-member",
		[JOBS_CAUSE_MISSING_ENTER] = "missing-enter",
		[JOBS_CAUSE_DEVICE_BEHIND] = "device-behind",
		[JOBS_CAUSE_TRANSPORT] = "transport",
		[JOBS_CAUSE_MISMATCH] = "mismatch",
		[JOBS_CAUSE_ORDERING] = "ordering-deadlock",
		[JOBS_CAUSE_SYMMETRIC] = "symmetric-stall",
		[JOBS_CAUSE_STRAGGLER] = "straggler",
		[JOBS_CAUSE_UNKNOWN] = "unknown",
	};

	return name_at(names, COUNT_OF(names), cause);
}

const char *jobs_grade_name(enum jobs_grade grade) {
	static const char *const names[] = {
		[JOBS_QUIET] = "quiet",	    [JOBS_MOVING] = "moving", [JOBS_ENDED] = "ended",
		[JOBS_WAITING] = "waiting", [JOBS_STUCK] = "stuck",
	};

	return name_at(names, COUNT_OF(names), grade);
}
