// SPDX-License-Identifier: BSD-3-Clause
// One end of two processes that test RDMA with each other. It has a device, used by plain
// libibverbs calls, and a queue pair to the other end. A TCP connection synchronizes both ends.
//
// Every failure ends the process with a message.
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
	bool listened; // one of the two ends listened
	struct ibv_context *context;
	struct ibv_pd *pd;
	struct ibv_comp_channel *channel;
	struct ibv_cq *cq;
	struct ibv_mr *mr;
	struct ibv_qp *qp;
	uint8_t *memory; // MEMORY_BYTES bytes, registered with all access rights
	uint8_t gid_index;
	struct end_words own, peer;
	uint32_t mtu; // same value for both ends
	uint32_t pairs;
};

__attribute__((format(printf, 1, 2))) _Noreturn void fail(const char *format, ...);

// Name of the current step, for fail().
extern char present[128];

#define check(condition)                                                   \
	do {                                                               \
		if (!(condition))                                          \
			fail("%s:%d: %s", __FILE__, __LINE__, #condition); \
	} while (0)

// Open an end. peer: address to connect to; NULL: listen on the port.
void end_open(
	struct end *end, const char *device, uint8_t gid_index, uint16_t port, const char *peer
);
// Create a queue pair and connect it to the one of the other end, which calls this too.
void end_connect(struct end *end);
// Wait until the other end has called this too.
void end_meet(struct end *end);
void end_close(struct end *end);

// Return the next completion; sleeps for at most a minute.
struct ibv_wc end_completion(struct end *end);
// Return the next completion, which must be this one and successful.
struct ibv_wc end_success(struct end *end, uint64_t id, enum ibv_wc_opcode opcode);
