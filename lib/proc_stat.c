// SPDX-License-Identifier: BSD-3-Clause
// Reads /proc/PID/stat.
#include <lib/error.h>
#include <lib/parse.h>
#include <lib/proc_stat.h>
#include <lib/scoped.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define STAT_BYTES 2048
#define PATH_BYTES 256
// Field numbers of proc(5); the first field after the name is 3.
#define FIELD_STATE 3
#define FIELD_PARENT 4
#define FIELD_GROUP 5
#define FIELD_MAJOR_FAULTS 12
#define FIELD_USER_TIME 14
#define FIELD_SYSTEM_TIME 15
#define FIELD_REAPED_USER_TIME 16
#define FIELD_REAPED_SYSTEM_TIME 17
#define FIELD_THREAD_COUNT 20
#define FIELD_START_TIME 22
#define FIELD_BLOCK_WAIT 42
#define FIELD_EXIT_CODE 52

static void parse_fields(const char *at, uint64_t tick_ns, struct proc_stat *stat) {
	for (int field = FIELD_STATE; at != NULL && *at != '\0'; field++) {
		uint64_t number = 0; // of a text or a negative number

		(void)parse_u64(at, strcspn(at, " \n"), 0, UINT64_MAX, NULL, &number);
		if (field == FIELD_STATE)
			stat->state = *at;
		else if (field == FIELD_PARENT)
			stat->parent_pid = (pid_t)number;
		else if (field == FIELD_GROUP)
			stat->group = (pid_t)number;
		else if (field == FIELD_USER_TIME || field == FIELD_SYSTEM_TIME)
			stat->cpu_ns += number * tick_ns;
		else if (field == FIELD_REAPED_USER_TIME || field == FIELD_REAPED_SYSTEM_TIME)
			stat->reaped_cpu_ns += number * tick_ns;
		else if (field == FIELD_MAJOR_FAULTS)
			stat->major_faults = number;
		else if (field == FIELD_BLOCK_WAIT)
			stat->block_wait_ns = number * tick_ns;
		else if (field == FIELD_THREAD_COUNT)
			stat->thread_count = (uint32_t)number;
		else if (field == FIELD_START_TIME)
			stat->start_time = number;
		else if (field == FIELD_EXIT_CODE)
			stat->exit_code = (uint32_t)number;
		at = strchr(at, ' ');
		at = at != NULL ? at + 1 : NULL;
	}
}

int proc_stat_read(pid_t pid, struct proc_stat *ret_stat) {
	return proc_stat_read_under("/proc", pid, ret_stat);
}

int proc_stat_read_under(const char *root, pid_t pid, struct proc_stat *ret_stat) {
	long ticks = sysconf(_SC_CLK_TCK);
	struct proc_stat stat = {0};
	char path[PATH_BYTES], text[STAT_BYTES];
	scoped_fd int fd = -1;
	const char *name, *name_end;
	ssize_t length;

	snprintf(path, sizeof(path), "%s/%d/stat", root, pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return neg_errno();
	length = read(fd, text, sizeof(text) - 1);
	if (length <= 0)
		return length < 0 ? neg_errno() : -ESRCH;
	text[length] = '\0';
	// The name may hold blanks and brackets itself.
	name = strchr(text, '(');
	name_end = strrchr(text, ')');
	if (name == NULL || name_end == NULL || name_end < name || name_end[1] != ' ' || ticks <= 0)
		return -EBADMSG;
	snprintf(stat.comm, sizeof(stat.comm), "%.*s", (int)(name_end - name - 1), name + 1);
	parse_fields(name_end + 2, UINT64_C(1000000000) / (uint64_t)ticks, &stat);
	*ret_stat = stat;
	return 0;
}
