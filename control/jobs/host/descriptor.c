// SPDX-License-Identifier: BSD-3-Clause
// Closes received descriptors that are not used. A close() of a FUSE file waits for the user's own
// server, and no signal interrupts it. So a separate thread waits, never the loop's thread.
#include "jobs/host/inside.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define DROPS_MAX 64 // pending closes, one thread each
#define DROPS_PER_USER 16

struct drop {
	uid_t uid;
	int fd;
	// Set by the loop before the thread starts. The thread clears it with release after its
	// last access to this slot; the loop reads it with acquire.
	atomic_bool busy;
};

// Static, because a thread may outlive the jobhost.
static struct drop drops[DROPS_MAX];

static struct drop *find_free_drop(uid_t uid) {
	struct drop *place = NULL;
	uint32_t of_user = 0;

	for (uint32_t n = 0; n < DROPS_MAX; n++)
		if (!atomic_load_explicit(&drops[n].busy, memory_order_acquire))
			place = &drops[n];
		else if (drops[n].uid == uid)
			of_user++;
	return of_user < DROPS_PER_USER ? place : NULL;
}

bool descriptor_has_close_slot(uid_t uid) {
	return find_free_drop(uid) != NULL;
}

static void *run_close_thread(void *context) {
	struct drop *drop = context;

	close(drop->fd);
	atomic_store_explicit(&drop->busy, false, memory_order_release);
	return NULL;
}

void descriptor_close_async(int fd, uid_t uid) {
	struct drop *drop = fd >= 0 ? find_free_drop(uid) : NULL;
	pthread_attr_t detached;
	pthread_t thread;
	bool started;

	if (fd < 0)
		return;
	if (drop != NULL && pthread_attr_init(&detached) == 0) {
		(void)pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
		drop->uid = uid;
		drop->fd = fd;
		atomic_store_explicit(&drop->busy, true, memory_order_relaxed);
		started = pthread_create(&thread, &detached, run_close_thread, drop) == 0;
		(void)pthread_attr_destroy(&detached);
		if (started)
			return;
		atomic_store_explicit(&drop->busy, false, memory_order_relaxed);
	}
	close(fd); // no thread is available, so the loop's thread has to close it
}
