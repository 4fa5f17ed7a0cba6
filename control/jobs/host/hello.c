// SPDX-License-Identifier: BSD-3-Clause
// Accepts greetings: identifies the process by kernel credentials, and checks the memory that it
// hands over.
#include "jobs/host/inside.h"

#include <lib/error.h>
#include <lib/proc_stat.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/statfs.h>
#include <unistd.h>

#define MEMORY_FILE_SYSTEM 0x01021994L // TMPFS_MAGIC, the file system of memfd files
#define SEALS_WANTED (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW)

// Return why the memory is refused, or NULL if it is accepted. Does not read its content.
static const char *page_fd_reject_reason(int fd, uint64_t page_bytes, struct stat *ret_status) {
	struct statfs system;
	int seals;

	if (fd < 0)
		return "the process passed no memory file";
	// F_GET_SEALS comes first because it asks no file system. fstat() does, and a user's own
	// file system may never answer.
	seals = fcntl(fd, F_GET_SEALS);
	if (seals < 0 || fstat(fd, ret_status) < 0 || !S_ISREG(ret_status->st_mode) ||
	    fstatfs(fd, &system) < 0 || system.f_type != MEMORY_FILE_SYSTEM)
		return "the passed descriptor is not a memory file";
	if (page_bytes != JOB_PAGE_BYTES || (uint64_t)ret_status->st_size != JOB_PAGE_BYTES)
		return "the passed memory file has a wrong size";
	if ((seals & SEALS_WANTED) != SEALS_WANTED)
		return "the passed memory file is not sealed, so its size could change";
	if ((fcntl(fd, F_GETFL) & O_ACCMODE) == O_WRONLY)
		return "the passed memory file is not readable";
	return NULL;
}

// Find a process that reconnects with the same memory. A process that is ending is never returned:
// its socket and memory now belong to another process. That process would be left without
// communicators.
static struct host_process *find_reconnected_process(
	struct jobhost *host, const struct ucred *who, uint64_t start_time, ino_t page
) {
	struct host_process *process = process_find_by_page(host, who->pid, page);

	return process != NULL && process->start_time == start_time ? process : NULL;
}

static bool has_process_quota(
	const struct jobhost *host,
	const struct host_user *user,
	uid_t uid,
	char reason[static JOB_REASON_BYTES]
) {
	const uint32_t all = host->counters.processes;

	if (all >= host->config.processes_max)
		snprintf(
			reason, JOB_REASON_BYTES,
			"the agent serves %u processes already, the limit of [job] processes", all
		);
	else if (user->processes >= host->config.per_user_max)
		snprintf(
			reason, JOB_REASON_BYTES,
			"user %u has %u processes already, the limit of [job] per_user", uid,
			user->processes
		);
	else
		return true;
	return false;
}

// A socket may outlive the process that connected it. The pid may then belong to a process of
// another user, whose start time is public. So the owner is checked as well. The start time is
// compared after the pidfd is open, so that a pid reused before that is detected.
static int
verify_and_watch_process(struct host_process *process, char reason[static JOB_REASON_BYTES]) {
	struct proc_stat stat;
	int err = process_watch(process);

	if (err == 0)
		err = proc_stat_read(process->pid, &stat);
	if (err != 0)
		snprintf(
			reason, JOB_REASON_BYTES, "process %d cannot be watched: %s", process->pid,
			strerrordesc_np(-err)
		);
	else if (stat.start_time != process->start_time)
		snprintf(
			reason, JOB_REASON_BYTES,
			"process %d started at another time than it reports: it has ended, "
			"or has another time namespace",
			process->pid
		);
	else if (!process_is_owned_by(process->pid, process->uid))
		snprintf(
			reason, JOB_REASON_BYTES,
			"process %d does not belong to user %u, who connected", process->pid,
			process->uid
		);
	else {
		process->parent_pid = stat.parent_pid;
		return 0;
	}
	return -ESRCH;
}

static struct host_process *accept_process(
	struct jobhost *host,
	const struct job_hello *hello,
	const struct ucred *who,
	int page_fd,
	ino_t page,
	char reason[static JOB_REASON_BYTES]
) {
	struct host_process *process;
	struct host_user *user;

	process = find_reconnected_process(host, who, hello->start_time, page);
	if (process != NULL)
		return process;
	user = user_get(host, who->uid);
	if (user != NULL && has_process_quota(host, user, who->uid, reason))
		process = calloc(1, sizeof(*process));
	if (process == NULL) {
		user_put(user);
		return NULL;
	}
	process->host = host;
	process->user = user;
	process->pid = who->pid;
	process->uid = who->uid;
	process->start_time = hello->start_time;
	process->attempt = hello->attempt;
	process->pidfd.fd = -1;
	memcpy(process->job_id, hello->job_id, sizeof(process->job_id));
	process->page_fd = fcntl(page_fd, F_DUPFD_CLOEXEC, 0);
	if (process->page_fd < 0 || verify_and_watch_process(process, reason) != 0) {
		process_free(process);
		return NULL;
	}
	process->page_inode = page;
	process_enlist(process);
	host->counters.accepted++;
	level_write_to_page(process, loop_now_ns(host->loop));
	return process;
}

struct host_process *hello_accept(
	struct jobhost *host,
	const struct job_hello *hello,
	int socket_fd,
	int page_fd,
	char reason[static JOB_REASON_BYTES]
) {
	struct host_process *process = NULL;
	struct ucred who = {0};
	socklen_t length = sizeof(who);
	struct stat status;
	const char *bad = page_fd_reject_reason(page_fd, hello->page_bytes, &status);

	snprintf(reason, JOB_REASON_BYTES, "out of memory");
	if (getsockopt(socket_fd, SOL_SOCKET, SO_PEERCRED, &who, &length) < 0)
		snprintf(
			reason, JOB_REASON_BYTES,
			"the kernel does not report which process connects"
		);
	else if (who.pid <= 0)
		snprintf(
			reason, JOB_REASON_BYTES,
			"the process is in a pid namespace that the agent does not see, so its end "
			"would go unnoticed"
		);
	else if (bad != NULL)
		snprintf(reason, JOB_REASON_BYTES, "%s", bad);
	else
		process = accept_process(host, hello, &who, page_fd, status.st_ino, reason);
	if (bad != NULL)
		descriptor_close_async(page_fd, who.uid);
	else
		close(page_fd); // sealed memory: this close() cannot block
	return process;
}
