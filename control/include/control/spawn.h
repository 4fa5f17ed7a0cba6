// SPDX-License-Identifier: BSD-3-Clause
// Runs programs without ever forking the agent: a helper process, forked while there was one
// thread and little memory, starts them, holds them to a deadline and hands back what they said.
//
//	spawn_fork()    first thing in main(): the helper is there
//	spawn_create()  once there is a loop: requests can be made
//
// A program runs in a process group of its own, with standard input from /dev/null or of the
// bytes given, no other descriptors, default signals, the first place when somebody has to go for
// want of memory, and the agent's environment less what a service manager put there. As another
// user it has that user's groups, and HOME, USER and LOGNAME; who that is is looked up in its own
// process, so that a directory service that hangs costs the program its deadline and nobody else.
//
// At its deadline the group gets SIGTERM, SPAWN_GRACE_NS later SIGKILL. When the program itself has
// ended, what is left of its group is killed: nothing may go on behind the answer. Only a process
// that makes a group of its own gets away.
//
// One that is still there SPAWN_STUCK_NS after SIGKILL hangs in the kernel, where nothing reaches
// it: that is told once, it is not waited for, and its place is another's from then on. The answer
// follows if it ends after all.
//
// At most SPAWN_RUNNING_MAX run at once, the rest waits here. The helper ends with the agent,
// however that ends, and takes the programs with it. If the helper ends alone, every request ends
// as lost, and no more are taken: a process with threads cannot be forked safely, so only a restart
// of the agent brings it back.
#pragma once

#include <control/loop.h>

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct spawn;
struct spawn_job;

#define SPAWN_RUNNING_MAX 8
#define SPAWN_PENDING_MAX 64 // running, stuck and waiting
#define SPAWN_ARGUMENTS_MAX 64
#define SPAWN_ARGUMENT_BYTES_MAX 16384 // all together, with their NULs
#define SPAWN_INPUT_BYTES_MAX 16384
#define SPAWN_OUTPUT_BYTES_MAX 32768 // of one stream
#define SPAWN_USER_BYTES_MAX 64	     // of a name, with its NUL
#define SPAWN_GRACE_NS UINT64_C(500000000)
#define SPAWN_STUCK_NS UINT64_C(2000000000)
#define SPAWN_COMM_BYTES 16
#define SPAWN_WCHAN_BYTES 48

struct spawn_helper {
	int fd;
	pid_t pid;
};

// Only while the process has one thread. -errno of socketpair() or fork(). The helper never
// returns from here.
int spawn_fork(struct spawn_helper *ret_helper);
// Of one that spawn_create() did not take over. It may be {-1, 0}.
void spawn_helper_end(struct spawn_helper *helper);

enum spawn_end {
	SPAWN_EXITED,	   // status: what it exited with
	SPAWN_SIGNALLED,   // status: the signal
	SPAWN_TIMED_OUT,   // at its deadline it was ended
	SPAWN_NOT_STARTED, // status: -errno of pipe(), fork() or exec(), or SPAWN_NO_USER
	SPAWN_LOST,	   // the helper is gone, and the answer with it
};

#define SPAWN_NO_USER (-ENOKEY) // status: there is no such user

const char *spawn_end_name(enum spawn_end end);
// Of SPAWN_NOT_STARTED, in words.
const char *spawn_failure_text(int status);

struct spawn_text {
	const char *bytes; // as the program wrote them: anything; not terminated
	size_t size;
	bool cut; // there was more
};

struct spawn_result {
	enum spawn_end end;
	int status;
	uint64_t took_ns;
	struct spawn_text out, err; // gone when ended() returns
};

// A process of the program that SIGKILL did not end, as /proc shows it.
struct spawn_stuck {
	int32_t pid;
	char state;		     // D: waits in the kernel
	char comm[SPAWN_COMM_BYTES]; // any bytes
	char wchan
		[SPAWN_WCHAN_BYTES]; // the function of the kernel it waits in; "" if it is not told
};

// What is run. Copied.
struct spawn_program {
	const char *const *argv; // ends in NULL; argv[0] is sought in PATH unless it holds a slash
	const char *user;	 // NULL: the agent's own; any other needs root
	const void *input;	 // for standard input; NULL: it is at its end
	size_t input_bytes;
	uint64_t timeout_ns; // from when it starts
	uint32_t output_max; // bytes kept of each stream
};

struct spawn_request {
	// Once; never from inside spawn_run(). It may run, cancel, but not destroy.
	void (*ended)(struct spawn_request *request, const struct spawn_result *result);
	// At most once, before ended(). It may do what that may. May be NULL.
	void (*stuck)(struct spawn_request *request, const struct spawn_stuck *stuck);
	struct spawn_job *job; // private; NULL: not under way
};

struct spawn_counters {
	uint64_t runs;	    // programs asked for
	uint64_t refused;   // of these, not taken for want of room or helper
	uint64_t timed_out; // ended at their deadline
	uint64_t failed;    // could not be started
	uint64_t lost;	    // with the helper
	uint64_t stuck;	    // not ended by SIGKILL
	uint64_t helper_lost;
};

// The loop's thread, as all below. The helper becomes the spawn's: *helper is {-1, 0} afterwards.
// -ENOMEM, or what the loop says.
int spawn_create(struct loop *loop, struct spawn_helper *helper, struct spawn **ret_spawn);
// Programs are killed, nobody is answered. Waits for the helper, at most a second.
struct spawn *spawn_destroy(struct spawn *spawn);

// -EAGAIN (SPAWN_PENDING_MAX under way), -E2BIG (arguments, input or user), -EINVAL (no arguments;
// output_max), -EPIPE (the helper is gone), -ENOMEM.
int spawn_run(
	struct spawn *spawn, const struct spawn_program *program, struct spawn_request *request
);
// Ends the program's group at once, and the request without an answer.
void spawn_cancel(struct spawn_request *request);

// Whether requests are taken at all.
bool spawn_is_alive(const struct spawn *spawn);
const struct spawn_counters *spawn_counters(const struct spawn *spawn);
