// SPDX-License-Identifier: BSD-3-Clause
// The part of WHY that comes from the store of verdicts; nothing where there is none.
#pragma once

#include "client/session.h"

// What the verdict means and what is to be done, in words. False: it says no more than the state.
bool why_verdict_words(
	struct session *session,
	const struct ras_peer *peer,
	const char **ret_means,
	const char **ret_follows
);
void why_say_evidence(struct session *session, const struct ras_peer *peer);
void why_put_evidence(struct session *session, const struct ras_peer *peer, json_t *object);
