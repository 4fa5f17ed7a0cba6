// SPDX-License-Identifier: BSD-3-Clause
// Payloads of collectives, and how the root merges them.
//
// A part is a sequence of rows of one kind, up to its end. Each ras_*_put() writes one row into the
// writer of ras_ops.contribute. It returns 0, or -EMSGSIZE with the writer unchanged if the row
// does not fit; the rest then goes into another part. The order of parts and rows never changes the
// result of a merge. Decoded data comes from outside: every count, length and value is checked. A
// bad part is rejected as a whole and leaves the merge unchanged.
#pragma once

#include <ras/collective.h>
#include <ras/comms.h>
#include <ras/memory.h>

struct wire_reader;
struct wire_writer;

#define RAS_MERGE_BYTES_MAX (96u << 20) // limit of one table; a part beyond it is ignored

// CONNS: one row per overlay link and per RDMA pair.
enum ras_transport {
	RAS_TRANSPORT_TCP,
	RAS_TRANSPORT_INFINIBAND,
	RAS_TRANSPORT_ROCE,
	RAS_TRANSPORT_SOFT,
	RAS_TRANSPORT_COUNT,
};

const char *ras_transport_name(enum ras_transport transport);

#define RAS_RETRANSMITS_UNKNOWN UINT64_MAX

struct ras_conn_row {
	uint64_t peer;
	enum ras_transport transport;
	uint32_t samples; // number of round trips; if 0, the three times are 0
	uint64_t min_ns, mean_ns, max_ns;
	uint64_t sent_bytes, received_bytes;
	uint64_t errors; // TCP link: reconnects; RDMA pair: how often it broke
	uint64_t retransmits;
};

int ras_conn_put(struct wire_writer *writer, const struct ras_conn_row *row);
// Read the next row. Returns 0, -EBADMSG, -EMSGSIZE, or -ENODATA at the end.
int ras_conn_get(struct wire_reader *reader, struct ras_conn_row *ret_row);

#define RAS_CONNS_WORST_MAX 16

struct ras_conn_worst {
	uint64_t node;
	struct ras_conn_row row;
};

struct ras_conn_sums {
	uint64_t rows;
	uint64_t samples;
	uint64_t min_ns, mean_ns, max_ns;
	uint64_t sent_bytes, received_bytes, errors, retransmits;
	uint64_t retransmits_unknown; // number of rows without a known value
	uint64_t sum_high, sum_low;   // private: 128-bit sum behind the mean
};

// Merge of CONNS. Zero it before the first add.
struct ras_conns {
	struct ras_conn_sums all;
	struct ras_conn_sums transports[RAS_TRANSPORT_COUNT];
	uint32_t worst_count; // sorted by largest mean, then by largest maximum
	struct ras_conn_worst worst[RAS_CONNS_WORST_MAX];
};

// Add a part. Returns 0 or -EBADMSG.
int ras_conns_add(struct ras_conns *conns, const struct ras_collected_part *part);

// PATHS: one row per path that a node probes. `seen` is a number of <verdict/observation.h>, since
// the core does not judge paths.
#define RAS_PATH_DEVICE_MAX 31

struct ras_path_row {
	uint64_t peer;
	char device[RAS_PATH_DEVICE_MAX + 1];	   // device of the reporting node
	char peer_device[RAS_PATH_DEVICE_MAX + 1]; // "": unknown
	uint64_t count;				   // answers; if 0, the times are 0
	uint64_t lost;
	uint64_t min_ns, median_ns, mad_ns, p99_ns;
	uint64_t baseline_ns;	// 0: unknown
	uint64_t for_s;		// seconds for which `seen` has been unchanged
	uint32_t lost_permille; // recent loss among the affected message sizes, in 1/1000
	uint8_t seen;		// enum observation_kind
	bool steady;		// true: probed continuously; false: in turn with other paths
};

int ras_path_put(struct wire_writer *writer, const struct ras_path_row *row);
int ras_path_get(struct wire_reader *reader, struct ras_path_row *ret_row);

// Row of a merged PATHS table. The table is sorted; a row that arrives twice is kept once.
struct ras_merged_path {
	uint64_t node;
	struct ras_path_row row;
};

struct ras_paths;

// Merge of PATHS, with the same errors as for communicators. Sorted by node, peer and devices. Of
// two rows for one path, the row with more probes is kept.
int ras_paths_create(const struct ras_memory *memory, struct ras_paths **ret_paths);
struct ras_paths *ras_paths_destroy(struct ras_paths *paths);
int ras_paths_add(struct ras_paths *paths, const struct ras_collected_part *part);
uint32_t ras_paths_settle(struct ras_paths *paths);
// Return the number of rows, after ras_paths_settle().
uint32_t ras_paths_count(const struct ras_paths *paths);
const struct ras_merged_path *ras_paths_at(const struct ras_paths *paths, uint32_t n);
