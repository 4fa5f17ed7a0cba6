// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <dataplane/pulse.h>

#include <assert.h>
#include <stdalign.h>
#include <stdatomic.h>
#include <stddef.h>

// The pulse page. Only control writes it. Peers read it by DMA, which gives no ordering. Words are
// therefore written with relaxed order, as little-endian.
struct pulse {
	alignas(4096) _Atomic uint64_t magic;
	_Atomic uint64_t layout;
	_Atomic uint64_t name;
	_Atomic uint64_t worker_count;
	_Atomic uint64_t incarnation;
	_Atomic uint64_t beats;
	_Atomic uint64_t now_ns;
	_Atomic uint64_t wait_ns;
	_Atomic uint64_t worker_beats[PULSE_WORKERS_MAX];
	uint8_t zeros[PULSE_BYTES - PULSE_HEAD_BYTES];
};
static_assert(sizeof(struct pulse) == PULSE_BYTES, "the layout is what travels");
static_assert(offsetof(struct pulse, beats) == PULSE_BEATS_AT, "the layout is what travels");
static_assert(offsetof(struct pulse, zeros) == PULSE_HEAD_BYTES, "all words are in its head");
