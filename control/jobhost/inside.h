// SPDX-License-Identifier: BSD-3-Clause
// Private to this directory: the jobs of this node.
#pragma once

#include "joblook/comm_look.h"

#include <control/jobhost.h>
#include <control/overlay.h>
#include <ras/comms.h>
#include <tocsin/job.h>
#include <tocsin/job_page.h>
#include <tocsin/job_socket.h>

#include <sys/stat.h>
#include <sys/types.h>

#define JOBHOST_NOTICE (RAS_NOTICE_OWN_MIN + 2) // kind of the notices that carry exits and sets
#define SAMPLE_NS UINT64_C(1000000000)
#define SAMPLE_RUN_NS UINT64_C(5000000)	   // of the loop at one go, and a page more
#define SAMPLE_PAUSE_NS UINT64_C(20000000) // until it goes on
#define HELLO_NS UINT64_C(10000000000)	   // a connection that says nothing for so long is closed
#define WORK_LOOKS 10			   // a second apart: JOBS_WORK_WINDOW_NS
#define PACKETS_PER_TURN 16
#define WAITING_MAX 512	      // packets for one connection that its buffer has no room for
#define GONE_OF_USER 65536u   // ranks in all sets of a user
#define RANKS_A_PROCESS 8u    // of a user, for each process that it may have
#define EMPTY_COMMS_MAX 4096u // communicators without ranks here
#define CAUSE_BYTES 96
#define LEVEL_ORDERS_MAX 64u

// A rank that is known to be gone.
struct gone {
	uint32_t rank;
	uint64_t happened_ns;
	char cause[CAUSE_BYTES];
};

// Ranks that one node holds: first, first + stride, ...
struct roster_row {
	uint64_t node;
	uint32_t first, count, stride;
};

struct roster {
	struct roster_row *rows; // by node
	uint32_t count;
	uint32_t ranks; // in all rows
};

// What is told of a communicator that stands.
struct stall {
	enum tocsin_event_kind kind; // waiting or stuck
	uint32_t rank;		     // that is waited for, or TOCSIN_NO_RANK
	char text[TOCSIN_EVENT_TEXT_BYTES];
};

// What was told of a node that holds ranks of a communicator.
struct node_told {
	uint64_t node;
	enum tocsin_event_kind kind;
};

// A communicator with ranks here.
struct host_comm {
	struct host_comm *next;
	uint64_t comm_hash, host_hash, process_hash;
	uid_t uid;
	uint32_t size;
	struct host_rank *ranks; // here, by next_of_comm
	uint32_t gone_count;
	struct gone *gone; // by rank
	// What was agreed on: by whoever numbers for all.
	uint64_t view;
	uint32_t agreed_count;
	uint32_t *agreed;    // ascending
	uint64_t view_floor; // the largest number that a job has brought back
	// Until it is agreed on, others are told again.
	uint64_t tell_again_ns, tell_pause_ns;
	uint64_t empty_ns; // since when it has no rank here; 0: it has
	bool untold;	   // others were not told of what was agreed on
	// Which node holds which rank, as far as it is known; and when it is asked for next.
	struct roster roster;
	uint64_t ask_ns, ask_pause_ns;
	bool wants_roster;    // others were asked to tell it
	uint32_t roster_told; // rows that others were told of, of those that they are to be
	uint32_t roster_to_tell;
	uint64_t roster_told_ns; // when that began last
	// When all ranks are looked at again because those here stand; what they were told last,
	// of which rank; and when another agent told of it.
	uint64_t look_ns, look_pause_ns, heard_ns;
	uint32_t stall_kind, stall_rank; // enum tocsin_event_kind; 0: nothing
	bool looked_at;			 // the answer that is asked for is for it, too
	struct node_told *trouble;	 // by node: what the ranks here were told of it
	uint32_t trouble_count;
};

struct host_rank {
	struct host_rank *next;		// of its process
	struct host_rank *next_of_comm; // that live
	struct host_process *process;
	struct host_comm *comm; // NULL: its process has ended
	struct job_register told;
	uint64_t counted;  // of all counts, at the last look
	uint64_t since_ns; // when it was registered
	bool of_nccl;	   // its GPU is NCCL's word
	bool is_paged;	   // the page knew it at the last look
	struct jobs_rank_report report;
};

struct host_process {
	struct host_process *next;
	struct jobhost *host;
	pid_t pid, parent_pid;
	uid_t uid;
	uint64_t start_time;
	ino_t page_inode;
	int page_fd; // -1: it has ended, or handed over nothing that could be read
	struct loop_source pidfd;
	char job_id[JOB_ID_BYTES];
	struct host_connection *connection; // NULL: detached
	struct host_rank *ranks;
	uint32_t rank_count;
	uint64_t wanted;	     // as its page has it
	bool is_deaf;		     // its page cannot be written
	uint64_t cpu_ns[WORK_LOOKS]; // at the last looks
	uint32_t looks;
	bool is_ending;	    // it has ended, and its parent is to say how
	uint64_t exited_ns; // 0: it lives, or is ending
	uint8_t exit_cause; // enum jobs_exit_cause
	int32_t exit_value;
};

// How much a job is to tell.
struct level_order {
	uint64_t until_ns;
	uint8_t level;		// enum tocsin_level
	char job[JOB_ID_BYTES]; // "": all
};

struct waiting {
	struct waiting *next;
	size_t size;
	char packet[];
};

struct host_connection {
	struct host_connection *next;
	struct jobhost *host;
	struct loop_source source;
	struct host_process *process; // NULL: it has not greeted
	uid_t uid;
	pid_t pid;
	bool is_parent; // of processes, whose end it tells
	uint64_t since_ns;
	struct waiting *first, **last;
	uint32_t waiting_count;
	bool broken; // it was told too much: its hang-up is to be read
};

struct jobhost {
	struct loop *loop;
	struct overlay *overlay;
	struct jobhost_config config;
	char *socket_path;
	dev_t socket_device;
	ino_t socket_inode;
	struct loop_source listener;
	struct loop_timer sample;
	struct host_connection *connections;
	struct host_process *processes;
	struct host_process *to_sample; // the next one of this look; NULL: all were
	uint64_t look_began_ns;
	struct host_comm *comms;
	uint32_t empty_comms;
	uint32_t notice_tokens; // notices that may be sent now
	uint64_t notice_ns;	// when tokens were counted last
	struct jobhost_counters counters;
	struct heard_notice *heard; // from other agents, to be taken outside the core
	struct heard_notice **heard_last;
	uint32_t heard_count;
	struct loop_job heard_job;
	struct overlay_question question; // COMMS
	bool asking;
	bool is_drained;	   // a drain of this node is advised
	struct nccl_ask *nccl_ask; // NULL: nobody is asked
	uint32_t order_count;
	struct level_order orders[LEVEL_ORDERS_MAX]; // the newest last
	struct overlay_answer *answer;		     // that is judged; NULL: none
	struct comm_look look;
	struct loop_job look_job;
	struct job_page *page;		 // the copy that is looked at
	struct job_launched *signatures; // the second copy, of what signatures are taken from
};

// What /proc says of a process.
struct process_facts {
	char state;
	pid_t parent_pid;
	uint64_t start_time; // in ticks since the boot
	uint64_t cpu_ns;
	uint32_t exit_code; // as of wait(); 0 also where we may not see it
};

// socket.c
int socket_open(struct jobhost *host, char detail[static JOBHOST_DETAIL_BYTES]);
void socket_close(struct jobhost *host);

// connection.c
void host_connection_open(struct jobhost *host, int fd);
// Detaches its process, and says nothing of it.
void host_connection_close(struct host_connection *connection);
// Reads what a process that has ended said before. false: it had left, and is freed.
bool host_connection_finish(struct host_process *process);

// hello.c: who greets, with which descriptor (-1: none came; it is taken). The process, or NULL and
// why it is refused.
struct host_process *hello_take(
	struct jobhost *host,
	const struct job_hello *hello,
	int socket_fd,
	int page_fd,
	char reason[static JOB_REASON_BYTES]
);

// descriptor.c: what a process handed over. Closing it may wait for its user for ever (a file of
// FUSE asks its server), or long (much memory): a thread of its own does. None may come of whoever
// has too many of these.
bool descriptor_may_come(uid_t uid);
void descriptor_drop(int fd, uid_t uid); // -1: none

// process.c: -errno.
int process_look(pid_t pid, struct process_facts *ret_facts);
bool process_is_of(pid_t pid, uid_t uid); // as a user by any of its ids; false where it has ended
enum jobs_process_state process_state(char state);
int process_watch(struct host_process *process); // its pidfd, from the loop
// What their parent says of those that it has, and that nobody is left who would say it.
void process_told(const struct host_connection *parent, const struct job_exited *said);
void process_untold(const struct host_connection *parent);
void process_end_untold(struct jobhost *host);
void process_leave(struct host_process *process); // on purpose: nobody is told
void process_free(struct host_process *process);
void process_forget_old(struct jobhost *host, uint64_t now_ns);

// page.c: copies what is in use. -errno.
int page_copy(struct jobhost *host, int fd, uint32_t *ret_slots);

// sample.c: all counts of all ranks of a process, now; for the last time where it is over.
void sample_process(struct host_process *process, uint64_t now_ns, bool is_over);

// nccl_ask.c: GPUs of ranks, by NCCL's own RAS at that address. -ENOMEM.
int nccl_ask_create(
	struct jobhost *host, const struct sock_addr *address, struct nccl_ask **ret_ask
);
struct nccl_ask *nccl_ask_destroy(struct nccl_ask *ask);
void nccl_ask_tick(struct nccl_ask *ask, uint64_t now_ns);

// level.c: what is asked of a process, into its page.
void level_show(struct host_process *process, uint64_t now_ns);
// What another agent was told.
void level_heard(struct jobhost *host, uint8_t level, uint64_t for_ns, const char *job);

// rank.c
struct host_rank *rank_find(struct host_process *process, uint64_t number);
// NULL, and why not.
struct host_rank *rank_add(
	struct host_process *process,
	const struct job_register *told,
	char reason[static JOB_REASON_BYTES]
);
void rank_remove(struct host_rank *rank);
void rank_leave_comm(struct host_rank *rank);
struct host_comm *comm_of_key(struct jobhost *host, const struct host_comm *key);
void comm_free(struct jobhost *host, struct host_comm *comm);

// agree.c: a rank is gone, as it was seen here (then others are told) or heard from others.
void agree_gone(
	struct jobhost *host,
	struct host_comm *comm,
	uint32_t rank,
	const char *cause,
	uint64_t happened_ns,
	bool seen_here
);
// What another agent numbered; ranks ascend. Of `newest`, one of them, the cause is known as well.
void agree_heard(
	struct jobhost *host,
	struct host_comm *comm,
	uint64_t view,
	const uint32_t *ranks,
	uint32_t count,
	const struct gone *newest
);
// What a job was told before this agent started.
void agree_returned(struct jobhost *host, struct host_comm *comm, const struct job_failed *said);
// Several ranks at once, ascending. Nobody else needs to be told: other agents see it, too.
void agree_gone_all(
	struct jobhost *host, struct host_comm *comm, const struct gone *gone, uint32_t count
);
// Whether the lowest rank that is left is here.
bool agree_is_numberer(const struct host_comm *comm);
// Whether this part of the cluster has the majority.
bool agree_has_majority(const struct jobhost *host);
// What is not agreed on yet.
void agree_tick(struct jobhost *host, uint64_t now_ns);
// Nobody needs to be told anything of it any more.
bool agree_is_over(const struct host_comm *comm, uint64_t now_ns);
const struct gone *agree_find(const struct host_comm *comm, uint32_t rank);

// notice.c
void notice_start(struct jobhost *host);
void notice_stop(struct jobhost *host);
void notice_gone(struct jobhost *host, const struct host_comm *comm, const struct gone *gone);
void notice_level(struct jobhost *host, const struct level_order *order);
// false: not now.
bool notice_agreed(struct jobhost *host, const struct host_comm *comm, const struct gone *newest);

// false: not now, or all was told.
bool notice_roster(struct jobhost *host, struct host_comm *comm);
bool notice_wanted(struct jobhost *host, const struct host_comm *comm);
void notice_stall(struct jobhost *host, const struct host_comm *comm, const struct stall *stall);

// roster.c
// What is told of nodes replaces what was known of them; rows ascend by node. -EBADMSG (no rows of
// this communicator), -ENOSPC (its user has too many), -ENOMEM.
int roster_take(
	struct jobhost *host, struct host_comm *comm, const struct roster_row *rows, uint32_t count
);
int roster_learn(
	struct jobhost *host, struct host_comm *comm, const struct ras_merged_comm *merged
);
bool roster_is_whole(const struct host_comm *comm); // or all its ranks are here
const struct roster_row *roster_of(const struct roster *roster, uint64_t node, uint32_t *ret_count);

// watch.c: asks all agents for communicators.
bool watch_find(
	const struct ras_comms *comms,
	const struct host_comm *comm,
	struct ras_merged_comm *ret_comm,
	uint32_t *ret_place
);

void watch_new(struct jobhost *host, struct host_comm *comm);
void watch_wanted(struct jobhost *host, struct host_comm *comm); // another agent wants the roster
// How much later than the agent of the lowest rank this one acts where that one does not.
uint64_t watch_turn_ns(const struct host_comm *comm);
void watch_tick(struct jobhost *host, uint64_t now_ns);
void watch_stop(struct jobhost *host);

// node.c: nodes that are not heard, and what that means for the ranks they hold.
struct node_trouble {
	uint64_t node;
	enum tocsin_event_kind kind; // suspect, unreachable, gone
};
void node_tick(struct jobhost *host);
// `troubles` ascend by node. Of a node without one that had one: is_back tells whether it is back.
void node_apply(
	struct jobhost *host,
	const struct node_trouble *troubles,
	uint32_t count,
	bool (*is_back)(const struct jobhost *host, uint64_t node)
);

void node_name(void *host, uint64_t node, char *name, uint32_t size);

// stall.c: communicators that stand.
void stall_begin(struct jobhost *host);
// Whether all agents are to be asked for it now.
bool stall_wants(struct jobhost *host, struct host_comm *comm, uint64_t now_ns);
// Takes the answer that this was asked for.
void stall_judge(struct jobhost *host, struct overlay_answer *answer);
void stall_forget(struct jobhost *host, struct host_comm *comm); // it has moved, or ends
void stall_heard(struct jobhost *host, struct host_comm *comm, const struct stall *stall);
void stall_end(struct jobhost *host);
// Whether a drain of this node is advised: when it begins to be, the ranks here go to the log.
// Returns how many.
uint32_t stall_note_drain(struct jobhost *host, bool is_advised);

// tell.c
void tell_packet(struct host_connection *connection, const void *packet, size_t size);
// false: the connection is closed.
bool tell_waiting(struct host_connection *connection);
void tell_refused(struct host_connection *connection, uint64_t number, const char *reason);
void tell_gone(const struct host_rank *rank, const struct gone *gone);
void tell_failed(const struct host_rank *rank);
// What is no end: suspect, unreachable, back, and what the communicator waits for.
void tell_event(
	const struct host_rank *rank,
	enum tocsin_event_kind kind,
	uint32_t of_rank,
	const char *text
);
void tell_event_all(
	const struct host_comm *comm,
	enum tocsin_event_kind kind,
	uint32_t of_rank,
	const char *text
);
// All that it should know of its communicator.
void tell_all(const struct host_rank *rank);
