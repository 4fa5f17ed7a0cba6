// SPDX-License-Identifier: BSD-3-Clause
// One end of a measurement: device, memory, worker, lane, queue pairs, player, made and taken
// apart in order. The agent's own parts: what is measured is what it does.
//
// Control's thread makes all calls. While the worker plays, control waits in end_wait() for it and
// for the other end at once.
#pragma once

#include "channel.h"
#include "messages.h"
#include "player.h"
#include "why.h"

#include <dataplane/device.h>
#include <lib/clock.h>
#include <lib/cpu_set.h>

#include <stdbool.h>
#include <stdint.h>

struct lab_end;

// What an end measures of its machine, which takes 30 ms of waiting: once for all of a process
// whose children are ends.
struct lab_machine {
	struct clock clock; // kept
	uint64_t block_ns;  // to block and be woken
};

struct lab_end_config {
	const char *device; // NULL: the best there is, else the software device; "soft": that one
	struct device_settings settings;
	const struct channel *channel; // tells which address the software device takes
	const struct plan *plan;
	bool serves;
	struct cpu_set cores; // none: chosen
	bool cores_given;
	uint32_t priority; // of SCHED_FIFO, of its worker; 0: as this process
	struct messages_place memory;
	bool quick; // its memory is not locked, which takes as long as many samples
	const struct lab_machine *machine; // NULL: it measures that itself
};

// What came of it, for people.
struct lab_end_facts {
	char device[DEVICE_NAME_MAX + 1];
	const char *responder, *link;
	uint16_t mtu;
	uint32_t speed_mbps;
	uint32_t cpu;
	const char *clock, *clock_why;
	uint32_t clock_error_ppb;
	uint64_t clock_read_ns; // the smallest difference of two readings in a row, of many
	uint64_t block_ns;
	pid_t tid;
	struct messages_place memory;
	bool memory_locked;
	uint32_t priority;
	uint32_t inline_bytes; // messages of up to so many go within the work request
	uint64_t stamp_khz;    // of the clock of time stamps; 0: none are asked for
};

// What the other end has to know, as CHANNEL_ENDPOINT carries it.
struct lab_about {
	uint32_t pair_count;
	struct device_endpoint endpoints[PLAN_PAIRS_MAX];
	uint64_t address;
	uint32_t key;
	char device[DEVICE_NAME_MAX + 1];
};

int lab_end_open(
	const struct lab_end_config *config,
	struct lab_why *why,
	struct lab_about *ret_about,
	struct lab_end **ret_end
);
int lab_end_connect(struct lab_end *end, const struct lab_about *theirs, struct lab_why *why);
// NULL is fine.
void lab_end_close(struct lab_end *end);

const struct lab_end_facts *lab_end_facts(const struct lab_end *end);
const struct worker *lab_end_worker(const struct lab_end *end);
struct player *lab_end_player(struct lab_end *end);
// NULL where no stamps are looked at. Control's while nothing is played.
struct device_time *lab_end_device_time(struct lab_end *end);

// Begins the player's stretch, or serving. -errno.
int lab_end_request(struct lab_end *end, enum player_request request, struct lab_why *why);

// From a request to play or serve until the player's end was seen by lab_end_wait().
bool lab_end_is_playing(const struct lab_end *end);

enum lab_wake {
	LAB_WAKE_PLAYER = 0x1,	// it has ended, or serves
	LAB_WAKE_CHANNEL = 0x2, // there is something to receive
	LAB_WAKE_SIGNAL = 0x4,	// a person wants it to end
	LAB_WAKE_TIME = 0x8,
};

// Waits for one of these, or the deadline; returns which. signal_fd: -1 for none.
uint32_t lab_end_wait(
	struct lab_end *end, const struct channel *channel, int signal_fd, struct deadline deadline
);

void lab_about_encode(const struct lab_about *about, struct wire_writer *writer);
void lab_about_decode(struct wire_reader *reader, struct lab_about *ret_about);
