// SPDX-License-Identifier: BSD-3-Clause
// JSON for the communicators of a collected answer.
#pragma once

#include "jobs/look/comm_look.h"

#include <jansson.h>

struct session;

// Same as comm_look_init(), with the configuration of this agent. Returns 0 or -errno.
int comm_look_init_session(
	struct comm_look *look, struct session *session, const struct overlay_answer *answer
);
json_t *comm_json(const struct comm_look *look, uint32_t place);
json_t *comm_json_rank(const struct comm_look *look, uint32_t place, uint32_t rank);
