// SPDX-License-Identifier: BSD-3-Clause
// A recording of NCCL's profiler callbacks in memory, and its playback into a plugin.
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

// A handle argument of a callback: an event of the recording, or a raw number.
struct replay_handle {
	uint64_t event; // 0: use `raw`
	uint64_t raw;
};

struct replay_call {
	uint64_t time_ns;
	enum replay_call_kind kind;
	uint32_t line;
	uint64_t event;		     // for start
	int64_t comm;		     // -1: NULL
	struct replay_handle handle; // for stop and state
	struct replay_handle parent, group;
	int32_t state;
	bool has_value;
	uint64_t value;
	int32_t nodes, ranks, rank; // for init
	uint64_t hash;
	const char *name;
	struct nccl_descriptor descriptor;
};

struct replay {
	char *text; // buffer that all strings point into
	int version;
	int32_t pid;  // recorded process; 0: unknown
	int32_t nccl; // version from ncclGetVersion(); 0: unknown
	uint64_t event_max;
	uint32_t comm_max;
	struct replay_call *calls;
	size_t count;
};

// Parse a recording and take over `text`. It must come from malloc(), with `size` bytes and a NUL
// after them. replay_fini() must be called in any case. An incomplete last line is ignored, because
// a recording may be cut off. Returns 0, -EINVAL with *error and *ret_line, or -ENOMEM.
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
	bool all; // also events that the plugin did not request
};

struct replay_result {
	// callbacks played, and callbacks that the plugin did not request
	uint64_t played, left_out;
	uint64_t elapsed_ns; // of all callbacks together
	int32_t failed;	     // callbacks that did not return 0
	char why[256];	     // what could not be loaded
};

// Load the plugin as NCCL does, play the recording, and unload the plugin. It is not unloaded if a
// communicator is not finalized: NCCL unloads it after the last one. Returns 0, -ENOENT with
// ret_result->why, or -ENOMEM.
int replay_play(
	const struct replay *replay,
	const struct replay_options *options,
	struct replay_result *ret_result
);
