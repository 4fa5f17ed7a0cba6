// SPDX-License-Identifier: BSD-3-Clause
// The jobs of this node: processes that speak <tocsin/job.h>, the ranks they hold, and their end.
//
// It serves the job socket (<tocsin/job_socket.h>), copies each process's page once a second, and
// is told by a pidfd alone that a process has ended. A job can hurt its own report and no more: of
// a page nothing is believed, a process has as many communicators and packets as it may have, a
// user as many processes. A communicator is known by its key and its user: nobody is told of
// another user's.
//
// Which agent holds which rank is asked for once, by COMMS, and told to all agents of the
// communicator: of a node that is down on both planes, in a part with the majority, all ranks are
// gone. An agent alone that ends, restarts or is not heard makes nobody gone.
//
// Who is gone is agreed on by one agent for all: that of the lowest rank which is left, and only in
// a part of the cluster that has the majority. It numbers the sets; the number names its rank, its
// start and a count, so that no two agents ever use the same. All of it is the loop's.
#pragma once

#include <control/loop.h>

#include <jobs/judge.h>
#include <jobs/report.h>
#include <stddef.h>

struct health;
struct jobhost;
struct overlay;
struct sock_addr;

#define JOBHOST_DETAIL_BYTES 256

struct jobhost_config {
	const char *socket_path;
	uint32_t processes_max; // of all users
	uint32_t per_user_max;
	uint32_t keep_max; // processes that ended and are still shown
	uint64_t keep_ns;
	// Where NCCL's own RAS of a job here would answer, on loopback; NULL: nobody is asked. Used
	// by jobhost_create() alone.
	const struct sock_addr *nccl_ras;
	// Whether this part of the cluster has the majority, and how others are told. NULL: a node
	// that is alone.
	struct overlay *overlay;
	const struct health *health; // NULL: nobody says that a node is down
	struct jobs_limits limits;   // when a communicator waits, and is stuck
};

// -ENOMEM, or what the socket said, with words: -EADDRINUSE where another agent answers there.
int jobhost_create(
	struct loop *loop,
	const struct jobhost_config *config,
	char ret_detail[static JOBHOST_DETAIL_BYTES],
	struct jobhost **ret_host
);
// The jobs go on; a later agent finds them.
struct jobhost *jobhost_destroy(struct jobhost *host);

// The ranks, of ended processes as well. What is at a place may change with each turn of the loop.
// `host` is a struct jobhost, as a table of functions hands it on.
uint32_t jobhost_count(void *host);
int jobhost_at(void *host, uint32_t n, struct jobs_rank_report *ret_report); // -ENOENT

#define JOBHOST_LEVEL_MAX_NS UINT64_C(86400000000000)

// Asks the processes of a job on all nodes, those that start later as well, for a level of
// docs/jobs-nccl.md ("default": none is asked for any more), for at most JOBHOST_LEVEL_MAX_NS; the
// newest order for a job holds. job: its id, with or without the scheduler and the step, or "" for
// all jobs. -EINVAL (no level is called so), -ENAMETOOLONG (the job), -ENOSPC (64 orders hold).
int jobhost_ask_level(struct jobhost *host, const char *level, uint64_t for_ns, const char *job);

// Jobs with ranks here, for series of their own: at most so many, and of a user half of them.
#define JOBHOST_JOBS_MAX 32
#define JOBHOST_ID_BYTES 64
struct jobhost_job {
	char id[JOBHOST_ID_BYTES]; // "": it has none
	uint32_t user;
	uint32_t ranks;		 // of communicators, here
	uint32_t gone;		 // of its communicators, on all nodes
	uint32_t waiting, stuck; // communicators
};
// How many there are in ret_jobs; ret_left are the processes of others.
uint32_t jobhost_jobs(
	const struct jobhost *host,
	struct jobhost_job ret_jobs[static JOBHOST_JOBS_MAX],
	uint32_t *ret_left
);

struct jobhost_counters {
	uint32_t processes, ranks, kept; // now
	uint32_t placed;		 // ranks of communicators here whose node is known
	uint32_t waiting, stuck;	 // communicators here whose ranks were told so
	uint64_t stalls;		 // times that one was found stuck
	uint64_t accepted, refused;	 // processes
	uint64_t exits, gone;		 // processes that ended; ranks that others were told of
	uint64_t packets_bad;		 // connections ended for a packet that made no sense
	uint64_t pages_bad;		 // looks at a page that could not be read
	uint64_t reports;		 // of a rank by another one
	uint64_t notices;		 // to other agents
};
const struct jobhost_counters *jobhost_counters(const struct jobhost *host); // live as long as it
