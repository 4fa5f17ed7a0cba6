// SPDX-License-Identifier: BSD-3-Clause
// A fabric that exposes memory of a GPU beside its pulse, on a fake libcuda. Peers and its own
// device read it; a fault of only the GPU must be distinguished from one of the agent.
#include "control/fabric/probe_bed.h"
#include "fabric/probing.h"

#include <lib/log.h>
#include <lib/scoped.h>
#include <support/fake_cuda.h>

#include <dlfcn.h>
#include <errno.h>
#include <semaphore.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct fake_cuda *fake_cuda;

// Agent 1 exposes memory of GPU 1, and agent 0 reads it.
static int begin(void **state) {
	(void)state;
	fake_cuda->reset();
	memset(told, 0, sizeof(told));
	bed_open(2, 1);
	bed_link(0, 1, true);
	for (uint32_t n = 0; n < 2; n++)
		bed.agents[n].fakes[0]->delay_ns = 20 * US;
	bed.agents[1].config.cuda = FAKE_CUDA;
	bed.agents[1].config.devices[0].gpu = true;
	bed.agents[1].config.devices[0].gpu_ordinal = 1;
	return 0;
}

static int end(void **state) {
	fake_key_fault(0, FAKE_KEY_SOUND);
	bed_pair_close(state);
	return fake_cuda->contexts_held == 0 && fake_cuda->blocks == 0 ? 0 : -1;
}

// Advance the clock, which stands still while keepers work.
static void pass(uint64_t ns) {
	uint64_t until_ns = clock_now_ns(&bed.clock) + ns;

	bed_until(clock_now_ns(&bed.clock) >= until_ns);
}

static void start(void) {
	bed_start_probing(0);
	bed_start_probing(1);
}

static struct fabric_gpu_path seen(uint32_t observer, uint32_t subject) {
	struct fabric_path_view view;

	return bed_find_path(observer, subject, &view) ? view.gpu : (struct fabric_gpu_path){0};
}

static struct fabric_gpu_view shown(uint32_t agent) {
	struct fabric_device_view view;

	fabric_device_at(bed.agents[agent].fabric, 0, &view);
	return view.gpu;
}

static void until_good(void) {
	bed_until(
		seen(0, 1).seen == FABRIC_GPU_GOOD && seen(1, 1).seen == FABRIC_GPU_GOOD &&
		bed_seen(0, 1) == OBSERVATION_GOOD
	);
}

static const struct gpu_page_facts *page(void) {
	return gpu_page_facts(bed.agents[1].fabric->gpus[0].page);
}

static uint32_t key(void) {
	return bed.agents[1].fabric->nics[0].parts.gpu.remote_key;
}

static void memory_of_a_gpu_is_read_beside_the_pulse_by_peers_and_its_own_device(void **state) {
	(void)state;
	start();
	until_good();
	assert_int_equal(shown(1).state, FABRIC_GPU_SHOWN);
	assert_int_equal(shown(1).ordinal, 1);
	assert_string_equal(shown(1).pci, "0000:1b:00.0");
	assert_int_equal(shown(0).state, FABRIC_GPU_NONE);
	assert_int_equal(seen(0, 1).ordinal, 1);
	assert_false(seen(1, 0).shown);
	pass(60 * SEC);
	assert_in_range(seen(0, 1).probes, 10, 20);
	assert_in_range(bed_probes(0).gpu_sent, 10, 20);
	assert_in_range(seen(0, 1).median_ns, 20 * US, 2000 * US);
	assert_int_equal(bed_probes(0).gpu_lost + bed_probes(0).gpu_refused, 0);
	assert_int_equal(bed_seen(0, 1), OBSERVATION_GOOD);
	assert_int_equal(fake_cuda->contexts_held, 1);
}

static void a_page_that_cannot_be_had_is_said_why_and_shown_once_it_can(void **state) {
	(void)state;
	fake_cuda->export_error = 801;
	start();
	bed_until(shown(1).state == FABRIC_GPU_MISSING);
	assert_string_equal(
		shown(1).reason, "cuMemGetHandleForAddressRange: CUDA_ERROR_NOT_SUPPORTED (801)"
	);
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
	assert_int_equal(bed_device(1), FABRIC_DEVICE_UP);
	assert_false(seen(0, 1).shown);
	assert_int_equal(fake_cuda->contexts_held, 0);
	fake_cuda->export_error = 0;
	pass(31 * SEC);
	until_good();
	assert_string_equal(shown(1).reason, "");
}

static void where_there_is_no_libcuda_the_rail_is_up_without_it(void **state) {
	(void)state;
	bed.agents[1].config.cuda = "/nowhere/libcuda.so.1";
	start();
	bed_until(shown(1).state == FABRIC_GPU_MISSING);
	assert_string_equal(shown(1).reason, "/nowhere/libcuda.so.1 cannot be loaded");
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
	pass(40 * SEC);
	assert_int_equal(bed_probes(0).gpu_sent, 0);
}

static void a_device_that_takes_no_dmabuf_says_so_and_is_asked_again(void **state) {
	(void)state;
	bed.agents[1].fakes[0]->no_dmabuf = true;
	start();
	bed_until(shown(1).state == FABRIC_GPU_MISSING);
	assert_string_equal(shown(1).reason, "dmabuf: ibv_reg_dmabuf_mr failed with EOPNOTSUPP");
	assert_string_equal(shown(1).pci, "0000:1b:00.0");
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
	bed.agents[1].fakes[0]->no_dmabuf = false;
	pass(31 * SEC);
	until_good();
}

// A clock that is ahead of the log's own. Each reading is an hour later, so that the log suppresses
// no repeated event.
static uint64_t later_ns(void) {
	static uint64_t now_ns = UINT64_C(1) << 60;

	now_ns += 3600 * SEC;
	return now_ns;
}

// Regression: a failure without a reason was logged again with each retry.
static void a_failure_without_a_reason_is_logged_once(void **state) {
	static struct nic_work work;
	scoped_fd int fd = memfd_create("log", MFD_CLOEXEC);
	const struct log_sink sink = {.fd = fd, .monotonic_ns = later_ns, .realtime_ns = later_ns};
	struct keeper_request *offering;
	const char *first;
	char text[16384];
	ssize_t size;

	(void)state;
	start();
	until_good();
	offering = &bed.agents[1].fabric->nics[0].offering;
	log_set_sink(&sink);
	for (uint32_t n = 0; n < 3; n++)
		offering->ended(offering, &work, -ENOMEM);
	log_set_sink(NULL);
	size = pread(fd, text, sizeof(text) - 1, 0);
	assert_true(size > 0);
	text[size] = '\0';
	first = strstr(text, "rdma_device_gpu device=rdma2 ");
	assert_non_null(first);
	assert_null(strstr(first + 1, "rdma_device_gpu "));
}

static void memory_that_cannot_be_reached_any_more_is_the_gpus_and_not_the_paths(void **state) {
	static const struct {
		enum fake_key_fault fault;
		enum fabric_gpu_seen seen;
	} rows[] = {
		{FAKE_KEY_REFUSED, FABRIC_GPU_REFUSED},
		{FAKE_KEY_SILENT, FABRIC_GPU_SILENT},
	};

	(void)state;
	start();
	until_good();
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		uint64_t sent;

		told[0].silent[1] = told[1].silent[1] = 0;
		fake_key_fault(key(), rows[n].fault);
		bed_until(seen(0, 1).seen == rows[n].seen && seen(1, 1).seen == rows[n].seen);
		sent = bed_probes(0).gpu_sent;
		pass(60 * SEC);
		// Each lost read costs the pair, so there are few.
		assert_in_range(bed_probes(0).gpu_sent - sent, 1, 4);
		assert_int_equal(bed_seen(0, 1), OBSERVATION_GOOD);
		assert_int_equal(told[0].silent[1] + told[1].silent[1], 0);
		fake_key_fault(0, FAKE_KEY_SOUND);
		bed_until(seen(0, 1).seen == FABRIC_GPU_GOOD && seen(1, 1).seen == FABRIC_GPU_GOOD);
	}
	assert_true(bed_probes(0).gpu_refused >= 2 && bed_probes(0).gpu_lost >= 2);
}

// Such contents are read from a GPU that fell off the bus.
static void memory_that_says_something_else_is_wrong_and_costs_no_pair(void **state) {
	uint32_t generation;
	uint64_t *words;

	(void)state;
	start();
	until_good();
	generation = bed_fabric_pair(0, 1)->generation;
	words = (void *)(uintptr_t)page()->address; // NOLINT(performance-no-int-to-ptr)
	memset(words, 0xff, GPU_PAGE_BYTES);
	bed_until(seen(0, 1).seen == FABRIC_GPU_WRONG && seen(1, 1).seen == FABRIC_GPU_WRONG);
	assert_int_equal(bed_fabric_pair(0, 1)->generation, generation);
	assert_int_equal(bed_seen(0, 1), OBSERVATION_GOOD);
	assert_true(bed_probes(0).gpu_wrong >= 2);
	for (size_t n = 0; n < GPU_PAGE_BYTES / sizeof(words[0]); n++)
		words[n] = page()->word;
	until_good();
}

static void a_peer_that_is_silent_is_not_blamed_on_its_gpu(void **state) {
	(void)state;
	start();
	until_good();
	fake_device_cut(bed.agents[1].fakes[0], true);
	bed_until(bed_seen(0, 1) == OBSERVATION_SILENT);
	pass(60 * SEC);
	assert_int_equal(seen(0, 1).seen, FABRIC_GPU_GOOD);
	assert_int_equal(seen(0, 1).silent, 0);
	fake_device_cut(bed.agents[1].fakes[0], false);
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
	pass(30 * SEC);
	assert_int_equal(seen(0, 1).seen, FABRIC_GPU_GOOD);
}

static void a_device_that_was_lost_shows_the_page_again_when_it_is_back(void **state) {
	uint32_t before;

	(void)state;
	start();
	until_good();
	before = key();
	fake_device_lose(bed.agents[1].fakes[0]);
	bed_until(shown(1).state == FABRIC_GPU_AWAITED);
	fake_device_return(bed.agents[1].fakes[0]);
	bed_until(shown(1).state == FABRIC_GPU_SHOWN);
	assert_int_not_equal(key(), before);
	bed_until(seen(0, 1).probes > 3 && bed_seen(0, 1) == OBSERVATION_GOOD);
	until_good();
	assert_int_equal(seen(0, 1).refused, 0);
}

static void two_rails_of_one_gpu_show_one_page(void **state) {
	struct fabric_path_view view;
	uint32_t cursor = 0, found = 0;

	bed_pair_close(state);
	bed_open(1, 2);
	bed.agents[0].config.cuda = FAKE_CUDA;
	for (uint32_t n = 0; n < 2; n++)
		bed.agents[0].config.devices[n].gpu = true;
	bed_start_probing(0);
	bed_until(bed_is_ready(0, 0));
	pass(30 * SEC);
	while (fabric_path_next(bed.agents[0].fabric, &cursor, &view))
		found += view.gpu.shown && view.gpu.seen == FABRIC_GPU_GOOD;
	assert_int_equal(found, 2);
	assert_int_equal(fake_cuda->blocks, 1);
}

// A hanging libcuda.

static sem_t in, out;

static void hang(void) {
	sem_post(&in);
	sem_wait(&out);
}

static void a_libcuda_that_hangs_is_told_and_holds_no_rail_up(void **state) {
	(void)state;
	sem_init(&in, 0, 0);
	sem_init(&out, 0, 0);
	fake_cuda->entered = hang;
	bed.gpus_hang = true;
	start();
	sem_wait(&in);
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
	assert_int_equal(shown(1).state, FABRIC_GPU_AWAITED);
	pass(31 * SEC);
	assert_int_equal(shown(1).state, FABRIC_GPU_STUCK);
	assert_string_equal(shown(1).reason, "a call into libcuda does not return");
	fake_cuda->entered = NULL;
	bed.gpus_hang = false;
	sem_post(&out);
	until_good();
}

static void a_libcuda_that_hangs_holds_the_end_up_for_its_limit_alone(void **state) {
	uint64_t before_ns;

	(void)state;
	sem_init(&in, 0, 0);
	sem_init(&out, 0, 0);
	fake_cuda->entered = hang;
	bed.gpus_hang = true;
	start();
	sem_wait(&in);
	bed_until(bed_seen(0, 1) == OBSERVATION_GOOD);
	before_ns = clock_now_ns(&bed.clock);
	bed_stop(1);
	bed_until(bed.agents[1].stopped);
	assert_in_range(clock_now_ns(&bed.clock) - before_ns, FABRIC_STOP_NS, FABRIC_STOP_NS + SEC);
	bed_destroy(1);
	fake_cuda->entered = NULL;
	bed.gpus_hang = false;
	sem_post(&out);
	// The thread that was left behind frees what it creates.
	while (fake_cuda->ends == 0)
		bed_turn();
}

static void whatever_allocation_fails_the_fabric_is_whole_or_not_there(void **state) {
	(void)state;
	for (uint32_t nth = 1;; nth++) {
		bed_fail_allocation(nth);
		if (fabric_create(
			    bed.loop, bed.agents[1].overlay, &bed.agents[1].config,
			    &bed.agents[1].fabric
		    ) == 0) {
			pass(2 * SEC);
			bed_fail_allocation(0);
			pass(31 * SEC);
			bed_until(shown(1).state == FABRIC_GPU_SHOWN);
			bed_stop(1);
			bed_until(bed.agents[1].stopped);
			bed_destroy(1);
			bed.agents[1].stopped = false;
		}
		assert_int_equal(fake_cuda->contexts_held, 0);
		if (!bed_allocation_failed())
			break;
	}
}

static int load(void **state) {
	void *library = dlopen(FAKE_CUDA, RTLD_NOW);

	fake_cuda = library != NULL ? dlsym(library, "fake_cuda") : NULL;
	return fake_cuda != NULL ? rcu_group_begin(state) : -1;
}

#define GPU(name) cmocka_unit_test_setup_teardown(name, begin, end)

UNIT_GROUP(fabric_gpu) {
	static const struct CMUnitTest tests[] = {
		GPU(memory_of_a_gpu_is_read_beside_the_pulse_by_peers_and_its_own_device),
		GPU(a_page_that_cannot_be_had_is_said_why_and_shown_once_it_can),
		GPU(where_there_is_no_libcuda_the_rail_is_up_without_it),
		GPU(a_device_that_takes_no_dmabuf_says_so_and_is_asked_again),
		GPU(a_failure_without_a_reason_is_logged_once),
		GPU(memory_that_cannot_be_reached_any_more_is_the_gpus_and_not_the_paths),
		GPU(memory_that_says_something_else_is_wrong_and_costs_no_pair),
		GPU(a_peer_that_is_silent_is_not_blamed_on_its_gpu),
		GPU(a_device_that_was_lost_shows_the_page_again_when_it_is_back),
		GPU(two_rails_of_one_gpu_show_one_page),
		GPU(a_libcuda_that_hangs_is_told_and_holds_no_rail_up),
		GPU(a_libcuda_that_hangs_holds_the_end_up_for_its_limit_alone),
		GPU(whatever_allocation_fails_the_fabric_is_whole_or_not_there),
	};

	return cmocka_run_group_tests(tests, load, rcu_group_end);
}
