// SPDX-License-Identifier: BSD-3-Clause
// The page that an agent shows to its peers: they read it with one-sided operations, and see
// whether this agent lives without asking it.
//
// It is registered for reading only, on every device. Every word is written whole by one thread and
// means something alone, since a read may see words of different moments. Beyond the words lie
// zeros up to PULSE_BYTES, for probes of all sizes.
//
// The layout is what travels: little-endian words at fixed places. A change of it is a new number.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PULSE_BYTES 65536
#define PULSE_MAGIC UINT64_C(0x31455355504c5554) // "TULPUSE1"
#define PULSE_LAYOUT 1
#define PULSE_WORKERS_MAX 16

struct pulse;

// Control. name is the overlay's id of this node. -ENOMEM.
int pulse_create(uint64_t name, uint32_t worker_count, struct pulse **ret_pulse);
// No device can reach it any more. NULL is fine.
struct pulse *pulse_destroy(struct pulse *pulse);

// What is to be registered.
void *pulse_memory(struct pulse *pulse);

// Control: it is alive, and this is its present incarnation.
void pulse_beat(struct pulse *pulse, uint64_t incarnation, uint64_t now_ns);
// Control, for a worker that lives: who reads the page while control beats sees which does not.
// Those past PULSE_WORKERS_MAX have no word.
void pulse_beat_worker(struct pulse *pulse, uint32_t worker);

#define PULSE_HEAD_BYTES 192 // what must be read to tell
#define PULSE_BEATS_AT 40    // where the counter of control lies, for who reads nothing else

// What a reader makes of the bytes, hot, where a device has put them (aligned to 8): false if they
// are no page of `name` (yet), or one that no agent writes.
bool pulse_glance(const void *bytes, uint64_t name, uint64_t *ret_incarnation, uint64_t *ret_beats);
// What a reader knows of the other's workers from page to page: low halves of their words, and of
// control's counter when each was seen to move.
struct pulse_workers {
	uint32_t words[PULSE_WORKERS_MAX], at[PULSE_WORKERS_MAX];
	uint32_t beats;
	bool begun;
};

// Control's beats, of which there are ten a second, after which a worker whose word did not move
// hangs: control moves the word of each that lives with its own.
#define PULSE_WORKER_STANDS 30

// Of a page that pulse_glance() took for sound: a bit for each worker that hangs, and how many
// there are. One that never had a word is of an agent that gives none. Hot.
uint32_t pulse_glance_workers(const void *bytes, struct pulse_workers *seen, uint32_t *ret_count);
// The counter alone, where a device has put it.
uint64_t pulse_glance_beats(const void *bytes);
