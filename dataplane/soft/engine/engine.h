// SPDX-License-Identifier: BSD-3-Clause
// Advances a device: its turn, its start and stop, and the engine thread.
//
// This folder uses the queue pairs (transport) and the state of the device (nic). Functions expect
// the lock of the device to be held unless they say otherwise. Entry points of verbs end with
// nic_unlock_and_ring().
#pragma once

#include "nic/nic.h"

// Run one turn: receive at most one batch of frames, run timers, send within a budget, and flush
// the wire. Returns true if a frame came or something was sent; then call again soon. defer_acks:
// acknowledgements may wait for the next turn, so that data can be sent before them.
bool nic_turn(struct soft_nic *nic, bool defer_acks);

// Send what is ready without receiving, for a caller that has just posted.
void nic_push(struct soft_nic *nic);

// Return the time of the next turn if no frame comes; 0 (now) if something waits to be sent.
uint64_t nic_next_turn_ns(const struct soft_nic *nic);

// Unlock, and ring the engine if a remaining timer is due before the engine wakes by itself.
void nic_unlock_and_ring(struct soft_nic *nic);

// Check one received frame and pass it to its queue pair. (nic_frame.c)
void nic_frame(struct soft_nic *nic, const struct wire_frame *frame);

// The first context creates the wire and starts the engine; the last one stops both.
// nic_add_context() and nic_remove_context() take the lock themselves; nic_remove_context() waits
// for the engine without it.
int nic_set_faults(struct soft_nic *nic, const struct soft_faults *faults);
int nic_add_context(struct soft_nic *nic);
void nic_remove_context(struct soft_nic *nic);

// The device's engine: a thread that advances the device while no caller does. (engine.c)
//
// An active engine sleeps in the wire's wait() and wakes with each frame. While callers poll and
// take the frames themselves, each such wake-up is in vain. After several of them the engine
// becomes passive and sleeps on its doorbell with a tick of NIC_LAZY_NS. It becomes active again
// when a tick finds that callers stopped polling, or when a caller goes to sleep. (engine_rule.h)
//
// An active engine sets engine_next_wake_ns before each sleep. While the engine is passive the
// value is 0. A timer or packet that callers leave is then handled by their next poll, or at the
// next tick without one.
int engine_start(struct soft_nic *nic, struct engine **ret_engine);
struct engine *engine_stop(struct engine *engine); // call without the lock; NULL is fine
// Record that a caller drove a turn or posted; cheap, called at the end of each. With the lock.
void engine_note_caller_turn(struct engine *engine);
// Record that a caller arms its completion queue and will sleep: the engine becomes active.
void engine_note_cq_armed(struct engine *engine);
// Report work that callers leave to the engine, a timer or packets to send: the engine wakes at
// once.
void engine_note_work_left(struct engine *engine);
