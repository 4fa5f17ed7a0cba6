// SPDX-License-Identifier: BSD-3-Clause
// Printable names of the values that ranks report.
#include <assert.h>
#include <jobs/judge.h>
#include <jobs/report.h>
#include <stddef.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static const char *name_at(const char *const *names, size_t count, uint32_t number) {
	return number < count ? names[number] : "unknown";
}

static const char *operation_kind_name(uint32_t kind) {
	static const char *const names[] = {
		"Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce",
		"Send",	     "Recv",   "AllToAll",  "Gather",	     "Scatter",
		"Barrier",   "Scan",   "OneSided",  "Other",
	};

	return name_at(names, COUNT_OF(names), kind);
}

const char *jobs_call_name(uint32_t call) {
	// in the order of enum job_call of <tocsin/job_page.h>
	static const char *const names[] = {
		"MPI_Finalize",
		"MPI_Comm_dup",
		"MPI_Comm_dup_with_info",
		"MPI_Comm_idup",
		"MPI_Comm_idup_with_info",
		"MPI_Comm_split",
		"MPI_Comm_split_type",
		"MPI_Comm_create",
		"MPI_Comm_create_group",
		"MPI_Cart_create",
		"MPI_Cart_sub",
		"MPI_Graph_create",
		"MPI_Dist_graph_create",
		"MPI_Dist_graph_create_adjacent",
		"MPI_Send",
		"MPI_Bsend",
		"MPI_Ssend",
		"MPI_Rsend",
		"MPI_Recv",
		"MPI_Sendrecv",
		"MPI_Sendrecv_replace",
		"MPI_Probe",
		"MPI_Wait",
		"MPI_Waitall",
		"MPI_Waitany",
		"MPI_Waitsome",
		"MPI_Wait for a send",
		"MPI_Wait for a receive",
		"MPI_Waitall for a send",
		"MPI_Waitall for a receive",
	};

	static_assert(COUNT_OF(names) == JOBS_CALLS, "each call has a name");
	if (call < JOBS_CALL_FIRST || call - JOBS_CALL_FIRST >= COUNT_OF(names))
		return NULL;
	return names[call - JOBS_CALL_FIRST];
}

const char *jobs_operation_name(uint32_t kind, uint32_t datatype) {
	const char *call = kind == JOBS_OTHER ? jobs_call_name(datatype) : NULL;

	return call != NULL ? call : operation_kind_name(kind);
}

const char *jobs_datatype_name(uint32_t datatype) {
	static const char *const names[] = {
		"int8",	   "uint8",   "int32",	 "uint32",   "int64",	   "uint64",
		"float16", "float32", "float64", "bfloat16", "float8e4m3", "float8e5m2",
	};

	if (datatype == JOBS_DATATYPE_BYTES)
		return "bytes";
	return datatype < COUNT_OF(names) ? names[datatype] : "elements";
}

const char *jobs_process_name(uint32_t state) {
	static const char *const names[] = {
		"unknown",
		"running",
		"sleeping",
		"in uninterruptible sleep",
		"stopped",
		"held by a debugger",
		"a zombie",
		"gone",
		"frozen by its cgroup",
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
		[JOBS_CAUSE_CALLS] = "call-deadlock",
		[JOBS_CAUSE_MISSING_WAIT] = "missing-wait",
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

const char *jobs_rank_end(const struct ras_comm_rank *rank) {
	if ((rank->flags & RAS_RANK_ABORT) != 0)
		return "aborted";
	if ((rank->flags & (RAS_RANK_FINALIZE | RAS_RANK_DESTROY)) != 0)
		return "finalized";
	switch (rank->left) {
	case JOBS_LEFT_UNREGISTERED:
		return "unregistered";
	case JOBS_LEFT_CLOSED:
		return "closed";
	default:
		return (rank->flags & RAS_RANK_EXITED) != 0 ? "exited" : NULL;
	}
}
