// SPDX-License-Identifier: BSD-3-Clause
// Keeps memif's memory mapped while a thread is inside its driver.
#include <dataplane/dpdk.h>
#include <dataplane/memif_guard.h>

#include <pthread.h>

struct rte_eth_dev; // opaque struct of the driver

// The driver's function, and its wrapper.
void memif_free_regions(struct rte_eth_dev *dev);
void __wrap_memif_free_regions(struct rte_eth_dev *dev); // NOLINT(bugprone-reserved-identifier)

static pthread_mutex_t locks[RTE_MAX_ETHPORTS] = {
	[0 ... RTE_MAX_ETHPORTS - 1] = PTHREAD_MUTEX_INITIALIZER,
};

void memif_guard_enter(uint16_t port) {
	pthread_mutex_lock(&locks[port]);
}

void memif_guard_leave(uint16_t port) {
	pthread_mutex_unlock(&locks[port]);
}

// The wrapper does not know which port is meant, so it takes all locks, in order.
// NOLINTNEXTLINE(bugprone-reserved-identifier): the linker's name for it
void __wrap_memif_free_regions(struct rte_eth_dev *dev) {
	for (uint16_t port = 0; port < RTE_MAX_ETHPORTS; port++)
		memif_guard_enter(port);
	memif_free_regions(dev);
	for (uint16_t port = 0; port < RTE_MAX_ETHPORTS; port++)
		memif_guard_leave(port);
}
