// SPDX-License-Identifier: BSD-3-Clause
// What collectives carry, and how the root merges it.
//
// A part is a run of rows of its kind to the end. The ras_*_put() write one into the writer of
// ras_ops.contribute: 0, or -EMSGSIZE and the writer as it was if it does not fit, which is the
// moment to ask for another part. The order of parts, and of rows in them, never changes what a
// merge shows. What is decoded came from outside: every count, length and value is checked, and
// a bad part is refused whole and leaves the merge as it was.
#pragma once

#include <ras/collective.h>
#include <ras/comms.h>
#include <ras/memory.h>

struct wire_reader;
struct wire_writer;

#define RAS_MERGE_BYTES_MAX (96u << 20) // of one table; a part beyond it is left out

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
	uint32_t samples; // of travel times; if 0 the three are 0
	uint64_t min_ns, mean_ns, max_ns;
	uint64_t sent_bytes, received_bytes;
	uint64_t errors; // of a TCP link: reconnects; of a pair: how often it broke
	uint64_t retransmits;
};

int ras_conn_put(struct wire_writer *writer, const struct ras_conn_row *row);
// 0, -EBADMSG or -EMSGSIZE, or -ENODATA at the end.
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
	uint64_t retransmits_unknown; // rows
	uint64_t sum_high, sum_low;   // private: what is behind the mean
};

// Zeroed to begin with.
struct ras_conns {
	struct ras_conn_sums all;
	struct ras_conn_sums transports[RAS_TRANSPORT_COUNT];
	uint32_t worst_count; // by largest mean, then largest maximum
	struct ras_conn_worst worst[RAS_CONNS_WORST_MAX];
};

// -EBADMSG.
int ras_conns_add(struct ras_conns *conns, const struct ras_collected_part *part);

// PATHS: one row per path a node probes. How it sees the path is a number of
// <verdict/observation.h>, as the core does not judge.
#define RAS_PATH_DEVICE_MAX 31

struct ras_path_row {
	uint64_t peer;
	char device[RAS_PATH_DEVICE_MAX + 1];	   // own
	char peer_device[RAS_PATH_DEVICE_MAX + 1]; // "": not known
	uint64_t count;				   // of answers; if 0 the times are 0
	uint64_t lost;
	uint64_t min_ns, median_ns, mad_ns, p99_ns;
	uint64_t baseline_ns;	// 0: not known
	uint64_t for_s;		// how long it has been seen so
	uint32_t lost_permille; // lately, of the sizes that are lost
	uint8_t seen;		// enum observation_kind
	bool steady;		// probed steadily, else in turn
};

int ras_path_put(struct wire_writer *writer, const struct ras_path_row *row);
int ras_path_get(struct wire_reader *reader, struct ras_path_row *ret_row);

// A merge of PATHS is a sorted table; the same row twice is kept once.
struct ras_merged_path {
	uint64_t node;
	struct ras_path_row row;
};

struct ras_paths;

// Errors as for communicators. Sorted by node, peer and devices. Of two rows for one path the one
// with more probes is kept.
int ras_paths_create(const struct ras_memory *memory, struct ras_paths **ret_paths);
struct ras_paths *ras_paths_destroy(struct ras_paths *paths);
int ras_paths_add(struct ras_paths *paths, const struct ras_collected_part *part);
uint32_t ras_paths_settle(struct ras_paths *paths);
// After it was settled.
uint32_t ras_paths_count(const struct ras_paths *paths);
const struct ras_merged_path *ras_paths_at(const struct ras_paths *paths, uint32_t n);
