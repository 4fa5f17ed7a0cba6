// SPDX-License-Identifier: BSD-3-Clause
// Limits the new connections of each source.
#include "net/admission.h"

#include <ras/types.h>

#include <sodium.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BUCKETS 4096 // a power of two

struct bucket {
	uint64_t paid_until_ns; // each accept adds its cost; at most a second ahead of now
	uint32_t at_once;
};

struct admission {
	uint32_t at_once_max;
	uint64_t cost_ns;
	uint8_t secret[crypto_shorthash_KEYBYTES];
	struct bucket buckets[BUCKETS];
};

int admission_create(uint32_t at_once, uint32_t per_second, struct admission **ret_admission) {
	struct admission *admission = calloc(1, sizeof(*admission));

	if (admission == NULL)
		return -ENOMEM;
	admission->at_once_max = at_once;
	admission->cost_ns = RAS_NS_PER_SEC / (per_second > 0 ? per_second : 1);
	randombytes_buf(admission->secret, sizeof(admission->secret));
	*ret_admission = admission;
	return 0;
}

struct admission *admission_destroy(struct admission *admission) {
	free(admission);
	return NULL;
}

static struct bucket *bucket_find(struct admission *admission, const struct sock_addr *from) {
	size_t size = from->family == SOCK_ADDR_V6 ? 8 : 4;
	uint8_t hash[crypto_shorthash_BYTES];
	uint32_t index;

	crypto_shorthash(hash, from->address, size, admission->secret);
	memcpy(&index, hash, sizeof(index));
	return &admission->buckets[index % BUCKETS];
}

enum admission_result
admission_request(struct admission *admission, const struct sock_addr *from, uint64_t now_ns) {
	struct bucket *bucket = bucket_find(admission, from);

	if (bucket->paid_until_ns < now_ns)
		bucket->paid_until_ns = now_ns;
	if (bucket->paid_until_ns + admission->cost_ns > now_ns + RAS_NS_PER_SEC)
		return ADMISSION_TOO_FAST;
	if (bucket->at_once >= admission->at_once_max)
		return ADMISSION_TOO_MANY;
	bucket->paid_until_ns += admission->cost_ns;
	bucket->at_once++;
	return ADMISSION_GRANTED;
}

void admission_release(struct admission *admission, const struct sock_addr *from, bool proven) {
	struct bucket *bucket = bucket_find(admission, from);

	bucket->at_once--;
	// No underflow: granting access had made it at least this cost.
	if (proven)
		bucket->paid_until_ns -= admission->cost_ns;
}
