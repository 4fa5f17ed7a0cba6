// SPDX-License-Identifier: BSD-3-Clause
// Messages between the agent and a process that starts programs. Each message is one record. The
// spawn helper is a fork of the agent. The root helper is another program: it is given names of
// programs, and checks each order.
#pragma once

#include <control/spawn.h>

#define SPAWN_PROTOCOL 1
#define SPAWN_NAMED_TIMEOUT_NS_MAX UINT64_C(3600000000000)

enum spawn_order {
	// Followed by the input, then argv as NUL-terminated strings. For the root helper argv is
	// one string, the name of the program.
	SPAWN_ORDER_RUN,
	SPAWN_ORDER_CANCEL, // the answer is ignored
};

struct spawn_order_head {
	uint64_t id;
	uint64_t timeout_ns;
	uint32_t order;
	uint32_t output_max;
	uint32_t input_bytes;
	uint16_t protocol;		 // SPAWN_PROTOCOL
	uint8_t has_input;		 // 1 even if the input is empty
	char user[SPAWN_USER_BYTES_MAX]; // empty: the agent's own user
};

// End value of a hanging program. A struct spawn_stuck follows, and a second answer if the program
// ends.
#define SPAWN_END_STUCK UINT32_MAX

// Followed by the bytes of both streams.
struct spawn_answer_head {
	uint64_t id;
	uint64_t took_ns;
	uint32_t end;
	int32_t status;
	uint32_t sizes[2];
	uint8_t cut[2];
	uint8_t zero[6];
};

#define SPAWN_ORDER_BYTES_MAX \
	(sizeof(struct spawn_order_head) + SPAWN_INPUT_BYTES_MAX + SPAWN_ARGUMENT_BYTES_MAX)
#define SPAWN_ANSWER_BYTES_MAX \
	(sizeof(struct spawn_answer_head) + 2 * (size_t)SPAWN_OUTPUT_BYTES_MAX)

// Find named programs; NULL in the spawn helper, which is given arguments and user.
struct spawn_catalog {
	spawn_find_fn *find;
	void *ctx;
};

// Run the helper: serve `fd` until the other end is closed, then exit the process.
_Noreturn void spawn_helper_main(int fd, const struct spawn_catalog *catalog);

// Check the form of an order for a named program. Returns false if a length, a count or a text is
// wrong. Any bytes are permitted.
bool spawn_order_is_valid(const void *record, size_t size);

// Change to that user, between fork() and exec(). Returns 0, -errno or SPAWN_NO_USER.
int spawn_become_user(const char *name);
// Return a descriptor that reads these bytes from their start. Returns 0 or -errno.
int spawn_input_open(const void *bytes, size_t size, int *ret_fd);

// Describe a remaining process of a group, preferably one in uninterruptible sleep. Reads /proc,
// which does not wait for the process.
void spawn_stuck_describe(pid_t group, struct spawn_stuck *ret_stuck);
