// SPDX-License-Identifier: BSD-3-Clause
// What the parts of libtocsin share. A job's mutex guards all of it but what says otherwise.
#pragma once

#include <tocsin/job.h>
#include <tocsin/job_page.h>
#include <tocsin/job_socket.h>

#include <pthread.h>
#include <stdatomic.h>

#define EVENTS_MAX 1024
#define REPORTS_MAX 64
#define LEFT_MAX 256 // communicators whose end the agent was not told yet
#define SOCKET_PATH_BYTES 108
#define NS_PER_S UINT64_C(1000000000)

// Where a thread, or a caller, counts: a slot of the page. Set when the slot is taken.
struct tocsin_counter {
	struct job_row *completed, *started;
	struct job_launched *launched;
	bool shared; // all threads that found no slot write here: atomic additions
	bool times;
};

// Who writes to a slot: a thread's token, or one of these.
#define OWNER_NONE 0u	// the slot is free
#define OWNER_ORPHAN 1u // its thread has ended
#define OWNER_SHARED 2u // the first slot of a communicator
#define OWNER_CALLER 3u // tocsin_comm_counter()
#define OWNER_FIRST 16u // the first token

struct failed_set {
	enum tocsin_agreement agreement;
	uint64_t view;
	uint32_t count;
	uint32_t *ranks; // ascending
};

struct tocsin_comm {
	struct tocsin_job *job;
	uint64_t number; // in this process, never used twice
	uint32_t place;	 // in job->comms
	uint32_t first_slot;
	struct job_register told; // what the agent is told of it
	void *context;
	bool to_register; // the agent was not told yet
	bool aborts;
	enum tocsin_job_state state;
	char reason[JOB_REASON_BYTES];
	// Written by the library's thread with release, read by any thread and in signal handlers
	// with acquire.
	atomic_bool should_abort;
	struct failed_set failed;
	uint32_t gone_count; // ranks that the program was told of, ascending: of each once
	uint32_t *gone;
	uint32_t coming_total; // of a set that comes in several packets
	uint64_t coming_view;
	uint32_t coming_count;
	uint32_t *coming;
};

struct event_node {
	struct event_node *next;
	uint64_t number; // of the communicator; 0: of one that was unregistered meanwhile
	struct tocsin_event event;
};

enum link_state {
	LINK_DOWN,
	LINK_GREETED, // HELLO is sent
	LINK_UP,
};

struct link {
	int fd; // -1: none
	enum link_state state;
	uint64_t next_ns;  // the next try, or until when WELCOME is waited for
	uint64_t pause_ns; // before the next try
	bool blocked;	   // the socket's buffer is full
	bool refused;
	char reason[JOB_REASON_BYTES];
};

struct tocsin_job {
	struct tocsin_job *next; // of all jobs of the process
	pthread_mutex_t mutex;
	pthread_cond_t changed;		     // failed sets, and the end of a callback
	char socket_path[SOCKET_PATH_BYTES]; // "": where an agent usually listens
	char job_id[JOB_ID_BYTES];
	uint64_t start_time; // of this process, as HELLO says it
	tocsin_event_function *event;
	void *event_context;

	bool inherited; // this is a child of the process that opened it: nothing is told
	bool threaded;
	bool closing;
	bool polled; // by a thread in tocsin_job_poll(), now
	pthread_t thread;
	int wake_fd; // eventfd: the thread has something to do
	int told_fd; // eventfd: events wait; -1: a callback takes them

	struct job_page *page;
	int page_fd;
	uint64_t owners[JOB_SLOTS];
	struct tocsin_counter counters[JOB_SLOTS];

	struct tocsin_comm *comms[JOB_COMMS_MAX];
	uint64_t left[LEFT_MAX]; // numbers, to be told
	uint32_t left_count;
	struct job_report reports[REPORTS_MAX];
	uint32_t report_count;

	struct event_node *oldest, *newest;
	uint32_t event_count;
	uint64_t telling; // the communicator whose event a callback has just now; 0: none
	pthread_t teller;

	struct link link;
};

// page.c: 0 or -errno.
int page_make(struct tocsin_job *job);
void page_unmake(struct tocsin_job *job);
// In a child: nothing that it counts reaches the parent's page.
void page_leave(struct tocsin_job *job);
// A free slot for the communicator, or JOB_SLOTS.
uint32_t page_take(struct tocsin_job *job, const struct tocsin_comm *comm, uint64_t owner);
void page_give(struct tocsin_job *job, uint64_t number);

// owner.c: who the calling thread is; OWNER_SHARED where nobody would hear of its end.
uint64_t owner_self(void);
// All jobs of this process, for threads that end and for fork().
void owner_enlist(struct tocsin_job *job);
void owner_delist(struct tocsin_job *job);

// event.c, with the mutex held.
void event_put(struct tocsin_job *job, const struct tocsin_event *event, uint64_t number);
void event_forget(struct tocsin_job *job, uint64_t number);
void event_drop_all(struct tocsin_job *job);
void event_leave(struct tocsin_job *job);
// Tells all that wait to the callback, without the mutex.
void event_tell_all(struct tocsin_job *job);

// comm.c
struct tocsin_comm *comm_find(struct tocsin_job *job, uint64_t number);
// failed.c: what the agent said of it. false: it makes no sense, and changes nothing.
bool failed_take(struct tocsin_comm *comm, const struct job_failed *said);
void failed_fini(struct tocsin_comm *comm);
// Whether the program is to be told that the rank is gone: the first time.
bool failed_is_news(struct tocsin_comm *comm, uint32_t rank);

// link.c: all that can be done now without waiting, with the mutex held. Returns until when there
// is nothing to do, on CLOCK_MONOTONIC.
uint64_t link_step(struct tocsin_job *job, uint64_t now_ns);
void link_leave(struct tocsin_job *job);
void link_close(struct link *link);
// receive.c: the packet is of `size` bytes. false: the agent makes no sense, or refused.
bool link_receive(struct tocsin_job *job, const void *packet, size_t size);
// send.c: what waits to be told, until the buffer is full. false: the connection broke.
bool link_tell(struct tocsin_job *job);
bool link_greet(struct tocsin_job *job);

// job.c: the thread is to look.
void job_make_condition(struct tocsin_job *job);
void job_wake(struct tocsin_job *job);
uint64_t job_now_ns(void);
