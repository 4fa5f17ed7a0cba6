// SPDX-License-Identifier: BSD-3-Clause
// Disturbances of a worker during a measurement, counted by the kernel and the worker.
#pragma once

#include <dataplane/worker.h>
#include <lib/wire.h>

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define NOISE_UNKNOWN UINT64_MAX // the kernel does not report it

enum noise_kind {
	NOISE_INVOLUNTARY, // preemptions by another thread
	NOISE_VOLUNTARY,   // voluntary switches
	NOISE_MIGRATIONS,  // moves to another processor
	NOISE_MINOR,	   // page faults without disk access
	NOISE_MAJOR,	   // page faults with disk access
	NOISE_STEAL_NS,	   // time stolen by the hypervisor, whole machine
	NOISE_CPU_NS,	   // processor time of the worker's thread
	NOISE_TIME_NS,	   // elapsed time
	NOISE_BLOCKS,	   // sleeps of the worker by its idle policy
	// Largest error of the clock against CLOCK_MONOTONIC; a maximum, not a difference.
	NOISE_CLOCK_OFF_NS,
	NOISE_CLOCK_JUMPS,
	NOISE_KIND_COUNT,
};

struct noise {
	uint64_t counts[NOISE_KIND_COUNT];
};

// Return the key in JSON, for example "involuntary_switches".
const char *noise_key(enum noise_kind kind);

// Read the current counters of a worker and its thread `tid`, a thread of this process.
void noise_read(pid_t tid, const struct worker *worker, struct noise *ret_noise);
// Return the differences of two readings. A count that either reading lacks is unknown.
struct noise noise_between(const struct noise *before, const struct noise *after);

// Describe the disturbances that may have changed the figures. Returns false if there are none.
#define NOISE_TEXT_BYTES 160
bool noise_format(const struct noise *noise, char text[static NOISE_TEXT_BYTES]);

void noise_encode(const struct noise *noise, struct wire_writer *writer);
void noise_decode(struct wire_reader *reader, struct noise *ret_noise);
