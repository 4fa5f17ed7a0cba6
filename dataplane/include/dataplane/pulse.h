// SPDX-License-Identifier: BSD-3-Clause
// The page that an agent exposes to its peers. They read it with one-sided operations and see
// whether this agent is alive, without asking it.
//
// It is registered read-only on every device. One thread writes each word as a whole. Each word is
// meaningful alone, because a read may mix words of different moments. Zeros follow up to
// PULSE_BYTES, for probes of all sizes.
//
// The layout is the wire format: little-endian words at fixed offsets. A change needs a new layout
// number.
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define PULSE_BYTES 65536
#define PULSE_MAGIC UINT64_C(0x31455355504c5554) // "TULPUSE1"
#define PULSE_LAYOUT 1
#define PULSE_WORKERS_MAX 16

struct pulse;

// Create the page. name is the overlay id of this node. Control thread. Returns 0 or -ENOMEM.
int pulse_create(uint64_t name, uint32_t worker_count, struct pulse **ret_pulse);
// Destroy the page, which no device may reach any more. NULL is fine.
struct pulse *pulse_destroy(struct pulse *pulse);

// Return the memory to register.
void *pulse_memory(struct pulse *pulse);

// Count one beat of control, with the present incarnation. Control thread.
void pulse_beat(struct pulse *pulse, uint64_t incarnation, uint64_t now_ns);
// Publish how long a thread that takes part in answers waits for a processor at each wake-up; 0:
// not noticeably, or unknown. Earlier versions of the agent leave this word 0. Control thread.
void pulse_set_wait(struct pulse *pulse, uint64_t wait_ns);
// Count one beat for a live worker. A reader that sees control's beats advance recognises a hung
// worker by its unchanged word. Workers beyond PULSE_WORKERS_MAX have no word. Control thread.
void pulse_beat_worker(struct pulse *pulse, uint32_t worker);

#define PULSE_HEAD_BYTES 192 // bytes that pulse_parse_head() needs
#define PULSE_BEATS_AT 40    // offset of control's counter, for readers of that word alone

// Parse a page that a device has read into `bytes` (8-byte aligned). Returns false if its magic,
// layout or name differ, as on a page that is not yet written or is another agent's, or if a field
// has an impossible value. Hot.
bool pulse_parse_head(
	const void *bytes, uint64_t name, uint64_t *ret_incarnation, uint64_t *ret_beats
);
// Reader's state about the peer's workers between pages: the low halves of their words, and of
// control's counter when each word last changed.
struct pulse_workers {
	uint32_t words[PULSE_WORKERS_MAX], at[PULSE_WORKERS_MAX];
	uint32_t beats;
	bool begun;
};

// Number of control's beats (ten per second) after which a worker with an unchanged word counts as
// hung. Control advances the words of live workers together with its own.
#define PULSE_WORKER_HUNG_BEATS 30

// Return a bit for each hung worker, and the number of workers, from a page that pulse_parse_head()
// accepted. A worker whose word is still 0 is never reported: its agent does not count its beats.
// Hot.
uint32_t
pulse_find_hung_workers(const void *bytes, struct pulse_workers *seen, uint32_t *ret_count);
// Return what pulse_set_wait() published, from a page that pulse_parse_head() accepted. Hot.
uint64_t pulse_read_wait(const void *bytes);
// Return the counter of the control thread. `bytes` is an RDMA read of this counter alone.
uint64_t pulse_read_beats(const void *bytes);
