// SPDX-License-Identifier: BSD-3-Clause
// Jobs: open, close, and the thread that communicates with the agent.
#include "inside.h"
#include "old_symbols.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define STAT_BYTES 1024
#define START_TIME_FIELD 22 // field number in /proc/PID/stat

uint64_t job_now_ns(void) {
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

void job_wake(struct tocsin_job *job) {
	const uint64_t one = 1;

	if (job->threaded && !job->inherited)
		(void)!write(job->wake_fd, &one, sizeof(one));
}

// Return field 22 of /proc/self/stat, or 0. The process name before it may hold blanks and
// brackets.
static uint64_t read_start_time(void) {
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	char text[STAT_BYTES];
	ssize_t length;
	const char *at;
	uint64_t value = 0;

	if (fd < 0)
		return 0;
	length = read(fd, text, sizeof(text) - 1);
	close(fd);
	if (length <= 0)
		return 0;
	text[length] = '\0';
	at = strrchr(text, ')');
	for (int field = 2; at != NULL && field < START_TIME_FIELD; field++)
		at = strchr(at + 1, ' ');
	if (at == NULL)
		return 0;
	for (at++; *at >= '0' && *at <= '9'; at++)
		value = value * 10 + (uint64_t)(*at - '0');
	return value;
}

static const char *environment_value(const char *name) {
	// NOLINTNEXTLINE(concurrency-mt-unsafe): the environment, which a library cannot guard
	const char *value = getenv(name);

	return value != NULL && value[0] != '\0' ? value : NULL;
}

// Make the job id from the environment: scheduler and number, as in "slurm:1234.0".
static void find_job_id(char ret_id[static JOB_ID_BYTES]) {
	static const char *const names[][2] = {
		{"SLURM_JOB_ID", "slurm"}, {"FLUX_JOB_ID", "flux"}, {"PBS_JOBID", "pbs"},
		{"LSB_JOBID", "lsf"},	   {"JOB_ID", "job"},
	};

	for (size_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
		const char *id = environment_value(names[n][0]);
		const char *step = n == 0 ? environment_value("SLURM_STEP_ID") : NULL;
		int length;

		if (id == NULL)
			continue;
		length = snprintf(
			ret_id, JOB_ID_BYTES, "%s:%s%s%s", names[n][1], id, step != NULL ? "." : "",
			step != NULL ? step : ""
		);
		if (length > 0 && length < JOB_ID_BYTES)
			return;
	}
	ret_id[0] = '\0';
}

// Return the attempt of the job: how often Slurm has requeued it. The count is equal on all ranks
// of an attempt, and 0 without Slurm. TORCHELASTIC_RESTART_COUNT is unusable, because each torchrun
// counts only the failures of its own node.
static uint32_t find_attempt(void) {
	const char *at = environment_value("SLURM_RESTART_COUNT");
	uint32_t count = 0;

	for (; at != NULL && *at >= '0' && *at <= '9'; at++)
		count = count * 10 + (uint32_t)(*at - '0');
	return count;
}

// Apply the caller's configuration. Returns 0 or -EINVAL.
static int configure_job(struct tocsin_job *job, const struct tocsin_job_config *given) {
	struct tocsin_job_config config = {0};
	const char *path;

	if (given != NULL && given->struct_size < offsetof(struct tocsin_job_config, flags))
		return -EINVAL;
	if (given != NULL)
		memcpy(&config, given,
		       given->struct_size < sizeof(config) ? given->struct_size : sizeof(config));
	path = config.socket_path != NULL ? config.socket_path
					  : environment_value("TOCSIN_JOB_SOCKET");
	if (path != NULL && strlen(path) >= sizeof(job->socket_path))
		return -EINVAL;
	if (path != NULL)
		memcpy(job->socket_path, path, strlen(path));
	if (config.job_id == NULL)
		find_job_id(job->job_id);
	else if (strlen(config.job_id) < sizeof(job->job_id))
		memcpy(job->job_id, config.job_id, strlen(config.job_id));
	else
		return -EINVAL;
	job->attempt = find_attempt();
	job->event = config.event;
	job->event_context = config.event_context;
	job->threaded = (config.flags & TOCSIN_JOB_NO_THREAD) == 0;
	return 0;
}

static uint64_t step_job(struct tocsin_job *job) {
	uint64_t next_ns;

	pthread_mutex_lock(&job->mutex);
	next_ns = link_step(job, job_now_ns());
	pthread_mutex_unlock(&job->mutex);
	event_deliver_all(job);
	return next_ns;
}

static void wait_for_work(struct tocsin_job *job, uint64_t next_ns) {
	struct pollfd fds[2] = {{.fd = job->wake_fd, .events = POLLIN}, {.fd = -1}};
	uint64_t now_ns = job_now_ns(), count;
	int timeout_ms = -1;

	pthread_mutex_lock(&job->mutex);
	fds[1].fd = job->link.fd;
	fds[1].events = (short)(job->link.blocked ? POLLIN | POLLOUT : POLLIN);
	pthread_mutex_unlock(&job->mutex);
	if (next_ns != UINT64_MAX)
		timeout_ms = next_ns <= now_ns
				     ? 0
				     : (int)((next_ns - now_ns + 999999) / 1000000); // at most 30 s
	if (poll(fds, 2, timeout_ms) > 0 && (fds[0].revents & POLLIN) != 0)
		(void)!read(job->wake_fd, &count, sizeof(count));
}

static void *run_thread(void *context) {
	struct tocsin_job *job = context;
	bool closing = false;

	(void)prctl(PR_SET_NAME, "tocsin-job");
	while (!closing) {
		wait_for_work(job, step_job(job));
		pthread_mutex_lock(&job->mutex);
		closing = job->closing;
		pthread_mutex_unlock(&job->mutex);
	}
	return NULL;
}

static int open_descriptors(struct tocsin_job *job) {
	if (job->threaded) {
		job->wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		if (job->wake_fd < 0)
			return -errno;
	}
	if (job->event == NULL) {
		job->events_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
		if (job->events_fd < 0)
			return -errno;
	}
	return job_page_create(job);
}

static void free_job(struct tocsin_job *job) {
	for (uint32_t n = 0; n < JOB_COMMS_MAX; n++)
		if (job->comms[n] != NULL) {
			failed_set_fini(job->comms[n]);
			free(job->comms[n]);
		}
	event_drop_all(job);
	link_close(&job->link);
	job_page_destroy(job);
	if (job->wake_fd >= 0)
		close(job->wake_fd);
	if (job->events_fd >= 0)
		close(job->events_fd);
	pthread_cond_destroy(&job->changed);
	pthread_mutex_destroy(&job->mutex);
	free(job);
}

void job_init_condition(struct tocsin_job *job) {
	pthread_condattr_t monotonic;

	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&job->changed, &monotonic);
	pthread_condattr_destroy(&monotonic);
}

int tocsin_job_open(const struct tocsin_job_config *config, struct tocsin_job **ret_job) {
	struct tocsin_job *job = calloc(1, sizeof(*job));
	sigset_t all, before;
	int err;

	if (job == NULL)
		return -ENOMEM;
	job->wake_fd = job->events_fd = job->page_fd = job->link.fd = -1;
	job->start_time = read_start_time();
	pthread_mutex_init(&job->mutex, NULL);
	job_init_condition(job);
	err = configure_job(job, config);
	if (err == 0)
		err = open_descriptors(job);
	if (err != 0) {
		free_job(job);
		return err;
	}
	owner_add_job(job);
	if (job->threaded) {
		// Block all signals in the thread, so that the program's handlers do not run there.
		sigfillset(&all);
		(void)pthread_sigmask(SIG_SETMASK, &all, &before);
		err = -pthread_create(&job->thread, NULL, run_thread, job);
		(void)pthread_sigmask(SIG_SETMASK, &before, NULL);
	}
	if (err != 0) {
		owner_remove_job(job);
		free_job(job);
		return err;
	}
	*ret_job = job;
	return 0;
}

void tocsin_job_close(struct tocsin_job *job) {
	if (job == NULL)
		return;
	pthread_mutex_lock(&job->mutex);
	job->closing = true;
	pthread_mutex_unlock(&job->mutex);
	if (job->threaded && !job->inherited) {
		job_wake(job);
		(void)pthread_join(job->thread, NULL);
	}
	owner_remove_job(job);
	if (!job->inherited)
		link_send_leave(job);
	free_job(job);
}

int tocsin_job_poll(struct tocsin_job *job) {
	bool other;

	if (job->threaded)
		return -EDEADLK;
	pthread_mutex_lock(&job->mutex);
	other = job->polled;
	job->polled = true;
	pthread_mutex_unlock(&job->mutex);
	// Another thread, or our own callback, is inside this function and does the work.
	if (other)
		return 0;
	(void)step_job(job);
	pthread_mutex_lock(&job->mutex);
	job->polled = false;
	pthread_mutex_unlock(&job->mutex);
	return 0;
}

enum tocsin_level tocsin_job_level(const struct tocsin_job *job) {
	// Relaxed: no other memory depends on the level.
	uint64_t wanted = atomic_load_explicit(&job->page->head.wanted, memory_order_relaxed);
	uint8_t level = wanted != 0 ? job_wanted_level(wanted, job_now_ns()) : 0;

	return level < TOCSIN_LEVEL_COUNT ? (enum tocsin_level)level : TOCSIN_LEVEL_DEFAULT;
}

int tocsin_job_busy(struct tocsin_job *job, uint64_t until_ns, const char *why) {
	struct job_head *head = &job->page->head;
	uint64_t words[JOB_BUSY_WORDS] = {0};
	size_t length = why != NULL ? strlen(why) : 0;

	if (length >= sizeof(words))
		return -EINVAL;
	if (length > 0)
		memcpy(words, why, length);
	pthread_mutex_lock(&job->mutex);
	// Release: a reader that sees a time sees its reason, or a later one.
	atomic_store_explicit(&head->busy_until_ns, 0, memory_order_release);
	for (uint32_t n = 0; n < JOB_BUSY_WORDS; n++)
		atomic_store_explicit(&head->busy_why[n], words[n], memory_order_release);
	atomic_store_explicit(&head->busy_until_ns, until_ns, memory_order_release);
	pthread_mutex_unlock(&job->mutex);
	return 0;
}

enum tocsin_job_state tocsin_job_state(struct tocsin_job *job, char *text, size_t size) {
	enum tocsin_job_state state = TOCSIN_JOB_ALONE;

	pthread_mutex_lock(&job->mutex);
	if (job->link.state == LINK_UP)
		state = TOCSIN_JOB_CONNECTED;
	else if (job->link.refused)
		state = TOCSIN_JOB_REFUSED;
	if (size > 0)
		(void)snprintf(text, size, "%s", job->link.reason);
	pthread_mutex_unlock(&job->mutex);
	return state;
}
