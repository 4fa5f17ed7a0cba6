// SPDX-License-Identifier: BSD-3-Clause
// Which path is probed when, and with what size, so that a budget is never exceeded.
//
// Pure. The caller plans a second or so ahead and has it carried out at the planned times. Of the
// packets and bytes of a probe both directions count: one request, and the answers that the path's
// MTU cuts it into. No second, wherever it begins, holds more planned packets or bytes than the
// budget: what does not fit is planned later.
//
// A tenth of the budget is kept for probes that are wanted at once. Shares of the rest: 64 KiB
// probes take at most a fifth of it (and of each path's probes at most every fifth; where one alone
// is more than a second's budget there are none), the other probes of neighbours at most seven
// tenths, and rotation gets what is left, at least a tenth:
//
//	rest     = 9/10 budget
//	interval = max(what is asked for, packets of one probe each / (7/10 rest))
//	visit    = max(PROBE_VISIT_LEAST_NS, PROBE_ROUND_LEAST_NS / targets,
//	               packets of a visit / (8/10 rest - neighbours' rate))
//	coverage = targets x visit
//
// and the same with bytes, whichever takes longer. Where a peer takes writes, one follows every
// PROBE_WRITE_EACH reads of a neighbour, between two of them, so that reads come as often as
// without; of a visit the third probe is one. Where it shows memory of a GPU, one read of that
// comes in the same way, half a turn later, of 8 bytes and 1 KiB alternately; in visits none does.
// "One probe each" has its part of both. A visit is one target's turn: a pair is made if there is
// none, and it is probed PROBE_VISIT_PROBES times.
#pragma once

#include <ras/memory.h>
#include <verdict/path_memory.h>

#define PROBE_PACKET_BYTES 80 // around what a packet carries, Ethernet to checksum
#define PROBE_VISIT_LEAST_NS (500 * RAS_NS_PER_MS)
#define PROBE_ROUND_LEAST_NS (30 * RAS_NS_PER_SEC)
#define PROBE_VISIT_PROBES 5
#define PROBE_WRITE_EACH 4
#define PROBE_VISIT_GAP_NS (50 * RAS_NS_PER_MS) // between two probes of a visit
#define PROBE_PATHS_MAX 384
#define PROBE_PACKETS_MIN 10 // a budget below it is taken for it
#define PROBE_BYTES_MIN UINT64_C(16384)

extern const uint32_t probe_bytes[PATH_SIZES]; // 0 in the place of the path's MTU

struct probe_schedule_config {
	uint64_t interval_ns; // between two probes of one neighbour; not 0
	uint32_t packets;     // a second
	uint64_t bytes;	      // a second
	uint64_t random_seed;
};

struct probe_target {
	uint64_t peer;
	uint32_t device;
};

struct probe_due {
	uint64_t at_ns;
	uint32_t path; // as it was added
	uint32_t size; // place in the sizes
	uint32_t bytes;
	bool write;
	bool gpu; // a read of the peer's GPU memory
};

struct probe_schedule;

// -ENOMEM.
int probe_schedule_create(
	const struct probe_schedule_config *config,
	const struct ras_memory *memory,
	struct probe_schedule **ret_schedule
);
struct probe_schedule *probe_schedule_destroy(struct probe_schedule *schedule);

// Other settings; the seed stays. For a second nothing new is planned, and nothing is urgent: what
// was spent of the old budget would count against the new one. -ENOMEM: all is as before.
int probe_schedule_configure(
	struct probe_schedule *schedule, uint64_t now_ns, const struct probe_schedule_config *config
);

// Paths, named by the caller's number below PROBE_PATHS_MAX, which is free. A neighbour's is probed
// for ever, that of a visit PROBE_VISIT_PROBES times.
void probe_schedule_add(
	struct probe_schedule *schedule, uint64_t now_ns, uint32_t path, uint32_t mtu, bool visit
);
// Whether its peer takes writes; not before that is said.
void probe_schedule_writes(struct probe_schedule *schedule, uint32_t path, bool writes);
// Whether its peer shows GPU memory that is to be read; likewise.
void probe_schedule_gpu(struct probe_schedule *schedule, uint32_t path, bool gpu);
// Whether it loses something: three of four large probes are its own until it does not.
void probe_schedule_loses(struct probe_schedule *schedule, uint32_t path, bool loses);
void probe_schedule_remove(struct probe_schedule *schedule, uint32_t path);
// One at once, beside what is planned: something is to be confirmed. False: not within the budget.
bool probe_schedule_urgent(
	struct probe_schedule *schedule,
	uint64_t now_ns,
	uint32_t path,
	uint32_t size,
	bool write,
	struct probe_due *ret_due
);
// Whether it is a visit whose probes are all planned.
bool probe_schedule_visited(const struct probe_schedule *schedule, uint32_t path);

// Whom to rotate over, in an order of this schedule's own; replaces those of before, and goes on
// from where it was. -ENOMEM: as before.
int probe_schedule_targets(
	struct probe_schedule *schedule, const struct probe_target *targets, uint32_t count
);
// When the next visit is due; RAS_NEVER: there are no targets.
uint64_t probe_schedule_visit_at(const struct probe_schedule *schedule);
// Whether a visit is due, and whose; it counts as begun. Never two at once after a pause.
bool probe_schedule_visit(
	struct probe_schedule *schedule, uint64_t now_ns, struct probe_target *ret_target
);

// What is to be sent within [from_ns, until_ns), in order. from_ns does not go back. What finds no
// room in `dues` waits for the next call.
uint32_t probe_schedule_plan(
	struct probe_schedule *schedule,
	uint64_t from_ns,
	uint64_t until_ns,
	struct probe_due *dues,
	uint32_t max
);

struct probe_schedule_facts {
	uint32_t neighbours, visits, targets;
	uint64_t interval_ns; // that neighbours are really probed at
	uint64_t visit_ns;    // between two visits
	uint64_t coverage_ns; // of all targets; 0: there are none
	uint64_t round_ns;    // the last full round took; 0: none was
};
void probe_schedule_facts(
	const struct probe_schedule *schedule, struct probe_schedule_facts *ret_facts
);

struct probe_schedule_counters {
	uint64_t planned[PATH_SIZES]; // reads and writes
	uint64_t writes, gpu_reads;   // of these
	uint64_t packets, bytes;      // of these, both directions
	uint64_t delayed;	      // planned later than they were due, for the budget
	uint64_t skipped;	      // their time was past when there was room
	uint64_t urgent, urgent_refused;
	uint64_t visits, rounds;
};
const struct probe_schedule_counters *probe_schedule_counters(const struct probe_schedule *schedule
);
