// SPDX-License-Identifier: BSD-3-Clause
// Facts of an agent about one rank of one communicator, from the counters of a process on its node.
//
// Plain values, filled by the agent from the process's page and from /proc. All counts are clamped:
// completed <= started <= launched. An unknown value is marked as unknown, and is never guessed.
#pragma once

#include <ras/comms.h>

#include <stdbool.h>
#include <stdint.h>

// Same order as enum tocsin_kind in <tocsin/job.h>; NCCL's five collectives come first.
enum jobs_kind {
	JOBS_BROADCAST,
	JOBS_REDUCE,
	JOBS_ALL_GATHER,
	JOBS_REDUCE_SCATTER,
	JOBS_ALL_REDUCE,
	// send, receive and one-sided operations involve two ranks and are not in the sequence
	JOBS_SEND,
	JOBS_RECEIVE,
	JOBS_ALL_TO_ALL,
	JOBS_GATHER,
	JOBS_SCATTER,
	JOBS_BARRIER,
	JOBS_SCAN,
	JOBS_ONE_SIDED,
	JOBS_OTHER,
	JOBS_KINDS,
};

// Small values are NCCL's numbers: 0 int8, 1 uint8, ... 9 bfloat16. The bridge of MPI uses the two
// largest.
#define JOBS_DATATYPE_UNKNOWN 255
#define JOBS_DATATYPE_BYTES 254
// Return the name of a datatype, such as "float32". Returns "elements" for an unknown datatype.
const char *jobs_datatype_name(uint32_t datatype);

// An operation of kind JOBS_OTHER has no data. From this value on, its datatype is the number of
// the call of MPI.
#define JOBS_CALL_FIRST 128
#define JOBS_CALLS 30
// Calls between two ranks; all have the numbers of enum job_call of <tocsin/job_page.h>.
enum jobs_call {
	JOBS_CALL_SEND = 142,
	JOBS_CALL_BSEND,
	JOBS_CALL_SSEND,
	JOBS_CALL_RSEND,
	JOBS_CALL_RECV,
	JOBS_CALL_SENDRECV,
	JOBS_CALL_SENDRECV_REPLACE,
	JOBS_CALL_PROBE,
	// MPI_Wait or MPI_Waitall with one request, which sends to or receives from the peer
	JOBS_CALL_WAIT_SEND = 154,
	JOBS_CALL_WAIT_RECEIVE,
	JOBS_CALL_WAITALL_SEND,
	JOBS_CALL_WAITALL_RECEIVE,
};
#define JOBS_TAG_LARGE 0x7fffff // JOB_TAG_LARGE of the same file
// Return for example "MPI_Recv", or NULL for an unknown call.
const char *jobs_call_name(uint32_t call);
// Return for example "AllReduce" or "MPI_Comm_split"; "unknown" for an invalid kind.
const char *jobs_operation_name(uint32_t kind, uint32_t datatype);

#define JOBS_SIGNATURES 16 // last collective operations of a rank that are kept
#define JOBS_WORK_WINDOW_NS UINT64_C(10000000000)
#define JOBS_ID_BYTES 64 // "slurm:1234.0"
#define JOBS_WCHAN_BYTES 32
#define JOBS_NO_ROOT (-1)
#define JOBS_TIME_UNKNOWN UINT64_MAX // a time that was not measured

struct jobs_signature {
	uint64_t seq; // 1 is the first collective operation of the communicator
	uint64_t count;
	int32_t root; // JOBS_NO_ROOT: none
	uint8_t kind;
	uint8_t datatype;
	// Time that this rank spent in the operation: from its start (its launch, if the start is
	// unknown) to its completion on this rank. JOBS_TIME_UNKNOWN: not measured.
	uint64_t waited_ns;
};

enum jobs_process_state {
	JOBS_PROCESS_UNKNOWN,
	JOBS_PROCESS_RUNNING,
	JOBS_PROCESS_SLEEPING,
	JOBS_PROCESS_DISK,    // waits for a device or a file system, and handles no signal
	JOBS_PROCESS_STOPPED, // by SIGSTOP or a terminal
	JOBS_PROCESS_TRACED,  // held by a debugger
	JOBS_PROCESS_ZOMBIE,
	JOBS_PROCESS_EXITED,
	JOBS_PROCESS_FROZEN, // by its cgroup
	JOBS_PROCESS_STATES,
};

const char *jobs_process_name(uint32_t state);

// Activity of a process that other ranks may wait for. Only a stopped or frozen process is
// proven to do nothing; all others may be healthy.
enum jobs_activity {
	JOBS_DOES_UNKNOWN,  // nobody looked
	JOBS_DOES_COMPUTE,  // uses processor time itself
	JOBS_DOES_CHILD,    // a child uses processor time; amount: its pid, 0: several short ones
	JOBS_DOES_THROTTLE, // the quota of its cgroup is used up; amount: percent of the time
	JOBS_DOES_DISK,	    // waits for a disk, a file system or a driver; amount: percent
	JOBS_DOES_PAGE,	    // reads its memory from a disk; amount: major page faults
	JOBS_DOES_QUEUE,    // is ready to run and has no processor; amount: percent of the time
	JOBS_DOES_NOTHING,  // none of these; amount: times that its main thread was switched
	JOBS_ACTIVITIES,
};

// Sources of this evidence. A set bit marks a source that could not be read, or not to its end.
#define JOBS_SOURCE_STAT 0x01
#define JOBS_SOURCE_SCHEDSTAT 0x02
#define JOBS_SOURCE_STATUS 0x04
#define JOBS_SOURCE_CHILDREN 0x08
#define JOBS_SOURCE_BLOCK_IO 0x10 // the kernel does not account for waits for block devices
#define JOBS_SOURCE_QUOTA 0x20
#define JOBS_SOURCE_FREEZER 0x40
#define JOBS_SOURCES 7

// Return for example "children"; `source` is the number of a bit.
const char *jobs_source_name(uint32_t source);

#define JOBS_DOING_BYTES 160
// Describe what a process does, after "it" or a colon: "its child cc1 (pid 123) computes". The text
// is empty if that is unknown.
void jobs_describe_doing(
	const struct ras_comm_doing *doing, char ret_text[static JOBS_DOING_BYTES]
);

enum jobs_exit_cause {
	JOBS_EXIT_UNKNOWN, // no connected process was its parent
	JOBS_EXIT_STATUS,
	JOBS_EXIT_SIGNAL,
	JOBS_EXIT_MEMORY, // killed by the kernel's out-of-memory killer
	JOBS_EXIT_ABORT,  // the rank called MPI_Abort; the value is its code
	JOBS_EXIT_CAUSES,
};

// How a rank left the communicator in order. The marks of a finalized rank say more.
enum jobs_left {
	JOBS_LEFT_NOT,
	JOBS_LEFT_UNREGISTERED, // the process unregistered the communicator
	JOBS_LEFT_CLOSED,	// the process called tocsin_job_close()
	JOBS_LEFT_WAYS,
};

// Facts that a rank reports besides launched operations, which are always known.
#define JOBS_KNOWS_STARTED 0x01
#define JOBS_KNOWS_COMPLETED 0x02
#define JOBS_KNOWS_SIGNATURES 0x04
#define JOBS_KNOWS_PROCESS 0x08	    // process state and processor time
#define JOBS_KNOWS_GPU_OF_NCCL 0x10 // device numbers come from NCCL's RAS, not from the rank

struct jobs_rank_report {
	// identity of the communicator; host and process are those of its rank 0
	uint64_t comm_hash, host_hash, process_hash;
	uint32_t attempt; // of the job, as a launcher counts them
	uint32_t size, rank;
	int16_t cuda_device, nvml_device; // -1: unknown
	uint64_t config_hash;		  // 0: not given
	uint32_t pid, uid;
	char job_id[JOBS_ID_BYTES]; // "": unknown
	uint8_t knows;		    // JOBS_KNOWS_* bits

	// Number of collective operations of this rank in the communicator: the sequence of the
	// communicator.
	uint64_t launched, started, completed;
	// The same by kind; also send, receive and one-sided operations, which are not in the
	// sequence.
	uint64_t launched_of[JOBS_KINDS], started_of[JOBS_KINDS], completed_of[JOBS_KINDS];
	uint32_t signature_count;
	struct jobs_signature signatures[JOBS_SIGNATURES]; // sorted by seq, newest last

	uint8_t init_state;  // 0: done, 7: in progress, else an NCCL error
	uint8_t async_error; // the same values
	bool finalized, destroyed, aborted;
	bool aborted_all; // the rank ended all ranks with abort_code
	int32_t abort_code;
	bool attached; // its socket is connected
	bool blocks;   // its thread blocks inside an operation until the operation completes

	uint8_t process_state; // enum jobs_process_state
	char wchan[JOBS_WCHAN_BYTES];
	uint64_t sampled_ns;	 // time of this sample, on the agent's clock
	uint64_t progress_ns;	 // time of the last change of a counter, on the agent's clock
	uint64_t worked_ns;	 // processor time of the process in the last JOBS_WORK_WINDOW_NS
	uint64_t call;		 // job_call_pack() of <tocsin/job_page.h>; 0: none
	uint32_t unwaited;	 // posted operations that the rank does not wait for
	bool oldest_is_unwaited; // the oldest operation that has not completed is among them
	uint64_t busy_until_ns;	 // the process is busy on purpose until then; 0: it is not
	char busy_why[RAS_COMM_WHY_BYTES]; // its reason, any bytes
	struct ras_comm_doing doing;	   // only of a process that others may wait for; any name
	uint8_t exit_cause;		   // enum jobs_exit_cause
	int32_t exit_value;
	uint64_t exited_ns;    // 0: the process is alive
	bool end_is_seen_late; // the process ended some time before exited_ns
	uint64_t since_ns;     // time of the registration, on the agent's clock
	uint64_t shown_ns;     // time of the answer that shows it, to which since_ns is compared
	uint8_t left;	       // enum jobs_left
};
