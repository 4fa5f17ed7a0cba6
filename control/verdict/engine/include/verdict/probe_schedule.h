// SPDX-License-Identifier: BSD-3-Clause
// Schedule of probes: which path is probed when, with what size, within a fixed budget.
//
// Pure. The caller plans about a second ahead and sends the probes at the planned times. A probe
// costs the packets and bytes of both directions: one request, and answers split by the path's MTU.
// No second, wherever it begins, holds more than the budget. A probe that does not fit is planned
// later.
//
// A tenth of the budget is reserved for urgent probes. Shares of the rest: probes of 64 KiB take at
// most a fifth, and at most every fifth probe of each path. If one exceeds a second's budget, none
// is sent. Other probes of neighbours take at most seven tenths. Rotation takes what remains, at
// least a tenth:
//
// rest     = 9/10 budget
// interval = max(configured, packets of one probe each / (7/10 rest))
// visit    = max(PROBE_VISIT_LEAST_NS, PROBE_ROUND_LEAST_NS / targets,
//                packets of a visit / (8/10 rest - neighbours' rate))
// coverage = targets x visit
//
// The same formulas apply to bytes; the longer time wins. Where a peer accepts writes, one follows
// every PROBE_WRITE_EACH reads of a neighbour, between two reads. So reads come as often as without
// writes. In a visit the third probe is a write. Where a peer exposes GPU memory, one read of it
// comes likewise, half a turn later, alternating 8 bytes and 1 KiB. Visits have no GPU reads. "One
// probe each" includes the shares of writes and GPU reads. A visit is one target's turn:
// PROBE_VISIT_PROBES probes, over a new pair if there is none.
#pragma once

#include <ras/memory.h>
#include <verdict/path_memory.h>

#define PROBE_PACKET_BYTES 80 // approximate bytes per packet, Ethernet header to checksum
#define PROBE_VISIT_LEAST_NS (500 * RAS_NS_PER_MS)
#define PROBE_ROUND_LEAST_NS (30 * RAS_NS_PER_SEC)
#define PROBE_VISIT_PROBES 5
#define PROBE_WRITE_EACH 4
#define PROBE_VISIT_GAP_NS (50 * RAS_NS_PER_MS) // between two probes of a visit
#define PROBE_PATHS_MAX 384
#define PROBE_PACKETS_MIN 10 // lower bound of the packet budget
#define PROBE_BYTES_MIN UINT64_C(16384)

extern const uint32_t probe_bytes[PATH_SIZES]; // bytes per size; 0 for the path's MTU

struct probe_schedule_config {
	uint64_t interval_ns; // between two probes of one neighbour; not 0
	uint32_t packets;     // packets a second
	uint64_t bytes;	      // bytes a second
	uint64_t random_seed;
};

struct probe_target {
	uint64_t peer;
	uint32_t device;
};

struct probe_due {
	uint64_t at_ns;
	uint32_t path; // number given to probe_schedule_add()
	uint32_t size; // index into probe_bytes
	uint32_t bytes;
	bool write;
	bool gpu; // a read of the peer's GPU memory
};

struct probe_schedule;

// Create a schedule. Returns 0 or -ENOMEM.
int probe_schedule_create(
	const struct probe_schedule_config *config,
	const struct ras_memory *memory,
	struct probe_schedule **ret_schedule
);
struct probe_schedule *probe_schedule_destroy(struct probe_schedule *schedule);

// Apply new settings; the seed stays. For one second nothing new is planned, not even an urgent
// probe: the new budget counts as spent, in place of what the old one spent. Returns 0, or -ENOMEM
// with nothing changed.
int probe_schedule_configure(
	struct probe_schedule *schedule, uint64_t now_ns, const struct probe_schedule_config *config
);

// Add a path under a free number below PROBE_PATHS_MAX. A neighbour's path is probed until removed,
// a visit PROBE_VISIT_PROBES times.
void probe_schedule_add(
	struct probe_schedule *schedule, uint64_t now_ns, uint32_t path, uint32_t mtu, bool visit
);
// Set whether the peer accepts writes; initially false.
void probe_schedule_set_writes(struct probe_schedule *schedule, uint32_t path, bool writes);
// Set whether the peer exposes GPU memory to read; initially false.
void probe_schedule_set_gpu(struct probe_schedule *schedule, uint32_t path, bool gpu);
// Set whether the path is lossy. A lossy path gets three of four large probes until it recovers.
void probe_schedule_set_lossy(struct probe_schedule *schedule, uint32_t path, bool loses);
void probe_schedule_remove(struct probe_schedule *schedule, uint32_t path);
// Plan a probe at once, beside the others, to confirm a suspicion. Returns false if the budget does
// not allow it.
bool probe_schedule_urgent(
	struct probe_schedule *schedule,
	uint64_t now_ns,
	uint32_t path,
	uint32_t size,
	bool write,
	struct probe_due *ret_due
);

// Replace the visit targets. The schedule shuffles them, and continues at its current place.
// Returns 0, or -ENOMEM with the old targets kept.
int probe_schedule_set_targets(
	struct probe_schedule *schedule, const struct probe_target *targets, uint32_t count
);
// Return when the next visit is due; RAS_NEVER: there are no targets.
uint64_t probe_schedule_next_visit_ns(const struct probe_schedule *schedule);
// Return whether a visit is due, and its target; the visit counts as begun. After a pause visits
// are not caught up at once.
bool probe_schedule_visit_begin(
	struct probe_schedule *schedule, uint64_t now_ns, struct probe_target *ret_target
);

// Return the probes to send within [from_ns, until_ns), in order of time. from_ns must not
// decrease. Probes beyond `max` wait for the next call.
uint32_t probe_schedule_plan(
	struct probe_schedule *schedule,
	uint64_t from_ns,
	uint64_t until_ns,
	struct probe_due *dues,
	uint32_t max
);

struct probe_schedule_facts {
	uint32_t neighbours, visits, targets;
	uint64_t interval_ns; // real interval of a neighbour's probes
	uint64_t visit_ns;    // between two visits
	uint64_t coverage_ns; // time to visit all targets; 0: there are none
	uint64_t round_ns;    // duration of the last full round; 0: none yet
};
void probe_schedule_facts(
	const struct probe_schedule *schedule, struct probe_schedule_facts *ret_facts
);

struct probe_schedule_counters {
	uint64_t planned[PATH_SIZES]; // reads and writes
	uint64_t writes, gpu_reads;   // included in `planned`
	uint64_t packets, bytes;      // included in `planned`, both directions
	uint64_t delayed;	      // probes deferred by the budget
	uint64_t skipped;	      // probes whose time had passed before the budget allowed them
	uint64_t urgent, urgent_refused;
	uint64_t visits, rounds;
};
const struct probe_schedule_counters *probe_schedule_counters(const struct probe_schedule *schedule
);
