// SPDX-License-Identifier: BSD-3-Clause
// Facts about processes from /proc, and the end of a process, which only its pidfd announces.
#include "jobs/host/inside.h"

#include <lib/capability.h>
#include <lib/container.h>
#include <lib/error.h>
#include <lib/log.h>
#include <lib/parse.h>
#include <lib/proc_stat.h>
#include <lib/scoped.h>

#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define STATUS_BYTES 2048
// Beyond this, the time at which an end was seen is not the time of the end. The loop turns each
// second.
#define END_LATE_NS (2 * RAS_NS_PER_SEC)

bool process_is_owned_by(pid_t pid, uid_t uid) {
	char path[32], text[STATUS_BYTES];
	scoped_fd int fd = -1;
	const char *at;
	ssize_t length;
	uint64_t id;

	snprintf(path, sizeof(path), "/proc/%d/status", pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	length = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;
	if (length <= 0)
		return false;
	text[length] = '\0';
	at = strstr(text, "\nUid:");
	// Real, effective, saved and file-system uid, each after a tab.
	for (int n = 0; at != NULL && n < 4; n++) {
		at = strchr(at, '\t');
		if (at == NULL)
			return false;
		at++;
		if (parse_u64(at, strcspn(at, "\t\n"), 0, UINT32_MAX, NULL, &id) == 0 && id == uid)
			return true;
	}
	return false;
}

enum jobs_process_state process_state(char state) {
	switch (state) {
	case 'R':
		return JOBS_PROCESS_RUNNING;
	case 'S':
	case 'I':
		return JOBS_PROCESS_SLEEPING;
	case 'D':
		return JOBS_PROCESS_DISK;
	case 'T':
		return JOBS_PROCESS_STOPPED;
	case 't':
		return JOBS_PROCESS_TRACED;
	case 'Z':
		return JOBS_PROCESS_ZOMBIE;
	case 'X':
		return JOBS_PROCESS_EXITED;
	default:
		return JOBS_PROCESS_UNKNOWN;
	}
}

// Until the parent has reaped the process, the kernel reports the exit code to a reader that may
// trace it. Any other reader gets 0, which therefore means unknown. The unit file starts the agent
// without CAP_SYS_PTRACE.
static void find_exit_cause(struct host_process *process) {
	struct proc_stat stat;
	int status;

	if (proc_stat_read(process->pid, &stat) != 0 || stat.start_time != process->start_time)
		return;
	status = (int)stat.exit_code;
	if (status == 0 && geteuid() != process->uid && !capability_is_effective(CAP_SYS_PTRACE))
		return;
	if (WIFSIGNALED(status)) {
		process->exit_cause = JOBS_EXIT_SIGNAL;
		process->exit_value = WTERMSIG(status);
	} else if (WIFEXITED(status)) {
		process->exit_cause = JOBS_EXIT_STATUS;
		process->exit_value = WEXITSTATUS(status);
	}
}

static void unwatch_process(struct host_process *process) {
	if (process->pidfd.fd >= 0) {
		loop_remove(&process->pidfd);
		close(process->pidfd.fd);
	}
	process->pidfd.fd = -1;
	if (process->page_fd >= 0)
		close(process->page_fd);
	process->page_fd = -1;
}

// Describe the end of a process as its parent or the kernel reported it.
static void describe_exit(const struct host_process *process, char cause[static CAUSE_BYTES]) {
	const char *signal;

	switch (process->exit_cause) {
	case JOBS_EXIT_STATUS:
		snprintf(
			cause, CAUSE_BYTES, "its process ended with status %d", process->exit_value
		);
		break;
	case JOBS_EXIT_SIGNAL:
		signal = sigdescr_np(process->exit_value); // NULL for real-time signals
		snprintf(
			cause, CAUSE_BYTES, "its process was killed by signal %d (%s)",
			process->exit_value, signal != NULL ? signal : "a real-time signal"
		);
		break;
	case JOBS_EXIT_MEMORY:
		snprintf(cause, CAUSE_BYTES, "its process was killed because memory ran out");
		break;
	case JOBS_EXIT_ABORT:
		snprintf(
			cause, CAUSE_BYTES, "its process called MPI_Abort with code %d",
			process->exit_value
		);
		break;
	default:
		snprintf(cause, CAUSE_BYTES, "its process ended");
		break;
	}
}

// Forget the oldest ended process of the user who has most of them. So no user's evidence displaces
// that of another user.
static void forget_oldest_process(struct jobhost *host) {
	struct host_user *user, *most = NULL;

	LIST_FOREACH(user, &host->users, all) {
		if (most == NULL || user->ended_count > most->ended_count)
			most = user;
	}
	if (most != NULL && most->ended_count > 0)
		process_free(TAILQ_FIRST(&most->ended));
}

// The end is later than the rank's registration, and than the last time at which its process was
// not seen to have ended. Ranks that registered after that begin another attempt.
static void report_gone_rank(struct host_rank *rank, const char *cause) {
	struct jobhost *host = rank->process->host;
	uint64_t earliest_ns = rank->process->alive_ns;

	if (earliest_ns < rank->since_ns)
		earliest_ns = rank->since_ns;
	// Without memory the end stays unreported, because a false report is worse.
	if (comm_split_attempt(host, rank->comm, earliest_ns + 1))
		agree_add_gone_rank(host, rank->comm, rank->told.rank, cause, earliest_ns, true);
}

// The process ends, or is freed at once if nothing of it is worth keeping.
static void finish_process(struct host_process *process) {
	struct jobhost *host = process->host;
	uint64_t now_ns = loop_now_ns(host->loop);
	char cause[CAUSE_BYTES];

	// The launcher kills all ranks after MPI_Abort, so the signal says nothing of this rank.
	for (const struct host_rank *rank = process->ranks; rank != NULL; rank = rank->next) {
		if (!rank->report.aborted_all)
			continue;
		process->exit_cause = JOBS_EXIT_ABORT;
		process->exit_value = rank->report.abort_code;
	}
	describe_exit(process, cause);
	process->is_ending = false;
	process->exited_ns = now_ns;
	host->counters.exits++;
	host->counters.processes--;
	host->counters.ranks -= process->rank_count;
	process->user->processes--;
	process->user->ranks -= process->rank_count;
	log_event(
		LOG_LEVEL_INFO, "job_process_ended", log_str("job", process->job_id),
		log_u64("pid", (uint64_t)process->pid), log_str("cause", cause),
		log_u64("ranks", process->rank_count)
	);
	for (struct host_rank *rank = process->ranks; rank != NULL; rank = rank->next) {
		struct jobs_rank_report *report = &rank->report;

		report->exited_ns = now_ns;
		report->end_is_seen_late = process->end_is_seen_late;
		report->exit_cause = process->exit_cause;
		report->exit_value = process->exit_value;
		report->process_state = JOBS_PROCESS_EXITED;
		// Log the counts of a gone rank, because the log outlives the report in memory.
		if (!report->finalized && !report->destroyed) {
			log_event(
				LOG_LEVEL_INFO, "job_rank_gone", log_str("job", report->job_id),
				log_str("communicator", rank->told.name),
				log_u64("hash", report->comm_hash), log_u64("rank", report->rank),
				log_u64("size", report->size),
				log_u64("launched", report->launched),
				log_u64("started", report->started),
				log_u64("completed", report->completed)
			);
			report_gone_rank(rank, cause);
		} else if (rank->comm != NULL) {
			agree_add_departed_ranks(host, rank->comm, &rank->told.rank, 1);
		}
		rank_leave_comm(rank);
	}
	if (process->ranks == NULL) {
		process_free(process);
		return;
	}
	TAILQ_INSERT_TAIL(&process->user->ended, process, of_end);
	process->user->ended_count++;
	process->user->ended_ranks += process->rank_count;
	host->counters.kept++;
	while (host->counters.kept > host->config.keep_max)
		forget_oldest_process(host);
}

static bool has_connected_parent(const struct host_process *process) {
	struct jobhost *host = process->host;
	struct table *table = &host->parents_by_pid;
	struct table_entry *entry = table_first(table, process_pid_hash(host, process->parent_pid));

	for (; entry != NULL; entry = table_next(table, entry)) {
		const struct host_connection *at =
			container_of(entry, struct host_connection, by_parent);

		if (at->pid == process->parent_pid && (at->uid == process->uid || at->uid == 0))
			return true;
	}
	return false;
}

static void end_process(struct host_process *process) {
	struct jobhost *host = process->host;

	sample_process_page(process, loop_now_ns(host->loop), true);
	unwatch_process(process);
	if (process->connection != NULL)
		host_connection_close(process->connection);
	// The parent has not reaped the process, and will report how it ended in a moment.
	if (has_connected_parent(process) &&
	    (process->exit_cause == JOBS_EXIT_UNKNOWN || process->exit_cause == JOBS_EXIT_SIGNAL)) {
		process->is_ending = true;
		TAILQ_INSERT_TAIL(&host->ending, process, of_end);
	} else {
		finish_process(process);
	}
}

// A pidfd stays ready. So what exceeds the user's time of this turn is done in a later one.
static void on_process_exit(struct loop_source *source, uint32_t events) {
	struct host_process *process = container_of(source, struct host_process, pidfd);
	struct host_user *user = user_hold(process->user);
	uint64_t began_ns;

	(void)events;
	// The end is noticed late if the agent was stopped meanwhile.
	if (process->alive_ns == 0) {
		process->alive_ns = loop_all_served_ns(user->host->loop);
		process->end_is_seen_late =
			loop_now_ns(user->host->loop) - process->alive_ns >= END_LATE_NS;
	}
	if (process->exit_cause == JOBS_EXIT_UNKNOWN && user_has_time(user))
		find_exit_cause(process);
	// Packets sent before the end may still be in the socket, more than one turn reads.
	if (user_has_time(user) && host_connection_finish(process) == 0) {
		began_ns = loop_clock_ns(user->host->loop);
		end_process(process);
		(void)user_charge(user, began_ns);
	}
	user_put(user);
}

static bool is_child_of(const struct host_process *process, const struct host_connection *parent) {
	return process->exited_ns == 0 && process->parent_pid == parent->pid &&
	       (process->uid == parent->uid || parent->uid == 0);
}

void process_release_exits(struct jobhost *host, const struct host_connection *parent) {
	struct host_process *at, *next;

	for (at = TAILQ_FIRST(&host->ending); at != NULL; at = next) {
		next = TAILQ_NEXT(at, of_end);
		if (at->is_released || (parent != NULL && !is_child_of(at, parent)))
			continue;
		at->is_released = true;
		TAILQ_REMOVE(&host->ending, at, of_end);
		TAILQ_INSERT_HEAD(&host->ending, at, of_end);
		loop_defer(host->loop, &host->end_job);
	}
}

// Finish released processes within JOBS_TURN_NS.
static void finish_released(struct loop_job *job) {
	struct jobhost *host = container_of(job, struct jobhost, end_job);
	uint64_t began_ns = loop_clock_ns(host->loop);
	struct host_process *process;

	while ((process = TAILQ_FIRST(&host->ending)) != NULL && process->is_released) {
		TAILQ_REMOVE(&host->ending, process, of_end);
		finish_process(process);
		if (!jobs_have_time(host, &began_ns)) {
			loop_defer(host->loop, job);
			return;
		}
	}
}

void process_init(struct jobhost *host) {
	TAILQ_INIT(&host->ending);
	host->end_job.run = finish_released;
}

void process_fini(struct jobhost *host) {
	loop_undefer(host->loop, &host->end_job);
}

void process_report_child_exit(
	const struct host_connection *parent, const struct job_exited *said
) {
	static const uint8_t causes[] = {
		[JOB_EXIT_STATUS] = JOBS_EXIT_STATUS,
		[JOB_EXIT_SIGNAL] = JOBS_EXIT_SIGNAL,
		[JOB_EXIT_MEMORY] = JOBS_EXIT_MEMORY,
	};

	for (struct host_process *at = parent->host->processes; at != NULL; at = at->next) {
		if (!is_child_of(at, parent))
			continue;
		at->exit_cause = causes[said->cause];
		at->exit_value = said->value;
	}
	process_release_exits(parent->host, parent);
}

int process_watch(struct host_process *process) {
	int fd = (int)syscall(SYS_pidfd_open, process->pid, 0);

	if (fd < 0)
		return neg_errno();
	process->pidfd = (struct loop_source
	){.fd = fd, .events = EPOLLIN, .rank = LOOP_CLIENTS, .ready = on_process_exit};
	return loop_add(process->host->loop, &process->pidfd);
}

uint64_t process_pid_hash(const struct jobhost *host, pid_t pid) {
	return table_hash(host->secret, &pid, sizeof(pid));
}

struct host_process *process_find(struct jobhost *host, pid_t pid, struct host_process *after) {
	struct table *table = &host->processes_by_pid;
	struct table_entry *entry = after != NULL ? table_next(table, &after->by_pid)
						  : table_first(table, process_pid_hash(host, pid));

	for (; entry != NULL; entry = table_next(table, entry)) {
		struct host_process *process = container_of(entry, struct host_process, by_pid);

		if (process->pid == pid)
			return process;
	}
	return NULL;
}

static uint64_t process_page_hash(const struct jobhost *host, pid_t pid, ino_t page_inode) {
	const uint64_t words[] = {(uint64_t)pid, page_inode};

	return table_hash(host->secret, words, sizeof(words));
}

struct host_process *process_find_by_page(struct jobhost *host, pid_t pid, ino_t page_inode) {
	struct table *table = &host->processes_by_page;
	struct table_entry *entry = table_first(table, process_page_hash(host, pid, page_inode));

	for (; entry != NULL; entry = table_next(table, entry)) {
		struct host_process *process = container_of(entry, struct host_process, by_page);

		if (process->pid == pid && process->page_inode == page_inode &&
		    !process->is_ending && process->exited_ns == 0)
			return process;
	}
	return NULL;
}

void process_enlist(struct host_process *process) {
	struct jobhost *host = process->host;

	process->next = host->processes;
	process->link = &host->processes;
	if (process->next != NULL)
		process->next->link = &process->next;
	host->processes = process;
	table_add(&host->processes_by_pid, &process->by_pid, process_pid_hash(host, process->pid));
	table_add(
		&host->processes_by_page, &process->by_page,
		process_page_hash(host, process->pid, process->page_inode)
	);
	process->user->processes++;
	host->counters.processes++;
}

static void process_unlist(struct host_process *process) {
	struct jobhost *host = process->host;
	struct host_user *user = process->user;

	*process->link = process->next;
	if (process->next != NULL)
		process->next->link = process->link;
	table_remove(&host->processes_by_pid, &process->by_pid);
	table_remove(&host->processes_by_page, &process->by_page);
	if (process->exited_ns == 0) {
		host->counters.processes--;
		user->processes--;
	} else if (process->ranks != NULL) {
		TAILQ_REMOVE(&user->ended, process, of_end);
		user->ended_count--;
		user->ended_ranks -= process->rank_count;
		host->counters.kept--;
	}
	if (process->is_ending)
		TAILQ_REMOVE(&host->ending, process, of_end);
}

void process_free(struct host_process *process) {
	struct host_user *user = process->user;

	if (process->host->round.next_process == process)
		process->host->round.next_process = process->next;
	if (process->link != NULL)
		process_unlist(process);
	if (process->ret_freed != NULL)
		*process->ret_freed = true;
	if (process->connection != NULL)
		host_connection_close(process->connection);
	unwatch_process(process);
	while (process->ranks != NULL)
		rank_remove(process->ranks);
	process->life = life_destroy(process->life);
	free(process);
	user_put(user);
}

void process_expire_ended(struct jobhost *host, uint64_t now_ns) {
	struct host_user *user, *next;

	for (user = LIST_FIRST(&host->users); user != NULL; user = next) {
		struct host_process *oldest = TAILQ_FIRST(&user->ended);

		next = LIST_NEXT(user, all);
		(void)user_hold(user);
		while (oldest != NULL && now_ns - oldest->exited_ns >= host->config.keep_ns) {
			process_free(oldest);
			oldest = TAILQ_FIRST(&user->ended);
		}
		if (now_ns >= host->config.keep_ns)
			departed_ranks_expire(user, now_ns - host->config.keep_ns);
		user_put(user);
	}
}
