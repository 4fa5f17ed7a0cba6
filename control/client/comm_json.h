// SPDX-License-Identifier: BSD-3-Clause
// The communicators of an answer for a client: the look at them, and what is found, as JSON.
#pragma once

#include "joblook/comm_look.h"

#include <jansson.h>

struct session;

// As comm_look_init(), with what this agent knows beside.
int comm_look_of(
	struct comm_look *look, struct session *session, const struct overlay_answer *answer
);
json_t *comm_json(const struct comm_look *look, uint32_t place);
json_t *comm_json_rank(const struct comm_look *look, uint32_t place, uint32_t rank);
