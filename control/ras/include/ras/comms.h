// SPDX-License-Identifier: BSD-3-Clause
// COMMS: communicators with the ranks of one node, and the ranks it misses.
//
// A row is one communicator as one agent knows it. What its ranks have in common stands once, in
// its head: the job, and the signatures of the last operations. A rank that ran others carries its
// own. A rank of eight on a node takes some 50 bytes; ras/payload.h has the rules that all rows
// keep.
#pragma once

#include <ras/collective.h>
#include <ras/memory.h>

struct wire_reader;
struct wire_writer;

#define RAS_COMM_OPS 5 // Broadcast, Reduce, AllGather, ReduceScatter, AllReduce
#define RAS_COMM_SIZE_MAX (1u << 20)
#define RAS_COMM_JOB_BYTES 64	// with its end
#define RAS_COMM_SIGNATURES 16	// different ones in a row
#define RAS_COMM_RECENT 16	// operations of a rank whose signatures are told
#define RAS_COMM_WAITS 8	// completed operations of a rank whose waits are told
#define RAS_COMM_ROOT_NONE (-1) // of an operation without a root

#define RAS_RANK_FINALIZE 0x01
#define RAS_RANK_DESTROY 0x02
#define RAS_RANK_ABORT 0x04
#define RAS_RANK_EXITED 0x08 // its process is gone
#define RAS_RANK_BLOCKS 0x10 // its thread waits inside an operation until that is completed
#define RAS_RANK_DETACHED 0x20

#define RAS_RANK_KNOWS_STARTED 0x01 // what it tells beside launched
#define RAS_RANK_KNOWS_COMPLETED 0x02
#define RAS_RANK_KNOWS_SIGNATURES 0x04
#define RAS_RANK_KNOWS_PROCESS 0x08
#define RAS_RANK_KNOWS_GPU_OF_NCCL 0x10 // its devices, by NCCL's RAS and not by itself

struct ras_comm_signature {
	uint64_t count;
	int32_t root; // or RAS_COMM_ROOT_NONE
	uint8_t kind; // numbers of <jobs/report.h>
	uint8_t datatype;
};

// Operations from `first` on, each an index into the signatures of the row.
struct ras_comm_recent {
	uint64_t first;
	uint8_t count; // at most RAS_COMM_RECENT
	uint8_t index[RAS_COMM_RECENT];
};

struct ras_comm_rank {
	uint32_t rank;
	uint32_t pid;
	uint64_t launched, started, completed;	// collective operations of this rank in it
	uint64_t ops[RAS_COMM_OPS];		// launched, by kind
	uint64_t pair_launched, pair_completed; // send, receive and one-sided ones
	uint32_t idle_ms;   // since one of its counters moved; UINT32_MAX: never seen to move
	uint32_t worked_ms; // processor time of its process in the last 10 s
	uint32_t exited_ms; // how long ago its process ended
	int32_t exit_value;
	uint8_t exit_cause; // numbers of <jobs/report.h>, as of the next
	uint8_t process_state;
	uint8_t init_state; // 0 ok, 7 in progress, else an error
	uint8_t async_error;
	uint8_t flags;	     // RAS_RANK_*
	uint8_t knows;	     // RAS_RANK_KNOWS_*
	int16_t cuda_device; // -1 unknown
	int16_t nvml_device;
	uint8_t wait_count;
	uint8_t waits[RAS_COMM_WAITS]; // codes of <jobs/wait.h>, of the last completed ones
	struct ras_comm_recent recent; // no count: as in the head of the row
};

// A rank that is not of the reporting node, as the communicator's set-up named it.
struct ras_comm_missing {
	uint32_t rank;
	uint32_t pid;	     // 0 unknown
	uint64_t node;	     // id of the agent on its host, 0 unknown
	uint8_t family;	     // of its address: 4, 6, or 0 unknown
	uint8_t address[16]; // network order, IPv4 in the first four, rest zero
	int16_t cuda_device;
	int16_t nvml_device;
};

struct ras_comm {
	struct ras_comm_id id;
	uint32_t size;		      // ranks it should have
	uint32_t config;	      // digest of its configuration, 0 unknown
	char job[RAS_COMM_JOB_BYTES]; // UTF-8, "" unknown
	uint8_t signature_count;
	struct ras_comm_signature signatures[RAS_COMM_SIGNATURES];
	struct ras_comm_recent recent; // of ranks that carry none of their own
	uint32_t rank_count, missing_count;
	const struct ras_comm_rank *ranks;
	const struct ras_comm_missing *missing;
};

int ras_comm_id_compare(const struct ras_comm_id *a, const struct ras_comm_id *b);

// A communicator may be split over rows and parts: each carries id and size.
int ras_comm_put(struct wire_writer *writer, const struct ras_comm *comm);

// The head of the next communicator, its ranks and then its missing ranks to be got next.
// 0, -EBADMSG, -EMSGSIZE or -EILSEQ, or -ENODATA at the end.
int ras_comm_get(struct wire_reader *reader, struct ras_comm *ret_head);
// In the order of the row; `before` is the one got before it, zeroed for the first.
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
	uint32_t signatures; // private: where those of its row begin
	struct ras_comm_rank rank;
};

struct ras_merged_missing {
	struct ras_comm_id comm;
	uint32_t comm_size;
	struct ras_comm_missing missing;
};

// One communicator after the merge. Two sizes under one id are two communicators, both marked.
struct ras_merged_comm {
	struct ras_comm_id id;
	uint32_t size;
	bool collision;
	bool jobs_differ; // its ranks name different jobs
	const char *job;  // "" unknown
	uint32_t rank_count, missing_count;
	const struct ras_merged_rank *ranks;	     // by rank
	const struct ras_merged_missing *missing;    // by rank, none of them in `ranks`
	const struct ras_comm_signature *signatures; // private
};

// Of the operation `seq` of one of its ranks; NULL: it is not told. What a row's head tells may be
// ahead of one of its ranks.
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
// -EBADMSG, -EMSGSIZE, -EILSEQ, -ENOMEM, -ENOSPC (RAS_MERGE_BYTES_MAX): the part is left out whole.
int ras_comms_add(struct ras_comms *comms, const struct ras_collected_part *part);
// Settles what was added; more may be added and settled again. Returns the communicators, by
// id and size; valid until the next add.
uint32_t ras_comms_settle(struct ras_comms *comms);
// The same again, after it was settled.
uint32_t ras_comms_count(const struct ras_comms *comms);
void ras_comms_at(const struct ras_comms *comms, uint32_t n, struct ras_merged_comm *ret_comm);
