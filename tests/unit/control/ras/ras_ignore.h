// SPDX-License-Identifier: BSD-3-Clause
// Callbacks of a user that ignores messages, collectives and notices, and contributes nothing to
// a collective.
#pragma once

#include <lib/wire.h>
#include <ras/collective.h>
#include <ras/ras.h>
#include <ras/relay.h>

static inline void ignore_report(void *ctx, const struct ras_relay_report *report) {
	(void)ctx;
	(void)report;
}

static inline bool
ignore_contribute(void *ctx, const struct ras_contribution *wanted, struct wire_writer *writer) {
	(void)ctx;
	(void)wanted;
	(void)writer;
	return false;
}

static inline void ignore_collected(void *ctx, const struct ras_collective_result *result) {
	(void)ctx;
	(void)result;
}

static inline void
ignore_notice(void *ctx, uint64_t origin, uint32_t kind, const void *payload, size_t size) {
	(void)ctx;
	(void)origin;
	(void)kind;
	(void)payload;
	(void)size;
}
