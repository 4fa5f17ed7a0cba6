// SPDX-License-Identifier: BSD-3-Clause
// The process_* metrics, with the names and units of Prometheus' client libraries. They are read
// when the page is written, so they are right even if the control thread hangs.
#include "feeds/http/metrics_page.h"

#include <lib/proc_stat.h>

#include <dirent.h>
#include <inttypes.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

static void number_write(FILE *out, const char *name, const char *help, double value) {
	page_family(out, true, name, "gauge", help);
	fprintf(out, "%s %.0f\n", name, value);
}

static uint64_t open_files_count(void) {
	DIR *directory = opendir("/proc/self/fd");
	uint64_t count = 0;

	// NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread reads this stream
	while (directory != NULL && readdir(directory) != NULL)
		count++;
	if (directory != NULL)
		closedir(directory);
	return count > 3 ? count - 3 : 0; // ".", ".." and the directory itself
}

static void memory_write(FILE *out) {
	FILE *file = fopen("/proc/self/statm", "re");
	double page_bytes = (double)sysconf(_SC_PAGESIZE);
	uint64_t total, resident;

	if (file == NULL)
		return;
	if (fscanf(file, "%" SCNu64 " %" SCNu64, &total, &resident) == 2) {
		number_write(
			out, "process_virtual_memory_bytes", "virtual memory of the agent",
			(double)total * page_bytes
		);
		number_write(
			out, "process_resident_memory_bytes", "resident memory of the agent",
			(double)resident * page_bytes
		);
	}
	fclose(file);
}

// Return the time of day at which the machine booted, in seconds.
static double boot_seconds(void) {
	struct timespec now, up;

	clock_gettime(CLOCK_REALTIME, &now);
	clock_gettime(CLOCK_BOOTTIME, &up);
	return (double)(now.tv_sec - up.tv_sec) + (double)(now.tv_nsec - up.tv_nsec) / 1e9;
}

void page_process(bool open_metrics, FILE *out) {
	struct proc_stat stat;
	struct rlimit files;

	if (proc_stat_read(getpid(), &stat) == 0) {
		page_family(
			out, open_metrics, "process_cpu_seconds", "counter",
			"user and system time of the agent"
		);
		fprintf(out, "process_cpu_seconds_total %.2f\n", (double)stat.cpu_ns / 1e9);
		number_write(
			out, "process_start_time_seconds", "start of the agent, as UNIX time",
			boot_seconds() + (double)stat.start_time / (double)sysconf(_SC_CLK_TCK)
		);
		number_write(
			out, "process_threads", "threads of the agent", (double)stat.thread_count
		);
	}
	memory_write(out);
	number_write(
		out, "process_open_fds", "open file descriptors of the agent",
		(double)open_files_count()
	);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0)
		number_write(
			out, "process_max_fds", "limit of open file descriptors",
			(double)files.rlim_cur
		);
}
