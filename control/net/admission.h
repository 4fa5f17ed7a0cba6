// SPDX-License-Identifier: BSD-3-Clause
// Limits the strangers from one source: how many at once, and how many per second.
//
// The table has a fixed size and no entries of its own for a source. A source is counted in the
// bucket that a keyed hash of its address selects. So a stranger causes no allocation and no
// eviction, and nobody can choose a bucket. Sources in one bucket share its limits. An IPv6 source
// is its /64, because the holder of one address has all of them.
//
// One thread. The caller passes the time.
#pragma once

#include <lib/sockaddr.h>

struct admission;

enum admission_result {
	ADMISSION_GRANTED,
	ADMISSION_TOO_FAST, // the source has used up its rate
	ADMISSION_TOO_MANY, // the source has too many strangers
};

// A source may use up to one second's worth at once after a pause. Returns 0 or -ENOMEM.
int admission_create(uint32_t at_once, uint32_t per_second, struct admission **ret_admission);
struct admission *admission_destroy(struct admission *admission);

enum admission_result
admission_request(struct admission *admission, const struct sock_addr *from, uint64_t now_ns);
// Must be called once for each granted connection, when it has proven the key or ended. A
// connection that has proven the key gets its cost back, because the rate of strangers does not
// limit members.
void admission_release(struct admission *admission, const struct sock_addr *from, bool proven);
