// SPDX-License-Identifier: BSD-3-Clause
// COMMS: communicators with the ranks of one node, and their missing ranks.
//
// A row is one communicator as one agent knows it. The head of the row holds what its ranks have in
// common: the job, and the signatures of the latest operations. A rank that ran other operations
// carries its own list. One rank takes about 50 bytes in a row of eight. ras/payload.h has the
// rules for all rows.
#pragma once

#include <ras/collective.h>
#include <ras/memory.h>

struct wire_reader;
struct wire_writer;

#define RAS_COMM_OPS 5 // Broadcast, Reduce, AllGather, ReduceScatter, AllReduce
#define RAS_COMM_SIZE_MAX (1u << 20)
#define RAS_COMM_JOB_BYTES 64	// with the terminating zero
#define RAS_COMM_SIGNATURES 16	// different signatures in a row
#define RAS_COMM_RECENT 16	// latest operations of a rank with a known signature
#define RAS_COMM_WAITS 8	// latest completed operations of a rank with a known wait
#define RAS_COMM_NAME_BYTES 16	// process name, with the terminating zero
#define RAS_COMM_WHY_BYTES 24	// reason for being busy, with the terminating zero
#define RAS_COMM_ROOT_NONE (-1) // for an operation without a root

#define RAS_RANK_FINALIZE 0x01
#define RAS_RANK_DESTROY 0x02
#define RAS_RANK_ABORT 0x04
#define RAS_RANK_EXITED 0x08 // the process has ended
#define RAS_RANK_BLOCKS 0x10 // its thread waits inside an operation until the operation completes
#define RAS_RANK_DETACHED 0x20
#define RAS_RANK_END_SEEN_LATE 0x40 // its agent did not run when the process ended

#define RAS_RANK_KNOWS_STARTED 0x01 // facts that the rank reports in addition to `launched`
#define RAS_RANK_KNOWS_COMPLETED 0x02
#define RAS_RANK_KNOWS_SIGNATURES 0x04
#define RAS_RANK_KNOWS_PROCESS 0x08
#define RAS_RANK_KNOWS_GPU_OF_NCCL 0x10 // device numbers reported by NCCL's RAS instead of the rank

struct ras_comm_signature {
	uint64_t count;
	int32_t root; // or RAS_COMM_ROOT_NONE
	uint8_t kind; // numbers of <jobs/report.h>
	uint8_t datatype;
};

// Signatures of consecutive operations, the first having number `first`. Each index points into the
// signatures of the row.
struct ras_comm_recent {
	uint64_t first;
	uint8_t count; // at most RAS_COMM_RECENT
	uint8_t index[RAS_COMM_RECENT];
};

// Call of MPI between two ranks that a rank is inside.
struct ras_comm_call {
	uint8_t number;	   // enum job_call of <tocsin/job_page.h>; 0: none
	bool is_elsewhere; // the call is in another communicator; `peer` is a rank of that one
	int32_t peer, tag; // negative: any
};

// Activity of a rank's process while other ranks may have waited for the rank.
struct ras_comm_doing {
	uint8_t activity;		// numbers of <jobs/report.h>; 0: nobody looked
	uint8_t unread;			// JOBS_SOURCE_* of <jobs/report.h>
	uint32_t span_ms;		// time between the first and the last look
	uint32_t amount;		// a percentage, a count or a pid, depending on the activity
	char name[RAS_COMM_NAME_BYTES]; // printable ASCII: name of the child
	struct ras_comm_call call;
	// the process says that it is busy on purpose for so many seconds more; 0: it does not
	uint32_t busy_s;
	char busy_why[RAS_COMM_WHY_BYTES]; // printable ASCII: its reason
};

struct ras_comm_rank {
	uint32_t rank;
	uint32_t pid;
	uint64_t launched, started, completed;	// collective operations of this rank
	uint64_t ops[RAS_COMM_OPS];		// launched operations, by kind
	uint64_t pair_launched, pair_completed; // send, receive and one-sided operations
	uint32_t idle_ms;			// since a counter advanced; UINT32_MAX: never
	uint32_t worked_ms;			// CPU time of its process in the last 10 s
	uint32_t exited_ms;			// time since its process ended
	uint32_t since_ms;			// time since the registration; 0: unknown
	int32_t exit_value;
	uint8_t exit_cause; // exit_cause, process_state: numbers of <jobs/report.h>
	uint8_t process_state;
	uint8_t left;	    // how it left in order, a number of <jobs/report.h>; 0: it did not
	uint8_t init_state; // 0 ok, 7 in progress, else an error
	uint8_t async_error;
	uint8_t flags;	     // RAS_RANK_*
	uint8_t knows;	     // RAS_RANK_KNOWS_*
	int16_t cuda_device; // -1 unknown
	int16_t nvml_device;
	uint8_t wait_count;
	uint8_t waits[RAS_COMM_WAITS]; // codes of <jobs/wait.h>, latest completed operations
	struct ras_comm_recent recent; // count 0: as in the head of the row
	struct ras_comm_doing doing;
	uint32_t unwaited;	 // posted operations that the rank does not wait for
	bool oldest_is_unwaited; // operation `completed` + 1 is among them
};

// A rank that runs on another node than the reporting one, as named when the communicator was set
// up.
struct ras_comm_missing {
	uint32_t rank;
	uint32_t pid;	     // 0 unknown
	uint64_t node;	     // id of the agent on its host, 0 unknown
	uint8_t family;	     // of the address: 4, 6, or 0 unknown
	uint8_t address[16]; // network order; IPv4 uses the first four bytes, the rest is zero
	int16_t cuda_device;
	int16_t nvml_device;
};

struct ras_comm {
	struct ras_comm_id id;
	uint32_t size;		      // expected number of ranks
	uint32_t config;	      // digest of the configuration, 0 unknown
	char job[RAS_COMM_JOB_BYTES]; // UTF-8, "" unknown
	uint8_t signature_count;
	struct ras_comm_signature signatures[RAS_COMM_SIGNATURES];
	struct ras_comm_recent recent; // for ranks that carry none of their own
	uint32_t rank_count, missing_count;
	const struct ras_comm_rank *ranks;
	const struct ras_comm_missing *missing;
};

int ras_comm_id_compare(const struct ras_comm_id *a, const struct ras_comm_id *b);

// Write one row. A communicator may be split over rows and parts; each row carries id and size.
// Returns 0 or -EMSGSIZE.
int ras_comm_put(struct wire_writer *writer, const struct ras_comm *comm);

// Store a reader of the next row, and step over the row. The row itself may still be invalid.
// Returns 0, -EBADMSG (no whole row is left), or -ENODATA at the end.
int ras_comm_row_next(struct wire_reader *reader, struct wire_reader *ret_row);
// Read the head of a row; read its ranks and then its missing ranks afterwards. Returns 0,
// -EBADMSG, -EMSGSIZE or -EILSEQ.
int ras_comm_get(struct wire_reader *reader, struct ras_comm *ret_head);
// Read the next rank, in the order of the row. `before` is the previous rank, zeroed for the first.
int ras_comm_get_rank(
	struct wire_reader *reader,
	const struct ras_comm *head,
	const struct ras_comm_rank *before,
	struct ras_comm_rank *ret_rank
);
int ras_comm_get_missing(
	struct wire_reader *reader, uint32_t comm_size, struct ras_comm_missing *ret_missing
);

struct ras_comms; // opaque

struct ras_merged_rank {
	struct ras_comm_id comm;
	uint32_t comm_size;
	uint32_t config;
	uint64_t node;
	uint32_t signatures; // private: index of the first signature of its row
	struct ras_comm_rank rank;
};

struct ras_merged_missing {
	struct ras_comm_id comm;
	uint32_t comm_size;
	struct ras_comm_missing missing;
};

// One communicator after the merge. If two sizes share one id, they are two communicators, both
// marked as a collision.
struct ras_merged_comm {
	struct ras_comm_id id;
	uint32_t size;
	bool collision;
	bool jobs_differ; // its ranks name different jobs
	const char *job;  // "" unknown
	uint32_t rank_count, missing_count;
	const struct ras_merged_rank *ranks;	     // sorted by rank
	const struct ras_merged_missing *missing;    // by rank, without those in `ranks`
	const struct ras_comm_signature *signatures; // private
};

// Return the signature of operation `seq` of one rank, or NULL if it is unknown. The head of a row
// may be ahead of one of its ranks, so `seq` is checked against `launched`.
static inline const struct ras_comm_signature *ras_comm_signature_of(
	const struct ras_merged_comm *comm, const struct ras_merged_rank *rank, uint64_t seq
) {
	const struct ras_comm_recent *recent = &rank->rank.recent;

	if ((rank->rank.knows & RAS_RANK_KNOWS_SIGNATURES) == 0 || seq > rank->rank.launched ||
	    seq < recent->first || seq - recent->first >= recent->count)
		return NULL;
	return &comm->signatures[rank->signatures + recent->index[seq - recent->first]];
}

int ras_comms_create(const struct ras_memory *memory, struct ras_comms **ret_comms); // -ENOMEM
struct ras_comms *ras_comms_destroy(struct ras_comms *comms);
// Add a part. An invalid row is left out alone and counted. Returns 0, -EBADMSG (the last row is
// not whole), -ENOMEM or -ENOSPC (RAS_MERGE_BYTES_MAX); on failure the whole part is ignored.
int ras_comms_add(struct ras_comms *comms, const struct ras_collected_part *part);
// Return the number of invalid rows so far.
uint32_t ras_comms_bad_rows(const struct ras_comms *comms);
// Complete the merge of the added parts. Communicators that all their ranks left are dropped. More
// parts may be added later, followed by another call.
// Returns the number of communicators, sorted by id and size; valid until the next add.
uint32_t ras_comms_settle(struct ras_comms *comms);
// Return the same number again, after ras_comms_settle().
uint32_t ras_comms_count(const struct ras_comms *comms);
void ras_comms_at(const struct ras_comms *comms, uint32_t n, struct ras_merged_comm *ret_comm);
