// SPDX-License-Identifier: BSD-3-Clause
// Witnesses of a death, and how much a death weighs.
//
// Agents of one host share its firewall, cable and failures. They are one witness as long as a
// member on another host can look. An agent's view of a process on its own host is stronger, since
// no firewall is between the two. If the kernel has no listener of that process any more, the
// process has exited, and one witness is enough. An observer that declared a death which was
// refuted recently may not declare the same peer again, see turns.h.
#pragma once

#include "live/liveness.h"

struct peer_news;
struct ras;

// Return the number of witnesses that a death needs; the subject may be a stranger.
uint32_t witnesses_needed(const struct ras *ras, uint32_t slot);
// Return true if this observer recently declared the peer's death by this cause and was refuted.
bool witness_is_barred(
	const struct ras *ras, uint32_t slot, enum ras_cause cause, uint32_t observer
);
// Return the number of witnesses of a death in the latest round, including this agent. *ret_other
// is another witness, unchanged if this agent is alone.
uint32_t witnesses_count(
	const struct ras *ras,
	const struct suspicion *suspicion,
	enum ras_cause cause,
	uint32_t *ret_other
);
// Return the number of witnesses of a reported death, as it counts here.
uint32_t witnesses_reported(const struct ras *ras, const struct peer_news *news);
