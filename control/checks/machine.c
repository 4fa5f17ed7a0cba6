// SPDX-License-Identifier: BSD-3-Clause
// Checks of the agent's memory, the machine's memory pressure, and the file system of the state
// directory.
#include "checks/builtin.h"

#include <lib/error.h>
#include <lib/fields.h>
#include <lib/scoped.h>
#include <lib/show.h>

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/statvfs.h>
#include <unistd.h>

#define PATH_BYTES 256
#define TEXT_BYTES 512
#define PAGES_MAX (UINT64_C(1) << 50)
// Thousandths of a per cent of a minute in which all tasks waited for memory.
#define PRESSURE_MAX 10000
#define AVERAGE "\nfull "
#define MINUTE "avg60="

__attribute__((format(printf, 3, 4))) static void check_result_format(
	struct check_level_words *words, enum check_level level, const char *format, ...
) {
	va_list arguments;

	words->level = level;
	va_start(arguments, format);
	vsnprintf(words->evidence, sizeof(words->evidence), format, arguments);
	va_end(arguments);
}

static int proc_file_read(const char *proc, const char *name, char text[static TEXT_BYTES]) {
	char path[PATH_BYTES];
	scoped_fd int fd = -1;
	ssize_t got;

	snprintf(path, sizeof(path), "%s/%s", proc, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	got = fd < 0 ? -1 : read(fd, text, TEXT_BYTES - 1);
	if (got < 0)
		return neg_errno();
	text[got] = '\0';
	return 0;
}

void builtin_judge_memory(
	const char *proc, uint64_t max_bytes, struct check_level_words *ret_words
) {
	char text[TEXT_BYTES], now[SHOW_BYTES], max[SHOW_BYTES];
	uint64_t all, pages, bytes;
	const char *at = text;

	if (proc_file_read(proc, "self/statm", text) != 0 ||
	    !field_read_u64(&at, PAGES_MAX, &all) || !field_read_u64(&at, PAGES_MAX, &pages)) {
		check_result_format(ret_words, CHECK_UNKNOWN, "%s/self/statm cannot be read", proc);
		return;
	}
	bytes = pages * (uint64_t)sysconf(_SC_PAGESIZE);
	show_bytes(bytes, now);
	show_bytes(max_bytes, max);
	if (max_bytes > 0 && bytes > max_bytes)
		check_result_format(
			ret_words, CHECK_WARNING, "the agent uses %s of memory, more than %s", now,
			max
		);
	else
		check_result_format(ret_words, CHECK_OK, "the agent uses %s of memory", now);
}

void builtin_judge_pressure(const char *proc, struct check_level_words *ret_words) {
	const char *full, *word;
	char text[TEXT_BYTES];
	uint32_t share; // thousandths of a per cent
	size_t size;
	int err = proc_file_read(proc, "pressure/memory", text);

	if (err != 0) { // the kernel has no pressure information, or it is disabled
		check_result_format(
			ret_words, CHECK_OK, "this kernel does not report memory pressure"
		);
		return;
	}
	full = strstr(text, AVERAGE);
	if (full != NULL)
		full += strlen(AVERAGE);
	// avg10 precedes avg60.
	if (full == NULL || !field_next(&full, &word, &size) || !field_next(&full, &word, &size) ||
	    size <= strlen(MINUTE) || memcmp(word, MINUTE, strlen(MINUTE)) != 0 ||
	    !thousandths_parse(word + strlen(MINUTE), size - strlen(MINUTE), &share)) {
		check_result_format(
			ret_words, CHECK_UNKNOWN, "%s/pressure/memory cannot be parsed", proc
		);
		return;
	}
	check_result_format(
		ret_words, share > PRESSURE_MAX ? CHECK_WARNING : CHECK_OK,
		"all tasks waited for memory during %.1f%% of the last minute", share / 1000.0
	);
}

void builtin_read_disk(const char *directory, struct builtin_disk *ret_disk) {
	struct builtin_disk disk = {.err = 0};
	struct statvfs facts;

	if (statvfs(directory, &facts) != 0) {
		disk.err = neg_errno();
	} else {
		disk.read_only = (facts.f_flag & ST_RDONLY) != 0;
		disk.free_bytes = (uint64_t)facts.f_bavail * facts.f_frsize;
		disk.files = facts.f_files;
		disk.free_files = facts.f_favail;
	}
	*ret_disk = disk;
}

void builtin_judge_disk(
	const struct builtin_disk *disk,
	const char *directory,
	uint64_t free_min_bytes,
	struct check_level_words *ret_words
) {
	char now[SHOW_BYTES], min[SHOW_BYTES];

	show_bytes(disk->free_bytes, now);
	show_bytes(free_min_bytes, min);
	if (disk->err != 0)
		check_result_format(
			ret_words, CHECK_UNKNOWN, "%.80s: %s", directory,
			strerrordesc_np(-disk->err)
		);
	else if (disk->read_only)
		check_result_format(
			ret_words, CHECK_WARNING, "the file system of %.80s is read-only", directory
		);
	else if (disk->free_bytes < free_min_bytes)
		check_result_format(
			ret_words, CHECK_WARNING, "%s are free in %.80s, less than %s", now,
			directory, min
		);
	else if (disk->files > 0 && disk->free_files == 0)
		check_result_format(
			ret_words, CHECK_WARNING, "%.80s has no free inode for another file",
			directory
		);
	else
		check_result_format(ret_words, CHECK_OK, "%s are free", now);
}
