// SPDX-License-Identifier: BSD-3-Clause
// One end of a measurement: device, memory, worker, lane, queue pairs and player, created and
// destroyed in order. These are the agent's own parts, so the results hold for the agent.
//
// The control thread makes all calls. While the worker plays, control waits in lab_end_wait() for
// the player and for the other end.
#pragma once

#include "run/channel.h"
#include "run/messages.h"
#include "run/player.h"
#include "run/why.h"

#include <dataplane/device.h>
#include <lib/clock.h>
#include <lib/cpu_set.h>

#include <stdbool.h>
#include <stdint.h>

struct lab_end;

// Measurements of the machine that an end needs; they take 30 ms. A process with several ends as
// children makes them once.
struct lab_machine {
	struct clock clock; // calibrated with clock_init_resynced(); each end keeps a copy
	uint64_t block_ns;  // duration of one block and wake-up
};

struct lab_end_config {
	// NULL: the best device, else the software device; "soft": the software device.
	const char *device;
	struct device_settings settings;
	const struct channel *channel; // gives the address of the software device
	const struct plan *plan;
	bool serves;
	struct cpu_set cores; // empty: chosen automatically
	bool cores_given;
	uint32_t priority; // SCHED_FIFO priority of the worker; 0: inherited
	struct messages_place memory;
	bool quick; // do not lock the memory, which takes as long as many samples
	const struct lab_machine *machine; // NULL: measured by lab_end_open()
};

// Properties of an open end, for reports.
struct lab_end_facts {
	char device[DEVICE_NAME_MAX + 1];
	const char *responder, *link;
	uint16_t mtu;
	uint32_t speed_mbps;
	uint32_t cpu;
	const char *clock, *clock_why;
	uint32_t clock_error_ppb;
	uint64_t clock_read_ns; // smallest difference of two consecutive readings
	uint64_t block_ns;
	pid_t tid;
	struct messages_place memory;
	bool memory_locked;
	uint32_t priority;
	uint32_t inline_bytes; // largest message that goes inline in the work request
	uint64_t stamp_khz;    // frequency of the time stamp clock; 0: no stamps requested
};

// Description that the other end needs, sent as CHANNEL_ENDPOINT.
struct lab_end_info {
	uint32_t pair_count;
	struct device_endpoint endpoints[PLAN_PAIRS_MAX];
	uint64_t address;
	uint32_t key;
	char device[DEVICE_NAME_MAX + 1];
};

int lab_end_open(
	const struct lab_end_config *config,
	struct lab_why *why,
	struct lab_end_info *ret_about,
	struct lab_end **ret_end
);
int lab_end_connect(struct lab_end *end, const struct lab_end_info *theirs, struct lab_why *why);
// Destroy an end; NULL is allowed.
void lab_end_close(struct lab_end *end);

const struct lab_end_facts *lab_end_facts(const struct lab_end *end);
const struct worker *lab_end_worker(const struct lab_end *end);
struct player *lab_end_player(struct lab_end *end);
// Return the device times, or NULL if stamps are not used. Control owns them while nothing is
// played.
struct device_time *lab_end_get_device_time(struct lab_end *end);

// Start a stretch of the player, or serving. Returns 0 or -errno.
int lab_end_request(struct lab_end *end, enum player_request request, struct lab_why *why);

// Return true from a request to play or serve until lab_end_wait() has seen the player's end.
bool lab_end_is_playing(const struct lab_end *end);

enum lab_wake {
	LAB_WAKE_PLAYER = 0x1,	// the player has ended, or serves
	LAB_WAKE_CHANNEL = 0x2, // the channel is readable
	LAB_WAKE_SIGNAL = 0x4,	// the user interrupts
	LAB_WAKE_TIME = 0x8,
};

// Wait for any of these or the deadline. Returns the wakes as a bit mask. signal_fd -1: none.
uint32_t lab_end_wait(
	struct lab_end *end, const struct channel *channel, int signal_fd, struct deadline deadline
);

void lab_end_info_encode(const struct lab_end_info *about, struct wire_writer *writer);
void lab_end_info_decode(struct wire_reader *reader, struct lab_end_info *ret_about);
