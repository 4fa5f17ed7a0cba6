// SPDX-License-Identifier: BSD-3-Clause
// Splits the time of an operation at the time stamp that the device gave its completion.
//
//	submitted		completed		seen
//	host's clock		device's clock		host's clock
//	|------ device ---------|-------- host ---------|
//
// The `device` part is posting, both devices and the network, and the peer's program if it answers.
// The `host` part lasts from the completion until the program saw it. A server measures its own
// answers, from the stamp of the received message until the answer was submitted.
//
// The device's clock is compared with the worker's clock every 10 ms, between two samples. Each
// comparison reads it between two readings of the host's clock. A stamp may lie outside of its
// operation by more than the accuracy of both clocks. Such a stamp is counted, and moved to the
// nearest end of the operation.
#pragma once

#include <dataplane/lane.h>

#include <stdbool.h>
#include <stdint.h>

struct histogram;
struct run_record;

// One moment on both clocks: the device's clock was read between the two readings of the host's.
struct device_reading {
	uint64_t before_ns, after_ns;
	uint64_t stamp;
};

// State of the conversion from device time to worker time.
struct device_clock {
	uint64_t mask;	    // valid bits of a stamp
	double nominal_ns;  // per tick, as reported by the device
	double tick_ns;	    // per tick, as measured since `first_ns`; until then nominal
	uint64_t stamp, ns; // the latest reading
	uint64_t first_ns;  // time of the first reading
	uint64_t ticks;	    // device ticks since the first reading
	uint64_t width_ns;  // half of the duration of the latest reading
	uint64_t off_ns;    // largest error of a prediction from the reading before
	uint32_t readings;
};

void device_clock_init(struct device_clock *clock, const struct device_stamp_clock *stamps);
void device_clock_update(struct device_clock *clock, const struct device_reading *reading);
// Make the next reading the first one again, after a long pause without readings. The measured rate
// stays.
void device_clock_restart(struct device_clock *clock);
// Return the worker's time of a stamp; 0 before the first reading.
uint64_t device_clock_ns(const struct device_clock *clock, uint64_t stamp);

// Device times of one end. Control initializes it; the worker owns it while a stretch is played.
struct device_time {
	struct device_clock clock;
	bool wall;	   // stamps are wall-clock time
	uint64_t due_ns;   // time of the next reading
	uint32_t failures; // readings that the device rejected
	// Client: both parts of each sample, and the number of stamps outside of their operation.
	struct run_record *device, *host;
	uint64_t outside;
	// Server: times that its program took to answer.
	struct histogram *answers;
	uint64_t answer_ns; // latest answer, recorded when idle; UINT64_MAX: none pending
};

// Initialize the times of an end. Returns 0, -EOPNOTSUPP if the device has no such stamps, or
// -errno if its clock cannot be read.
int device_time_init(
	struct device_time *time,
	const struct lane *lane,
	const struct clock *clock,
	const struct device_stamp_clock *stamps,
	bool wall
);

// Worker, between samples: compare the clocks; use the quickest of several attempts.
void device_time_read(struct device_time *time, const struct lane *lane, const struct clock *clock);
// Worker, between samples: record both parts of a client's operation.
void device_time_record(
	struct device_time *time, uint64_t start_ns, uint64_t end_ns, uint64_t stamp
);
// Worker: note that a server has just submitted its answer to a message with this stamp.
void device_time_note_answer(struct device_time *time, uint64_t now_ns, uint64_t stamp);
// Worker, when idle: record the pending answer time.
void device_time_record_answer(struct device_time *time);
