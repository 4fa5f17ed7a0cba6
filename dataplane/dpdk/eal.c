// SPDX-License-Identifier: BSD-3-Clause
// Starts and stops EAL. Global state, as in EAL itself.
#include "dpdk/eal_directory.h"
#include "dpdk/eal_plugins.h"

#include <dataplane/dpdk.h>
#include <dataplane/eal.h>
#include <dataplane/foreign_error.h>
#include <lib/clock.h>
#include <lib/cpu_set.h>
#include <lib/error.h>
#include <lib/must.h>
#include <lib/thread.h>

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define ARGUMENTS_MAX 16
#define DESCRIPTORS 16 // more than EAL opens
#define LCORES_BYTES 512

enum eal_state {
	EAL_NEVER,
	EAL_RUNS,
	EAL_ENDED, // cannot be started again
};

static _Atomic int state = EAL_NEVER; // control: read and write, others: read only
static eal_log_fn *log_line;
static FILE *log_stream;

struct start {
	struct eal_facts facts;
	char memory[16];
	char lcores[LCORES_BYTES];
	char *arguments[ARGUMENTS_MAX + 1];
	int count;
	bool loads_drivers;
	int err;
};

// Receive EAL's log. Each call contains whole lines, because EAL flushes after each.
static ssize_t log_write_lines(void *cookie, const char *text, size_t size) {
	const char *line = text;
	const char *end;

	(void)cookie;
	for (; line < text + size; line = end + 1) {
		end = memchr(line, '\n', size - (size_t)(line - text));
		if (end == NULL)
			end = text + size;
		if (log_line != NULL && end > line)
			log_line((uint32_t)rte_log_cur_msg_loglevel(), line, (size_t)(end - line));
	}
	return (ssize_t)size;
}

static void argument_add(struct start *start, const char *argument) {
	must(start->count < ARGUMENTS_MAX);
	// EAL reorders the pointers but does not write to the text
	start->arguments[start->count++] = (char *)argument;
}

static int build_arguments(struct start *start, const struct eal_config *config) {
	struct eal_facts *facts = &start->facts;
	char list[LCORES_BYTES - 8];
	struct cpu_set allowed;
	int err = cpu_set_get_allowed(&allowed);

	if (err != 0)
		return err;
	// EAL's one lcore runs on all processors of the process; EAL's helper threads inherit this.
	// If the list is too long, use only its first processor.
	cpu_set_format(&allowed, list, sizeof(list));
	if (strstr(list, "...") != NULL)
		snprintf(list, sizeof(list), "%u", cpu_set_next(&allowed, 0));
	snprintf(start->lcores, sizeof(start->lcores), "0@(%s)", list);

	facts->huge_pages = config->memory == EAL_MEMORY_HUGE;
	if (config->memory == EAL_MEMORY_AUTO)
		facts->huge_pages = eal_directory_has_huge_page("/sys/kernel/mm/hugepages");
	eal_directory_prefix(config->name, facts->file_prefix, sizeof(facts->file_prefix));
	snprintf(start->memory, sizeof(start->memory), "%u", config->memory_mib);
	argument_add(start, "tocsin");
	if (config->pci) {
		// An allow list with an unused address, so that EAL touches no PCI device.
		argument_add(start, "-a");
		argument_add(start, "0000:00:00.0");
	} else {
		argument_add(start, "--no-pci");
	}
	if (config->bare)
		argument_add(start, "--no-telemetry");
	argument_add(start, "--iova-mode=va");
	argument_add(start, "--lcores");
	argument_add(start, start->lcores);
	argument_add(start, "--file-prefix");
	argument_add(start, facts->file_prefix);
	// --in-memory and --no-huge exclude each other; only the older memory mode works without
	// huge pages.
	if (facts->huge_pages) {
		argument_add(start, "--in-memory");
	} else {
		argument_add(start, "--no-huge");
		argument_add(start, "--no-shconf");
		argument_add(start, "-m");
		argument_add(start, start->memory);
	}
	return 0;
}

static void *eal_init_on_helper(void *argument) {
	struct start *start = argument;
	uint64_t start_ns = clock_monotonic_ns();

	eal_plugins_set_hidden(!start->loads_drivers);
	start->err = dpdk_error_from_errno(rte_eal_init(start->count, start->arguments));
	start->facts.start_ns = clock_monotonic_ns() - start_ns;
	return NULL;
}

// Start EAL on a thread with all signals blocked; EAL's own threads inherit the mask.
static int start_on_helper(struct start *start) {
	pthread_t helper;
	int err = thread_start_masked(NULL, eal_init_on_helper, start, &helper);

	if (err != 0)
		return err;
	pthread_join(helper, NULL);
	return start->err;
}

// Check that enough descriptors are free. EAL's interrupt thread would end the process without
// them. Returns -EMFILE, -ENFILE or another error.
static int check_descriptors(void) {
	int fds[DESCRIPTORS];
	uint32_t count = 0;
	int err = 0;

	while (err == 0 && count < DESCRIPTORS) {
		fds[count] = eventfd(0, EFD_CLOEXEC);
		if (fds[count] < 0)
			err = neg_errno();
		else
			count++;
	}
	while (count > 0)
		close(fds[--count]);
	return err;
}

int eal_start(const struct eal_config *config, struct eal_facts *ret_facts) {
	struct start start = {.loads_drivers = config->loads_drivers};
	int expected = EAL_NEVER;
	int err;

	// Acquire and release: a thread that sees EAL running sees all its data.
	if (!atomic_compare_exchange_strong_explicit(
		    &state, &expected, EAL_ENDED, memory_order_acq_rel, memory_order_acquire
	    ))
		return -EALREADY;
	err = check_descriptors();
	if (err == 0) {
		log_stream =
			fopencookie(NULL, "w", (cookie_io_functions_t){.write = log_write_lines});
		err = log_stream != NULL ? 0 : -ENOMEM;
	}
	if (err == 0) {
		// Redirect EAL's log before the start; else its first lines go to stderr and
		// syslog.
		log_line = config->log;
		err = dpdk_error_from_code(rte_openlog_stream(log_stream));
	}
	if (err == 0)
		err = build_arguments(&start, config);
	if (err == 0)
		err = start_on_helper(&start);
	if (err != 0) {
		// The directory was created before the failure; it is empty if EAL failed early.
		eal_directory_remove(rte_eal_get_runtime_dir());
		return err;
	}
	snprintf(
		start.facts.runtime_dir, sizeof(start.facts.runtime_dir), "%s",
		rte_eal_get_runtime_dir()
	);
	if (config->bare)
		eal_directory_remove(start.facts.runtime_dir);
	atomic_store_explicit(&state, EAL_RUNS, memory_order_release);
	*ret_facts = start.facts;
	return 0;
}

void eal_stop(void) {
	char runtime_dir[PATH_MAX];

	if (!eal_is_running())
		return;
	atomic_store_explicit(&state, EAL_ENDED, memory_order_release);
	snprintf(runtime_dir, sizeof(runtime_dir), "%s", rte_eal_get_runtime_dir());
	(void)rte_eal_cleanup();
	eal_directory_remove(runtime_dir);
	rte_openlog_stream(NULL);
	fclose(log_stream);
	log_stream = NULL;
}

void eal_remove_directory(void) {
	if (eal_is_running())
		eal_directory_remove(rte_eal_get_runtime_dir());
}

bool eal_is_built(void) {
	return true;
}

bool eal_is_running(void) {
	return atomic_load_explicit(&state, memory_order_acquire) == EAL_RUNS;
}

int eal_thread_register(void) {
	return dpdk_error_from_errno(rte_thread_register());
}

void eal_thread_unregister(void) {
	rte_thread_unregister();
}
