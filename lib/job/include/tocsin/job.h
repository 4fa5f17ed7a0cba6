// SPDX-License-Identifier: BSD-3-Clause
// libtocsin: what a job tells the Tocsin agent of its node, and is told by it.
//
// A process opens a job, registers the communicators it is a rank of, and counts their operations.
// The agent reads the counts, finds who is missing, waiting or slow (`tocsin comms`, `tocsin why`),
// and tells each process when another rank of its communicators is gone.
//
// Without an agent nothing happens and nothing fails: the library looks for its socket again
// every few seconds. A dead, restarted or refusing agent never changes what a job does.
//
// Threads: every function may be called from any thread at any time, but for two rules: nothing
// uses a communicator that is being unregistered, and nothing uses a job that is being closed.
// Counting takes no lock, makes no system call and allocates nothing, but for the first operation
// of a thread on a communicator, which takes a lock and a slot for the two. A thread that ends
// leaves its slot, with what it counted, to the next one.
// Fork: the child of fork() is no part of the job. Its calls succeed and reach nobody; it may open
// a job of its own. exec() closes all descriptors of the library.
// Signals: the library's thread blocks all signals. No function may be called from a handler, but
// for tocsin_comm_should_abort().
// Errors: 0 or a negated errno, outputs untouched on failure.
//
// ABI: structs that a caller fills begin with their own size, so that a program of today runs with
// a library of tomorrow and the other way round; what an older side does not know is 0.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TOCSIN_JOB_VERSION 1 // of this interface; see tocsin_job_version()

struct tocsin_job;  // of one process
struct tocsin_comm; // one rank of one communicator

// What an operation does. The first five are in the order of NCCL's own report.
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

// "all_reduce"; "?" for what is none.
const char *tocsin_kind_name(enum tocsin_kind kind);

// TOCSIN_JOB_VERSION of the library that is loaded.
uint32_t tocsin_job_version(void);

enum tocsin_event_kind {
	TOCSIN_PEER_SUSPECT,	  // the rank's node is not heard; it may come back
	TOCSIN_PEER_UNREACHABLE,  // this part of the cluster cannot tell whether the rank lives
	TOCSIN_PEER_GONE,	  // the rank's process has ended, or its node is down: final
	TOCSIN_PEER_BACK,	  // a suspect or unreachable rank is there after all
	TOCSIN_COMM_WAITING,	  // no progress for 10 s; `rank` is the one waited for
	TOCSIN_COMM_STUCK,	  // no progress, and nothing explains it; nobody needs to abort
	TOCSIN_COMM_SHOULD_ABORT, // a member is gone: what is under way will not end
};
// "peer_gone"; "?" for what is none.
const char *tocsin_event_name(enum tocsin_event_kind kind);

#define TOCSIN_NO_RANK UINT32_MAX
#define TOCSIN_EVENT_TEXT_BYTES 160

struct tocsin_event {
	enum tocsin_event_kind kind;
	uint32_t rank;		  // of the communicator, or TOCSIN_NO_RANK
	struct tocsin_comm *comm; // still registered when it is told
	void *comm_context;	  // as it was registered with
	uint64_t view;		  // of the failed set, see tocsin_comm_failed(); 0: none yet
	uint64_t happened_ns;	  // when the agent saw it, on CLOCK_MONOTONIC of this host
	char text[TOCSIN_EVENT_TEXT_BYTES]; // what is known, in words: "killed by signal 9"
};

// Called on the library's own thread, one event at a time. It may call everything but
// tocsin_job_close() and tocsin_comm_unregister().
typedef void tocsin_event_function(void *context, const struct tocsin_event *event);

struct tocsin_job_config {
	size_t struct_size; // sizeof(struct tocsin_job_config)
	// The agent's job socket. NULL: TOCSIN_JOB_SOCKET in the environment, else
	// /run/tocsin/job.sock, else tocsin/job.sock in $XDG_RUNTIME_DIR.
	const char *socket_path;
	// What the scheduler calls the job, at most 63 bytes. NULL: from the environment, the first
	// of SLURM_JOB_ID (and SLURM_STEP_ID), FLUX_JOB_ID, PBS_JOBID, LSB_JOBID, JOB_ID.
	const char *job_id;
	// NULL: events are fetched by tocsin_job_next_event().
	tocsin_event_function *event;
	void *event_context;
	uint32_t flags; // TOCSIN_JOB_...
};
// No thread is started: the caller calls tocsin_job_poll(), and callbacks run inside it.
#define TOCSIN_JOB_NO_THREAD 1u

// Starts the library's thread and connects, now or later. `config` may be NULL, and is not kept.
// -EINVAL (a size, a text that is too long), -ENOMEM, -EAGAIN (no thread), -EMFILE, -ENFILE.
int tocsin_job_open(const struct tocsin_job_config *config, struct tocsin_job **ret_job);

// Unregisters what is left, ends the thread and frees. The agent knows that the process leaves on
// purpose. NULL is allowed.
void tocsin_job_close(struct tocsin_job *job);

enum tocsin_job_state {
	TOCSIN_JOB_ALONE,     // no agent there
	TOCSIN_JOB_CONNECTED, // the agent reads the counts
	TOCSIN_JOB_REFUSED,   // it said why; tried again every 30 s
};
// With the agent's reason, or that of the last failed try, in at most `size` bytes; "" if there is
// none. `text` may be NULL with size 0.
enum tocsin_job_state tocsin_job_state(struct tocsin_job *job, char *text, size_t size);

// With TOCSIN_JOB_NO_THREAD: what the thread would do now, and no waiting: connects if it is time,
// sends, receives. Once a second is enough; no call takes long. While one thread is in it, the call
// of another one, or of a callback, does nothing. -EDEADLK where there is a thread.
int tocsin_job_poll(struct tocsin_job *job);

// How much the agent asks the job to tell, for a time (`tocsin comms --level`), by the levels of
// docs/jobs-nccl.md. Whoever cannot tell more, or whose user has forbidden it, goes on as before.
enum tocsin_level {
	TOCSIN_LEVEL_DEFAULT, // the agent asks for nothing
	TOCSIN_LEVEL_LAUNCHES,
	TOCSIN_LEVEL_NETWORK,
	TOCSIN_LEVEL_SAMPLED,
	TOCSIN_LEVEL_KERNELS,
	TOCSIN_LEVEL_KERNELS_ALWAYS,
};
#define TOCSIN_LEVEL_COUNT 6
// The time and one load; no lock and no system call.
enum tocsin_level tocsin_job_level(const struct tocsin_job *job);

// A descriptor that poll() finds readable while events wait; the library keeps it, and it stays the
// same until the job is closed. -1 where a callback takes the events.
int tocsin_job_fd(const struct tocsin_job *job);
// 0, or -EAGAIN if no event waits. At most 1024 wait; of more the oldest are lost, and a failed set
// is asked for with tocsin_comm_failed() anyway.
int tocsin_job_next_event(struct tocsin_job *job, struct tocsin_event *ret_event);

struct tocsin_comm_config {
	size_t struct_size; // sizeof(struct tocsin_comm_config)
	// What makes the communicator one and the same on all ranks: NCCL's communicator hash, and
	// the host and process hash of its rank 0. A library without such hashes gives any number
	// that its ranks agree on and that no other communicator of the user has, and two zeros.
	uint64_t comm_hash, host_hash, process_hash;
	uint32_t size;			  // ranks it has, 1 to 2^20
	uint32_t rank;			  // below size
	int16_t cuda_device, nvml_device; // -1: none, or not known
	// Of what must be equal on all ranks (algorithm choices, library version, environment); 0:
	// not given.
	uint64_t configuration_hash;
	uint32_t flags;	  // TOCSIN_COMM_...
	void *context;	  // for events
	const char *name; // shown to people, at most 31 bytes; NULL: none
};
#define TOCSIN_COMM_NO_STARTED 1u   // tocsin_comm_started() is never called
#define TOCSIN_COMM_NO_COMPLETED 2u // tocsin_comm_completed() is never called
#define TOCSIN_COMM_BLOCKS 4u	    // a launch returns when the operation has completed (MPI)
#define TOCSIN_COMM_TIMES 8u	    // each call takes the time, so that waits can be compared
#define TOCSIN_COMM_ABORTS 16u	    // tocsin_comm_should_abort() rises when a member is gone

// Fields that mean "not known", and the size; the caller fills hashes, size and rank.
void tocsin_comm_config_init(struct tocsin_comm_config *config);

// -EINVAL (size, rank, struct_size), -ENOMEM, -ENOSPC (as many communicators as a process may have:
// 127). The agent may refuse it, which the job is not told but by tocsin_comm_state().
int tocsin_comm_register(
	struct tocsin_job *job,
	const struct tocsin_comm_config *config,
	struct tocsin_comm **ret_comm
);
// NULL is allowed. No event of it is being told when this returns, and none will be.
void tocsin_comm_unregister(struct tocsin_comm *comm);

// Whether the agent knows it, and if not, why not: as tocsin_job_state().
enum tocsin_job_state tocsin_comm_state(struct tocsin_comm *comm, char *text, size_t size);

// Counting, in the order of things: launched when the rank asks for an operation, started when the
// device or the library begins it, completed when it has ended. `count` and `datatype` are what the
// caller's library calls them, compared between ranks and otherwise only shown; `root` is -1 where
// there is none, and the peer for send and receive.
void tocsin_comm_launched(
	struct tocsin_comm *comm,
	enum tocsin_kind kind,
	uint64_t count,
	uint8_t datatype,
	int32_t root
);
void tocsin_comm_started(struct tocsin_comm *comm, enum tocsin_kind kind);
void tocsin_comm_completed(struct tocsin_comm *comm, enum tocsin_kind kind);

// The same with a place of the caller's own: for a library that has its threads, and knows that one
// at a time uses it. Two at once lose counts, and no more. It ends with the communicator. -ENOSPC.
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
// All operations up to the n-th launch have started, or completed; less than before does nothing.
// For those who do not see each of them: the totals alone rise, and not those of kinds.
void tocsin_counter_started_to(struct tocsin_counter *counter, uint64_t n);
void tocsin_counter_completed_to(struct tocsin_counter *counter, uint64_t n);

// Send, receive and one-sided operations concern two ranks: they count in their kind alone. All
// others make up the totals, by which ranks are compared.
struct tocsin_counts {
	size_t struct_size;		       // sizeof(struct tocsin_counts)
	uint64_t launched, started, completed; // of all kinds but send, receive and one_sided
	uint64_t launched_of[TOCSIN_KIND_COUNT];
	uint64_t started_of[TOCSIN_KIND_COUNT];
	uint64_t completed_of[TOCSIN_KIND_COUNT];
	uint64_t signatures_lost; // of operations whose kind, count and root could not be kept
};
// What this process has counted on all its threads, as the agent reads it: never more completed
// than started (where started is counted), never more started than launched. -EINVAL.
int tocsin_comm_counts(struct tocsin_comm *comm, struct tocsin_counts *ret_counts);

enum tocsin_mark {
	TOCSIN_MARK_INIT,	 // value: 0 done, 7 in progress, else NCCL's or MPI's own error
	TOCSIN_MARK_ASYNC_ERROR, // value: the error; 0 none
	TOCSIN_MARK_FINALIZED,	 // value: 1
	TOCSIN_MARK_DESTROYED,	 // value: 1
	TOCSIN_MARK_ABORTED,	 // value: 1
	// From which operation on started, or completed, is told, where that began late; value: the
	// number of the first, or UINT64_MAX for not any more.
	TOCSIN_MARK_STARTED_FROM,
	TOCSIN_MARK_COMPLETED_FROM,
};
// Where the communicator is in its life; before the first mark it is initialised and without error.
// Marks outlive the process. -EINVAL (no such mark, or a state or error above 255).
int tocsin_comm_mark(struct tocsin_comm *comm, enum tocsin_mark mark, uint64_t value);

// This rank has seen `rank` fail (a transport error, a timeout of its own), in words. It makes the
// agent look; it declares nobody gone by itself. -EINVAL, -ENOTCONN (no agent is there).
int tocsin_comm_report(struct tocsin_comm *comm, uint32_t rank, const char *reason);

// Whether a member is gone, where TOCSIN_COMM_ABORTS asked for it, else always false: one load, and
// safe in a signal handler. It rises before the event TOCSIN_COMM_SHOULD_ABORT is told.
bool tocsin_comm_should_abort(const struct tocsin_comm *comm);

enum tocsin_agreement {
	TOCSIN_AGREED,	  // every survivor that is told this view is told this set
	TOCSIN_UNDECIDED, // this part of the cluster has no majority, or no agent is there
};
struct tocsin_failed_set {
	size_t struct_size; // sizeof(struct tocsin_failed_set)
	enum tocsin_agreement agreement;
	uint64_t view; // of the last set that was agreed on; 0: nobody failed
	uint32_t count;
};
// The ranks that failed, ascending, of which as many as `rank_max` are written to `ranks` (which
// may be NULL with 0). A set of a greater view contains that of a smaller one. -EINVAL.
int tocsin_comm_failed(
	struct tocsin_comm *comm,
	struct tocsin_failed_set *ret_set,
	uint32_t *ret_ranks,
	uint32_t rank_max
);
// Waits until the view is greater than `view`. 0, or -ETIMEDOUT after timeout_ns.
int tocsin_comm_wait_failed(struct tocsin_comm *comm, uint64_t view, uint64_t timeout_ns);

#ifdef __cplusplus
}
#endif
