// SPDX-License-Identifier: BSD-3-Clause
// Private declarations of libtocsin. A job's mutex guards all its fields, except where a comment
// says otherwise.
#pragma once

#include <tocsin/job.h>
#include <tocsin/job_page.h>
#include <tocsin/job_socket.h>

#include <pthread.h>
#include <stdatomic.h>

#define EVENTS_MAX 1024
#define REPORTS_MAX 64
#define SOCKET_PATH_BYTES 108
#define NS_PER_S UINT64_C(1000000000)

// A slot of the page in which a thread, or a caller, counts. Filled when the slot is taken.
struct tocsin_counter {
	struct job_row *completed, *started;
	struct job_launched *launched;
	bool shared; // several threads write here, so counts are atomic additions
	bool times;
};

// Owner of a slot: the token of a thread, or one of these values.
#define OWNER_NONE 0u	// the slot is free
#define OWNER_ORPHAN 1u // its thread has ended
#define OWNER_SHARED 2u // the shared first slot of a communicator
#define OWNER_CALLER 3u // tocsin_comm_counter()
#define OWNER_FIRST 16u // smallest token of a thread

struct failed_set {
	enum tocsin_agreement agreement;
	uint64_t view;
	uint32_t count;
	uint32_t *ranks; // ascending
};

struct tocsin_comm {
	struct tocsin_job *job;
	uint64_t number; // number in this process, never reused
	uint32_t place;	 // index in job->comms
	uint32_t first_slot;
	struct job_register told; // the registration as sent to the agent
	void *context;
	bool registration_is_unsent; // the registration has not been sent
	bool aborts;
	enum tocsin_job_state state;
	char reason[JOB_REASON_BYTES];
	// The library's thread writes with release; any thread and signal handlers read with
	// acquire.
	atomic_bool should_abort;
	struct failed_set failed;
	uint32_t gone_count; // ranks reported to the program as gone, ascending, each reported once
	uint32_t *gone;
	// Parts of a set received so far, if a set arrives in several packets.
	uint32_t partial_total;
	uint64_t partial_view;
	uint32_t partial_count;
	uint32_t *coming;
};

struct event_node {
	struct event_node *next;
	uint64_t number; // number of the communicator
	struct tocsin_event event;
};

enum link_state {
	LINK_DOWN,
	LINK_HELLO_SENT, // HELLO is sent
	LINK_UP,
};

struct link {
	int fd; // -1: not connected
	enum link_state state;
	uint64_t next_ns;  // time of the next attempt, or deadline for WELCOME
	uint64_t pause_ns; // delay before the next attempt
	bool blocked;	   // the socket's buffer is full
	bool refused;
	char reason[JOB_REASON_BYTES];
};

struct tocsin_job {
	struct tocsin_job *next; // list of all jobs of the process
	pthread_mutex_t mutex;
	pthread_cond_t changed;		     // signals new failed sets and the end of a callback
	char socket_path[SOCKET_PATH_BYTES]; // "": the default paths
	char job_id[JOB_ID_BYTES];
	uint32_t attempt;    // see struct job_hello
	uint64_t start_time; // start time of this process for HELLO, in clock ticks since boot
	tocsin_event_function *event;
	void *event_context;

	// this process is a fork() child of the one that opened the job: nothing is sent
	bool inherited;
	bool threaded;
	bool closing;
	bool polled; // a thread is inside tocsin_job_poll()
	pthread_t thread;
	int wake_fd; // eventfd that wakes the thread
	// eventfd that is readable while events are queued; -1: a callback receives them
	int events_fd;

	struct job_page *page;
	int page_fd;
	uint64_t owners[JOB_SLOTS];
	struct tocsin_counter counters[JOB_SLOTS];

	struct tocsin_comm *comms[JOB_COMMS_MAX];
	// Numbers of unregistered communicators, not sent yet. Registrations are sent only while
	// this queue is empty, so it never holds more than the communicators of one process.
	uint64_t left[JOB_COMMS_MAX];
	uint32_t left_count;
	struct job_report reports[REPORTS_MAX];
	uint32_t report_count;

	struct event_node *oldest, *newest;
	uint32_t event_count;
	uint64_t telling; // number of the communicator whose event a callback is handling; 0: none
	pthread_t callback_thread; // thread that runs the callback, valid if telling != 0

	struct link link;
};

// page.c: functions that return int return 0 or -errno.
int job_page_create(struct tocsin_job *job);
void job_page_destroy(struct tocsin_job *job);
// In a fork() child: replace the page, so that the child's counts do not reach the parent's page.
void page_detach_child(struct tocsin_job *job);
// Take a free slot for the communicator. Returns its index, or JOB_SLOTS if none is free.
uint32_t page_allocate_slot(struct tocsin_job *job, const struct tocsin_comm *comm, uint64_t owner);
// Note that an agent has registered the communicator now.
void page_note_registration(struct tocsin_job *job, const struct tocsin_comm *comm);
// Note the last counts of a communicator for the agent, before its slots are released.
void page_note_departure(struct tocsin_job *job, struct tocsin_comm *comm);
void page_release_slots(struct tocsin_job *job, uint64_t number);

// owner.c: return the calling thread's token, or OWNER_SHARED if its end could not be noticed.
uint64_t owner_self(void);
// Maintain the list of all jobs of this process, for thread ends and fork().
void owner_add_job(struct tocsin_job *job);
void owner_remove_job(struct tocsin_job *job);

// event.c: the caller holds the mutex, except for event_deliver_all().
void event_enqueue(struct tocsin_job *job, const struct tocsin_event *event, uint64_t number);
void event_forget(struct tocsin_job *job, uint64_t number);
void event_drop_all(struct tocsin_job *job);
void event_detach_child(struct tocsin_job *job);
// Deliver all queued events to the callback, without the mutex.
void event_deliver_all(struct tocsin_job *job);

// comm.c
struct tocsin_comm *comm_find(struct tocsin_job *job, uint64_t number);
// failed.c: apply a part of a set. Returns false if the part is malformed; then nothing changes.
bool failed_set_receive(struct tocsin_comm *comm, const struct job_failed *said);
void failed_set_fini(struct tocsin_comm *comm);
// Record that a rank is gone. Returns true the first time, when the program must be notified.
bool failed_set_add_gone(struct tocsin_comm *comm, uint32_t rank);

// link.c: do all work that is possible without blocking; the caller holds the mutex. Returns the
// time (CLOCK_MONOTONIC) of the next work.
uint64_t link_step(struct tocsin_job *job, uint64_t now_ns);
void link_send_leave(struct tocsin_job *job);
void link_close(struct link *link);
// receive.c: handle one packet. Returns false if the packet is malformed, or the agent refused.
bool link_receive(struct tocsin_job *job, const void *packet, size_t size);
// send.c: send what is queued until the socket buffer is full. Returns false if the connection
// broke.
bool link_send_pending(struct tocsin_job *job);
bool link_send_hello(struct tocsin_job *job);

// job.c
void job_init_condition(struct tocsin_job *job);
void job_wake(struct tocsin_job *job);
uint64_t job_now_ns(void);
