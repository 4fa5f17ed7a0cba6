// SPDX-License-Identifier: BSD-3-Clause
// What disturbed a worker while it measured: evidence, from the kernel's own counters.
#pragma once

#include <dataplane/worker.h>
#include <lib/wire.h>

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define NOISE_UNKNOWN UINT64_MAX // the kernel does not say

enum noise_kind {
	NOISE_INVOLUNTARY,  // times another thread took the processor away
	NOISE_VOLUNTARY,    // times the worker gave it up
	NOISE_MIGRATIONS,   // to another processor
	NOISE_MINOR,	    // page faults without
	NOISE_MAJOR,	    // and with a disk
	NOISE_STEAL_NS,	    // of the whole machine, what its host took from it
	NOISE_CPU_NS,	    // of the worker's thread
	NOISE_TIME_NS,	    // that passed
	NOISE_BLOCKS,	    // times the worker slept by its policy
	NOISE_CLOCK_OFF_NS, // the most that its clock was found off CLOCK_MONOTONIC; no difference
	NOISE_CLOCK_JUMPS,
	NOISE_KIND_COUNT,
};

struct noise {
	uint64_t counts[NOISE_KIND_COUNT];
};

// "involuntary_switches": as in JSON.
const char *noise_key(enum noise_kind kind);

// The counters as they are; of the thread `tid` of this process and its worker.
void noise_read(pid_t tid, const struct worker *worker, struct noise *ret_noise);
// What came between; what one of them does not know is unknown.
struct noise noise_between(const struct noise *before, const struct noise *after);

// A sentence for people about what may have changed the figures; false if there is nothing.
#define NOISE_TEXT_BYTES 160
bool noise_say(const struct noise *noise, char text[static NOISE_TEXT_BYTES]);

void noise_encode(const struct noise *noise, struct wire_writer *writer);
void noise_decode(struct wire_reader *reader, struct noise *ret_noise);
