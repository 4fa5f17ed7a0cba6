// SPDX-License-Identifier: BSD-3-Clause
// Tests of the counters of libtocsin, and of its queue of unregistrations; without a real agent.
#include <support/cases.h>
#include <support/cmocka.h>
#include <tocsin/job.h>
#include <tocsin/job_socket.h>

#include <dirent.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define NOWHERE "/nonexistent/job.sock"

struct fixture {
	struct tocsin_job *job;
	struct tocsin_comm *comm;
};

static struct tocsin_job *open_job(void) {
	struct tocsin_job_config config = {
		.struct_size = sizeof(config),
		.socket_path = NOWHERE,
		.flags = TOCSIN_JOB_NO_THREAD};
	struct tocsin_job *job;

	assert_int_equal(tocsin_job_open(&config, &job), 0);
	return job;
}

static struct tocsin_comm *register_comm(struct tocsin_job *job, uint32_t flags) {
	struct tocsin_comm_config config;
	struct tocsin_comm *comm;

	tocsin_comm_config_init(&config);
	config.comm_hash = 1;
	config.size = 4;
	config.rank = 3;
	config.flags = flags;
	assert_int_equal(tocsin_comm_register(job, &config, &comm), 0);
	return comm;
}

static struct fixture begin(void) {
	struct tocsin_job *job = open_job();

	return (struct fixture){job, register_comm(job, 0)};
}

static void end(struct fixture *fixture) {
	tocsin_comm_unregister(fixture->comm);
	tocsin_job_close(fixture->job);
}

static struct tocsin_counts counts_of(struct tocsin_comm *comm) {
	struct tocsin_counts counts = {.struct_size = sizeof(counts)};

	assert_int_equal(tocsin_comm_counts(comm, &counts), 0);
	return counts;
}

static void what_a_thread_counts_is_read_back_by_kind(void **state) {
	struct fixture f = begin();
	struct tocsin_counts counts;

	(void)state;
	for (int n = 0; n < 5; n++)
		tocsin_comm_launched(f.comm, TOCSIN_ALL_REDUCE, 1, 7, -1);
	tocsin_comm_launched(f.comm, TOCSIN_BROADCAST, 1, 7, 0);
	tocsin_comm_started(f.comm, TOCSIN_ALL_REDUCE);
	tocsin_comm_started(f.comm, TOCSIN_ALL_REDUCE);
	tocsin_comm_completed(f.comm, TOCSIN_ALL_REDUCE);
	counts = counts_of(f.comm);
	assert_int_equal(counts.launched, 6);
	assert_int_equal(counts.started, 2);
	assert_int_equal(counts.completed, 1);
	assert_int_equal(counts.launched_of[TOCSIN_ALL_REDUCE], 5);
	assert_int_equal(counts.launched_of[TOCSIN_BROADCAST], 1);
	assert_int_equal(counts.completed_of[TOCSIN_ALL_REDUCE], 1);
	end(&f);
}

static void what_two_ranks_do_counts_in_its_kind_alone(void **state) {
	struct fixture f = begin();
	struct tocsin_counts counts;

	(void)state;
	tocsin_comm_launched(f.comm, TOCSIN_SEND, 1, 7, 2);
	tocsin_comm_launched(f.comm, TOCSIN_RECEIVE, 1, 7, 2);
	tocsin_comm_launched(f.comm, TOCSIN_ONE_SIDED, 1, 7, 2);
	tocsin_comm_completed(f.comm, TOCSIN_SEND);
	counts = counts_of(f.comm);
	assert_int_equal(counts.launched, 0);
	assert_int_equal(counts.completed, 0);
	assert_int_equal(counts.launched_of[TOCSIN_SEND], 1);
	assert_int_equal(counts.launched_of[TOCSIN_RECEIVE], 1);
	assert_int_equal(counts.launched_of[TOCSIN_ONE_SIDED], 1);
	assert_int_equal(counts.completed_of[TOCSIN_SEND], 1);
	end(&f);
}

static void a_kind_that_is_none_counts_as_other(void **state) {
	struct fixture f = begin();

	(void)state;
	tocsin_comm_launched(f.comm, (enum tocsin_kind)99, 1, 7, -1);
	assert_int_equal(counts_of(f.comm).launched_of[TOCSIN_OTHER], 1);
	assert_string_equal(tocsin_kind_name((enum tocsin_kind)99), "?");
	assert_string_equal(tocsin_event_name((enum tocsin_event_kind)99), "?");
	end(&f);
}

static void a_counter_of_the_callers_adds_to_the_threads(void **state) {
	struct fixture f = begin();
	struct tocsin_counter *counter;
	struct tocsin_counts counts;

	(void)state;
	assert_int_equal(tocsin_comm_counter(f.comm, &counter), 0);
	for (int n = 0; n < 4; n++)
		tocsin_counter_launched(counter, TOCSIN_ALL_REDUCE, 1, 7, -1);
	tocsin_comm_launched(f.comm, TOCSIN_ALL_REDUCE, 1, 7, -1);
	tocsin_counter_started(counter, TOCSIN_ALL_REDUCE);
	tocsin_counter_started_to(counter, 3);
	tocsin_counter_completed(counter, TOCSIN_ALL_REDUCE);
	tocsin_counter_completed_to(counter, 2);
	tocsin_counter_completed_to(counter, 1); // lower than before
	counts = counts_of(f.comm);
	assert_int_equal(counts.launched, 5);
	assert_int_equal(counts.started, 3);
	assert_int_equal(counts.completed, 2);
	end(&f);
}

// One thread launches operations, the second starts and completes them, the third reads the counts.
struct race {
	struct tocsin_comm *comm;
	uint32_t operations;
	// The launcher stores with release, the completer loads with acquire.
	_Atomic uint32_t launched;
	atomic_bool over;
	bool wrong;
	atomic_uint reads;
};

static void *launch_all(void *context) {
	struct race *race = context;

	// On a busy processor the reader may start last: half of the operations wait for it.
	for (uint32_t n = 0; n < race->operations; n++) {
		while (n == race->operations / 2 &&
		       atomic_load_explicit(&race->reads, memory_order_relaxed) == 0)
			sched_yield();
		tocsin_comm_launched(race->comm, TOCSIN_ALL_REDUCE, n, 7, -1);
		atomic_store_explicit(&race->launched, n + 1, memory_order_release);
	}
	return NULL;
}

static void *complete_all(void *context) {
	struct race *race = context;

	for (uint32_t n = 0; n < race->operations; n++) {
		while (atomic_load_explicit(&race->launched, memory_order_acquire) <= n)
			sched_yield();
		tocsin_comm_started(race->comm, TOCSIN_ALL_REDUCE);
		tocsin_comm_completed(race->comm, TOCSIN_ALL_REDUCE);
	}
	return NULL;
}

static void *read_all(void *context) {
	struct race *race = context;
	struct tocsin_counts last = {0};

	while (!atomic_load_explicit(&race->over, memory_order_acquire)) {
		struct tocsin_counts now = counts_of(race->comm);

		race->wrong =
			race->wrong || now.completed > now.started || now.started > now.launched ||
			now.launched < last.launched || now.completed < last.completed ||
			now.completed_of[TOCSIN_ALL_REDUCE] > now.launched_of[TOCSIN_ALL_REDUCE];
		last = now;
		atomic_fetch_add_explicit(&race->reads, 1, memory_order_relaxed);
	}
	return NULL;
}

static void a_reader_never_sees_more_completed_than_launched(void **state) {
	struct fixture f = begin();
	struct race race = {.comm = f.comm, .operations = 200000};
	pthread_t launcher, completer, reader;

	(void)state;
	assert_int_equal(pthread_create(&reader, NULL, read_all, &race), 0);
	assert_int_equal(pthread_create(&launcher, NULL, launch_all, &race), 0);
	assert_int_equal(pthread_create(&completer, NULL, complete_all, &race), 0);
	pthread_join(launcher, NULL);
	pthread_join(completer, NULL);
	atomic_store_explicit(&race.over, true, memory_order_release);
	pthread_join(reader, NULL);
	assert_false(race.wrong);
	assert_true(race.reads > 0);
	assert_int_equal(counts_of(f.comm).launched, race.operations);
	assert_int_equal(counts_of(f.comm).completed, race.operations);
	end(&f);
}

static void *count_once(void *context) {
	tocsin_comm_launched(context, TOCSIN_BARRIER, 0, 0, -1);
	return NULL;
}

static void a_thread_that_ends_leaves_its_slot_and_its_counts(void **state) {
	struct fixture f = begin();

	(void)state;
	for (int n = 0; n < 600; n++) { // more than there are slots
		pthread_t thread;

		assert_int_equal(pthread_create(&thread, NULL, count_once, f.comm), 0);
		pthread_join(thread, NULL);
	}
	assert_int_equal(counts_of(f.comm).launched, 600);
	// The other slots are still free: each communicator needs one.
	for (int n = 0; n < 126; n++)
		(void)register_comm(f.job, 0);
	end(&f);
}

#define CROWD 300u // more threads at once than there are slots

struct crowd {
	struct tocsin_comm *comm;
	pthread_barrier_t all_there;
};

static void *count_in_crowd(void *context) {
	struct crowd *crowd = context;

	tocsin_comm_launched(crowd->comm, TOCSIN_BARRIER, 0, 0, -1);
	pthread_barrier_wait(&crowd->all_there);
	for (int n = 0; n < 99; n++)
		tocsin_comm_launched(crowd->comm, TOCSIN_BARRIER, 0, 0, -1);
	return NULL;
}

static void more_threads_than_slots_lose_no_count(void **state) {
	static pthread_t threads[CROWD];
	struct fixture f = begin();
	struct crowd crowd = {.comm = f.comm};

	(void)state;
	pthread_barrier_init(&crowd.all_there, NULL, CROWD);
	for (uint32_t n = 0; n < CROWD; n++)
		assert_int_equal(pthread_create(&threads[n], NULL, count_in_crowd, &crowd), 0);
	for (uint32_t n = 0; n < CROWD; n++)
		pthread_join(threads[n], NULL);
	pthread_barrier_destroy(&crowd.all_there);
	assert_int_equal(counts_of(f.comm).launched, CROWD * 100);
	end(&f);
}

static void what_a_child_counts_is_not_the_parents(void **state) {
	struct fixture f = begin();
	pid_t child;
	int status;

	(void)state;
	tocsin_comm_launched(f.comm, TOCSIN_BARRIER, 0, 0, -1);
	child = fork();
	assert_true(child >= 0);
	if (child == 0) {
		for (int n = 0; n < 10; n++)
			tocsin_comm_launched(f.comm, TOCSIN_BARRIER, 0, 0, -1);
		tocsin_comm_unregister(f.comm);
		(void)tocsin_job_poll(f.job);
		tocsin_job_close(f.job);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
	assert_int_equal(counts_of(f.comm).launched, 1);
	end(&f);
}

static uint32_t descriptors(void) {
	DIR *directory = opendir("/proc/self/fd");
	uint32_t count = 0;

	assert_non_null(directory);
	while (readdir(directory) != NULL)
		count++;
	closedir(directory);
	return count;
}

static void ten_thousand_communicators_leave_nothing_behind(void **state) {
	uint32_t before = descriptors();
	struct tocsin_job *job = open_job();

	(void)state;
	for (int n = 0; n < 10000; n++) {
		struct tocsin_comm *comm = register_comm(job, TOCSIN_COMM_TIMES);

		tocsin_comm_launched(comm, TOCSIN_BARRIER, 0, 0, -1);
		assert_int_equal(counts_of(comm).launched, 1);
		tocsin_comm_unregister(comm);
	}
	tocsin_job_close(job);
	assert_int_equal(descriptors(), before);
}

static void what_no_communicator_can_be_is_refused(void **state) {
	static const struct {
		uint32_t size, rank;
		size_t struct_size;
	} rows[] = {
		{0, 0, sizeof(struct tocsin_comm_config)},
		{4, 4, sizeof(struct tocsin_comm_config)},
		{UINT32_MAX, 0, sizeof(struct tocsin_comm_config)},
		{(1u << 20) + 1, 0, sizeof(struct tocsin_comm_config)},
		{4, 0, 0},
	};
	struct tocsin_job *job = open_job();

	(void)state;
	for (size_t n = 0; n < COUNT_OF(rows); n++) {
		struct tocsin_comm_config config;
		struct tocsin_comm *comm = NULL;

		tocsin_comm_config_init(&config);
		config.size = rows[n].size;
		config.rank = rows[n].rank;
		config.struct_size = rows[n].struct_size;
		assert_int_equal(tocsin_comm_register(job, &config, &comm), -EINVAL);
		assert_null(comm);
	}
	tocsin_job_close(job);
}

static void a_process_has_at_most_127_communicators(void **state) {
	struct tocsin_job *job = open_job();
	struct tocsin_comm_config config;
	struct tocsin_comm *comm;

	(void)state;
	for (int n = 0; n < 127; n++)
		comm = register_comm(job, 0);
	tocsin_comm_config_init(&config);
	config.size = 1;
	assert_int_equal(tocsin_comm_register(job, &config, &comm), -ENOSPC);
	tocsin_job_close(job);
}

static void without_an_agent_the_job_is_alone_and_knows_where_it_looked(void **state) {
	struct fixture f = begin();
	char text[64];

	(void)state;
	assert_int_equal(tocsin_job_poll(f.job), 0);
	assert_int_equal(tocsin_job_state(f.job, text, sizeof(text)), TOCSIN_JOB_ALONE);
	assert_non_null(strstr(text, NOWHERE));
	assert_int_equal(tocsin_comm_report(f.comm, 1, "times out"), -ENOTCONN);
	assert_int_equal(tocsin_comm_wait_failed(f.comm, 0, 1000000), -ETIMEDOUT);
	end(&f);
}

// An agent that accepts one connection and answers only HELLO.
struct fake_agent {
	char directory[32];
	struct sockaddr_un address;
	int listener, fd;
	uint64_t registered, unregistered; // packets received
};

static void fake_agent_listen(struct fake_agent *agent) {
	*agent = (struct fake_agent
	){.directory = "/tmp/tocsin-job-XXXXXX", .address.sun_family = AF_UNIX};
	assert_non_null(mkdtemp(agent->directory));
	(void)snprintf(
		agent->address.sun_path, sizeof(agent->address.sun_path), "%s/job.sock",
		agent->directory
	);
	agent->listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_true(agent->listener >= 0);
	assert_int_equal(
		bind(agent->listener, (struct sockaddr *)&agent->address, sizeof(agent->address)), 0
	);
	assert_int_equal(listen(agent->listener, 1), 0);
}

static void fake_agent_welcome(struct fake_agent *agent) {
	const struct job_welcome welcome = {
		.head = {JOB_SOCKET_MAGIC, JOB_SOCKET_VERSION, JOB_WELCOME}, .start = 1};
	struct job_hello hello;

	agent->fd = accept(agent->listener, NULL, NULL);
	assert_true(agent->fd >= 0);
	assert_int_equal(recv(agent->fd, &hello, sizeof(hello), 0), sizeof(hello));
	assert_int_equal(send(agent->fd, &welcome, sizeof(welcome), 0), sizeof(welcome));
}

// Let the job send until nothing is left, and count what arrives on the one connection.
static void fake_agent_receive_all(struct fake_agent *agent, struct tocsin_job *job) {
	struct job_register packet;
	ssize_t size;
	bool any = true;

	while (any) {
		any = false;
		assert_int_equal(tocsin_job_poll(job), 0);
		while ((size = recv(agent->fd, &packet, sizeof(packet), MSG_DONTWAIT)) > 0) {
			agent->registered += packet.head.kind == JOB_REGISTER;
			agent->unregistered += packet.head.kind == JOB_UNREGISTER;
			any = true;
		}
		assert_true(size < 0); // 0: the job closed the connection
	}
}

static void fake_agent_end(struct fake_agent *agent) {
	close(agent->fd);
	close(agent->listener);
	(void)unlink(agent->address.sun_path);
	(void)rmdir(agent->directory);
}

// The queue of unregistrations has room for what one process can have registered. Communicators
// that come and go between two polls need no place, because the agent never knew them.
static void a_thousand_unregisters_between_two_polls_keep_the_connection(void **state) {
	struct fake_agent agent;
	struct tocsin_job_config config = {
		.struct_size = sizeof(config), .flags = TOCSIN_JOB_NO_THREAD};
	struct tocsin_comm *comms[JOB_COMMS_MAX];
	struct tocsin_job *job;

	(void)state;
	fake_agent_listen(&agent);
	config.socket_path = agent.address.sun_path;
	assert_int_equal(tocsin_job_open(&config, &job), 0);
	assert_int_equal(tocsin_job_poll(job), 0);
	fake_agent_welcome(&agent);
	for (int n = 0; n < JOB_COMMS_MAX; n++)
		comms[n] = register_comm(job, 0);
	fake_agent_receive_all(&agent, job);
	assert_int_equal(agent.registered, JOB_COMMS_MAX);

	for (int n = 0; n < JOB_COMMS_MAX; n++)
		tocsin_comm_unregister(comms[n]);
	for (int n = 0; n < 1000; n++)
		tocsin_comm_unregister(register_comm(job, 0));
	comms[0] = register_comm(job, 0);
	assert_int_equal(tocsin_job_state(job, NULL, 0), TOCSIN_JOB_CONNECTED);
	fake_agent_receive_all(&agent, job);
	assert_int_equal(agent.unregistered, JOB_COMMS_MAX);
	assert_int_equal(agent.registered, JOB_COMMS_MAX + 1);

	tocsin_job_close(job);
	fake_agent_end(&agent);
}

static void structs_are_written_within_the_size_that_the_caller_set(void **state) {
	struct fixture f = begin();
	struct {
		struct tocsin_counts counts;
		uint64_t newer;
	} counts;
	struct tocsin_event event = TOCSIN_INIT(struct tocsin_event);

	(void)state;
	tocsin_comm_launched(f.comm, TOCSIN_BARRIER, 1, 7, -1);
	memset(&counts, 0xaa, sizeof(counts));
	counts.counts.struct_size = offsetof(struct tocsin_counts, started);
	assert_int_equal(tocsin_comm_counts(f.comm, &counts.counts), 0);
	assert_int_equal(counts.counts.launched, 1);
	assert_int_equal(counts.counts.started, UINT64_C(0xaaaaaaaaaaaaaaaa));
	counts.counts.struct_size = sizeof(counts);
	assert_int_equal(tocsin_comm_counts(f.comm, &counts.counts), 0);
	assert_int_equal(counts.counts.struct_size, sizeof(counts));
	assert_int_equal(counts.counts.launched_of[TOCSIN_BARRIER], 1);
	assert_int_equal(counts.newer, UINT64_C(0xaaaaaaaaaaaaaaaa));

	assert_int_equal(tocsin_job_next_event(f.job, &event), -EAGAIN);
	event.struct_size = offsetof(struct tocsin_event, text);
	assert_int_equal(tocsin_job_next_event(f.job, &event), -EINVAL);
	event.struct_size = 0;
	assert_int_equal(tocsin_job_next_event(f.job, &event), -EINVAL);
	end(&f);
}

static void fake_agent_send_event(const struct fake_agent *agent, uint64_t comm, uint32_t kind) {
	const struct job_event packet = {
		.head = {JOB_SOCKET_MAGIC, JOB_SOCKET_VERSION, JOB_EVENT},
		.comm = comm,
		.kind = kind,
		.rank = 1,
		.text = "because",
	};

	assert_int_equal(send(agent->fd, &packet, sizeof(packet), 0), sizeof(packet));
}

static void an_event_of_a_newer_agent_is_ignored_and_the_next_one_arrives(void **state) {
	struct fake_agent agent;
	struct tocsin_job_config config = TOCSIN_INIT(struct tocsin_job_config);
	struct {
		struct tocsin_event event;
		uint64_t newer;
	} got = {.event.struct_size = sizeof(got), .newer = 7};
	struct job_register told;
	struct tocsin_job *job;

	(void)state;
	fake_agent_listen(&agent);
	config.flags = TOCSIN_JOB_NO_THREAD;
	config.socket_path = agent.address.sun_path;
	assert_int_equal(tocsin_job_open(&config, &job), 0);
	(void)register_comm(job, 0);
	assert_int_equal(tocsin_job_poll(job), 0);
	fake_agent_welcome(&agent);
	assert_int_equal(tocsin_job_poll(job), 0);
	assert_int_equal(recv(agent.fd, &told, sizeof(told), 0), sizeof(told));
	fake_agent_send_event(&agent, told.comm, TOCSIN_COMM_SHOULD_ABORT + 1);
	fake_agent_send_event(&agent, told.comm, TOCSIN_PEER_SUSPECT);
	assert_int_equal(tocsin_job_poll(job), 0);
	assert_int_equal(tocsin_job_state(job, NULL, 0), TOCSIN_JOB_CONNECTED);
	assert_int_equal(tocsin_job_next_event(job, &got.event), 0);
	assert_int_equal(got.event.kind, TOCSIN_PEER_SUSPECT);
	assert_int_equal(got.event.rank, 1);
	assert_int_equal(got.event.struct_size, sizeof(got));
	assert_string_equal(got.event.text, "because");
	assert_int_equal(got.newer, 7);
	assert_int_equal(tocsin_job_next_event(job, &got.event), -EAGAIN);
	tocsin_job_close(job);
	fake_agent_end(&agent);
}

static void an_agent_of_version_1_is_named_with_its_version(void **state) {
	const struct job_refused refused = {
		.head = {JOB_SOCKET_MAGIC, 1, JOB_REFUSED},
		.reason = "the first packet is not a greeting"};
	struct tocsin_job_config config = TOCSIN_INIT(struct tocsin_job_config);
	char reason[JOB_REASON_BYTES];
	struct fake_agent agent;
	struct tocsin_job *job;

	(void)state;
	fake_agent_listen(&agent);
	config.flags = TOCSIN_JOB_NO_THREAD;
	config.socket_path = agent.address.sun_path;
	assert_int_equal(tocsin_job_open(&config, &job), 0);
	assert_int_equal(tocsin_job_poll(job), 0);
	agent.fd = accept(agent.listener, NULL, NULL);
	assert_true(agent.fd >= 0);
	assert_int_equal(send(agent.fd, &refused, sizeof(refused), 0), sizeof(refused));
	assert_int_equal(tocsin_job_poll(job), 0);
	assert_int_equal(tocsin_job_state(job, reason, sizeof(reason)), TOCSIN_JOB_REFUSED);
	assert_string_equal(reason, "the agent speaks version 1, libtocsin versions 2 to 2");
	tocsin_job_close(job);
	fake_agent_end(&agent);
}

// Open a job in a child that has this limit. Returns what tocsin_job_open() returned, and checks
// that no signal is left and that the signals are unblocked.
static int open_with_limit(int resource, rlim_t limit) {
	const struct rlimit limits = {limit, limit};
	struct tocsin_job_config config = {.struct_size = sizeof(config), .socket_path = NOWHERE};
	struct tocsin_job *job;
	sigset_t pending, blocked;
	int status, err;
	pid_t child = fork();

	assert_true(child >= 0);
	if (child == 0) {
		if (setrlimit((__rlimit_resource_t)resource, &limits) != 0)
			_exit(99);
		err = tocsin_job_open(&config, &job);
		if (err == 0)
			tocsin_job_close(job);
		if (sigpending(&pending) != 0 || sigismember(&pending, SIGXFSZ) != 0 ||
		    sigprocmask(SIG_BLOCK, NULL, &blocked) != 0 ||
		    sigismember(&blocked, SIGXFSZ) != 0)
			_exit(98);
		_exit(-err);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	if (WIFSIGNALED(status))
		fail_msg("killed by signal %d", WTERMSIG(status));
	return -WEXITSTATUS(status);
}

static void a_limit_of_the_process_makes_opening_fail_and_nothing_else(void **state) {
	(void)state;
	for (rlim_t limit = 0; limit <= 64 * 4096; limit += 4096)
		assert_int_equal(open_with_limit(RLIMIT_FSIZE, limit), -EFBIG);
	assert_int_equal(open_with_limit(RLIMIT_FSIZE, 1 << 20), 0);
	for (rlim_t limit = 0; limit < 3; limit++)
		assert_int_equal(open_with_limit(RLIMIT_NOFILE, limit), -EMFILE);
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) // they need the memory
	assert_int_equal(open_with_limit(RLIMIT_AS, 4096), -ENOMEM);
	assert_int_equal(open_with_limit(RLIMIT_AS, 0), -ENOMEM);
#endif
}

static void a_file_size_signal_of_the_program_stays_pending(void **state) {
	const struct rlimit small = {4096, 4096};
	struct tocsin_job_config config = {.struct_size = sizeof(config), .socket_path = NOWHERE};
	struct tocsin_job *job;
	sigset_t set, pending;
	int status;
	pid_t child = fork();

	(void)state;
	assert_true(child >= 0);
	if (child == 0) {
		sigemptyset(&set);
		sigaddset(&set, SIGXFSZ);
		sigprocmask(SIG_BLOCK, &set, NULL);
		raise(SIGXFSZ);
		setrlimit(RLIMIT_FSIZE, &small);
		if (tocsin_job_open(&config, &job) != -EFBIG)
			_exit(1);
		_exit(sigpending(&pending) == 0 && sigismember(&pending, SIGXFSZ) == 1 ? 0 : 2);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void marks_take_what_they_may_hold(void **state) {
	struct fixture f = begin();

	(void)state;
	assert_int_equal(tocsin_comm_mark(f.comm, TOCSIN_MARK_INIT, 7), 0);
	assert_int_equal(tocsin_comm_mark(f.comm, TOCSIN_MARK_ASYNC_ERROR, 256), -EINVAL);
	assert_int_equal(tocsin_comm_mark(f.comm, TOCSIN_MARK_STARTED_FROM, UINT64_MAX), 0);
	assert_int_equal(tocsin_comm_mark(f.comm, (enum tocsin_mark)99, 1), -EINVAL);
	end(&f);
}

static void a_reason_for_being_busy_has_at_most_23_bytes(void **state) {
	struct fixture f = begin();

	(void)state;
	assert_int_equal(tocsin_job_busy(f.job, UINT64_MAX, "12345678901234567890123"), 0);
	assert_int_equal(tocsin_job_busy(f.job, UINT64_MAX, "123456789012345678901234"), -EINVAL);
	assert_int_equal(tocsin_job_busy(f.job, 1, ""), 0);
	assert_int_equal(tocsin_job_busy(f.job, 0, NULL), 0);
	end(&f);
}

UNIT_GROUP(job_count) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_a_thread_counts_is_read_back_by_kind),
		cmocka_unit_test(what_two_ranks_do_counts_in_its_kind_alone),
		cmocka_unit_test(a_kind_that_is_none_counts_as_other),
		cmocka_unit_test(a_counter_of_the_callers_adds_to_the_threads),
		cmocka_unit_test(a_reader_never_sees_more_completed_than_launched),
		cmocka_unit_test(a_thread_that_ends_leaves_its_slot_and_its_counts),
		cmocka_unit_test(more_threads_than_slots_lose_no_count),
		cmocka_unit_test(what_a_child_counts_is_not_the_parents),
		cmocka_unit_test(ten_thousand_communicators_leave_nothing_behind),
		cmocka_unit_test(what_no_communicator_can_be_is_refused),
		cmocka_unit_test(a_process_has_at_most_127_communicators),
		cmocka_unit_test(without_an_agent_the_job_is_alone_and_knows_where_it_looked),
		cmocka_unit_test(a_thousand_unregisters_between_two_polls_keep_the_connection),
		cmocka_unit_test(structs_are_written_within_the_size_that_the_caller_set),
		cmocka_unit_test(an_event_of_a_newer_agent_is_ignored_and_the_next_one_arrives),
		cmocka_unit_test(an_agent_of_version_1_is_named_with_its_version),
		cmocka_unit_test(a_limit_of_the_process_makes_opening_fail_and_nothing_else),
		cmocka_unit_test(a_file_size_signal_of_the_program_stays_pending),
		cmocka_unit_test(marks_take_what_they_may_hold),
		cmocka_unit_test(a_reason_for_being_busy_has_at_most_23_bytes),
	};

	return cmocka_run_group_tests_name("job_count", tests, NULL, NULL);
}
