// SPDX-License-Identifier: BSD-3-Clause
// How much of our time strangers from one source may take: how many at once, how many a second.
//
// A table of fixed size without entries for anybody: a source is counted in the bucket that a
// keyed hash of its address picks, so nothing is allocated or evicted for a stranger, and nobody
// can choose in whose bucket to be. Sources that share one share its limits. An IPv6 source is
// its /64, for whoever has one address of it has all.
//
// One thread; time is the caller's.
#pragma once

#include <lib/sockaddr.h>

struct admission;

enum admission_verdict {
	ADMISSION_GRANTED,
	ADMISSION_TOO_FAST, // as many in a second as one source may
	ADMISSION_TOO_MANY, // as many at once
};

// Up to a second's worth is granted at once after silence. -ENOMEM.
int admission_create(uint32_t at_once, uint32_t per_second, struct admission **ret_admission);
struct admission *admission_destroy(struct admission *admission);

enum admission_verdict
admission_ask(struct admission *admission, const struct sock_addr *from, uint64_t now_ns);
// Once for each that was granted, when it is a stranger no more or gone. One that has proven the
// key gets back what it cost: members are not held to the rate of strangers.
void admission_give_back(struct admission *admission, const struct sock_addr *from, bool proven);
