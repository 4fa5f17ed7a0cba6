// SPDX-License-Identifier: BSD-3-Clause
// Where the time of an operation goes, by the time stamp that the device gave its completion.
//
//	submitted		completed		seen
//	host's clock		device's clock		host's clock
//	|------ device ---------|-------- host ---------|
//
// `device` is posting, both devices and the network, and the peer's program where it answers;
// `host` is until the program saw it. What a server's program took to answer is measured at its own
// end, from the stamp of what it received until it had submitted the answer.
//
// The device's clock is held against the worker's each 10 ms, between two samples: a reading of it
// between two of the host's. Where a stamp lies outside of its operation by more than both clocks
// are known, it is counted, and taken for the nearest end of it.
#pragma once

#include <dataplane/lane.h>

#include <stdbool.h>
#include <stdint.h>

struct histogram;
struct run_record;

// A moment on both clocks: the device's was read between the other two.
struct device_reading {
	uint64_t before_ns, after_ns;
	uint64_t stamp;
};

// One clock in terms of the other.
struct device_clock {
	uint64_t mask;	    // the bits of a stamp that count
	double nominal_ns;  // of a tick, as the device says
	double tick_ns;	    // as measured since `first`, else the nominal one
	uint64_t stamp, ns; // the latest reading
	uint64_t first_ns;  // the first one, and the ticks since
	uint64_t ticks;
	uint64_t width_ns; // half of how long the latest reading took
	uint64_t off_ns;   // the most that a reading was off what the one before foretold
	uint32_t readings;
};

void device_clock_init(struct device_clock *clock, const struct device_stamps *stamps);
void device_clock_take(struct device_clock *clock, const struct device_reading *reading);
// The next reading is the first one again: before it nobody looked for long. The rate stays.
void device_clock_restart(struct device_clock *clock);
// The worker's time of a stamp; before the first reading 0.
uint64_t device_clock_ns(const struct device_clock *clock, uint64_t stamp);

// Set up by control; while a stretch is played the worker's.
struct device_time {
	struct device_clock clock;
	bool wall;	   // stamps are of the time of day
	uint64_t due_ns;   // of the next reading
	uint32_t failures; // readings that the device refused
	// Of a client: of each sample, and how many stamps lay outside.
	struct run_record *device, *host;
	uint64_t outside;
	// Of a server: what its program took to answer.
	struct histogram *answers;
	uint64_t answer_ns; // of the latest one, noted when nothing waits; UINT64_MAX: it is
};

// -EOPNOTSUPP, with nothing read: the device has no such stamps. -errno: it does not say its time.
int device_time_init(
	struct device_time *time,
	const struct lane *lane,
	const struct clock *clock,
	const struct device_stamps *stamps,
	bool wall
);

// Worker, between samples: holds the clocks against each other, of several tries the quickest.
void device_time_read(struct device_time *time, const struct lane *lane, const struct clock *clock);
// Worker, between samples: of a client's operation.
void device_time_note(struct device_time *time, uint64_t start_ns, uint64_t end_ns, uint64_t stamp);
// Worker: a server that received something with this stamp has just submitted its answer.
void device_time_answered(struct device_time *time, uint64_t now_ns, uint64_t stamp);
// Worker, when nothing waits for it.
void device_time_settle(struct device_time *time);
