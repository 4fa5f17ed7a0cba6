// SPDX-License-Identifier: BSD-3-Clause
// Who bears witness to a death, and how much it weighs.
//
// Agents of one host share its firewall, its cable and its fate: they are one witness, as long as
// anybody of another host is there to look. What one of them sees of another one's process is more
// than that: no firewall stands between the two. A process of whose listener their kernel knows no
// more has exited, and one witness is enough. Whoever refuted a death a moment ago is not declared
// again by the same, see turns.h.
#pragma once

#include "live/liveness.h"

struct peer_news;
struct ras;

// As many have to see a death for it to be one; the subject may be a stranger.
uint32_t witnesses_needed(const struct ras *ras, uint32_t slot);
// It declared the peer by that cause, or we did, and was refuted a moment ago.
bool witness_is_barred(
	const struct ras *ras, uint32_t slot, enum ras_cause cause, uint32_t observer
);
// The same, and by a boot that is known: machines of one name are different ones.
bool is_of_our_machine(const struct ras *ras, uint32_t slot);
// Witnesses of a death by that cause in the latest round, we among them; *ret_other is another one,
// untouched if we are alone.
uint32_t witnesses_count(
	const struct ras *ras,
	const struct suspicion *suspicion,
	enum ras_cause cause,
	uint32_t *ret_other
);
// Those of a death that others tell of, as it weighs here.
uint32_t witnesses_told(const struct ras *ras, const struct peer_news *news);
