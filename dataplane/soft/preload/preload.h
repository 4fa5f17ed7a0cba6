// SPDX-License-Identifier: BSD-3-Clause
// libtocsin-verbs.so: libibverbs' calls as unmodified programs make them, in front of the library.
//
// Each call asks whether its object belongs to a software device: then it goes to verbs_calls_soft,
// else to the call that it stands in front of. The habits of libibverbs are put back here: NULL and
// errno, a positive errno, -1 and errno. Any thread, as with libibverbs.
//
// Nothing happens before the first ibv_get_device_list(): the library is in every program that the
// one that was asked for starts.
#pragma once

#include "real.h"

#include <dataplane/soft.h>

#include <errno.h>
#include <stdbool.h>

// Made at the first ibv_get_device_list(), and the same ones until the process ends.
bool preload_owns_device(const struct ibv_device *device);

// Whether one of them would have the device node of this name in /dev/infiniband.
bool preload_has_node(const char *name);

// True for what is of a software device.
static inline bool preload_owns(const struct ibv_context *context) {
	return preload_owns_device(context->device);
}

// The process was forked from one that had a device open: the engine, and so the device, stayed
// there. What belongs to it can only be thrown away.
bool preload_is_dead(void);

// What a call says in such a child, without being made.
#define ALIVE_OR(dead, call) (preload_is_dead() ? (dead) : (call))

// A context that was opened. In the fork's child its hot calls are replaced by ones that fail.
int preload_opened(struct ibv_context *context);
void preload_closed(const struct ibv_context *context);
// The devices of the contexts that are open now.
void preload_each_open(void (*visit)(const char *name));
// Around what opens and closes devices: no fork meets it half done.
void preload_open_begin(void);
void preload_open_end(void);
// The calls beyond the plain ones that a context has, some of which say what to use instead.
void preload_extend(struct ibv_context *context);
// Programs wait in reads of the descriptors of devices, unless they ask for the contrary.
int preload_let_block(int fd);
// Once, before anything is opened.
int preload_fork_prepare(void);

// What was asked for that a software device has not, and what to use: one line for each kind that
// is asked for, of the whole process.
void preload_refuse(const char *asked, const char *instead);
// What the user is told, one line each, on standard error.
__attribute__((format(printf, 1, 2))) void preload_complain(const char *format, ...);
// If TOCSIN_SOFT_SAY asks for it: where a device that was just opened is; 2: what became of its
// packets, when it is closed, or the program ends without.
void preload_say_opened(const struct ibv_device *device, const struct soft_config *config);
void preload_say_closed(const char *name);

// Habits: err is 0 or -errno.
static inline int habit_positive(int err) {
	if (err != 0)
		errno = -err; // many programs print it although nobody promised it
	return -err;
}

static inline int habit_minus_one(int err) {
	if (err == 0)
		return 0;
	errno = -err;
	return -1;
}

// For `return habit_object(err, object)`: NULL and errno if err is not 0.
#define habit_object(err, object) ((err) == 0 ? (object) : (errno = -(err), NULL))
