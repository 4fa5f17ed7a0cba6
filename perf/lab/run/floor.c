// SPDX-License-Identifier: BSD-3-Clause
// Measure floors, with one thread or with two threads on two processors.
#include "run/floor.h"

#include "run/floor_memif.h"

#include <lib/cpu_set.h>
#include <lib/error.h>

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CACHE_LINE 64
#define MESSAGE_BYTES 64
#define TURNS_MAX 20000000u // takes some seconds

// State of one measurement. `line` and `over` have a cache line each.
struct duel {
	const struct floor_config *config;
	struct run_record *record;
	enum floor_kind kind;
	struct clock clock;
	uint32_t cpus[2];
	int fds[2]; // [0]: of the asking thread; [1]: of the answering thread
	struct memif_pair *memif;
	int err;
	_Alignas(CACHE_LINE) _Atomic uint32_t line;
	_Alignas(CACHE_LINE) _Atomic bool over;
};

static const struct {
	const char *key, *words;
	uint32_t batch;
	bool alone;    // uses one thread only
	uint32_t lead; // initial samples that are dropped
} floors[FLOOR_KIND_COUNT] = {
	[FLOOR_CLOCK] = {"clock", "a reading of the worker's clock", 1000, true, 0},
	[FLOOR_SYSTEM_CALL] = {"system_call", "a system call that does nothing", 200, true, 0},
	[FLOOR_CACHE_LINE] =
		{"cache_line", "a cache line from processor to processor", 200, false, 0},
	[FLOOR_WAKE_UP] = {"wake_up", "waking a thread on another processor", 2, false, 0},
	[FLOOR_UDP] = {"udp", "a round trip by UDP, both ends spinning", 1, false, 0},
	// The initial samples touch each page of the rings' memory.
	[FLOOR_MEMIF] = {"memif", "a round trip by memif, both ends spinning", 1, false, 4096},
};

const char *floor_key(enum floor_kind kind) {
	return floors[kind].key;
}

const char *floor_description(enum floor_kind kind) {
	return floors[kind].words;
}

uint32_t floor_batch(enum floor_kind kind) {
	return floors[kind].batch;
}

void floor_format_time(double time_ns, char text[static FLOOR_TIME_BYTES]) {
	if (time_ns < 1000)
		snprintf(text, FLOOR_TIME_BYTES, "%.1f ns", time_ns);
	else
		snprintf(text, FLOOR_TIME_BYTES, "%.2f us", time_ns / 1e3);
}

static void thread_pin(uint32_t cpu) {
	struct cpu_set one = {{0}};

	cpu_set_add(&one, cpu);
	(void)cpu_set_bind_thread(&one);
}

static void line_spin_until(struct duel *duel, uint32_t wanted) {
	// Acquire pairs with the release of the other side's store.
	while (atomic_load_explicit(&duel->line, memory_order_acquire) != wanted &&
	       !atomic_load_explicit(&duel->over, memory_order_relaxed))
		__builtin_ia32_pause();
}

static bool eventfd_signal(int fd) {
	uint64_t one = 1;

	return write(fd, &one, sizeof(one)) == sizeof(one);
}

static bool sleep_until_woken(int fd) {
	uint64_t count;

	return read(fd, &count, sizeof(count)) == sizeof(count);
}

static bool spin_receive(struct duel *duel, int fd) {
	char message[MESSAGE_BYTES];
	ssize_t length;

	for (uint32_t turns = 0; turns < TURNS_MAX; turns++) {
		length = recv(fd, message, sizeof(message), MSG_DONTWAIT);
		if (length >= 0 || errno != EAGAIN ||
		    atomic_load_explicit(&duel->over, memory_order_relaxed))
			return length > 0;
	}
	return false; // the message was lost
}

// Send with retries: a memif client has room for the first frame only after it has polled.
static bool memif_send_spinning(struct duel *duel, int end) {
	for (uint32_t turns = 0; turns < TURNS_MAX; turns++) {
		if (memif_pair_send(duel->memif, end))
			return true;
		if (atomic_load_explicit(&duel->over, memory_order_relaxed))
			return false;
	}
	return false;
}

static bool memif_receive_spinning(struct duel *duel, int end) {
	for (uint32_t turns = 0; turns < TURNS_MAX; turns++) {
		if (memif_pair_receive(duel->memif, end))
			return true;
		if (atomic_load_explicit(&duel->over, memory_order_relaxed))
			return false;
	}
	return false;
}

static void *answer_thread(void *arg) {
	static const char message[MESSAGE_BYTES];
	struct duel *duel = arg;

	thread_pin(duel->cpus[1]);
	switch (duel->kind) {
	case FLOOR_CACHE_LINE:
		for (uint32_t number = 1; !atomic_load_explicit(&duel->over, memory_order_relaxed);
		     number += 2) {
			line_spin_until(duel, number);
			atomic_store_explicit(&duel->line, number + 1, memory_order_release);
		}
		break;
	case FLOOR_WAKE_UP:
		while (sleep_until_woken(duel->fds[1]) &&
		       !atomic_load_explicit(&duel->over, memory_order_relaxed) &&
		       eventfd_signal(duel->fds[0]))
			;
		break;
	case FLOOR_MEMIF:
		while (memif_receive_spinning(duel, 1) && memif_send_spinning(duel, 1))
			;
		break;
	default:
		while (spin_receive(duel, duel->fds[1]) &&
		       send(duel->fds[1], message, sizeof(message), 0) > 0)
			;
	}
	return NULL;
}

// Measure one sample.
static bool ask_sample(struct duel *duel) {
	static const char message[MESSAGE_BYTES];
	uint32_t number;

	switch (duel->kind) {
	case FLOOR_CLOCK:
		for (uint32_t n = 0; n < floors[FLOOR_CLOCK].batch; n++)
			(void)clock_now_ns(&duel->clock);
		return true;
	case FLOOR_SYSTEM_CALL:
		for (uint32_t n = 0; n < floors[FLOOR_SYSTEM_CALL].batch; n++)
			(void)syscall(SYS_getppid);
		return true;
	case FLOOR_CACHE_LINE:
		// The asker stores odd numbers, the answerer the even number that follows.
		for (uint32_t n = 0; n < floors[FLOOR_CACHE_LINE].batch / 2; n++) {
			number = atomic_load_explicit(&duel->line, memory_order_relaxed) + 1;
			atomic_store_explicit(&duel->line, number, memory_order_release);
			line_spin_until(duel, number + 1);
		}
		return true;
	case FLOOR_WAKE_UP:
		return eventfd_signal(duel->fds[1]) && sleep_until_woken(duel->fds[0]);
	case FLOOR_MEMIF:
		return memif_send_spinning(duel, 0) && memif_receive_spinning(duel, 0);
	default:
		return send(duel->fds[0], message, sizeof(message), 0) > 0 &&
		       spin_receive(duel, duel->fds[0]);
	}
}

static void *ask_thread(void *arg) {
	struct duel *duel = arg;
	uint64_t begin_ns, end_ns;

	thread_pin(duel->cpus[0]);
	for (uint32_t n = 0; n < floors[duel->kind].lead && duel->err == 0; n++)
		duel->err = ask_sample(duel) ? 0 : -EIO;
	begin_ns = clock_now_ns(&duel->clock);
	for (uint32_t n = 0; n < duel->config->samples && duel->err == 0; n++) {
		uint64_t start_ns = clock_now_ns(&duel->clock);

		if (!ask_sample(duel)) {
			duel->err = -EIO;
			break;
		}
		end_ns = clock_now_ns(&duel->clock);
		run_record_add(duel->record, end_ns - start_ns);
		if (end_ns - begin_ns > duel->config->limit_ns)
			break;
	}
	atomic_store_explicit(&duel->over, true, memory_order_relaxed);
	if (duel->kind == FLOOR_WAKE_UP)
		(void)eventfd_signal(duel->fds[1]); // wakes the answerer, so that it sees `over`
	return NULL;
}

static int sockets_connect(int fds[2]) {
	struct sockaddr_in addresses[2];
	socklen_t length = sizeof(addresses[0]);

	for (int n = 0; n < 2; n++) {
		addresses[n] = (struct sockaddr_in
		){.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
		fds[n] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		if (fds[n] < 0 ||
		    bind(fds[n], (struct sockaddr *)&addresses[n], sizeof(addresses[n])) != 0 ||
		    getsockname(fds[n], (struct sockaddr *)&addresses[n], &length) != 0)
			return neg_errno();
	}
	for (int n = 0; n < 2; n++) {
		if (connect(fds[n], (struct sockaddr *)&addresses[1 - n], length) != 0)
			return neg_errno();
	}
	return 0;
}

// Use the last two allowed processors: processor 0 serves the most interrupts.
static int choose_cpus(struct duel *duel, struct lab_why *why) {
	struct cpu_set allowed;
	uint32_t count, cpu;
	int err = cpu_set_get_allowed(&allowed);

	if (err != 0)
		return lab_fail(why, err, "no processor: %s", strerrordesc_np(-err));
	count = cpu_set_count(&allowed);
	if (count < 2 && !floors[duel->kind].alone)
		return lab_fail(why, -EOPNOTSUPP, "this process may use one processor only");
	cpu = cpu_set_next(&allowed, 0);
	for (uint32_t n = 0; n < count; n++) {
		duel->cpus[1] = duel->cpus[0];
		duel->cpus[0] = cpu;
		cpu = cpu_set_next(&allowed, cpu + 1);
	}
	return 0;
}

static int threads_run(struct duel *duel) {
	pthread_t asker, answerer;
	bool alone = floors[duel->kind].alone;
	int err = 0;

	if (!alone)
		err = pthread_create(&answerer, NULL, answer_thread, duel);
	if (err != 0)
		return -err;
	err = pthread_create(&asker, NULL, ask_thread, duel);
	if (err == 0)
		pthread_join(asker, NULL);
	else
		atomic_store_explicit(&duel->over, true, memory_order_relaxed);
	if (err != 0 && duel->kind == FLOOR_WAKE_UP)
		(void)eventfd_signal(duel->fds[1]);
	if (!alone)
		pthread_join(answerer, NULL);
	return err == 0 ? duel->err : -err;
}

int floor_measure(
	enum floor_kind kind,
	const struct floor_config *config,
	struct run_record *record,
	struct lab_why *why
) {
	struct duel duel = {
		.config = config,
		.record = record,
		.kind = kind,
		.fds = {-1, -1},
	};
	int err = choose_cpus(&duel, why);

	if (err != 0)
		return err;
	clock_init_resynced(&duel.clock);
	if (kind == FLOOR_UDP)
		err = sockets_connect(duel.fds);
	else if (kind == FLOOR_MEMIF)
		err = memif_pair_create(&duel.clock, &duel.memif, why);
	for (int n = 0; kind == FLOOR_WAKE_UP && n < 2 && err == 0; n++) {
		duel.fds[n] = eventfd(0, EFD_CLOEXEC);
		if (duel.fds[n] < 0)
			err = neg_errno();
	}
	if (err == 0)
		err = threads_run(&duel);
	for (int n = 0; n < 2; n++) {
		if (duel.fds[n] >= 0)
			close(duel.fds[n]);
	}
	memif_pair_destroy(duel.memif);
	return err == 0 ? 0
			: lab_fail(why, err, "%s: %s", floors[kind].words, strerrordesc_np(-err));
}
