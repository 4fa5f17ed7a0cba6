// SPDX-License-Identifier: BSD-3-Clause
// Convert a device's time stamps, and split operations by them.
#include "run/device_time.h"

#include <lib/clock.h>
#include <lib/histogram.h>

#include <errno.h>
#include <record.h>
#include <time.h>

#define READ_TRIES 5
#define READ_EACH_NS UINT64_C(10000000)
// Until the rate is measured the nominal rate is used, so the clock is read more often.
#define READ_EARLY_NS UINT64_C(1000000)
#define BASELINE_NS UINT64_C(50000000)
// A measured rate is ignored if it differs from the nominal rate by more than this share.
#define RATE_SHARE 0.01
// Allowance beyond the accuracy of the readings: a device does not stamp all completions at exactly
// the same point.
#define TOLERANCE_NS 1000

void device_clock_init(struct device_clock *clock, const struct device_stamp_clock *stamps) {
	*clock = (struct device_clock){
		.mask = stamps->mask,
		.nominal_ns = 1e6 / (double)stamps->khz,
		.tick_ns = 1e6 / (double)stamps->khz,
	};
}

uint64_t device_clock_ns(const struct device_clock *clock, uint64_t stamp) {
	uint64_t ahead = (stamp - clock->stamp) & clock->mask;
	uint64_t behind = (clock->stamp - stamp) & clock->mask;
	double ns;

	// Stamps wrap and may be older than the latest reading, so the shorter direction is used.
	ns = (ahead <= behind ? (double)ahead : -(double)behind) * clock->tick_ns;
	if (clock->readings == 0)
		return 0;
	if (ns < 0)
		return -ns < (double)clock->ns ? clock->ns - (uint64_t)-ns : 0;
	return ns < (double)(INT64_MAX / 2) ? clock->ns + (uint64_t)ns : INT64_MAX;
}

void device_clock_update(struct device_clock *clock, const struct device_reading *reading) {
	uint64_t width_ns = (reading->after_ns - reading->before_ns + 1) / 2;
	uint64_t now_ns = reading->before_ns + width_ns, expected_ns, off_ns, took_ns;

	if (clock->readings > 0) {
		expected_ns = device_clock_ns(clock, reading->stamp);
		off_ns = expected_ns > now_ns ? expected_ns - now_ns : now_ns - expected_ns;
		clock->off_ns = off_ns > clock->off_ns ? off_ns : clock->off_ns;
		clock->ticks += (reading->stamp - clock->stamp) & clock->mask;
		took_ns = now_ns - clock->first_ns;
		if (took_ns >= BASELINE_NS && clock->ticks > 0) {
			double tick_ns = (double)took_ns / (double)clock->ticks;

			if (tick_ns > clock->nominal_ns * (1 - RATE_SHARE) &&
			    tick_ns < clock->nominal_ns * (1 + RATE_SHARE))
				clock->tick_ns = tick_ns;
		}
	} else {
		clock->first_ns = now_ns;
		clock->ticks = 0;
	}
	clock->stamp = reading->stamp;
	clock->ns = now_ns;
	clock->width_ns = width_ns;
	clock->readings++;
}

void device_clock_restart(struct device_clock *clock) {
	clock->readings = 0;
	clock->off_ns = 0;
}

static int reading_take_best(
	bool wall,
	const struct lane *lane,
	const struct clock *clock,
	struct device_reading *ret_reading
) {
	uint64_t least_ns = UINT64_MAX;

	for (int n = 0; n < READ_TRIES; n++) {
		struct device_reading reading = {.before_ns = clock_now_ns(clock)};
		struct timespec now;
		int err = 0;

		if (wall) {
			clock_gettime(CLOCK_REALTIME, &now);
			reading.stamp =
				(uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
		} else {
			err = lane_device_clock_now(lane, &reading.stamp);
		}
		if (err != 0)
			return err;
		reading.after_ns = clock_now_ns(clock);
		if (reading.after_ns - reading.before_ns >= least_ns)
			continue;
		least_ns = reading.after_ns - reading.before_ns;
		*ret_reading = reading;
	}
	return 0;
}

void device_time_read(
	struct device_time *time, const struct lane *lane, const struct clock *clock
) {
	struct device_reading reading;
	uint64_t each_ns;

	if (reading_take_best(time->wall, lane, clock, &reading) != 0) {
		time->failures++;
		time->due_ns += READ_EACH_NS;
		return;
	}
	device_clock_update(&time->clock, &reading);
	each_ns =
		time->clock.ns - time->clock.first_ns < BASELINE_NS ? READ_EARLY_NS : READ_EACH_NS;
	time->due_ns = reading.after_ns + each_ns;
}

int device_time_init(
	struct device_time *time,
	const struct lane *lane,
	const struct clock *clock,
	const struct device_stamp_clock *stamps,
	bool wall
) {
	static const struct device_stamp_clock of_day = {.mask = UINT64_MAX, .khz = 1000000};
	struct device_reading reading;
	int err = reading_take_best(wall, lane, clock, &reading);

	if (err != 0)
		return err;
	*time = (struct device_time){.wall = wall, .answer_ns = UINT64_MAX};
	device_clock_init(&time->clock, wall ? &of_day : stamps);
	device_clock_update(&time->clock, &reading);
	return 0;
}

void device_time_record(
	struct device_time *time, uint64_t start_ns, uint64_t end_ns, uint64_t stamp
) {
	uint64_t at_ns = device_clock_ns(&time->clock, stamp);
	uint64_t allowed_ns = time->clock.width_ns + TOLERANCE_NS;

	time->outside += at_ns + allowed_ns < start_ns || at_ns > end_ns + allowed_ns;
	if (at_ns < start_ns)
		at_ns = start_ns;
	if (at_ns > end_ns)
		at_ns = end_ns;
	run_record_add(time->device, at_ns - start_ns);
	run_record_add(time->host, end_ns - at_ns);
}

void device_time_record_answer(struct device_time *time) {
	if (time->answer_ns != UINT64_MAX)
		histogram_record(time->answers, time->answer_ns);
	time->answer_ns = UINT64_MAX;
}

void device_time_note_answer(struct device_time *time, uint64_t now_ns, uint64_t stamp) {
	uint64_t at_ns = device_clock_ns(&time->clock, stamp);

	device_time_record_answer(time
	); // the previous answer, if the next message was already there
	time->answer_ns = now_ns > at_ns ? now_ns - at_ns : 0;
}
