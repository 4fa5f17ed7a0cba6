// SPDX-License-Identifier: BSD-3-Clause
// The jobs of this node: processes that use <tocsin/job.h>, their ranks, and their end.
//
// It serves the job socket (<tocsin/job_socket.h>) and copies the page of each process once a
// second. Only a pidfd reports that a process has ended. A job can falsify its own report and
// nothing else. Nothing in its page is trusted. The communicators and packets of a process, and the
// processes of a user, are limited. A communicator is identified by its key and its user, so no
// user learns of another user's.
//
// The collective COMMS finds which agent holds which rank, and the result goes to all agents of the
// communicator. If a node is down on both planes, its ranks are gone, provided that this partition
// side has the majority. An agent that only ends, restarts or is silent makes no rank gone.
//
// One agent decides for all which ranks are gone: the agent of the lowest remaining rank, and only
// on the partition side with the majority. It numbers each set of gone ranks. The number contains
// its rank, its start and a counter, so two agents never use the same number. Loop thread only.
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
	uint32_t processes_max; // limit for all users together
	uint32_t per_user_max;
	uint32_t keep_max; // ended processes that are still shown
	uint64_t keep_ns;
	// Address of NCCL's own RAS of a job on this node, on loopback; NULL: do not ask NCCL. Only
	// jobhost_create() reads it.
	const struct sock_addr *nccl_ras;
	// Overlay to find the majority and to notify other agents; NULL: a single node.
	struct overlay *overlay;
	const struct health *health; // verdicts that declare nodes down; NULL: none
	struct jobs_limits limits;   // when a communicator counts as waiting, and when as stuck
};

// Returns 0, -ENOMEM, or the error of the socket with an explanation; -EADDRINUSE if another agent
// serves the socket.
int jobhost_create(
	struct loop *loop,
	const struct jobhost_config *config,
	char ret_detail[static JOBHOST_DETAIL_BYTES],
	struct jobhost **ret_host
);
// The jobs continue; the next agent finds them again.
struct jobhost *jobhost_destroy(struct jobhost *host);

// Store pointers to the reports of at most `max` ranks, including those of ended processes, and
// return their number. The pointers are valid until the turn of the loop ends. Users share the room
// equally, and none gets more than some thousand ranks. The reports of a user are sorted by
// jobs_report_compare(), and users with fewer ranks come first.
uint32_t jobhost_select_reports(
	struct jobhost *host, const struct jobs_rank_report **ret_reports, uint32_t max
);
// Count selected reports that had no room in the answer.
void jobhost_count_unshown(struct jobhost *host, uint32_t count);

// Ranges of subordinate uids (/etc/subuid). The users of a range share one quota with its owner.
struct subuids;
#define JOBHOST_SUBUID_FILE "/etc/subuid"
// Read the ranges of a file, in the format of subuid(5); any thread. A line that is no valid range,
// or that holds uid 0, is ignored. So is everything beyond 1 MiB or 16384 ranges. Returns NULL if
// the file cannot be read or holds no range, or if memory is short.
struct subuids *subuids_read(const char *path);
void subuids_destroy(struct subuids *subuids); // NULL is ignored
// Use these ranges, and own them, for users who connect from now on. NULL: none.
void jobhost_use_subuids(struct jobhost *host, struct subuids *subuids);

#define JOBHOST_LEVEL_MAX_NS UINT64_C(86400000000000)

// Ask the processes of a job on all nodes, also those that start later, for a level of
// docs/jobs-nccl.md. The level "default" ends the request. The request holds for at most
// JOBHOST_LEVEL_MAX_NS, and the newest one of a job counts. `job` is a job id, with or without
// scheduler and step, or "" for all jobs. Returns 0, -EINVAL (unknown level), -ENAMETOOLONG (`job`)
// or -ENOSPC (64 requests hold).
int jobhost_request_level(
	struct jobhost *host, const char *level, uint64_t for_ns, const char *job
);

// The jobs with ranks on this node, for metrics. One user gets at most half of the entries.
#define JOBHOST_JOBS_MAX 32
#define JOBHOST_ID_BYTES 64
struct jobhost_job {
	char id[JOBHOST_ID_BYTES]; // "": no id
	uint32_t user;
	uint32_t ranks;		 // local ranks in communicators
	uint32_t gone;		 // gone ranks of its communicators, on all nodes
	uint32_t waiting, stuck; // communicators in this state
};
// Fill ret_jobs and return the number of jobs, as the last round of samples found them. ret_left
// counts the processes of jobs that did not fit.
uint32_t jobhost_jobs(
	const struct jobhost *host,
	struct jobhost_job ret_jobs[static JOBHOST_JOBS_MAX],
	uint32_t *ret_left
);

struct jobhost_counters {
	uint32_t processes, ranks, kept; // current numbers
	uint32_t unshown;		 // ranks that the last answer to COMMS left out
	uint32_t placed;	    // ranks of local communicators whose node is known; current
	uint32_t waiting, stuck;    // local communicators in this state; current
	uint64_t stalls;	    // times that a communicator became stuck
	uint64_t accepted, refused; // processes registered, processes rejected
	uint64_t exits, gone;	    // ended processes; ranks that became gone
	uint64_t packets_bad;	    // connections ended because of an invalid packet
	uint64_t pages_bad;	    // failed reads of a process page
	uint64_t reports;	    // reports of one rank about another
	uint64_t notices;	    // notices to other agents
};
// valid as long as host
const struct jobhost_counters *jobhost_counters(const struct jobhost *host);
