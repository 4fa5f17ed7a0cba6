// SPDX-License-Identifier: BSD-3-Clause
// What libtocsin and the agent say to each other on the job socket.
//
// A Unix socket of packets (SOCK_SEQPACKET): one message a packet, a fixed struct each, in the
// host's byte order and without holes, since both ends are on one host. Sizes are exact: a packet
// of any other size for its kind is a mistake, and ends the connection with JOB_REFUSED.
//
//   library                                  agent
//   HELLO, with the page's descriptor   ->   looks at the sender: its pid and uid by the kernel, a
//                                            pidfd on it, then its start time, which must be what
//                                            HELLO says; at the page: size, seals, memory file
//                                       <-   WELCOME, or REFUSED with the reason, and closes
//   REGISTER each communicator          ->
//                                       <-   REGISTERED, or REFUSED of that communicator
//   FAILED, if an earlier agent told    ->   a set and its number, which nobody uses again
//   UNREGISTER, REPORT                  ->
//                                       <-   EVENT, FAILED
//   LEAVE                               ->   the process leaves on purpose
//
//   tocsin run                               agent
//   PARENT                              ->   the connection of a process that starts one of a job,
//                                            whose end it will know: nothing is answered
//   EXITED                              ->   how its child ended, which still waits to be reaped
//
// What a parent says is believed of its own children alone (by the kernel's word on both), and only
// if they are of its user.
//
// Versions: both say theirs, the agent in WELCOME and REFUSED; it speaks every version up to its
// own, and refuses a greater one: the library then tries again with the one of the answer. HELLO,
// WELCOME and REFUSED keep their layout for ever.
//
// Ends: a closed socket detaches and says nothing about the process. That it has ended says its
// pidfd alone. After the agent's restart the library connects and says everything again, with the
// same page. An agent reads at most JOB_PACKETS_PER_TURN packets of a connection in a turn, and
// tells nothing to one whose buffer is full: the library asks for nothing, and a failed set that
// could not be told is told when there is room.
#pragma once

#include <stdint.h>

#define JOB_SOCKET_MAGIC 0x4a534354u // "TCSJ"
#define JOB_SOCKET_VERSION 1u
#define JOB_SOCKET_NAME "job.sock"
#define JOB_ID_BYTES 64
#define JOB_NAME_BYTES 32
#define JOB_REASON_BYTES 160
#define JOB_FAILED_MAX 256 // ranks in one packet
#define JOB_COMM_SIZE_MAX (1u << 20)
#define JOB_COMMS_MAX 127 // of a process

enum job_message {
	JOB_HELLO = 1,
	JOB_REGISTER,
	JOB_UNREGISTER,
	JOB_REPORT,
	JOB_LEAVE,
	JOB_PARENT,
	JOB_EXITED,
	JOB_WELCOME = 64,
	JOB_REFUSED,
	JOB_REGISTERED,
	JOB_EVENT,
	JOB_FAILED,
};

struct job_message_head {
	uint32_t magic;
	uint16_t version;
	uint16_t kind; // enum job_message
};

struct job_hello {
	struct job_message_head head;
	uint64_t start_time; // field 22 of /proc/self/stat
	uint64_t page_bytes;
	char job_id[JOB_ID_BYTES]; // ended by 0, as all texts
};

struct job_register {
	struct job_message_head head;
	uint64_t comm; // its number in this process, as in the page
	uint64_t comm_hash, host_hash, process_hash;
	uint64_t configuration_hash;
	uint32_t size, rank;
	uint32_t flags; // TOCSIN_COMM_...
	int16_t cuda_device, nvml_device;
	char name[JOB_NAME_BYTES];
};

struct job_unregister {
	struct job_message_head head;
	uint64_t comm;
};

struct job_report {
	struct job_message_head head;
	uint64_t comm;
	uint32_t rank;
	uint32_t unused;
	char reason[JOB_REASON_BYTES];
};

struct job_leave {
	struct job_message_head head;
};

struct job_parent {
	struct job_message_head head;
};

enum job_exit {
	JOB_EXIT_STATUS = 1, // value: what it returned
	JOB_EXIT_SIGNAL,     // value: the signal that killed it
	JOB_EXIT_MEMORY,     // the same, by the kernel, which had no memory for it
};
struct job_exited {
	struct job_message_head head;
	uint32_t cause; // enum job_exit
	int32_t value;
};

struct job_welcome {
	struct job_message_head head;
	uint64_t start; // of the agent; another number is another agent
};

struct job_refused {
	struct job_message_head head;
	uint64_t comm; // 0: the whole connection
	char reason[JOB_REASON_BYTES];
};

struct job_registered {
	struct job_message_head head;
	uint64_t comm;
};

struct job_event {
	struct job_message_head head;
	uint64_t comm;
	uint64_t view;
	uint64_t happened_ns; // CLOCK_MONOTONIC
	uint32_t kind;	      // enum tocsin_event_kind
	uint32_t rank;
	char text[JOB_REASON_BYTES];
};

// A whole set may need several packets; it counts when all its ranks are there.
struct job_failed {
	struct job_message_head head;
	uint64_t comm;
	uint64_t view;
	uint32_t agreement; // enum tocsin_agreement
	uint32_t total;	    // ranks in the set
	uint32_t first;	    // place of ranks[0] in it
	uint32_t count;	    // in this packet
	uint32_t ranks[JOB_FAILED_MAX];
};
