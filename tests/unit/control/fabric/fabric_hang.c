// SPDX-License-Identifier: BSD-3-Clause
// Hanging drivers of the bed, and the keepers that are left behind with them.
#include "control/fabric/fabric_bed.h"

#include <lib/scoped.h>

#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

static struct {
	pthread_mutex_t mutex;
	pthread_cond_t changed;
	enum fake_call call;
	uint32_t hanging;
	uint32_t nth;	    // index among the first keeper's calls of any kind; 0: already reached
	bool reached, shut; // reached: the nth call came; shut: it must hang
	uint32_t lose_nth;  // like nth; the device is lost before that call
} gate = {
	.mutex = PTHREAD_MUTEX_INITIALIZER,
	.changed = PTHREAD_COND_INITIALIZER,
	.call = FAKE_CALL_COUNT};

static bool is_first_keeper(void) {
	char name[KEEPER_NAME_BYTES], device[16], wanted[32];

	played_device_name(0, 0, device);
	snprintf(wanted, sizeof(wanted), "rdma-%s", device);
	return pthread_getname_np(pthread_self(), name, sizeof(name)) == 0 &&
	       strcmp(name, wanted) == 0;
}

void bed_call(void *ctx, enum fake_call call) {
	bool waits, loses;

	(void)ctx;
	pthread_mutex_lock(&gate.mutex);
	loses = gate.lose_nth > 0 && is_first_keeper() && --gate.lose_nth == 0;
	if (loses)
		fake_device_lose(bed.agents[0].fakes[0]);
	waits = gate.nth > 0 && is_first_keeper() && --gate.nth == 0;
	gate.reached = gate.reached || waits;
	while (gate.call == call || (waits && gate.shut)) {
		gate.hanging++;
		pthread_cond_wait(&gate.changed, &gate.mutex);
		gate.hanging--;
	}
	pthread_mutex_unlock(&gate.mutex);
}

void bed_hang(enum fake_call call) {
	pthread_mutex_lock(&gate.mutex);
	gate.call = call;
	gate.nth = 0;
	gate.shut = false;
	pthread_cond_broadcast(&gate.changed);
	pthread_mutex_unlock(&gate.mutex);
}

void bed_hang_nth(uint32_t nth) {
	pthread_mutex_lock(&gate.mutex);
	gate.nth = nth;
	gate.reached = false;
	gate.shut = true;
	pthread_mutex_unlock(&gate.mutex);
}

void bed_lose_nth(uint32_t nth) {
	pthread_mutex_lock(&gate.mutex);
	gate.lose_nth = nth;
	pthread_mutex_unlock(&gate.mutex);
}

bool bed_lost(void) {
	bool lost;

	pthread_mutex_lock(&gate.mutex);
	lost = gate.lose_nth == 0;
	pthread_mutex_unlock(&gate.mutex);
	return lost;
}

void bed_let_go(void) {
	bed_hang(FAKE_CALL_COUNT);
}

bool bed_hangs(void) {
	bool hangs;

	pthread_mutex_lock(&gate.mutex);
	hangs = gate.hanging > 0 && (gate.call != FAKE_CALL_COUNT || (gate.reached && gate.shut));
	pthread_mutex_unlock(&gate.mutex);
	return hangs;
}

// Keepers.

static bool is_keeper(const char *task) {
	char path[64], name[KEEPER_NAME_BYTES + 1] = "";
	scoped_file FILE *stream = NULL;

	snprintf(path, sizeof(path), "/proc/self/task/%.20s/comm", task);
	stream = fopen(path, "re");
	return stream != NULL && fgets(name, sizeof(name), stream) != NULL &&
	       strncmp(name, "rdma-", 5) == 0;
}

static uint32_t count_keepers(void) {
	DIR *tasks = opendir("/proc/self/task");
	uint32_t count = 0;

	assert_non_null(tasks);
	// NOLINTNEXTLINE(concurrency-mt-unsafe): a directory of our own
	for (const struct dirent *task = readdir(tasks); task != NULL; task = readdir(tasks))
		count += is_keeper(task->d_name);
	closedir(tasks);
	return count;
}

void bed_wait_left_behind(void) {
	uint32_t owned = 0;

	for (uint32_t n = 0; n < bed.agent_count; n++)
		owned += bed.agents[n].fabric != NULL ? bed.agents[n].fabric->nic_count : 0;
	while (count_keepers() > owned)
		sched_yield();
}
