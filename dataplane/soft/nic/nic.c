// SPDX-License-Identifier: BSD-3-Clause
// The state of a device before it is opened, and its random numbers.
#include "nic/nic.h"

#include <lib/must.h>
#include <lib/splitmix.h>

#include <string.h>
#include <sys/random.h>

void nic_init(struct soft_nic *nic, const struct soft_config *config) {
	memset(nic, 0, sizeof(*nic));
	nic->config = *config;
	pthread_mutex_init(&nic->life, NULL);
	pthread_mutex_init(&nic->lock, NULL);
	pthread_cond_init(&nic->acked, NULL);
	TAILQ_INIT(&nic->ready);
	TAILQ_INIT(&nic->lazy);
	TAILQ_INIT(&nic->timed);
	nic->due_ns = NIC_NEVER;
	nic->random = config->random_seed;
	nic->random_kernel = config->random_seed == 0;
}

void nic_fini(struct soft_nic *nic) {
	must(nic->contexts == 0);
	pthread_cond_destroy(&nic->acked);
	pthread_mutex_destroy(&nic->lock);
	pthread_mutex_destroy(&nic->life);
}

// getrandom() returns up to 256 bytes at once and is not interrupted.
uint64_t nic_random(struct soft_nic *nic) {
	if (!nic->random_kernel)
		return splitmix_next(&nic->random); // for tests that need reproducible numbers
	if (nic->random_left == 0) {
		must(getrandom(nic->random_pool, sizeof(nic->random_pool), 0) ==
		     sizeof(nic->random_pool));
		nic->random_left = NIC_RANDOM_BATCH;
	}
	return nic->random_pool[--nic->random_left];
}
