// SPDX-License-Identifier: BSD-3-Clause
// libtocsin-verbs.so: interposes libibverbs' calls for unmodified programs.
//
// Each call checks whether its object belongs to a software device. If so, the call goes to
// verbs_calls_soft, else to the real library. Results are converted back to libibverbs'
// conventions: NULL with errno, a positive errno, or -1 with errno. Any thread may call, as with
// libibverbs.
//
// The library does nothing before the first ibv_get_device_list(), because every child program of
// the started one loads it too.
#pragma once

#include "real.h"

#include <dataplane/soft.h>

#include <errno.h>
#include <stdbool.h>

// Return true if this is a software device. The devices are created by the first
// ibv_get_device_list() and exist until the process ends.
bool preload_owns_device(const struct ibv_device *device);

// Return true if a software device has this node name in /dev/infiniband.
bool preload_has_node(const char *name);

// Return true if the context belongs to a software device.
static inline bool preload_owns_context(const struct ibv_context *context) {
	return preload_owns_device(context->device);
}

// Return true if this process was forked from one with an open device. The engine stayed in the
// parent, so objects of the device can only be discarded.
bool preload_in_forked_child(void);

// Evaluate to `dead` in such a child, else make the call.
#define PRELOAD_UNLESS_FORKED(dead, call) (preload_in_forked_child() ? (dead) : (call))

// Register an open context. In a forked child its hot calls are replaced by failing ones.
int preload_register_open(struct ibv_context *context);
void preload_unregister_open(const struct ibv_context *context);
// Call `visit` for the device of each open context.
void preload_each_open(void (*visit)(const char *name));
// Serialise opening and closing of devices with fork().
void preload_open_begin(void);
void preload_open_end(void);
// Set the extended calls of a context; some only report an alternative.
void preload_set_extended_calls(struct ibv_context *context);
// Make a descriptor blocking: programs wait in reads of it unless they set O_NONBLOCK.
int preload_make_blocking(int fd);
// Register the fork handlers; once, before the first open.
int preload_fork_prepare(void);

// Report an unsupported request and its alternative: one line per kind of request and process.
void preload_report_unsupported(const char *asked, const char *instead);
// Print one line for the user on standard error.
__attribute__((format(printf, 1, 2))) void preload_print(const char *format, ...);
// Report according to TOCSIN_SOFT_SAY. 1: the address of a device when it is opened. 2: also its
// packet counters when it is closed or the program ends.
void preload_report_opened(const struct ibv_device *device, const struct soft_config *config);
void preload_report_closed(const char *name);

// Conversions to libibverbs' conventions; err is 0 or -errno.
static inline int return_positive_errno(int err) {
	if (err != 0)
		errno = -err; // many programs print it, although no interface promises it
	return -err;
}

static inline int return_minus_one(int err) {
	if (err == 0)
		return 0;
	errno = -err;
	return -1;
}

// Use as `return return_null_on_error(err, object)`: NULL and errno if err is not 0.
#define return_null_on_error(err, object) ((err) == 0 ? (object) : (errno = -(err), NULL))
