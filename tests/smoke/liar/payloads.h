// SPDX-License-Identifier: BSD-3-Clause
// Payloads of notices about verdicts: well-formed and untrue. The engine's headers have names that
// the core's have too, so no file includes both.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// Kinds of notices: <control/health.h> and control/jobs/host/inside.h.
#define LIAR_NOTICE_HEALTH 256
#define LIAR_NOTICE_GRANTS 257
#define LIAR_NOTICE_JOBS 258

// Each writes at most RAS_NOTICE_BYTES_MAX bytes and returns their number.
size_t liar_payload_statement(uint64_t subject, void *bytes);
size_t
liar_payload_observation(uint64_t observer, uint64_t subject, uint64_t incarnation, void *bytes);
// Worsen the first statement in a notice. Returns false if there is none.
bool liar_payload_worsen(uint64_t subject, uint8_t *bytes, size_t size);
size_t liar_payload_grant(uint64_t subject, uint64_t start, void *bytes);
