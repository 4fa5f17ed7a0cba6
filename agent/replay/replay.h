// SPDX-License-Identifier: BSD-3-Clause
// A recording of NCCL's callbacks in memory, and playing it into a plugin.
#pragma once

#include <lib/parse.h>

#include <abi.h>
#include <stdint.h>

#define REPLAY_EVENTS_MAX 10000000u
#define REPLAY_COMMS_MAX 4096u

enum replay_call_kind {
	REPLAY_INIT,
	REPLAY_START,
	REPLAY_STOP,
	REPLAY_STATE,
	REPLAY_FINALIZE,
};

// What a handle is given by: an event of the recording, or a number as it is.
struct replay_handle {
	uint64_t event; // 0: `raw`
	uint64_t raw;
};

struct replay_call {
	uint64_t time_ns;
	enum replay_call_kind kind;
	uint32_t line;
	uint64_t event;		     // start
	int64_t comm;		     // -1: NULL
	struct replay_handle handle; // stop, state
	struct replay_handle parent, group;
	int32_t state;
	bool has_value;
	uint64_t value;
	int32_t nodes, ranks, rank; // init
	uint64_t hash;
	const char *name;
	struct nccl_descriptor descriptor;
};

struct replay {
	char *text; // what all texts point into
	int version;
	int32_t pid;  // of the process that was recorded; 0: not told
	int32_t nccl; // its version, as ncclGetVersion() says it; 0: not told
	uint64_t event_max;
	uint32_t comm_max;
	struct replay_call *calls;
	size_t count;
};

// Takes text, which is from malloc() and `size` bytes and a 0 behind; replay_fini() frees it in any
// case. A last line without an end is left out: a recording that was cut off. Returns 0, -EINVAL
// with *error and *ret_line, or -ENOMEM.
int replay_parse(
	struct replay *replay,
	char *text,
	size_t size,
	struct parse_error *error,
	uint32_t *ret_line
);
void replay_fini(struct replay *replay);

struct replay_options {
	const char *library;
	bool in_real_time;
	bool all; // events that the plugin did not ask for, too
};

struct replay_result {
	uint64_t played, left_out; // callbacks; not asked for by the plugin
	uint64_t elapsed_ns;	   // of all callbacks together
	int32_t failed;		   // callbacks that did not return 0
	char why[256];		   // what could not be loaded
};

// Loads the plugin as NCCL does, plays, and unloads it, unless a communicator is not finalized:
// NCCL unloads it after the last one. -ENOENT with ret_result->why, -ENOMEM.
int replay_play(
	const struct replay *replay,
	const struct replay_options *options,
	struct replay_result *ret_result
);
