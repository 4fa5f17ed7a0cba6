// SPDX-License-Identifier: BSD-3-Clause
// libtocsin: the interface between the processes of a job and the Tocsin agent of their node.
//
// A process opens a job, registers the communicators in which it is a rank, and counts their
// operations. The agent reads the counts and finds ranks that are missing, waiting or slow (`tocsin
// comms`, `tocsin why`). The agent also notifies each process when another rank of its
// communicators is gone.
//
// Without an agent nothing happens and nothing fails: the library looks for the agent's socket
// again every few seconds. A dead, restarted or refusing agent never changes the behaviour of a
// job.
//
// Threads: every function may be called from any thread at any time, with two exceptions. No thread
// may use a communicator while it is being unregistered, or a job while it is being closed.
// Counting takes no lock, makes no system call and allocates nothing. Only the first operation of a
// thread on a communicator takes a lock, and a slot for that pair. When a thread ends, another
// thread takes over its slot with its counts.
//
// Fork: the child of fork() is not part of the job. Its calls succeed and have no effect; the child
// may open a job of its own. An exec() closes all descriptors of the library.
//
// Signals: the library's thread blocks all signals. No function may be called from a signal
// handler, except tocsin_comm_should_abort().
//
// Errors: functions return 0 or a negated errno, and leave outputs untouched on failure.
//
// ABI: each struct that crosses the interface begins with its size, which the caller sets with
// TOCSIN_INIT(). The library reads and writes at most that many bytes, and new fields are added at
// the end. So an old program runs with a newer library, and a new program with an older one. Fields
// that the older side does not know are 0. Kinds that a program does not know may occur.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TOCSIN_JOB_VERSION 1 // version of this interface; see tocsin_job_version()

// A struct of this type whose size is set and whose other fields are 0.
#ifdef __cplusplus
#define TOCSIN_INIT(type) tocsin_sized<type>()
extern "C++" template <typename T> inline T tocsin_sized() {
	T sized = T();

	sized.struct_size = sizeof(T);
	return sized;
}
#else
#define TOCSIN_INIT(type) ((type){.struct_size = sizeof(type)})
#endif

struct tocsin_job;  // one process
struct tocsin_comm; // one rank of one communicator

// Kind of an operation. The first five are in the order of NCCL's own report.
enum tocsin_kind {
	TOCSIN_BROADCAST,
	TOCSIN_REDUCE,
	TOCSIN_ALL_GATHER,
	TOCSIN_REDUCE_SCATTER,
	TOCSIN_ALL_REDUCE,
	TOCSIN_SEND,
	TOCSIN_RECEIVE,
	TOCSIN_ALL_TO_ALL,
	TOCSIN_GATHER,
	TOCSIN_SCATTER,
	TOCSIN_BARRIER,
	TOCSIN_SCAN,
	TOCSIN_ONE_SIDED,
	TOCSIN_OTHER,
};
#define TOCSIN_KIND_COUNT 14
#define TOCSIN_KIND_ROOM 32 // entries of arrays by kind; those of unknown kinds are 0

// Return for example "all_reduce"; "?" for an invalid kind.
const char *tocsin_kind_name(enum tocsin_kind kind);

// Return the TOCSIN_JOB_VERSION of the loaded library.
uint32_t tocsin_job_version(void);

enum tocsin_event_kind {
	TOCSIN_PEER_SUSPECT, // the rank's node does not answer; the rank may come back
	// this partition of the cluster cannot tell whether the rank is alive
	TOCSIN_PEER_UNREACHABLE,
	TOCSIN_PEER_GONE,    // the rank's process has ended, or its node is down; final
	TOCSIN_PEER_BACK,    // a suspect or unreachable rank is alive again
	TOCSIN_COMM_WAITING, // no progress for 10 s; `rank` is the rank that others wait for
	// no progress, and the agents found proof of a hang, or the wait is too long; informational
	TOCSIN_COMM_STUCK,
	TOCSIN_COMM_SHOULD_ABORT, // a member is gone, so pending operations will not complete
};
// Return for example "peer_gone"; "?" for an invalid kind.
const char *tocsin_event_name(enum tocsin_event_kind kind);

#define TOCSIN_NO_RANK UINT32_MAX
#define TOCSIN_EVENT_TEXT_BYTES 160

struct tocsin_event {
	size_t struct_size;
	enum tocsin_event_kind kind;
	uint32_t rank;		  // rank in the communicator, or TOCSIN_NO_RANK
	struct tocsin_comm *comm; // still registered when the event is delivered
	void *comm_context;	  // `context` of its registration
	uint64_t view;		  // view of the failed set, see tocsin_comm_failed(); 0: none yet
	uint64_t happened_ns;	  // time at which the agent saw it, CLOCK_MONOTONIC of this host
	char text[TOCSIN_EVENT_TEXT_BYTES]; // description, such as "killed by signal 9"
};

// Callback for events, run on the library's own thread, one event at a time. It may call every
// function except tocsin_job_close() and tocsin_comm_unregister().
typedef void tocsin_event_function(void *context, const struct tocsin_event *event);

struct tocsin_job_config {
	size_t struct_size;
	// Path of the agent's job socket. NULL: $TOCSIN_JOB_SOCKET, else /run/tocsin/job.sock, else
	// tocsin/job.sock in $XDG_RUNTIME_DIR.
	const char *socket_path;
	// The scheduler's name of the job, at most 63 bytes. NULL: taken from the environment, the
	// first of SLURM_JOB_ID (and SLURM_STEP_ID), FLUX_JOB_ID, PBS_JOBID, LSB_JOBID, JOB_ID.
	const char *job_id;
	// Callback for events. NULL: the caller fetches events with tocsin_job_next_event().
	tocsin_event_function *event;
	void *event_context;
	uint32_t flags; // TOCSIN_JOB_...
};
// Start no thread: the caller calls tocsin_job_poll(), and callbacks run inside that call.
#define TOCSIN_JOB_NO_THREAD 1u

// Open a job: start the library's thread, and connect now or later. `config` may be NULL and is not
// kept. Returns 0, -EINVAL (a bad size, a text that is too long), -ENOMEM, -EAGAIN (no thread),
// -EMFILE or -ENFILE, or -EFBIG (RLIMIT_FSIZE is below 320 KB, which the counts need).
int tocsin_job_open(const struct tocsin_job_config *config, struct tocsin_job **ret_job);

// Close a job: unregister its remaining communicators, end the thread and free everything. The
// agent is notified that the process leaves on purpose. NULL is allowed.
void tocsin_job_close(struct tocsin_job *job);

enum tocsin_job_state {
	TOCSIN_JOB_ALONE,     // no agent found
	TOCSIN_JOB_CONNECTED, // the agent reads the counts
	TOCSIN_JOB_REFUSED,   // the agent refused, with a reason; retried every 30 s
};
// Return the state of the connection. Write the reason of the agent, or of the last failed attempt,
// to `text`, in at most `size` bytes. Without a reason, `text` is "". `text` may be NULL if size is
// 0.
enum tocsin_job_state tocsin_job_state(struct tocsin_job *job, char *text, size_t size);

// With TOCSIN_JOB_NO_THREAD: do the thread's work without blocking. That is: connect if it is time,
// send, receive, deliver events. One call per second is enough. A call does nothing while another
// thread, or a callback, is inside this function. Returns 0, or -EDEADLK if the job has a thread.
int tocsin_job_poll(struct tocsin_job *job);

// Report that this process is busy on purpose, for example with a checkpoint or an evaluation.
// Until `until_ns` (CLOCK_MONOTONIC) the agents show `why` for its ranks, and call no communicator
// of the process stuck, unless ranks died or run different operations. A later call replaces the
// report; until_ns 0 ends it. `why` may be NULL. Any thread may call. Returns 0, or -EINVAL (`why`
// has more than 23 bytes).
int tocsin_job_busy(struct tocsin_job *job, uint64_t until_ns, const char *why);

// Level of detail that the agent requests from the job for a time (`tocsin level`); see
// docs/jobs-nccl.md. A job that cannot raise its level, or whose user has forbidden it, continues
// unchanged.
enum tocsin_level {
	TOCSIN_LEVEL_DEFAULT, // no request
	TOCSIN_LEVEL_LAUNCHES,
	TOCSIN_LEVEL_NETWORK,
	TOCSIN_LEVEL_SAMPLED,
	TOCSIN_LEVEL_KERNELS,
	TOCSIN_LEVEL_KERNELS_ALWAYS,
};
#define TOCSIN_LEVEL_COUNT 6
// Return the requested level. Costs one clock read and one load; no lock and no system call.
enum tocsin_level tocsin_job_level(const struct tocsin_job *job);

// Return a descriptor that poll() reports as readable while events are queued. The library owns it,
// and its number is constant until the job is closed. Returns -1 if a callback receives the events.
int tocsin_job_fd(const struct tocsin_job *job);
// Fetch the oldest event. Returns 0, -EINVAL (struct_size), or -EAGAIN if no event is queued. At
// most 1024 events are queued; then the oldest are dropped. tocsin_comm_failed() always returns the
// whole failed set.
int tocsin_job_next_event(struct tocsin_job *job, struct tocsin_event *ret_event);

struct tocsin_comm_config {
	size_t struct_size;
	// Identity of the communicator, equal on all its ranks. With NCCL: the communicator hash,
	// and the host and process hash of rank 0. A library without such hashes chooses a number
	// on which its ranks agree, and two zeros. No other communicator of the user may have the
	// same number at the same time; a later attempt of the job may.
	uint64_t comm_hash, host_hash, process_hash;
	uint32_t size;			  // number of ranks, 1 to 2^20
	uint32_t rank;			  // below size
	int16_t cuda_device, nvml_device; // -1: none, or unknown
	// Hash of settings that must be equal on all ranks (algorithm choices, library version,
	// environment); 0: not given.
	uint64_t configuration_hash;
	uint32_t flags;	  // TOCSIN_COMM_...
	void *context;	  // passed on in events
	const char *name; // shown to users, at most 31 bytes; NULL: none
};
#define TOCSIN_COMM_NO_STARTED 1u   // tocsin_comm_started() is never called
#define TOCSIN_COMM_NO_COMPLETED 2u // tocsin_comm_completed() is never called
#define TOCSIN_COMM_BLOCKS 4u	    // a launch returns after the operation has completed (MPI)
#define TOCSIN_COMM_TIMES 8u	    // each call reads the clock, so that waits can be compared
#define TOCSIN_COMM_ABORTS 16u	    // tocsin_comm_should_abort() becomes true when a member is gone

// Set the size, and mark all optional fields as unknown. The caller fills hashes, size and rank.
static inline void tocsin_comm_config_init(struct tocsin_comm_config *config) {
	*config = TOCSIN_INIT(struct tocsin_comm_config);
	config->cuda_device = config->nvml_device = -1;
}

// Register one rank of a communicator. Returns 0, -EINVAL (size, rank, struct_size), -ENOMEM, or
// -ENOSPC (a job has at most 127 communicators; a process may open another job). The agent may
// refuse it later; then tocsin_comm_state() has the reason.
int tocsin_comm_register(
	struct tocsin_job *job,
	const struct tocsin_comm_config *config,
	struct tocsin_comm **ret_comm
);
// Unregister a communicator. NULL is allowed. After the return no event of the communicator is
// delivered.
void tocsin_comm_unregister(struct tocsin_comm *comm);

// Return whether the agent knows the communicator, and the reason if not, like tocsin_job_state().
enum tocsin_job_state tocsin_comm_state(struct tocsin_comm *comm, char *text, size_t size);

// Count one operation. It is launched when the rank calls it, and started when the device or the
// library begins it. It is completed when it has ended. `count` and `datatype` are the caller's own
// numbers; they are compared between ranks and otherwise only shown. `root` is -1 if the operation
// has none, and the peer for send and receive.
void tocsin_comm_launched(
	struct tocsin_comm *comm,
	enum tocsin_kind kind,
	uint64_t count,
	uint8_t datatype,
	int32_t root
);
void tocsin_comm_started(struct tocsin_comm *comm, enum tocsin_kind kind);
void tocsin_comm_completed(struct tocsin_comm *comm, enum tocsin_kind kind);

// Count in a slot of the caller's own. The caller must ensure that only one thread at a time uses
// the slot. Concurrent use loses counts, and has no other effect. The slot is freed with the
// communicator. Returns 0 or -ENOSPC.
struct tocsin_counter;
int tocsin_comm_counter(struct tocsin_comm *comm, struct tocsin_counter **ret_counter);
void tocsin_counter_launched(
	struct tocsin_counter *counter,
	enum tocsin_kind kind,
	uint64_t count,
	uint8_t datatype,
	int32_t root
);
void tocsin_counter_started(struct tocsin_counter *counter, enum tocsin_kind kind);
void tocsin_counter_completed(struct tocsin_counter *counter, enum tocsin_kind kind);
// Record that all operations up to the n-th launch have started, or completed; a smaller n than
// before is ignored. For callers that do not see each operation: only the totals rise, not those by
// kind.
void tocsin_counter_started_to(struct tocsin_counter *counter, uint64_t n);
void tocsin_counter_completed_to(struct tocsin_counter *counter, uint64_t n);

// Counts of one rank. Send, receive and one-sided operations involve two ranks and count only in
// their kind. All other kinds make up the totals, by which ranks are compared.
struct tocsin_counts {
	size_t struct_size;
	uint64_t launched, started, completed; // all kinds but send, receive and one_sided
	uint64_t signatures_lost; // operations whose kind, count and root could not be kept
	uint64_t launched_of[TOCSIN_KIND_ROOM];
	uint64_t started_of[TOCSIN_KIND_ROOM];
	uint64_t completed_of[TOCSIN_KIND_ROOM];
};
// Read the counts of this process over all threads, as the agent reads them. `completed` is never
// above `started`, if started operations are counted. `started` is never above `launched`. Returns
// 0 or -EINVAL.
int tocsin_comm_counts(struct tocsin_comm *comm, struct tocsin_counts *ret_counts);

enum tocsin_mark {
	TOCSIN_MARK_INIT,	 // value: 0 done, 7 in progress, else the error of NCCL or MPI
	TOCSIN_MARK_ASYNC_ERROR, // value: the error; 0: none
	TOCSIN_MARK_FINALIZED,	 // value: 1
	TOCSIN_MARK_DESTROYED,	 // value: 1
	TOCSIN_MARK_ABORTED,	 // value: 1, or tocsin_abort_value()
	// First operation whose start, or completion, is reported, if the reporting began late. The
	// value is the number of the operation, or UINT64_MAX if the reporting has ended.
	TOCSIN_MARK_STARTED_FROM,
	TOCSIN_MARK_COMPLETED_FROM,
	// Value: 1 or tocsin_posted_value() while an operation is open that was only posted, else
	// 0. Although the communicator has TOCSIN_COMM_BLOCKS, its caller may then do other work.
	TOCSIN_MARK_POSTED,
	// Value: job_call_pack() of <tocsin/job_page.h> while the rank is inside a call that waits
	// for other ranks and is no collective operation, else 0. For ranks of one thread.
	TOCSIN_MARK_CALL,
};
// Value of TOCSIN_MARK_ABORTED for a rank that ends all ranks with this code, as MPI_Abort does.
static inline uint64_t tocsin_abort_value(int32_t code) {
	return UINT64_C(1) << 32 | (uint32_t)code;
}
// Value of TOCSIN_MARK_POSTED: the number of posted operations that this rank does not wait for,
// and whether the oldest operation that has not completed is one of them.
static inline uint64_t tocsin_posted_value(uint32_t unwaited, bool oldest_is_unwaited) {
	return (uint64_t)unwaited << 2 | (oldest_is_unwaited ? 2 : 0) | 1;
}
// Set a mark of the communicator's life cycle. Before the first mark it is initialised and without
// error. Marks outlive the process. Returns 0, or -EINVAL (no such mark, or a state or error above
// 255).
int tocsin_comm_mark(struct tocsin_comm *comm, enum tocsin_mark mark, uint64_t value);

// Report that this rank saw `rank` fail, for example by a transport error or a timeout. The agent
// logs the report; it declares no rank gone because of it. Returns 0, -EINVAL, or -ENOTCONN (no
// agent is connected, or 64 reports are queued).
int tocsin_comm_report(struct tocsin_comm *comm, uint32_t rank, const char *reason);

// Return whether a member is gone; always false without TOCSIN_COMM_ABORTS. One load, and safe in a
// signal handler. The value becomes true before the event TOCSIN_COMM_SHOULD_ABORT is delivered.
bool tocsin_comm_should_abort(const struct tocsin_comm *comm);

enum tocsin_agreement {
	TOCSIN_AGREED,	  // every survivor that receives this view receives this set
	TOCSIN_UNDECIDED, // this partition of the cluster has no majority, or no agent is connected
};
struct tocsin_failed_set {
	size_t struct_size;
	enum tocsin_agreement agreement;
	uint64_t view; // view of the last agreed set; 0: no rank failed
	uint32_t count;
};
// Return the failed ranks, ascending; at most `rank_max` are written to ret_ranks, which may be
// NULL if rank_max is 0. The set of a larger view contains that of a smaller one. Returns 0 or
// -EINVAL.
int tocsin_comm_failed(
	struct tocsin_comm *comm,
	struct tocsin_failed_set *ret_set,
	uint32_t *ret_ranks,
	uint32_t rank_max
);
// Wait until the view is greater than `view`. Returns 0, or -ETIMEDOUT after timeout_ns.
int tocsin_comm_wait_failed(struct tocsin_comm *comm, uint64_t view, uint64_t timeout_ns);

#ifdef __cplusplus
}
#endif
