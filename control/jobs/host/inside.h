// SPDX-License-Identifier: BSD-3-Clause
// Private declarations of control/jobs/host: the jobs of this node.
#pragma once

#include "jobs/host/life.h"
#include "jobs/host/subuid.h"
#include "jobs/host/table.h"
#include "jobs/look/comm_look.h"

#include <control/jobhost.h>
#include <control/overlay.h>
#include <ras/comms.h>
#include <tocsin/job.h>
#include <tocsin/job_page.h>
#include <tocsin/job_socket.h>

#include <sys/queue.h>
#include <sys/stat.h>
#include <sys/types.h>

// kind of all notices that this module sends to other agents
#define JOBHOST_NOTICE (RAS_NOTICE_OWN_MIN + 2)
#define SAMPLE_NS RAS_NS_PER_SEC
// longest run of sampling in one loop turn; one more page may exceed this time
#define SAMPLE_RUN_NS (3 * RAS_NS_PER_MS)
#define SAMPLE_PAUSE_NS (12 * RAS_NS_PER_MS) // pause between two such runs
// time that the packets and ends of one user's processes may take in a turn of the loop
#define USER_TURN_NS (2 * RAS_NS_PER_MS)
// time that all deferred jobs of this module may take in a turn
#define JOBS_TURN_NS (2 * RAS_NS_PER_MS)
// a connection that sends no greeting for this time is closed
#define HELLO_TIMEOUT_NS (10 * RAS_NS_PER_SEC)
// After a registration, turns of the loop come this often for a while. So the time of an end is
// known that well.
#define SWEEP_NS (10 * RAS_NS_PER_MS)
#define SWEEP_FOR_NS (3 * RAS_NS_PER_SEC)
#define WORK_SAMPLES (JOBS_WORK_WINDOW_NS / SAMPLE_NS) // samples of processor time
#define PACKETS_PER_TURN 16
#define LIFE_LOOKS_MAX 16u	   // looks at processes that others may wait for, in one round
#define QUEUED_PACKETS_MAX 512	   // packets queued for one connection whose socket buffer is full
#define GONE_RANKS_PER_USER 65536u // gone ranks in all sets of one user
// limit of ranks of one user: this factor times the limit of its processes
#define RANKS_PER_PROCESS 8u
#define EMPTY_COMMS_MAX 4096u // communicators without ranks here, of one user
#define PAST_ATTEMPTS_MAX 16u // records of earlier attempts with one key
#define CAUSE_BYTES 96
#define LEVEL_ORDERS_MAX 64u

// A rank that is known to be gone.
struct gone {
	uint32_t rank;
	uint64_t happened_ns; // time of the end as far as known, for events
	uint64_t earliest_ns; // the end was not before this time; 0: unknown
	char cause[CAUSE_BYTES];
};

// Ranks that one node holds: first, first + stride, ...
struct roster_row {
	uint64_t node;
	uint32_t first, count, stride;
};

struct roster {
	struct roster_row *rows; // sorted by node
	uint32_t count;
	uint32_t ranks; // sum of the counts of all rows
};

// A stall event of one communicator, as sent to ranks and to other agents.
struct stall {
	enum tocsin_event_kind kind; // TOCSIN_COMM_WAITING or TOCSIN_COMM_STUCK
	uint32_t rank;		     // the rank that the other ranks wait for, or TOCSIN_NO_RANK
	char text[TOCSIN_EVENT_TEXT_BYTES];
};

// One user, or the owner of a range of subordinate uids with all users of that range. Counts for
// quotas are kept here, so that nothing has to be counted.
struct host_user {
	struct table_entry by_uid;
	LIST_ENTRY(host_user) all;
	struct jobhost *host;
	uid_t uid;	     // the owner
	uint32_t references; // processes, connections and communicators
	uint32_t processes;  // living ones
	uint32_t connections, parents;
	uint32_t ranks;	     // of living processes
	uint32_t gone_ranks; // gone and departed ranks of all its communicators
	uint32_t roster_rows;
	uint32_t empty_comms;			    // communicators without local ranks
	TAILQ_HEAD(user_comms, host_comm) comms;    // oldest first
	TAILQ_HEAD(user_ended, host_process) ended; // ended processes, oldest first
	uint32_t ended_count, ended_ranks;
	TAILQ_HEAD(user_left, host_left) left; // ranks that left in order, oldest first
	uint32_t left_count;
	// Ranks that have not been sent the whole state of their communicator.
	TAILQ_HEAD(user_unsent, host_rank) unsent;
	TAILQ_ENTRY(host_user) queue; // in jobhost.unsent_users, if is_queued
	bool is_queued;
	uint64_t turn_ns;  // start of the turn of the loop to which spent_ns belongs
	uint64_t spent_ns; // time that this user's processes have taken in that turn
};

// The last event that the ranks here received about one node that holds ranks of their
// communicator.
struct reported_trouble {
	uint64_t node;
	enum tocsin_event_kind kind;
};

// A communicator that has or had ranks on this node.
struct host_comm {
	struct host_comm *next, **link; // in jobhost.comms; `link` points to this communicator
	struct table_entry by_key;
	struct host_user *user;
	TAILQ_ENTRY(host_comm) of_user;
	uint64_t comm_hash, host_hash, process_hash;
	uid_t uid;
	uint32_t attempt; // as the launcher of its ranks counts them
	uint32_t size;
	bool is_past;		 // a rank registered later began another attempt with the same key
	uint64_t serial;	 // number of this record
	uint64_t newest_ns;	 // time of the last registration of a local rank
	bool newest_is_stale;	 // the time of a registration has become known since
	struct host_rank *ranks; // local ranks, linked by next_of_comm
	uint32_t rank_count;
	uint32_t gone_count;
	struct gone *gone;     // sorted by rank
	uint32_t *gone_order;  // the same ranks, in the order in which they were added
	uint64_t set_serial;   // number of changes to the failed set
	uint32_t unsent_count; // local ranks that are queued for a send of the state
	// The agreed set: its number, and the ranks that the coordinator put into it.
	uint64_t view;
	uint32_t agreed_count;
	uint32_t *agreed;    // ascending
	uint64_t view_floor; // the largest number that a job has brought back
	// Ranks known to have left in order since the last registration here; ascending.
	uint32_t *departed;
	uint32_t departed_count;
	// Time and interval of the next resend of gone ranks, or of the set that is agreed on.
	uint64_t resend_at_ns, resend_interval_ns;
	// time of losing the last local rank; 0: the communicator has local ranks
	uint64_t empty_ns;
	bool agreed_set_unsent; // the agreed set has not been sent to the other agents
	// Which node holds which rank, as far as known, and the time and interval of the next
	// query.
	struct roster roster;
	uint64_t roster_asked_ns; // time of the question that the roster answers
	uint64_t ask_ns, ask_pause_ns;
	bool roster_is_requested;  // the coordinator was asked to send the roster
	uint32_t roster_rows_sent; // rows already sent to the other agents
	uint32_t roster_rows_to_send;
	uint64_t roster_send_began_ns; // start of the last transmission of the roster
	// Time and interval of the next query about a stall of the local ranks. In heard_ns: the
	// time of the last stall that this or another agent found.
	uint64_t look_ns, stall_check_interval_ns, heard_ns;
	// last stall event sent to the local ranks: enum tocsin_event_kind, 0 if none; and its rank
	uint32_t stall_kind, stall_rank;
	struct stall *stall;   // that event; NULL: none yet
	uint64_t stall_serial; // number of stall events so far
	// the pending query serves the stall check of this communicator
	bool stall_check_is_pending;
	// one entry per node with trouble that the local ranks were notified of; ascending
	struct reported_trouble *trouble;
	uint32_t trouble_count;
};

struct host_rank {
	struct host_rank *next; // next rank of the process
	// next live rank of the communicator; `link` points to this rank
	struct host_rank *next_of_comm, **link_of_comm;
	struct table_entry by_number; // in jobhost.ranks_by_number, while `comm` is not NULL
	struct host_process *process;
	struct host_comm *comm; // NULL: the process has ended
	struct job_register told;
	uint64_t counted;  // sum of all counts in the last sample
	uint64_t since_ns; // time of the registration
	// The failed set that the job sends back in parts: its number (0: none), the ranks received
	// so far without a gap, and the last of them.
	uint64_t returned_view;
	uint32_t returned_count, returned_last;
	// The state of the communicator that the process has been sent: number of the change to the
	// failed set, count of gone ranks in the order of addition, number of the stall event.
	uint64_t set_sent, stall_sent;
	uint32_t gone_sent;
	TAILQ_ENTRY(host_rank) unsent; // in host_user.unsent, if is_unsent
	bool is_unsent;
	bool gpu_is_from_nccl; // its GPU numbers come from NCCL's RAS
	bool page_had_comm;    // the page had this communicator in the last sample
	// time of the last notice that the rank had left in order; only of a rank that has ended
	uint64_t departure_sent_ns;
	struct jobs_rank_report report;
};

struct host_process {
	// In jobhost.processes; `link` points to this process, and is NULL before it is listed.
	struct host_process *next, **link;
	struct table_entry by_pid, by_page;
	struct jobhost *host;
	struct host_user *user;
	TAILQ_ENTRY(host_process) of_end; // in jobhost.ending if is_ending, or host_user.ended
	bool *ret_freed;		  // set by process_free(); NULL: nobody asks
	pid_t pid, parent_pid;
	uid_t uid;
	uint64_t start_time;
	ino_t page_inode;
	int page_fd; // -1: the process has ended, or handed over no readable page
	struct loop_source pidfd;
	char job_id[JOB_ID_BYTES];
	uint32_t attempt;
	struct host_connection *connection; // NULL: detached
	struct host_rank *ranks;
	uint32_t rank_count;
	uint64_t wanted;	// the level word that its page holds
	uint64_t busy_until_ns; // as its page says
	char busy_why[RAS_COMM_WHY_BYTES];
	bool page_is_unwritable;       // its page cannot be written
	uint64_t cpu_ns[WORK_SAMPLES]; // ring of samples of its total processor time
	uint32_t looks;
	struct life *life;	     // NULL: one of its ranks moved a moment ago
	uint64_t alive_ns;	     // the process lived at this time; set when it ends
	bool end_is_seen_late;	     // it ended some time before the agent saw that
	uint32_t packets_after_exit; // packets read since the process ended
	bool is_ending;		     // the process has ended; its parent is about to report how
	bool is_released;	     // is_ending, and the parent has reported or is not waited for
	uint64_t exited_ns;	     // 0: the process lives, or is_ending
	uint8_t exit_cause;	     // enum jobs_exit_cause
	int32_t exit_value;
};

// An order that raises the level of detail of a job's reports until a point in time.
struct level_order {
	uint64_t until_ns;
	uint8_t level;		// enum tocsin_level
	char job[JOB_ID_BYTES]; // "": all jobs
};

struct waiting {
	struct waiting *next;
	size_t size;
	char packet[];
};

struct host_connection {
	struct host_connection *next, **link; // `link` points to this connection
	struct jobhost *host;
	struct host_user *user;
	struct table_entry by_parent;		// in jobhost.parents_by_pid, if is_parent
	TAILQ_ENTRY(host_connection) ungreeted; // if is_ungreeted
	bool is_ungreeted; // no greeting and no announcement of a parent received yet
	struct loop_source source;
	struct host_process *process; // NULL: no greeting received yet
	uid_t uid;
	pid_t pid;
	bool is_parent; // the connection reports the ends of this process's children
	uint64_t since_ns;
	struct waiting *first, **last;
	uint32_t waiting_count;
	// too many packets were queued; the connection is closed when its hang-up is read
	bool broken;
};

struct node_trouble {
	uint64_t node;
	enum tocsin_event_kind kind; // TOCSIN_PEER_SUSPECT, _UNREACHABLE or _GONE
};
struct troubles {
	struct node_trouble *rows; // ascending by node
	uint32_t count, capacity;
};

// Sums by job.
struct job_sums {
	struct jobhost_job jobs[JOBHOST_JOBS_MAX];
	uint32_t count, left;
};

enum round_step {
	ROUND_IDLE,
	ROUND_PROCESSES,
	ROUND_COMMS,
};

// A round looks at every process and then at every communicator, in runs of SAMPLE_RUN_NS.
struct round {
	enum round_step step;
	uint64_t began_ns;
	struct host_process *next_process; // process that is sampled next
	struct host_comm *next_comm;
	struct troubles troubles; // nodes with trouble, when ROUND_COMMS began
	uint32_t placed, parts;	  // ranks on known nodes; parts of rosters that may still be sent
	uint32_t number;	  // number of the round under way
	// Processes whose ranks all stand: in this round so far, and in the round before.
	uint32_t standing, standing_before;
	bool needs_answer;   // some communicator needs an answer of all agents
	bool gpu_is_missing; // some rank that launches has no known GPU
};

// The steps in which an answer of all agents is used, see watch.c.
enum answer_step {
	ANSWER_ROSTERS,
	ANSWER_JUDGE,
	ANSWER_FINDINGS,
};

// Clocks of other agents, see peer_clock.c.
struct peer_clocks {
	struct peer_clock *rows; // sorted by node
	uint32_t count, capacity;
	struct overlay_port port;
};

struct jobhost {
	struct loop *loop;
	uint64_t began_ns; // when this agent began to serve jobs
	struct overlay *overlay;
	struct jobhost_config config;
	char *socket_path;
	dev_t socket_device;
	ino_t socket_inode;
	bool socket_is_missing; // it could not be opened again after its file was removed
	struct loop_source listener;
	struct loop_timer sample, sweep;
	uint64_t sweep_until_ns;
	struct host_connection *connections;
	uint32_t connection_count; // without those of parents
	uint32_t parent_count;
	TAILQ_HEAD(host_ungreeted, host_connection) ungreeted; // oldest first
	struct host_process *processes;
	TAILQ_HEAD(host_ending, host_process) ending; // released ones first
	struct loop_job end_job;		      // finishes released processes
	LIST_HEAD(host_users, host_user) users;
	TAILQ_HEAD(host_unsent_users, host_user) unsent_users; // users with unsent ranks
	struct loop_job send_job;			       // serves unsent_users in turn
	struct subuids *subuids; // NULL: no uid is known to be subordinate
	uint64_t turn_ns;	 // start of the turn of the loop to which spent_ns belongs
	uint64_t spent_ns;	 // time that deferred jobs have taken in that turn
	uint8_t secret[TABLE_SECRET_BYTES]; // of all tables
	struct table users_by_uid, processes_by_pid, processes_by_page, parents_by_pid;
	struct table comms_by_key, ranks_by_number;
	struct round round;
	struct host_comm *comms;
	uint64_t comm_serial;	// of the newest record of a communicator
	uint32_t notice_tokens; // notices that may be sent now
	uint64_t notice_ns;	// time of the last refill of notice_tokens
	struct jobhost_counters counters;
	// notices from other agents, queued so that they are handled outside the core
	struct heard_notice *heard;
	struct heard_notice **heard_last;
	uint32_t heard_count;
	struct loop_job heard_job;
	// notices of agents whose clock is not known yet
	struct heard_notice *held;
	uint32_t held_count;
	struct peer_clocks peer_clocks;
	struct overlay_question question; // COMMS
	bool asking;
	bool stall_is_pending; // the pending query serves the stall check of some communicator
	struct job_sums sums, sums_next; // the last complete round, and the one under way
	bool drain_is_advised;		 // a drain of this node is advised
	struct nccl_ask *nccl_ask;	 // NULL: NCCL's RAS is not queried
	uint32_t order_count;
	struct level_order orders[LEVEL_ORDERS_MAX]; // newest last
	struct overlay_answer *answer;		     // the answer being used; NULL: none
	enum answer_step answer_step;
	struct host_comm *next_of_answer; // next communicator of this step
	struct comm_look look;		  // valid from ANSWER_JUDGE on
	struct loop_job answer_job;
	struct job_page *page; // copy of the page of the process that is being sampled
	// second copy of the launched rows, from which signatures are taken
	struct job_launched *signatures;
};

// jobhost.c: let turns of the loop come often for a while.
void jobhost_sweep_often(struct jobhost *host);

// socket.c
int socket_open(struct jobhost *host, char detail[static JOBHOST_DETAIL_BYTES]);
void socket_close(struct jobhost *host);
// Open the socket again if its file was removed or replaced. A process that listens there stays.
void socket_restore(struct jobhost *host);

// connection.c
void host_connection_open(struct jobhost *host, int fd);
// Close a connection and detach its process; its ranks stay and no notice is sent.
void host_connection_close(struct host_connection *connection);
// Read the packets that an ended process sent before its end. Returns 0 once all are read, -EAGAIN
// if the user's time of this turn is over, or -ESRCH if a leave has freed the process.
int host_connection_finish(struct host_process *process);

// user.c
// Return the record of the user who owns a uid, with a reference; NULL without memory.
struct host_user *user_get(struct jobhost *host, uid_t uid);
struct host_user *user_hold(struct host_user *user);
void user_put(struct host_user *user); // NULL is ignored
// Return whether the user may take more time in this turn of the loop.
bool user_has_time(struct host_user *user);
// Charge the time since began_ns to the user. Returns the time now, as loop_clock_ns() does.
uint64_t user_charge(struct host_user *user, uint64_t began_ns);
// Charge the time since *began_ns to the deferred jobs of this turn, and set *began_ns to now.
// Returns whether a job may go on. Each job does a part of its work in every turn, so that none
// waits for ever.
bool jobs_have_time(struct jobhost *host, uint64_t *began_ns);

// hello.c: accept a greeting. Takes ownership of page_fd (-1: none was received). Returns the
// process, or NULL and the reason of the refusal.
struct host_process *hello_accept(
	struct jobhost *host,
	const struct job_hello *hello,
	int socket_fd,
	int page_fd,
	char reason[static JOB_REASON_BYTES]
);

// descriptor.c: close descriptors received from processes. A separate thread calls close(), because
// the call may block. Much memory takes long, and a FUSE file asks its user's server. While a user
// has too many pending closes, no further descriptor is received from that user.
bool descriptor_has_close_slot(uid_t uid);
void descriptor_close_async(int fd, uid_t uid); // fd -1: nothing to close

// process.c: functions that return int return 0 or -errno.
// compares real, effective, saved and file-system uid; false if the process has ended
bool process_is_owned_by(pid_t pid, uid_t uid);
enum jobs_process_state process_state(char state);
int process_watch(struct host_process *process); // opens its pidfd and watches it in the loop
// Handle an exit that the parent reported.
void process_report_child_exit(const struct host_connection *parent, const struct job_exited *said);
// Wait no longer for the report of this parent (NULL: of any parent). Its processes are finished by
// a job of the loop.
void process_release_exits(struct jobhost *host, const struct host_connection *parent);
struct host_process *process_find(struct jobhost *host, pid_t pid, struct host_process *after);
uint64_t process_pid_hash(const struct jobhost *host, pid_t pid);
// Find a living process by its page.
struct host_process *process_find_by_page(struct jobhost *host, pid_t pid, ino_t page_inode);
// Enter a process into the list and the tables.
void process_enlist(struct host_process *process);
void process_init(struct jobhost *host);
void process_fini(struct jobhost *host);
void process_free(struct host_process *process);
void process_expire_ended(struct jobhost *host, uint64_t now_ns);

// page.c: copy the used part of a page into host->page and host->signatures. Returns 0 or -errno.
int page_copy(struct jobhost *host, int fd, uint32_t *ret_slots);

// sample.c: sample the counts of all ranks of a process now; is_over: for the last time.
void sample_process_page(struct host_process *process, uint64_t now_ns, bool is_over);
void sample_clamp_counts(struct jobs_rank_report *report);

// nccl_ask.c: learn the GPUs of ranks from NCCL's own RAS at `address`. Returns 0 or -ENOMEM.
int nccl_ask_create(
	struct jobhost *host, const struct sock_addr *address, struct nccl_ask **ret_ask
);
struct nccl_ask *nccl_ask_destroy(struct nccl_ask *ask);
// Note for this round whether the rank registered SETTLE_NS ago or earlier, has launched
// operations, and has no known GPU.
void nccl_ask_note_rank(const struct host_rank *rank, uint64_t now_ns);
void nccl_ask_tick(struct nccl_ask *ask, uint64_t now_ns);

// level.c: write the level that is asked of a process into its page.
void level_write_to_page(struct host_process *process, uint64_t now_ns);
// Apply an order that another agent received.
void level_apply_notice(struct jobhost *host, uint8_t level, uint64_t for_ns, const char *job);

// rank.c
// Let the ranks that registered at this time or later begin another attempt: an end before that
// does not concern them. Returns false if such ranks stay, for lack of memory or of records.
bool comm_split_attempt(struct jobhost *host, struct host_comm *comm, uint64_t at_ns);
struct host_rank *rank_find(struct host_process *process, uint64_t number);
// Enter a rank. Returns NULL and the reason if the rank is refused.
struct host_rank *rank_add(
	struct host_process *process,
	const struct job_register *told,
	char reason[static JOB_REASON_BYTES]
);
// Find the time of the last registration again.
void comm_refresh_newest(struct host_comm *comm);
// Return the local rank with this number, or NULL.
struct host_rank *
rank_find_in_comm(struct jobhost *host, const struct host_comm *comm, uint32_t number);
void rank_remove(struct host_rank *rank);
void rank_leave_comm(struct host_rank *rank);
// Return the record of the newest attempt with this key, or NULL.
struct host_comm *comm_find_by_key(struct jobhost *host, const struct host_comm *key);
// Return the next record of an earlier attempt with this key; `after` NULL: the first. NULL: none.
struct host_comm *
comm_next_past(struct jobhost *host, const struct host_comm *key, const struct host_comm *after);
void comm_destroy(struct jobhost *host, struct host_comm *comm);

// left.c: ranks that left in order. Keep the report of a rank that leaves its communicator. A rank
// whose last counts are unknown is not kept: it counts as a rank that no agent holds.
void departed_rank_keep(struct host_rank *rank, enum jobs_left how);
// Notify the other agents of the ranks with this key that left here in order, as far as known.
void departed_ranks_notify(struct jobhost *host, const struct host_comm *key);
// Return whether the rank with this number left `comm` (NULL: none) before. Forget what is kept of
// earlier attempts with the same key.
bool departed_rank_begins_attempt(
	struct host_user *user,
	const struct host_comm *key,
	const struct host_comm *comm,
	uint32_t number
);
// Store the reports of at most `room` such ranks, and return their number.
uint32_t departed_ranks_select(
	struct host_user *user, const struct jobs_rank_report **ret_reports, uint32_t room
);
// Forget the ranks that left until this time. The caller holds the user.
void departed_ranks_expire(struct host_user *user, uint64_t before_ns);

// agree.c: add one gone rank; seen_here: observed on this node, so the other agents are notified.
void agree_add_gone_rank(
	struct jobhost *host,
	struct host_comm *comm,
	uint32_t rank,
	const char *cause,
	uint64_t happened_ns,
	bool seen_here
);
// Apply a set that another agent numbered; ranks ascend. `newest` is one of them, with its cause
// and the time of the oldest end. All must be known if that is before a local registration.
void agree_apply_set(
	struct jobhost *host,
	struct host_comm *comm,
	uint64_t view,
	const uint32_t *ranks,
	uint32_t count,
	const struct gone *newest
);
// Restore the set that a job received before this agent started, and now sends back. `said` is one
// part of the set.
void agree_restore_set(struct jobhost *host, struct host_rank *rank, const struct job_failed *said);
// Add several gone ranks, ascending. Sends no notice: the other agents see the failed node
// themselves.
void agree_add_gone_ranks(
	struct jobhost *host, struct host_comm *comm, const struct gone *gone, uint32_t count
);
// Add ranks that left in order. The coordinator is not sought among them.
void agree_add_departed_ranks(
	struct jobhost *host, struct host_comm *comm, const uint32_t *ranks, uint32_t count
);
void agree_forget_departed_ranks(struct host_comm *comm);
// Return whether this agent is the coordinator: the lowest rank that remains runs here.
bool agree_is_coordinator(struct jobhost *host, const struct host_comm *comm);
// Return whether this partition of the cluster has the majority.
bool agree_has_majority(const struct jobhost *host);
// Resend what is not agreed on yet, and the agreed set as its coordinator. Returns false if the
// communicator was freed.
bool agree_tick(struct jobhost *host, struct host_comm *comm, uint64_t now_ns);
// Return whether the communicator can be freed. No rank may be local, and all gone ranks must be
// agreed on, unless it has been kept long enough for resends.
bool agree_can_free_comm(const struct host_comm *comm, uint64_t now_ns);
const struct gone *agree_find_gone_rank(const struct host_comm *comm, uint32_t rank);
// Return true if this agent may report that the rank is gone: the roster places the rank on no
// other agent. A rank that lives here is reported by nobody else.
bool agree_can_report_rank(const struct host_comm *comm, uint64_t origin, uint32_t rank);
// Return true if this agent may number this set: it holds the lowest rank that remains, and no rank
// of the set lives here. The ranks ascend.
bool agree_can_number_set(
	const struct host_comm *comm, uint64_t origin, const uint32_t *ranks, uint32_t count
);

// peer_clock.c
void peer_clock_init(struct jobhost *host);
void peer_clock_fini(struct jobhost *host);
// Translate a time on the clock of another agent to our clock. The result is never later than the
// true time. Returns false if that clock is not known.
bool peer_clock_translate(struct jobhost *host, uint64_t node, uint64_t their_ns, uint64_t *ret_ns);
// Ask another agent for its clock, at most every half second.
void peer_clock_ask(struct jobhost *host, uint64_t node);
// Return whether another agent was asked for its clock in the last SAMPLE_NS.
bool peer_clock_was_just_asked(const struct jobhost *host, uint64_t node);
// The clock of another agent showed `their_ns` after our clock showed `asked_ns`. Its held notices
// are handled.
void peer_clock_learn(struct jobhost *host, uint64_t node, uint64_t asked_ns, uint64_t their_ns);

// notice.c
// Handle a notice of another agent, or hold it until the clock of that agent is known.
void notice_handle(struct jobhost *host, uint64_t origin, const void *bytes, size_t size);
void notice_release_held(struct jobhost *host, uint64_t origin);
// Drop notices that were held too long, and ask for the clocks of the others again.
void notice_tick_held(struct jobhost *host, uint64_t now_ns);
void notice_init(struct jobhost *host);
void notice_fini(struct jobhost *host);
// Returns false if the rate limit is reached.
bool notice_send_gone_rank(
	struct jobhost *host, const struct host_comm *comm, const struct gone *gone
);
#define DEPARTURES_MAX 64u // ranks in one notice
// Report ranks that left in order, not before `earliest_ns`.
void notice_send_departures(
	struct jobhost *host,
	const struct host_comm *key,
	const uint32_t *ranks,
	uint32_t count,
	uint64_t earliest_ns
);
void notice_send_level(struct jobhost *host, const struct level_order *order);
// Send the agreed set. Returns false if the rate limit is reached.
bool notice_send_agreed_set(
	struct jobhost *host, const struct host_comm *comm, const struct gone *newest
);

// Send the next part of the roster. Returns false if the rate limit is reached or all rows are
// sent.
bool notice_send_roster_part(struct jobhost *host, struct host_comm *comm);
bool notice_request_roster(struct jobhost *host, const struct host_comm *comm);
void notice_send_stall(
	struct jobhost *host,
	const struct host_comm *comm,
	const struct stall *stall,
	uint64_t asked_ns
);

// roster.c
#define ROSTER_ROWS_MAX 200 // rows in one notice
// Replace the rows of the nodes named in `rows`; rows ascend by node. Returns -EBADMSG (rows that
// do not fit the communicator), -ENOSPC (its user has too many rows), or -ENOMEM.
int roster_merge_rows(struct host_comm *comm, const struct roster_row *rows, uint32_t count);
// Merge rows that another agent reported. Its own rows replace what is known of it. Rows of a third
// node are taken only if none is known: else one liar could move the ranks of a node to itself.
int roster_merge_reported(
	struct host_comm *comm, uint64_t origin, const struct roster_row *rows, uint32_t count
);
void roster_forget(struct host_comm *comm);
int roster_merge_answer(struct host_comm *comm, const struct ras_merged_comm *merged);
bool roster_is_complete(const struct host_comm *comm); // also true if all ranks are local or gone
const struct roster_row *
roster_find_node_rows(const struct roster *roster, uint64_t node, uint32_t *ret_count);

// watch.c: query all agents for communicators.
bool watch_find_comm(
	const struct ras_comms *comms,
	const struct host_comm *comm,
	struct ras_merged_comm *ret_comm,
	uint32_t *ret_place
);

// Return when the question was asked whose answer is in use.
uint64_t watch_answer_asked_ns(const struct jobhost *host);
// A rank registered: ask for the roster soon.
void watch_add_comm(struct jobhost *host, struct host_comm *comm);
// another agent requested the roster
void watch_on_roster_request(struct jobhost *host, struct host_comm *comm);
// Return how long this agent waits for the coordinator before it acts in its place.
uint64_t watch_fallback_delay_ns(const struct host_comm *comm);
void watch_init(struct jobhost *host);
void watch_begin_round(struct jobhost *host);
void watch_tick(struct jobhost *host, struct host_comm *comm, uint64_t now_ns);
// Query all agents if some communicator needs that.
void watch_end_round(struct jobhost *host);
void watch_fini(struct jobhost *host);

// node.c: nodes that are unreachable or down, and the consequences for their ranks.
// Collect the nodes with trouble for this round.
void node_collect_troubles(struct jobhost *host);
bool node_is_alive(const struct jobhost *host, uint64_t node);
// Report troubles to the local ranks of a communicator. is_back is asked for each reported node
// that is no longer in `troubles`.
void node_apply_troubles(
	struct jobhost *host,
	struct host_comm *comm,
	const struct troubles *troubles,
	bool (*is_back)(const struct jobhost *host, uint64_t node)
);

void node_name(void *host, uint64_t node, char *name, uint32_t size);

// stall.c: stalled communicators.
// Return the time without a move after which a communicator counts as stalled.
uint64_t stall_confirm_ns(const struct jobhost *host);
// Return whether all agents are to be queried about the communicator now.
bool stall_needs_query(struct jobhost *host, struct host_comm *comm, uint64_t now_ns);
// Begin to judge the answer in use. Returns false if no communicator waits for that.
bool stall_begin_judging(struct jobhost *host);
// Send what the judging has found about a communicator.
void stall_send_finding(struct jobhost *host, struct host_comm *comm);
// Return whether a finding of an answer that was asked for at this time still holds: since then no
// local rank has registered or moved.
bool stall_is_current(const struct host_comm *comm, uint64_t asked_ns);
// the communicator has moved, or ends
void stall_clear(struct jobhost *host, struct host_comm *comm);
void stall_notify_ranks(struct jobhost *host, struct host_comm *comm, const struct stall *stall);
// Record whether a drain of this node is advised; when the advice begins, log the local ranks.
// Returns the number of ranks logged.
uint32_t stall_record_drain_advice(struct jobhost *host, bool is_advised);

// tell.c
void connection_send_packet(struct host_connection *connection, const void *packet, size_t size);
// Send queued packets. Returns false if the connection was closed.
bool connection_flush_queue(struct host_connection *connection);
void connection_send_refusal(
	struct host_connection *connection, uint64_t number, const char *reason
);
// Send an event that may be lost: a process that does not read its socket gets no more of them. A
// connection that is NULL is ignored.
void connection_send_event(struct host_connection *connection, const struct job_event *event);
// Send an event that is no end to all local ranks: suspect, unreachable, back, waiting or stuck.
void comm_send_event(
	const struct host_comm *comm,
	enum tocsin_event_kind kind,
	uint32_t of_rank,
	const char *text
);
// Send the state of the communicator to all its local ranks, where it has changed. A job of the
// loop does so, one rank of each user in turn.
void comm_send_state(struct host_comm *comm);
void comm_send_gone_set(struct host_comm *comm); // the same, and the failed set has changed
// Send all of that state to one rank, as to a rank that registers.
void rank_send_comm_state(struct host_rank *rank);
void rank_cancel_send(struct host_rank *rank);
void send_init(struct jobhost *host);
void send_fini(struct jobhost *host);

// by_job.c: add a process to the sums of the round under way.
void job_sums_add(struct job_sums *sums, const struct host_process *process);
