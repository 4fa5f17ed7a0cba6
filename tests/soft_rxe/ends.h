// SPDX-License-Identifier: BSD-3-Clause
// One end of a pair of processes that try RDMA on each other: a device by the plain calls of
// libibverbs, a queue pair to the other end, and a TCP connection to keep in step with it.
//
// Whatever goes wrong ends the process with a line that says what.
#pragma once

#include <dataplane/verbs.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define QUEUE_DEPTH 256
#define READS_MAX 16
#define SGES_MAX 3
#define MEMORY_BYTES (4U << 20)

struct end_words {
	uint32_t mtu, queue_pair, psn, key;
	uint64_t address;
	union ibv_gid gid;
};

struct end {
	int tcp;
	bool listened; // of the two ends one did
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	uint8_t *memory; // MEMORY_BYTES, registered with all access
	uint8_t gid_index;
	struct end_words own, peer;
	uint32_t mtu; // of both
	uint32_t pairs;
};

__attribute__((format(printf, 1, 2))) _Noreturn void fail(const char *format, ...);

// What is being tried, for fail().
extern char present[128];

#define check(condition)                                                   \
	do {                                                               \
		if (!(condition))                                          \
			fail("%s:%d: %s", __FILE__, __LINE__, #condition); \
	} while (0)

// peer: the address to connect to; NULL: listens on the port.
void end_open(
	struct end *end, const char *device, uint8_t gid_index, uint16_t port, const char *peer
);
// A queue pair, new, connected to that of the other end, which calls this too.
void end_connect(struct end *end);
// Returns when the other end is here as well.
void end_meet(struct end *end);
void end_close(struct end *end);

// The next completion; waits asleep for at most a minute.
struct ibv_wc end_completion(struct end *end);
// The next one is a success and this one.
struct ibv_wc end_success(struct end *end, uint64_t id, enum ibv_wc_opcode opcode);
