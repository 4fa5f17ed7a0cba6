// SPDX-License-Identifier: BSD-3-Clause
// Addresses of members of an earlier run: asked beside the seeds until we are a member.
//
// What stood there once may be anybody's today, so nothing that is heard there ends a start: an
// address that refuses us is dropped, with one event. It is no seed either: who has none, and
// remembers others, founds a ring only after looking for them for as long as others wait for their
// seeds. A member goes on to look for those only that its table has no row of (search.h): who is in
// the table, lost or not, is known.
#pragma once

#include <lib/sockaddr.h>
#include <ras/types.h>

#include <stdbool.h>
#include <stdint.h>

struct ras;

struct remembered {
	struct sock_addr *addresses; // of `capacity`; NULL: none
	uint32_t count, capacity;
	uint32_t next;	 // of the round under way
	bool name_taken; // one of them said that another live agent holds our name
};

void remembered_fini(struct ras *ras);
// The next one to be asked that is no seed nor our own; false: the round is through.
bool remembered_next(struct ras *ras, struct sock_addr *ret_address);
// What was heard there ends no start: true if the address is only remembered; then it is dropped.
bool remembered_refused(
	struct ras *ras, const struct sock_addr *address, enum ras_cause cause, uint64_t value
);
// We live there ourselves, or know who does.
void remembered_drop(struct ras *ras, const struct sock_addr *address);
// Calls there, if the table has no row of that address; else it is dropped.
void remembered_look_for(struct ras *ras, uint32_t n);
