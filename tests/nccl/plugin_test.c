// SPDX-License-Identifier: BSD-3-Clause
// Tests of the NCCL plugin in a process that calls it as NCCL does, and as NCCL never should. The
// counts are read like an agent does: from the memory file that the plugin created.
#include <tocsin/job.h>
#include <tocsin/job_page.h>

#include <abi.h>
#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#define THREADS 64
#define PER_THREAD 2000u
#define KERNELS "kernels-always"

static const char *plugin_path;

struct host {
	void *library;
	const struct nccl_profiler *table;
	int mask;
	void *context;
};

static void host_load(struct host *host, int version, const char *level) {
	char name[32];

	memset(host, 0, sizeof(*host));
	(void)setenv("TOCSIN_NCCL_LEVEL", level, 1);
	snprintf(name, sizeof(name), "ncclProfiler_v%d", version);
	host->library = dlopen(plugin_path, RTLD_NOW | RTLD_LOCAL);
	assert_non_null(host->library);
	host->table = dlsym(host->library, name);
	assert_non_null(host->table);
}

static void *init(struct host *host, uint64_t hash, int ranks, int rank) {
	void *context = NULL;

	assert_int_equal(
		host->table->init_5(&context, hash, &host->mask, "world", 1, ranks, rank, NULL), 0
	);
	return context;
}

static void host_begin(struct host *host, const char *level) {
	host_load(host, 5, level);
	host->context = init(host, 0x1234, 2, 0);
	assert_non_null(host->context);
}

static void host_end(struct host *host) {
	assert_int_equal(host->table->finalize(host->context), 0);
	dlclose(host->library);
}

static void *
start(const struct host *host, void *context, const struct nccl_descriptor *descriptor) {
	void *handle = NULL;

	assert_int_equal(host->table->start(context, &handle, descriptor), 0);
	return handle;
}

static void *launch(const struct host *host, void *context, uint8_t channels) {
	struct nccl_descriptor group = {.type = NCCL_GROUP};
	struct nccl_descriptor coll = {
		.type = NCCL_COLL,
		.coll_4 =
			{
				.func = "AllReduce",
				.datatype = "ncclFloat32",
				.count = 10,
				.channels = channels,
			},
	};

	assert_null(start(host, context, &group));
	return start(host, context, &coll);
}

static void *kernel_begin(const struct host *host, void *operation, uint8_t channel) {
	struct nccl_descriptor kernel = {
		.type = NCCL_KERNEL_CH,
		.parent = operation,
		.kernel_ch.channel = channel,
	};

	return start(host, host->context, &kernel);
}

static void stop(const struct host *host, void *handle) {
	assert_int_equal(host->table->stop(handle), 0);
}

static bool page_copy(const char *path, struct job_page *ret_page) {
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t length = pread(fd, ret_page, sizeof(*ret_page), 0);

	close(fd);
	return length == (ssize_t)sizeof(*ret_page);
}

// Find the page of this process by its name among the open descriptors. Returns false if there is
// none.
static bool page_find(char path[static 300]) {
	DIR *directory = opendir("/proc/self/fd");
	struct dirent *entry;
	bool found = false;

	assert_non_null(directory);
	while (!found && (entry = readdir(directory)) != NULL) {
		char target[64] = "";
		ssize_t length;

		snprintf(path, 300, "/proc/self/fd/%s", entry->d_name);
		length = readlink(path, target, sizeof(target) - 1);
		found = length > 0 && strstr(target, "memfd:tocsin") != NULL;
	}
	closedir(directory);
	return found;
}

static bool page_read(struct job_page *ret_page) {
	char path[300];

	return page_find(path) && page_copy(path, ret_page);
}

struct counts {
	uint64_t launched, started, completed, started_from, completed_from;
};

// Read the counts of all communicators together; the marks are those of the last one.
static struct counts counts_read(void) {
	struct job_page *page = malloc(sizeof(*page));
	struct counts counts = {0};

	assert_non_null(page);
	assert_true(page_read(page));
	for (uint32_t n = 0; n < JOB_SLOTS; n++) {
		if (page->launched[n].counts.comm == 0)
			continue;
		counts.launched += page->launched[n].counts.total;
		counts.started += page->started[n].counts.total;
		counts.completed += page->completed[n].counts.total;
		if (page->launched[n].marks.started_from > counts.started_from)
			counts.started_from = page->launched[n].marks.started_from;
		if (page->launched[n].marks.completed_from > counts.completed_from)
			counts.completed_from = page->launched[n].marks.completed_from;
	}
	free(page);
	return counts;
}

static void assert_counts(uint64_t launched, uint64_t started, uint64_t completed) {
	struct counts counts = counts_read();

	assert_int_equal(counts.launched, launched);
	assert_int_equal(counts.started, started);
	assert_int_equal(counts.completed, completed);
}

static uint32_t entries(const char *path) {
	DIR *directory = opendir(path);
	uint32_t count = 0;

	assert_non_null(directory);
	while (readdir(directory) != NULL)
		count++;
	closedir(directory);
	return count;
}

static void a_launch_is_counted_and_nothing_else_is_told_at_that_level(void **state) {
	struct host host;

	(void)state;
	host_begin(&host, "launches");
	assert_int_equal(host.mask, NCCL_COLL | NCCL_P2P);
	assert_null(launch(&host, host.context, 2));
	assert_counts(1, 0, 0);
	assert_true(counts_read().started_from == UINT64_MAX);
	assert_true(counts_read().completed_from == UINT64_MAX);
	host_end(&host);
}

static void kernels_start_an_operation_and_the_last_one_completes_it(void **state) {
	struct host host;
	void *operation, *kernels[2];

	(void)state;
	host_begin(&host, KERNELS);
	operation = launch(&host, host.context, 2);
	assert_non_null(operation);
	assert_counts(1, 0, 0);
	assert_true(counts_read().started_from == UINT64_MAX); // nothing is known yet
	kernels[0] = kernel_begin(&host, operation, 0);
	assert_counts(1, 1, 0);
	assert_int_equal(counts_read().started_from, 1);
	kernels[1] = kernel_begin(&host, operation, 1);
	stop(&host, operation);
	stop(&host, kernels[1]);
	assert_counts(1, 1, 0);
	stop(&host, kernels[0]);
	assert_counts(1, 1, 1);
	host_end(&host);
}

static void what_is_stopped_twice_counts_once(void **state) {
	struct host host;
	void *operation, *kernel;

	(void)state;
	host_begin(&host, KERNELS);
	operation = launch(&host, host.context, 2);
	kernel = kernel_begin(&host, operation, 0);
	stop(&host, kernel);
	stop(&host, kernel);
	stop(&host, operation);
	stop(&host, operation);
	assert_null(kernel_begin(&host, operation, 0)); // a channel starts only once
	assert_counts(1, 1, 0);
	host_end(&host);
}

static void completion_follows_the_order_of_operations(void **state) {
	struct host host;
	void *first, *second, *kernels[2];

	(void)state;
	host_begin(&host, KERNELS);
	first = launch(&host, host.context, 1);
	second = launch(&host, host.context, 1);
	kernels[0] = kernel_begin(&host, first, 0);
	kernels[1] = kernel_begin(&host, second, 0);
	stop(&host, kernels[1]);
	assert_counts(2, 2, 0);
	stop(&host, kernels[0]);
	assert_counts(2, 2, 2);
	host_end(&host);
}

static void an_operation_without_channels_is_done_when_a_later_one_is(void **state) {
	struct host host;
	void *operation;

	(void)state;
	host_begin(&host, KERNELS);
	operation = launch(&host, host.context, 1);
	stop(&host, kernel_begin(&host, operation, 0));
	assert_counts(1, 1, 1);
	launch(&host, host.context, 0);
	assert_counts(2, 1, 1);
	assert_true(counts_read().completed_from == UINT64_MAX); // nothing reports its completion
	operation = launch(&host, host.context, 1);
	assert_int_equal(counts_read().completed_from, 3);
	assert_counts(3, 1, 1);
	stop(&host, kernel_begin(&host, operation, 0));
	assert_counts(3, 3, 3);
	host_end(&host);
}

static void a_mask_that_others_changed_is_believed(void **state) {
	struct host host;
	void *operation;

	(void)state;
	host_begin(&host, KERNELS);
	operation = launch(&host, host.context, 1);
	stop(&host, kernel_begin(&host, operation, 0));
	host.mask = NCCL_COLL | NCCL_P2P; // as the RAS of NCCL 2.31 does
	assert_null(launch(&host, host.context, 1));
	assert_true(counts_read().started_from == UINT64_MAX);
	assert_true(counts_read().completed_from == UINT64_MAX);
	assert_counts(2, 1, 1);
	host_end(&host);
}

// Request a level as the agent does, through a separate descriptor.
static void page_ask(uint8_t level, uint64_t until_ns) {
	uint64_t wanted = job_wanted_pack(level, until_ns);
	char path[300];
	int fd;

	assert_true(page_find(path));
	fd = open(path, O_RDWR | O_CLOEXEC);
	assert_int_equal(
		pwrite(fd, &wanted, sizeof(wanted), offsetof(struct job_page, head.wanted)),
		sizeof(wanted)
	);
	close(fd);
}

// Launch until the plugin has read the agent's request, which takes at most 4096 launches.
static bool mask_becomes(const struct host *host, int wanted) {
	for (uint32_t n = 0; n < 10000 && host->mask != wanted; n++)
		launch(host, host->context, 1);
	return host->mask == wanted;
}

static void a_level_that_the_agent_asks_for_holds_until_its_time_is_over(void **state) {
	const int launches = NCCL_COLL | NCCL_P2P;
	static const struct {
		uint8_t level;
		bool is_over;
		int mask;
	} cases[] = {
		{TOCSIN_LEVEL_KERNELS, false, NCCL_COLL | NCCL_P2P | NCCL_KERNEL_CH},
		{TOCSIN_LEVEL_NETWORK, false, NCCL_COLL | NCCL_P2P | NCCL_PROXY_OP},
		{TOCSIN_LEVEL_KERNELS_ALWAYS, true, NCCL_COLL | NCCL_P2P},
		{TOCSIN_LEVEL_KERNELS_ALWAYS, false, NCCL_COLL | NCCL_P2P | NCCL_KERNEL_CH},
		{TOCSIN_LEVEL_LAUNCHES, false, NCCL_COLL | NCCL_P2P},
		{TOCSIN_LEVEL_KERNELS, false, NCCL_COLL | NCCL_P2P | NCCL_KERNEL_CH},
		{TOCSIN_LEVEL_COUNT, false, NCCL_COLL | NCCL_P2P}, // requested by a newer agent
		{TOCSIN_LEVEL_KERNELS, false, NCCL_COLL | NCCL_P2P | NCCL_KERNEL_CH},
		{UINT8_MAX, false, NCCL_COLL | NCCL_P2P},
	};
	struct host host;

	(void)state;
	host_begin(&host, "launches");
	assert_int_equal(host.mask, launches);
	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		page_ask(cases[n].level, cases[n].is_over ? 1 : UINT64_MAX / 2);
		assert_true(mask_becomes(&host, cases[n].mask));
	}
	host_end(&host);
}

static void what_began_and_ended_is_told_from_the_first_launch_at_a_raised_level_on(void **state) {
	struct host host;
	uint64_t before;

	(void)state;
	host_begin(&host, "launches");
	launch(&host, host.context, 1);
	assert_true(counts_read().started_from == UINT64_MAX);
	page_ask(TOCSIN_LEVEL_KERNELS, UINT64_MAX / 2);
	assert_true(mask_becomes(&host, NCCL_COLL | NCCL_P2P | NCCL_KERNEL_CH));
	before = counts_read().launched;
	// No starts will be reported for these.
	assert_true(counts_read().started_from == UINT64_MAX);
	stop(&host, kernel_begin(&host, launch(&host, host.context, 1), 0));
	assert_counts(before + 1, before + 1, before + 1);
	assert_int_equal(counts_read().started_from, before + 1);
	page_ask(TOCSIN_LEVEL_DEFAULT, 0);
	assert_true(mask_becomes(&host, NCCL_COLL | NCCL_P2P));
	launch(&host, host.context, 1);
	assert_true(counts_read().started_from == UINT64_MAX);
	assert_true(counts_read().completed_from == UINT64_MAX);
	host_end(&host);
}

static void a_communicator_that_begins_at_a_raised_level_has_it_from_its_first_launch(void **state
) {
	struct host host;
	void *second;

	(void)state;
	host_begin(&host, "launches");
	page_ask(TOCSIN_LEVEL_KERNELS, UINT64_MAX / 2);
	second = init(&host, 0x5678, 2, 0);
	assert_int_equal(host.mask, NCCL_COLL | NCCL_P2P | NCCL_KERNEL_CH);
	assert_int_equal(host.table->finalize(second), 0);
	host_end(&host);
}

static void proxies_complete_an_operation_at_the_network_level(void **state) {
	struct host host;
	struct nccl_descriptor proxy = {.type = NCCL_PROXY_OP, .proxy_op.pid = getpid()};
	void *operation, *proxies[2];

	(void)state;
	host_begin(&host, "network");
	operation = launch(&host, host.context, 2);
	assert_true(counts_read().completed_from == UINT64_MAX); // the operation may have no proxy
	proxy.parent = operation;
	proxies[0] = start(&host, host.context, &proxy);
	proxies[1] = start(&host, host.context, &proxy);
	assert_int_equal(counts_read().completed_from, 1);
	assert_true(counts_read().started_from == UINT64_MAX);
	stop(&host, proxies[0]);
	stop(&host, proxies[0]);
	assert_int_equal(counts_read().completed, 0);
	stop(&host, proxies[1]);
	assert_int_equal(counts_read().completed, 1);
	host_end(&host);
}

static void a_proxy_of_another_process_ends_what_is_told_of_the_network(void **state) {
	struct host host;
	struct nccl_descriptor proxy = {.type = NCCL_PROXY_OP, .proxy_op.pid = getpid()};

	(void)state;
	host_begin(&host, "network");
	proxy.parent = launch(&host, host.context, 2);
	stop(&host, start(&host, host.context, &proxy));
	assert_int_equal(counts_read().completed_from, 1);
	proxy.proxy_op.pid = getppid();
	proxy.parent = (void *)0xdead0;
	assert_null(start(&host, host.context, &proxy));
	assert_true(counts_read().completed_from == UINT64_MAX);
	host_end(&host);
}

static void operations_of_graphs_are_no_part_of_the_sequence(void **state) {
	struct host host;
	struct nccl_descriptor call = {.type = NCCL_COLL_API, .coll_api.graph_captured = true};
	struct nccl_descriptor coll = {.type = NCCL_COLL, .coll_4.func = "AllReduce"};

	(void)state;
	host_begin(&host, "launches");
	coll.parent = start(&host, host.context, &call);
	assert_non_null(coll.parent);
	assert_null(start(&host, host.context, &coll));
	assert_counts(0, 0, 0);
	launch(&host, host.context, 1);
	assert_counts(1, 0, 0);
	host_end(&host);
}

static void numbers_that_come_twice_end_the_following_of_version_four(void **state) {
	struct host host;
	struct nccl_descriptor coll = {
		.type = NCCL_COLL | UINT64_C(0x1234567800000000),
		.coll_4 = {.func = "AllReduce", .sequence = 7},
	};
	struct job_page *page = malloc(sizeof(*page));

	(void)state;
	assert_non_null(page);
	host_load(&host, 4, "launches");
	assert_int_equal(host.table->init_4(&host.context, &host.mask, NULL, 99, 1, 2, 1, NULL), 0);
	start(&host, host.context, &coll);
	assert_counts(1, 0, 0);
	start(&host, host.context, &coll);
	assert_true(page_read(page));
	assert_int_equal(page->launched[0].counts.comm, 0);
	free(page);
	host_end(&host);
}

// Kernels of earlier operations still start and end.
static void what_is_under_way_ends_after_the_following_of_version_four_has(void **state) {
	struct host host;
	struct nccl_descriptor coll = {
		.type = NCCL_COLL,
		.coll_4 = {.func = "AllReduce", .sequence = 7, .channels = 2},
	};
	void *operation, *kernel;

	(void)state;
	host_load(&host, 4, KERNELS);
	assert_int_equal(host.table->init_4(&host.context, &host.mask, NULL, 99, 1, 2, 1, NULL), 0);
	operation = start(&host, host.context, &coll);
	kernel = kernel_begin(&host, operation, 0);
	assert_non_null(kernel);
	start(&host, host.context, &coll);
	stop(&host, kernel);
	assert_null(kernel_begin(&host, operation, 1));
	host_end(&host);
}

static void contexts_handles_and_types_of_nobody_are_passed_over(void **state) {
	static const uint64_t strange[] = {0,
					   1,
					   7,
					   0x1000,
					   0x7fff00000000,
					   UINT64_MAX,
					   0xb4c0000000000000,
					   0xb4d7ffffffffffff};
	struct host host;

	(void)state;
	host_begin(&host, KERNELS);
	for (size_t n = 0; n < sizeof(strange) / sizeof(strange[0]); n++) {
		// NOLINTNEXTLINE(performance-no-int-to-ptr): an invalid address
		void *address = (void *)(uintptr_t)strange[n];

		for (uint32_t type = 1; type < 0x20000; type <<= 1) {
			struct nccl_descriptor event = {.type = type, .parent = address};

			start(&host, address, &event);
			if (type != NCCL_COLL && type != NCCL_P2P)
				start(&host, host.context, &event);
		}
		stop(&host, address);
		assert_int_equal(host.table->state(address, 22, NULL), 0);
		assert_int_equal(host.table->finalize(address), 0);
	}
	assert_counts(0, 0, 0);
	host_end(&host);
}

static void callbacks_after_finalize_are_passed_over(void **state) {
	struct host host;
	void *operation, *kernel;

	(void)state;
	host_begin(&host, KERNELS);
	operation = launch(&host, host.context, 2);
	kernel = kernel_begin(&host, operation, 0);
	assert_int_equal(host.table->finalize(host.context), 0);
	assert_int_equal(host.table->finalize(host.context), 0);
	stop(&host, kernel);
	assert_null(kernel_begin(&host, operation, 1));
	assert_null(launch(&host, host.context, 1));
	// A new communicator reuses the slot and must ignore the rest of the first one.
	host.context = init(&host, 0x999, 2, 0);
	stop(&host, kernel);
	assert_null(kernel_begin(&host, operation, 1));
	assert_counts(0, 0, 0);
	host_end(&host);
}

static void more_communicators_than_have_place_are_not_followed(void **state) {
	static void *contexts[300];
	struct host host;
	uint32_t given = 0;

	(void)state;
	host_begin(&host, "launches");
	for (uint32_t n = 0; n < 300; n++) {
		contexts[n] = init(&host, n + 1, 2, 0);
		given += contexts[n] != NULL;
		launch(&host, contexts[n], 1);
	}
	assert_in_range(given, 100, 299);
	for (uint32_t n = 0; n < 300; n++)
		if (contexts[n] != NULL)
			assert_int_equal(host.table->finalize(contexts[n]), 0);
	assert_counts(0, 0, 0);
	host_end(&host);
}

static void a_child_of_fork_counts_nothing(void **state) {
	struct host host;
	int status;
	pid_t pid;

	(void)state;
	host_begin(&host, "launches");
	launch(&host, host.context, 1);
	pid = fork();
	if (pid == 0) {
		for (int n = 0; n < 1000; n++)
			if (launch(&host, host.context, 1) != NULL)
				_exit(1);
		host.table->finalize(host.context);
		host.context = init(&host, 5, 2, 0); // it may start again
		launch(&host, host.context, 1);
		_exit(host.context != NULL && host.table->finalize(host.context) == 0 ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_counts(1, 0, 0);
	launch(&host, host.context, 1);
	assert_counts(2, 0, 0);
	host_end(&host);
}

static void *init_slowly(void *context) {
	struct host *host = context;

	host->context = init(host, 0x77, 2, 0);
	return NULL;
}

// An agent that accepts the connection and never answers: init waits for it for some time.
static void a_child_of_fork_in_the_midst_of_an_init_may_begin_anew(void **state) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0), fd, status;
	pthread_t thread;
	struct host host;
	pid_t pid;

	(void)state;
	snprintf(
		address.sun_path, sizeof(address.sun_path), "/tmp/tocsin-plugin-%d.sock", getpid()
	);
	assert_int_equal(bind(listener, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(listener, 8), 0);
	(void)setenv("TOCSIN_JOB_SOCKET", address.sun_path, 1);
	host_load(&host, 5, "launches");
	assert_int_equal(pthread_create(&thread, NULL, init_slowly, &host), 0);
	fd = accept(listener, NULL, NULL);
	pid = fork();
	if (pid == 0) {
		void *context = NULL;
		int mask = 0;

		alarm(10);
		(void)host.table->init_5(&context, 5, &mask, "child", 1, 2, 0, NULL);
		_exit(context != NULL && host.table->finalize(context) == 0 ? 0 : 2);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(pthread_join(thread, NULL), 0);
	(void)unsetenv("TOCSIN_JOB_SOCKET");
	(void)unlink(address.sun_path);
	close(fd);
	close(listener);
	host_end(&host);
}

struct worker {
	struct host *host;
	void *context, *shared;
	pthread_t thread;
};

static void *work(void *argument) {
	struct worker *worker = argument;

	for (uint32_t n = 0; n < PER_THREAD; n++) {
		struct nccl_descriptor kernel = {
			.type = NCCL_KERNEL_CH,
			.parent = launch(worker->host, worker->context, 1),
		};
		void *handle = start(worker->host, worker->context, &kernel);

		worker->host->table->stop(handle);
		worker->host->table->stop(handle);
		launch(worker->host, worker->shared, 1);
	}
	return NULL;
}

static void sixty_four_threads_lose_no_count(void **state) {
	struct worker workers[THREADS];
	struct host host;

	(void)state;
	host_begin(&host, KERNELS);
	for (uint32_t n = 0; n < THREADS; n++) {
		workers[n] = (struct worker){
			.host = &host,
			.context = init(&host, n + 1, 2, 0),
			.shared = host.context,
		};
		assert_int_equal(pthread_create(&workers[n].thread, NULL, work, &workers[n]), 0);
	}
	for (uint32_t n = 0; n < THREADS; n++)
		assert_int_equal(pthread_join(workers[n].thread, NULL), 0);
	assert_counts(2 * THREADS * PER_THREAD, THREADS * PER_THREAD, THREADS * PER_THREAD);
	for (uint32_t n = 0; n < THREADS; n++)
		assert_int_equal(host.table->finalize(workers[n].context), 0);
	host_end(&host);
}

static void a_thousand_loads_leave_nothing_behind(void **state) {
	uint32_t descriptors = 0, threads = 0;
	struct host host;

	(void)state;
	for (uint32_t n = 0; n < 1000; n++) {
		host_begin(&host, KERNELS);
		stop(&host, kernel_begin(&host, launch(&host, host.context, 1), 0));
		host_end(&host);
		if (n == 0) {
			descriptors = entries("/proc/self/fd");
			threads = entries("/proc/self/task");
		}
	}
	assert_int_equal(entries("/proc/self/fd"), descriptors);
	assert_int_equal(entries("/proc/self/task"), threads);
}

int main(int argc, char **argv) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_launch_is_counted_and_nothing_else_is_told_at_that_level),
		cmocka_unit_test(kernels_start_an_operation_and_the_last_one_completes_it),
		cmocka_unit_test(what_is_stopped_twice_counts_once),
		cmocka_unit_test(completion_follows_the_order_of_operations),
		cmocka_unit_test(an_operation_without_channels_is_done_when_a_later_one_is),
		cmocka_unit_test(a_mask_that_others_changed_is_believed),
		cmocka_unit_test(a_level_that_the_agent_asks_for_holds_until_its_time_is_over),
		cmocka_unit_test(
			what_began_and_ended_is_told_from_the_first_launch_at_a_raised_level_on
		),
		cmocka_unit_test(
			a_communicator_that_begins_at_a_raised_level_has_it_from_its_first_launch
		),
		cmocka_unit_test(proxies_complete_an_operation_at_the_network_level),
		cmocka_unit_test(a_proxy_of_another_process_ends_what_is_told_of_the_network),
		cmocka_unit_test(operations_of_graphs_are_no_part_of_the_sequence),
		cmocka_unit_test(numbers_that_come_twice_end_the_following_of_version_four),
		cmocka_unit_test(what_is_under_way_ends_after_the_following_of_version_four_has),
		cmocka_unit_test(contexts_handles_and_types_of_nobody_are_passed_over),
		cmocka_unit_test(callbacks_after_finalize_are_passed_over),
		cmocka_unit_test(more_communicators_than_have_place_are_not_followed),
		cmocka_unit_test(a_child_of_fork_counts_nothing),
		cmocka_unit_test(a_child_of_fork_in_the_midst_of_an_init_may_begin_anew),
		cmocka_unit_test(sixty_four_threads_lose_no_count),
		cmocka_unit_test(a_thousand_loads_leave_nothing_behind),
	};

	if (argc != 2) {
		fprintf(stderr, "usage: %s PLUGIN\n", argv[0]);
		return 2;
	}
	plugin_path = argv[1];
	return cmocka_run_group_tests(tests, NULL, NULL);
}
