// SPDX-License-Identifier: BSD-3-Clause
// What the agent and its spawn helper say to each other: records, one a message, between two
// processes of one program.
#pragma once

#include <control/spawn.h>

enum spawn_order {
	SPAWN_ORDER_RUN,    // the input follows, then argv: strings, each with its NUL
	SPAWN_ORDER_CANCEL, // no answer will be read
};

struct spawn_order_head {
	uint64_t id;
	uint64_t timeout_ns;
	uint32_t order;
	uint32_t output_max;
	uint32_t input_bytes;
	bool has_input;			 // be it empty
	char user[SPAWN_USER_BYTES_MAX]; // empty: the agent's own
};

// In place of an end: the program hangs; a struct spawn_stuck follows, and another answer if it
// ends.
#define SPAWN_END_STUCK UINT32_MAX

// The bytes of both streams follow.
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

// The helper's life: serves fd until the other end is closed, and ends the process.
_Noreturn void spawn_helper_main(int fd);

// In a new process, between fork() and exec(): becomes that user. -errno, or SPAWN_NO_USER.
int spawn_become_user(const char *name);
// A descriptor to read the bytes from, from their beginning. -errno.
int spawn_input_open(const void *bytes, size_t size, int *ret_fd);

// Which process of a group is still there, one that hangs before others. Reads /proc: nothing
// there waits for the process.
void spawn_stuck_look(pid_t group, struct spawn_stuck *ret_stuck);
