// SPDX-License-Identifier: BSD-3-Clause
// Wakes a sleeping thread by an eventfd.
#include <dataplane/doorbell.h>
#include <lib/error.h>
#include <lib/must.h>

#include <sys/eventfd.h>
#include <unistd.h>

int doorbell_init(struct doorbell *bell) {
	bell->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	atomic_init(&bell->armed, 0);
	return bell->fd >= 0 ? 0 : neg_errno();
}

void doorbell_close(struct doorbell *bell) {
	if (bell->fd >= 0)
		close(bell->fd);
	bell->fd = -1;
}

void doorbell_arm(struct doorbell *bell) {
	atomic_store_explicit(&bell->armed, 1, memory_order_relaxed);
	// Pairs with the fence in doorbell_ring().
	atomic_thread_fence(memory_order_seq_cst);
}

void doorbell_disarm(struct doorbell *bell) {
	uint64_t count;

	atomic_store_explicit(&bell->armed, 0, memory_order_relaxed);
	// Always read: a producer that found the bell armed may write only after an earlier disarm.
	// An unread value would keep the sleeper from sleeping. EAGAIN means that there was no
	// ring.
	(void)!read(bell->fd, &count, sizeof(count));
}

bool doorbell_ring(struct doorbell *bell) {
	const uint64_t one = 1;

	// Pairs with the fence in doorbell_arm().
	atomic_thread_fence(memory_order_seq_cst);
	if (atomic_load_explicit(&bell->armed, memory_order_relaxed) == 0)
		return false;
	if (atomic_exchange_explicit(&bell->armed, 0, memory_order_relaxed) == 0)
		return false; // another producer wakes the sleeper
	must(write(bell->fd, &one, sizeof(one)) == sizeof(one)); // cannot be full
	return true;
}
