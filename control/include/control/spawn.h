// SPDX-License-Identifier: BSD-3-Clause
// Runs programs without ever forking the agent. A helper process starts them, enforces their
// deadlines and returns their output. It is forked while the agent has one thread and little
// memory.
//
//	spawn_fork()    first call in main(): forks the helper
//	spawn_create()  once there is a loop: from now on, programs can be run
//
// A program runs in its own process group, with default signals. Its standard input is /dev/null or
// the bytes given; it inherits no other descriptor. The kernel's OOM killer chooses it before the
// agent. Its environment is the agent's, without the variables of the service manager. A program of
// another user gets that user's groups, HOME, USER and LOGNAME. The user is looked up in the
// program's own process: a directory service that hangs costs only the program its deadline.
//
// Only root, the agent's user and the user of the program may be able to write to a program and to
// the directories of its resolved path. This is checked before each exec(), in the program's own
// process, so a file system that hangs costs only the program its deadline. The resolved path is
// executed, so only these users can exchange the program after the check. Interpreters and files
// that a program reads are not checked.
//
// At the deadline, the group gets SIGTERM, and SPAWN_GRACE_NS later SIGKILL. When the program
// itself has ended, the rest of its group is killed: nothing runs on after the answer. Only a
// process that creates its own group escapes.
//
// A program that still exists SPAWN_STUCK_NS after SIGKILL hangs in the kernel, where no signal
// reaches it. That is reported once. Nothing waits for the program, and its slot becomes free. If
// it ends later, the answer follows.
//
// An agent that is not root asks the root helper (tocsin-root.service) for programs of other users.
// The request then has the name of the program only, and the root helper finds its words and its
// user in a file of root. spawn_create_named() makes the agent's end of the connection, and
// spawn_serve_named() the other one.
//
// At most SPAWN_RUNNING_MAX programs run at once; further requests are queued here. The helper ends
// with the agent, for whatever reason, and kills the programs. If the helper alone ends, every
// request ends as lost and new ones are rejected. Only a restart of the agent brings the helper
// back, because a process with threads cannot be forked safely.
#pragma once

#include <control/loop.h>
#include <lib/file_trust.h>
#include <lib/proc_stat.h>

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct spawn;
struct spawn_job;

#define SPAWN_RUNNING_MAX 8
#define SPAWN_PENDING_MAX 64 // running, stuck and queued programs
#define SPAWN_ARGUMENTS_MAX 64
#define SPAWN_ARGUMENT_BYTES_MAX 16384 // all arguments together, with their NULs
#define SPAWN_INPUT_BYTES_MAX 16384
#define SPAWN_OUTPUT_BYTES_MAX 32768 // per stream
#define SPAWN_USER_BYTES_MAX 64	     // of a user name, with its NUL
#define SPAWN_GRACE_NS UINT64_C(500000000)
#define SPAWN_STUCK_NS UINT64_C(2000000000)
#define SPAWN_COMM_BYTES PROC_STAT_COMM_BYTES
#define SPAWN_WCHAN_BYTES 48

struct spawn_helper {
	int fd;
	pid_t pid;
};

// Fork the helper. Call only while the process has one thread. Returns 0, or -errno of socketpair()
// or fork(). The helper process itself never returns from this call.
int spawn_fork(struct spawn_helper *ret_helper);
// End a helper that spawn_create() did not take over. `*helper` may be {-1, 0}.
void spawn_helper_end(struct spawn_helper *helper);

enum spawn_end {
	SPAWN_EXITED,	 // status: the exit status
	SPAWN_SIGNALLED, // status: the signal number
	SPAWN_TIMED_OUT, // killed at its deadline
	// status: -errno of pipe(), fork() or exec(), or one of the values below
	SPAWN_NOT_STARTED,
	// The helper has died, so the result is unknown. status: of the root helper -ECONNRESET if
	// it closed its connection, -ETIMEDOUT if it did not answer; else 0.
	SPAWN_LOST,
};

// Values of status that are no errors of a system call.
#define SPAWN_NO_USER (-ENOKEY)	      // no such user
#define SPAWN_REFUSED (-EKEYREJECTED) // not trusted; `err` of the result has the reason
#define SPAWN_NOT_LISTED (-ENOMSG)    // the root helper has no program of this name with a user
#define SPAWN_BAD_CONFIG (-ENOTUNIQ)  // the root helper cannot use its configuration

const char *spawn_end_name(enum spawn_end end);
// Return the text for the status of SPAWN_NOT_STARTED.
const char *spawn_failure_text(int status);

struct spawn_text {
	const char *bytes; // raw output of the program; any bytes, not terminated
	size_t size;
	bool cut; // the output was longer
};

struct spawn_result {
	enum spawn_end end;
	int status;
	uint64_t took_ns;
	struct spawn_text out, err; // valid until ended() returns
};

// A process of the program that survived SIGKILL, from /proc.
struct spawn_stuck {
	int32_t pid;
	char state;		     // process state; D: waits in the kernel
	char comm[SPAWN_COMM_BYTES]; // process name; any bytes
	// Kernel function in which the process waits; "" if unknown.
	char wchan[SPAWN_WCHAN_BYTES];
};

// The program to run. Copied.
struct spawn_program {
	const char *const *argv; // NULL-terminated; argv[0] is a path with a slash
	const char *user;	 // NULL: the agent's own user; another user needs root
	const void *input;	 // standard input; NULL: empty
	size_t input_bytes;
	uint64_t timeout_ns; // from the start of the program
	uint32_t output_max; // bytes kept of each stream
};

struct spawn_request {
	// Called once, never from inside spawn_run(). The callback may run and cancel requests, but
	// not destroy the spawn.
	void (*ended)(struct spawn_request *request, const struct spawn_result *result);
	// Called at most once, before ended(), if the program hangs in the kernel. The same rules
	// apply. May be NULL.
	void (*stuck)(struct spawn_request *request, const struct spawn_stuck *stuck);
	struct spawn_job *job; // private; NULL: no request pending
};

struct spawn_counters {
	uint64_t runs;	    // programs requested
	uint64_t refused;   // requests rejected: no free slot, or no helper
	uint64_t timed_out; // killed at their deadline
	uint64_t failed;    // not started
	uint64_t lost;	    // lost with the helper, or with the root helper
	uint64_t stuck;	    // survived SIGKILL
	uint64_t helper_lost;
};

// Create the spawn and take over the helper; *helper is {-1, 0} afterwards. Returns 0, -ENOMEM, or
// the error of the loop. This call and all below: loop thread only.
int spawn_create(struct loop *loop, struct spawn_helper *helper, struct spawn **ret_spawn);
// Create a spawn for the programs of a root helper, which listens at `path` (SOCK_SEQPACKET). The
// first program connects; after a loss, the next one does. argv of each program is its name alone,
// and its user is NULL. Counts in the counters of `main`, which must outlive it. Returns 0, -ENOMEM
// or -ENAMETOOLONG.
int spawn_create_named(
	struct loop *loop, const char *path, struct spawn *main, struct spawn **ret_spawn
);
// Kill all programs without answering their requests, and wait at most one second for the helper.
struct spawn *spawn_destroy(struct spawn *spawn);

// Run a program. Returns 0, -EAGAIN (SPAWN_PENDING_MAX pending), -EPIPE (the helper has died),
// -ENOTCONN (no root helper listens) or -ENOMEM. Returns -E2BIG if arguments, input or user are too
// long, and -EINVAL for no arguments, a path without a slash or a bad output_max.
int spawn_run(
	struct spawn *spawn, const struct spawn_program *program, struct spawn_request *request
);
// Kill the program's group at once; the request gets no answer.
void spawn_cancel(struct spawn_request *request);

// Resolve the path of a program, and check that only root, the caller's effective user and `user`
// could have changed it. The caller frees *ret_resolved. Returns 0, or SPAWN_REFUSED, -ENOMEM or
// the error of realpath() or lstat(), with an explanation. May block on the file system. Any
// thread.
int spawn_program_resolve(
	const char *path,
	uid_t user,
	char ret_detail[static FILE_TRUST_DETAIL_BYTES],
	char **ret_resolved
);

const struct spawn_counters *spawn_counters(const struct spawn *spawn);

// A named program, found by the root helper.
struct spawn_named {
	char text[SPAWN_ARGUMENT_BYTES_MAX]; // storage of argv
	char *argv[SPAWN_ARGUMENTS_MAX + 1];
	char user[SPAWN_USER_BYTES_MAX]; // never empty: no program runs as the helper's own user
	bool takes_input;
};

// Find a program by its name, which the agent chose. Returns 0, SPAWN_NOT_LISTED, SPAWN_BAD_CONFIG
// or another -errno.
typedef int spawn_find_fn(void *ctx, const char *name, struct spawn_named *ret_named);

// Serve an agent that this process does not trust. Start only programs that `find` knows, each as
// its user. Exit when the agent closes the connection, or sends a malformed order.
_Noreturn void spawn_serve_named(int fd, spawn_find_fn *find, void *ctx);
