// SPDX-License-Identifier: BSD-3-Clause
// Example job: processes that meet in one operation after another, with faults on demand.
//
// The example shows how a library uses libtocsin. It registers communicators, counts launched,
// started and completed operations, and gives up an operation when a member is gone. Its operations
// are barriers in shared memory; the data transfer of a real library is left out.
#include "ring.h"

#include <tocsin/job.h>

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define EVENT_WAIT_TRIES 50
#define EVENT_WAIT_MS 100
#define NS_PER_S UINT64_C(1000000000)
#define COMMS 2u
#define ELEMENTS 1024u	 // elements of each all_reduce
#define DATATYPE_FLOAT 7 // NCCL's number
#define STRAGGLE_NS (20 * UINT64_C(1000000))
#define PAUSE_NS (30 * NS_PER_S)

// State shared by all ranks. An operation of a communicator is complete when all ranks have
// arrived.
struct shared {
	atomic_bool go;		    // SIGUSR1 was received
	_Atomic uint64_t killed_ns; // time at which a rank killed itself
	// stored with release by the rank, loaded with acquire by the other ranks
	_Atomic uint64_t arrived[COMMS][RANKS_MAX];
};

struct member {
	const struct ring_options *options;
	struct shared *shared;
	uint32_t rank;
	uint64_t start_ns;
	struct tocsin_job *job;
	struct tocsin_comm *comms[COMMS];
	bool told; // the event that a member is gone was received
	bool done; // the fault was injected
};

static uint64_t now_ns(void) {
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

static void compute_for(uint64_t ns) {
	uint64_t until_ns = now_ns() + ns;

	while (now_ns() < until_ns) {
	}
}

static void format_failed_set(struct tocsin_comm *comm, char *text, size_t size) {
	struct tocsin_failed_set set = {.struct_size = sizeof(set)};
	uint32_t ranks[16];
	size_t length;

	if (tocsin_comm_failed(comm, &set, ranks, 16) != 0)
		return;
	length = (size_t)snprintf(
		text, size, "%s view %" PRIx64 ":",
		set.agreement == TOCSIN_AGREED ? "agreed" : "undecided", set.view
	);
	for (uint32_t n = 0; n < set.count && n < 16 && length < size; n++)
		length += (size_t)snprintf(text + length, size - length, " %u", ranks[n]);
}

// Handle queued events; wait up to wait_ms for the first one.
static void handle_events(struct member *member, int wait_ms) {
	struct pollfd news = {.fd = tocsin_job_fd(member->job), .events = POLLIN};
	struct tocsin_event event = TOCSIN_INIT(struct tocsin_event);

	if (poll(&news, 1, wait_ms) <= 0)
		return;
	while (tocsin_job_next_event(member->job, &event) == 0) {
		uint64_t killed_ns = atomic_load(&member->shared->killed_ns);
		char set[128] = "";

		fprintf(stdout, "rank %u: ", member->rank);
		if (event.kind == TOCSIN_PEER_GONE) {
			format_failed_set(event.comm, set, sizeof(set));
			fprintf(stdout,
				"rank %u is gone (%s), told after %.1f ms; failed set: %s\n",
				event.rank, event.text,
				killed_ns != 0 ? (double)(now_ns() - killed_ns) / 1e6 : 0.0, set);
			member->told = true;
		} else {
			fputs(tocsin_event_name(event.kind), stdout);
			if (event.rank != TOCSIN_NO_RANK)
				fprintf(stdout, ", rank %u", event.rank);
			fprintf(stdout, "%s%s\n", event.text[0] != '\0' ? ": " : "", event.text);
		}
		fflush(stdout);
	}
}

// Handle events. Returns true if the rank must stop: a member is gone, or the time is over. The
// flag is set before the event arrives, so wait for the event.
static bool rank_must_stop(struct member *member) {
	handle_events(member, 1);
	if (!tocsin_comm_should_abort(member->comms[0]))
		return now_ns() - member->start_ns > member->options->seconds * NS_PER_S;
	for (uint32_t n = 0; n < EVENT_WAIT_TRIES && !member->told; n++)
		handle_events(member, EVENT_WAIT_MS);
	return true;
}

static bool all_arrived(const struct member *member, uint32_t comm, uint64_t operation) {
	for (uint32_t n = 0; n < member->options->ranks; n++)
		if (atomic_load_explicit(&member->shared->arrived[comm][n], memory_order_acquire) <
		    operation)
			return false;
	return true;
}

// Returns false if the operation was given up.
static bool run_all_reduce(
	struct member *member, uint32_t comm, uint64_t operation, uint64_t count, bool ends
) {
	struct tocsin_comm *told = member->comms[comm];
	_Atomic uint64_t *mine = &member->shared->arrived[comm][member->rank];

	tocsin_comm_launched(told, TOCSIN_ALL_REDUCE, count, DATATYPE_FLOAT, -1);
	tocsin_comm_started(told, TOCSIN_ALL_REDUCE);
	if (ends)
		atomic_store_explicit(mine, operation, memory_order_release);
	while (!all_arrived(member, comm, operation))
		if (rank_must_stop(member))
			return false;
	tocsin_comm_completed(told, TOCSIN_ALL_REDUCE);
	return true;
}

static void raise_fault_signal(struct member *member, int signal) {
	if (signal == SIGKILL)
		atomic_store(&member->shared->killed_ns, now_ns());
	(void)raise(signal);
}

// Inject the configured fault once, when it is due. Returns the number of elements for the rank's
// next operation.
static uint64_t inject_fault(struct member *member) {
	const struct ring_options *options = member->options;
	uint32_t rank = member->rank;
	bool is_due;

	if (rank == options->straggle)
		compute_for(STRAGGLE_NS);
	if (options->on_signal)
		is_due = atomic_load(&member->shared->go);
	else
		is_due = now_ns() - member->start_ns >= options->after_s * NS_PER_S;
	if (member->done || !is_due)
		return ELEMENTS;
	member->done = true;
	if (rank == options->kill)
		raise_fault_signal(member, SIGKILL);
	if (rank == options->freeze)
		raise_fault_signal(member, SIGSTOP);
	if (rank == options->pause)
		compute_for(PAUSE_NS);
	return rank == options->mismatch ? 2 * ELEMENTS : ELEMENTS;
}

static void run_member(struct member *member) {
	const struct ring_options *options = member->options;
	bool odd = member->rank % 2 == 1;

	for (uint64_t operation = 1;; operation++) {
		uint64_t count, first = 0;
		bool ends;

		compute_for(options->operation_us * UINT64_C(1000));
		if (rank_must_stop(member))
			return;
		count = inject_fault(member);
		ends = !(options->deadlock && member->done) && count == ELEMENTS;
		if (options->cycle && member->done && odd)
			first = 1;
		if (!run_all_reduce(member, (uint32_t)first, operation, count, ends))
			return;
		if (options->cycle &&
		    !run_all_reduce(member, (uint32_t)(1 - first), operation, count, ends))
			return;
	}
}

static int register_comms(struct member *member, uint64_t job_hash) {
	static const char *const names[COMMS] = {"ring", "ring-second"};

	for (uint32_t n = 0; n < COMMS; n++) {
		struct tocsin_comm_config config;
		int err;

		if (n > 0 && !member->options->cycle)
			break;
		tocsin_comm_config_init(&config);
		config.comm_hash = job_hash + n;
		config.size = member->options->ranks;
		config.rank = member->rank;
		config.flags = TOCSIN_COMM_TIMES | TOCSIN_COMM_BLOCKS | TOCSIN_COMM_ABORTS;
		config.name = names[n];
		err = tocsin_comm_register(member->job, &config, &member->comms[n]);
		if (err != 0)
			return err;
	}
	return 0;
}

static int run_rank(struct member *member, uint64_t job_hash) {
	const struct ring_options *options = member->options;
	struct tocsin_job_config config = {.struct_size = sizeof(config)};
	char reason[TOCSIN_EVENT_TEXT_BYTES], set[128] = "";
	int err;

	if (options->socket_count > 0)
		config.socket_path = options->sockets[member->rank % options->socket_count];
	err = tocsin_job_open(&config, &member->job);
	if (err == 0)
		err = register_comms(member, job_hash);
	if (err != 0) {
		// NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
		fprintf(stderr, "ring: rank %u: %s\n", member->rank, strerror(-err));
		return 1;
	}
	run_member(member);
	if (member->told) {
		// Wait for the set on which the survivors agree: the event may arrive earlier.
		(void)tocsin_comm_wait_failed(member->comms[0], 0, 5 * NS_PER_S);
		format_failed_set(member->comms[0], set, sizeof(set));
		fprintf(stdout, "rank %u: failed set in the end: %s\n", member->rank, set);
		fflush(stdout);
	}
	if (member->rank == 0 &&
	    tocsin_job_state(member->job, reason, sizeof(reason)) != TOCSIN_JOB_CONNECTED) {
		fprintf(stdout, "ring: no agent: %s\n", reason);
		fflush(stdout); // a child ends by _exit(), which does not flush
	}
	for (uint32_t n = 0; n < COMMS; n++) {
		if (member->comms[n] != NULL)
			tocsin_comm_mark(member->comms[n], TOCSIN_MARK_FINALIZED, 1);
		tocsin_comm_unregister(member->comms[n]);
	}
	tocsin_job_close(member->job);
	// Without --kill no rank has to receive an event.
	return member->options->kill == NOBODY || member->told ? 0 : 1;
}

// The frozen rank never ends, so kill it.
static int wait_for_all(const struct ring_options *options, const pid_t *pids) {
	int failed = 0;

	for (uint32_t rank = 0; rank < options->ranks; rank++) {
		int status;

		if (rank == options->freeze)
			continue;
		while (waitpid(pids[rank], &status, 0) < 0 && errno == EINTR) {
		}
		if (rank != options->kill && (!WIFEXITED(status) || WEXITSTATUS(status) != 0))
			failed++;
	}
	if (options->freeze != NOBODY) {
		(void)kill(pids[options->freeze], SIGKILL);
		(void)waitpid(pids[options->freeze], NULL, 0);
	}
	return failed;
}

static struct shared *shared_by_handler; // set before the handler is installed

static void on_signal(int signal) {
	(void)signal;
	atomic_store(&shared_by_handler->go, true);
}

int main(int argc, char **argv) {
	struct ring_options options;
	struct shared *shared =
		mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	static pid_t pids[RANKS_MAX];
	pid_t parent = getpid();
	uint64_t start_ns = now_ns(), job_hash = (uint64_t)parent << 32 ^ start_ns;
	int failed;

	ring_options_read(argc, argv, &options);
	if (shared == MAP_FAILED)
		return 1;
	shared_by_handler = shared;
	(void)signal(SIGUSR1, on_signal);
	for (uint32_t rank = 0; rank < options.ranks; rank++) {
		struct member member = {
			.options = &options, .shared = shared, .rank = rank, .start_ns = start_ns};

		pids[rank] = fork();
		if (pids[rank] == 0) {
			// A rank ends with the parent, a frozen one as well. The parent may have
			// ended before prctl().
			if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0 || getppid() != parent)
				_exit(1);
			_exit(run_rank(&member, job_hash));
		}
		if (pids[rank] < 0) {
			// NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
			fprintf(stderr, "ring: %s\n", strerror(errno));
			return 1;
		}
	}
	failed = wait_for_all(&options, pids);
	if (failed > 0)
		fprintf(stdout, "ring: %d ranks failed or received no event\n", failed);
	return failed > 0 ? 1 : 0;
}
