// SPDX-License-Identifier: BSD-3-Clause
// Protocol between libtocsin and the agent on the job socket.
//
// A Unix socket of type SOCK_SEQPACKET with one message per packet. Each message is a fixed struct
// without holes, in the host's byte order, since both ends are on one host. Sizes are exact: a
// packet of another size for its kind ends the connection with JOB_REFUSED.
//
//   library                                  agent
//   HELLO, with the page's descriptor   ->   checks the sender: pid and uid from the kernel, a
//                                            pidfd, then the start time, which must equal that
//                                            in HELLO; and the page: size, seals, memory file
//                                       <-   WELCOME; or REFUSED with the reason, then closes
//   REGISTER, for each communicator     ->
//                                       <-   REGISTERED, or REFUSED with that communicator
//   FAILED, if an earlier agent sent it ->   restores the set and its number
//   UNREGISTER, REPORT                  ->
//                                       <-   EVENT, FAILED
//   LEAVE                               ->   the process leaves on purpose
//
//   tocsin run                               agent
//   PARENT                              ->   the sender is the parent of a process of a job, and
//                                            will report its end; no answer
//   EXITED                              ->   how a child ended, which the parent has not reaped yet
//
// A parent's report is accepted only for its own children; the kernel identifies both. The children
// must belong to the same user, or the parent must be root.
//
// Versions: HELLO has the newest and the oldest version that the library speaks. The agent chooses
// the newest one that both speak. WELCOME has it in its head, and both sides use it from then on.
// So an older library and a newer agent talk, and the reverse. If there is none, the agent refuses,
// and names the versions in the reason. The library stays refused, and connects again every 30 s,
// until an agent accepts it. Version 1 is no longer spoken; its HELLO was shorter. HELLO, WELCOME
// and REFUSED keep their layout from version 2 on. A library ignores events of unknown kinds.
//
// Ends: a closed socket detaches the process, which may still be alive. Only its pidfd reports its
// end. After a restart of the agent the library connects and sends everything again, with the same
// page. An agent reads a bounded number of packets of a connection per turn. If the socket buffer
// is full, the agent queues packets and sends them when there is room. If too many are queued, the
// agent closes the connection.
#pragma once

#include <stdint.h>

#define JOB_SOCKET_MAGIC 0x4a534354u // "TCSJ"
#define JOB_SOCKET_VERSION 2u	     // newest version
#define JOB_SOCKET_VERSION_MIN 2u    // oldest version that is still spoken
#define JOB_SOCKET_NAME "job.sock"
#define JOB_ID_BYTES 64
#define JOB_NAME_BYTES 32
#define JOB_REASON_BYTES 160
#define JOB_FAILED_MAX 256 // ranks in one packet
#define JOB_COMM_SIZE_MAX (1u << 20)
#define JOB_COMMS_MAX 127 // communicators of one job, that is of one page

// Flag of a registration beside TOCSIN_COMM_...: an earlier connection registered this rank.
#define JOB_REGISTER_AGAIN (1u << 31)

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

// Return the newest version that we and a peer with these versions speak, or 0 if there is none.
static inline uint16_t job_version_choose(uint16_t peer_min, uint16_t peer_max) {
	uint16_t version = peer_max < JOB_SOCKET_VERSION ? peer_max : JOB_SOCKET_VERSION;

	return version >= peer_min && version >= JOB_SOCKET_VERSION_MIN ? version : 0;
}

struct job_hello {
	struct job_message_head head; // its version is the newest that the library speaks
	uint16_t version_min;	      // the oldest
	uint16_t unused;
	uint32_t attempt;    // attempt of the job, where a launcher counts them; else 0
	uint64_t start_time; // field 22 of /proc/self/stat
	uint64_t page_bytes;
	char job_id[JOB_ID_BYTES]; // zero-terminated, like all texts
};

struct job_register {
	struct job_message_head head;
	uint64_t comm; // number of the communicator in this process, as in the page
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
	JOB_EXIT_STATUS = 1, // value: exit status
	JOB_EXIT_SIGNAL,     // value: number of the signal that killed the process
	JOB_EXIT_MEMORY,     // like JOB_EXIT_SIGNAL, but sent by the kernel's out-of-memory killer
};
struct job_exited {
	struct job_message_head head;
	uint32_t cause; // enum job_exit
	int32_t value;
};

struct job_welcome {
	struct job_message_head head; // its version is the one to use
	uint64_t start; // start time of the agent; a different value means a different agent
};

struct job_refused {
	struct job_message_head head;
	uint64_t comm; // 0: refusal of the whole connection
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

// A part of a failed set. The set is valid once all its parts have arrived.
struct job_failed {
	struct job_message_head head;
	uint64_t comm;
	uint64_t view;
	uint32_t agreement; // enum tocsin_agreement
	uint32_t total;	    // ranks in the set
	uint32_t first;	    // index of ranks[0] in the set
	uint32_t count;	    // ranks in this packet
	uint32_t ranks[JOB_FAILED_MAX];
};
