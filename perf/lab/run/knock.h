// SPDX-License-Identifier: BSD-3-Clause
// The client's side of a proof: names what is missing.
#pragma once

#include "run/proof.h"

// Prove a secret to the server, and let the server prove it. `server` names the server in messages,
// as "the server"; the address follows. Returns 0, -EACCES (no common secret, or the server does
// not prove it), or the error of channel_receive(), with the reason in `why`.
int knock_prove(
	struct channel *channel,
	const struct proof_secrets *secrets,
	const char *server,
	struct deadline deadline,
	struct lab_why *why
);
