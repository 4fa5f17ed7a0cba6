// SPDX-License-Identifier: BSD-3-Clause
// Agent's side of the spawn helper. The control thread owns the jobs. A request belongs to its
// caller; a cancelled job outlives its request.
#include "loop/spawn_inside.h"

#include <lib/container.h>
#include <lib/error.h>
#include <lib/log.h>
#include <lib/must.h>
#include <lib/scoped.h>

#include <assert.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define END_WAIT_MS 1000
// The root helper ends a program at its deadline, and answers within this time after it.
#define ROOT_ANSWER_NS UINT64_C(30000000000)
#define ROOT_READ_NS UINT64_C(1000000000) // time to read answers that are there

struct spawn_job {
	struct spawn_job *next;
	struct spawn *spawn;
	struct spawn_request *request; // NULL: cancelled
	bool sent;
	bool stuck;	 // reported as hanging; no longer counted as running
	uint64_t due_ns; // latest answer of the root helper, once sent
	size_t size;
	struct spawn_order_head head; // followed by input and strings
};

static_assert(
	offsetof(struct spawn_job, head) + sizeof(struct spawn_order_head) ==
		sizeof(struct spawn_job),
	"head, input and strings are one record"
);

struct spawn {
	struct loop *loop;	  // of a root helper
	struct loop_timer silent; // of a root helper: its next answer is due
	struct loop_source source;
	struct spawn_helper helper; // pid 0: root helper
	const char *root_path;	    // socket of the root helper; NULL: forked helper
	bool alive;
	bool losing;		 // the requests of a lost root helper are ending
	bool unreachable;	 // the root helper could not be reached, which was logged
	struct spawn_job *first; // in order of request
	uint32_t pending, running;
	uint64_t next_id;
	struct spawn_counters own_counters;
	struct spawn_counters *counters;
	char record[SPAWN_ANSWER_BYTES_MAX];
};

const char *spawn_end_name(enum spawn_end end) {
	static const char *const names[] = {
		[SPAWN_EXITED] = "exited",	    [SPAWN_SIGNALLED] = "signalled",
		[SPAWN_TIMED_OUT] = "timed out",    [SPAWN_NOT_STARTED] = "not started",
		[SPAWN_LOST] = "spawn helper lost",
	};

	return names[end];
}

const char *spawn_failure_text(int status) {
	if (status == SPAWN_NO_USER)
		return "there is no such user";
	if (status == SPAWN_REFUSED)
		return "other users could have changed it";
	if (status == SPAWN_NOT_LISTED)
		return "tocsin-root finds no such program with a user";
	if (status == SPAWN_BAD_CONFIG)
		return "tocsin-root cannot use its configuration: see its log";
	return status < 0 ? strerrordesc_np(-status) : "unknown reason";
}

int spawn_fork(struct spawn_helper *ret_helper) {
	pid_t agent = getpid();
	int ends[2];
	pid_t pid;

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
		return neg_errno();
	pid = fork();
	if (pid == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (getppid() != agent)
			_exit(1);
		spawn_helper_main(ends[1], NULL);
	}
	if (pid < 0) {
		int err = neg_errno();

		close(ends[0]);
		close(ends[1]);
		return err;
	}
	close(ends[1]);
	*ret_helper = (struct spawn_helper){ends[0], pid};
	return 0;
}

// End the helper. It exits when its stream is closed. After END_WAIT_MS it is killed, and its
// programs die with their parent.
void spawn_helper_end(struct spawn_helper *helper) {
	struct pollfd gone = {.fd = helper->fd, .events = 0};

	if (helper->pid <= 0)
		return;
	shutdown(helper->fd, SHUT_WR);
	if (poll(&gone, 1, END_WAIT_MS) != 1)
		kill(helper->pid, SIGKILL);
	close(helper->fd);
	waitpid(helper->pid, NULL, 0);
	*helper = (struct spawn_helper){-1, 0};
}

static void spawn_job_unlink(struct spawn *spawn, struct spawn_job *job) {
	struct spawn_job **at = &spawn->first;

	while (*at != job)
		at = &(*at)->next;
	*at = job->next;
	spawn->pending--;
	if (job->sent && !job->stuck)
		spawn->running--;
}

// End a job and notify its request. The job is freed before, so the callee may start or cancel
// requests.
static void
spawn_job_end(struct spawn *spawn, struct spawn_job *job, const struct spawn_result *result) {
	struct spawn_request *request = job->request;

	spawn_job_unlink(spawn, job);
	free(job);
	if (request == NULL)
		return;
	request->job = NULL;
	request->ended(request, result);
}

static void helper_set_lost(struct spawn *spawn, int status);

// Watch for the next answer that is due from the root helper. A program that hangs is not due.
static void root_answer_await(struct spawn *spawn, uint64_t not_before_ns) {
	uint64_t at_ns = UINT64_MAX;

	for (struct spawn_job *job = spawn->first; job != NULL; job = job->next) {
		if (job->sent && !job->stuck && job->due_ns < at_ns)
			at_ns = job->due_ns;
	}
	if (at_ns < not_before_ns)
		at_ns = not_before_ns;
	if (loop_timer_set(spawn->loop, &spawn->silent, at_ns) != 0)
		log_event(LOG_LEVEL_ERROR, "timer_failed", log_errno("error", ENOMEM));
}

// A root helper that is stopped or that hangs keeps its connection, so only the time shows it.
static void on_root_answer_due(struct loop_timer *timer, uint64_t now_ns) {
	struct spawn *spawn = container_of(timer, struct spawn, silent);
	struct pollfd answers = {.fd = spawn->helper.fd, .events = POLLIN};

	if (!spawn->alive)
		return;
	// After a pause of this agent the answers are there.
	if (poll(&answers, 1, 0) > 0) {
		root_answer_await(spawn, now_ns + ROOT_READ_NS);
		return;
	}
	for (const struct spawn_job *job = spawn->first; job != NULL; job = job->next) {
		if (job->sent && !job->stuck && job->due_ns <= now_ns) {
			helper_set_lost(spawn, -ETIMEDOUT);
			return;
		}
	}
	root_answer_await(spawn, 0);
}

// Send the jobs that may run. A send error is handled later, when reading the helper's end of
// stream.
static void jobs_send(struct spawn *spawn) {
	struct spawn_job *job = spawn->first;

	for (; job != NULL && spawn->alive && spawn->running < SPAWN_RUNNING_MAX; job = job->next) {
		if (job->sent)
			continue;
		if (send(spawn->helper.fd, &job->head, job->size, MSG_NOSIGNAL | MSG_DONTWAIT) < 0)
			break;
		job->sent = true;
		spawn->running++;
		if (spawn->root_path != NULL) {
			job->due_ns =
				loop_now_ns(spawn->loop) + job->head.timeout_ns + ROOT_ANSWER_NS;
			root_answer_await(spawn, 0);
		}
	}
	// A job that may run only waits if the socket is full.
	loop_set_events(
		&spawn->source,
		EPOLLIN | (job != NULL && spawn->running < SPAWN_RUNNING_MAX ? EPOLLOUT : 0)
	);
}

static void count_end(struct spawn *spawn, enum spawn_end end) {
	spawn->counters->timed_out += end == SPAWN_TIMED_OUT;
	spawn->counters->failed += end == SPAWN_NOT_STARTED;
	spawn->counters->lost += end == SPAWN_LOST;
}

// status: of the programs that have no end.
static void helper_set_lost(struct spawn *spawn, int status) {
	const struct spawn_result result = {
		.end = SPAWN_LOST,
		.status = status,
		.out = {"", 0, false},
		.err = {"", 0, false},
	};

	spawn->alive = false;
	loop_remove(&spawn->source);
	if (spawn->root_path != NULL) {
		loop_timer_cancel(spawn->loop, &spawn->silent);
		close(spawn->helper.fd);
		spawn->helper.fd = -1;
		log_event(
			LOG_LEVEL_WARN, "root_helper_lost", log_errno("error", status),
			log_u64("requests", spawn->pending),
			log_str("effect", "the next program of another user connects again")
		);
	} else {
		spawn->counters->helper_lost++;
		log_event(
			LOG_LEVEL_ERROR, "spawn_helper_lost",
			log_u64("pid", (uint64_t)spawn->helper.pid),
			log_u64("requests", spawn->pending),
			log_str("effect", "no program is run until the agent is restarted")
		);
	}
	// A callback may request another program, which must not connect before all have ended.
	spawn->losing = true;
	while (spawn->first != NULL) {
		count_end(spawn, SPAWN_LOST);
		spawn_job_end(spawn, spawn->first, &result);
	}
	spawn->losing = false;
}

// Handle one answer. Returns false if it is malformed: the root helper may be of another version.
static bool answer_handle(struct spawn *spawn, size_t size) {
	const char *bytes = spawn->record + sizeof(struct spawn_answer_head);
	struct spawn_answer_head head;
	struct spawn_result result;
	struct spawn_job *job = spawn->first;

	if (size < sizeof(head))
		return false;
	memcpy(&head, spawn->record, sizeof(head));
	if (size - sizeof(head) != (uint64_t)head.sizes[0] + head.sizes[1])
		return false;
	while (job != NULL && job->head.id != head.id)
		job = job->next;
	if (job == NULL || !job->sent)
		return false;
	if (head.end == SPAWN_END_STUCK) {
		struct spawn_request *request = job->request;
		struct spawn_stuck stuck;

		if (job->stuck || head.sizes[0] != sizeof(stuck))
			return false;
		memcpy(&stuck, bytes, sizeof(stuck));
		job->stuck = true;
		spawn->running--;
		spawn->counters->stuck++;
		if (request != NULL && request->stuck != NULL)
			request->stuck(request, &stuck);
		return true;
	}
	if (head.end > SPAWN_LOST)
		return false;
	result = (struct spawn_result){
		.end = (enum spawn_end)head.end,
		.status = head.status,
		.took_ns = head.took_ns,
		.out = {bytes, head.sizes[0], head.cut[0] != 0},
		.err = {bytes + head.sizes[0], head.sizes[1], head.cut[1] != 0},
	};
	count_end(spawn, result.end);
	spawn_job_end(spawn, job, &result);
	return true;
}

// Read one answer per turn, since it may have 64 KiB.
static void helper_ready(struct loop_source *source, uint32_t events) {
	struct spawn *spawn = container_of(source, struct spawn, source);
	ssize_t got;

	(void)events;
	got = recv(source->fd, spawn->record, sizeof(spawn->record), MSG_DONTWAIT);
	if (got > 0 ? !answer_handle(spawn, (size_t)got)
		    : got == 0 || (errno != EAGAIN && errno != EINTR))
		helper_set_lost(spawn, spawn->root_path != NULL ? -ECONNRESET : 0);
	if (spawn->alive)
		jobs_send(spawn);
}

static int helper_watch(struct spawn *spawn, struct loop *loop, int fd) {
	int err;

	spawn->source = (struct loop_source){
		.fd = fd,
		.events = EPOLLIN,
		.rank = LOOP_CLIENTS,
		.ready = helper_ready,
	};
	err = loop_add(loop, &spawn->source);
	spawn->alive = err == 0;
	return err;
}

int spawn_create(struct loop *loop, struct spawn_helper *helper, struct spawn **ret_spawn) {
	struct spawn *spawn = calloc(1, sizeof(*spawn));
	int err;

	if (spawn == NULL)
		return -ENOMEM;
	spawn->counters = &spawn->own_counters;
	err = helper_watch(spawn, loop, helper->fd);
	if (err != 0) {
		free(spawn);
		return err;
	}
	spawn->helper = *helper;
	*helper = (struct spawn_helper){-1, 0};
	*ret_spawn = spawn;
	return 0;
}

int spawn_create_named(
	struct loop *loop, const char *path, struct spawn *main, struct spawn **ret_spawn
) {
	struct spawn *spawn;

	if (strlen(path) >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
		return -ENAMETOOLONG;
	spawn = calloc(1, sizeof(*spawn));
	if (spawn == NULL)
		return -ENOMEM;
	spawn->loop = loop;
	spawn->silent.expired = on_root_answer_due;
	spawn->root_path = path;
	spawn->helper.fd = -1;
	spawn->counters = main->counters;
	*ret_spawn = spawn;
	return 0;
}

// Connect to the root helper. The connection to a listening Unix socket is complete at once.
static int root_helper_connect(struct spawn *spawn) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	scoped_fd int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int err = fd < 0 ? neg_errno() : 0;

	memcpy(address.sun_path, spawn->root_path, strlen(spawn->root_path));
	if (err == 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		err = neg_errno();
	if (err == 0)
		err = helper_watch(spawn, spawn->loop, fd);
	if (err == 0) {
		spawn->helper.fd = scoped_release_fd(&fd);
		spawn->unreachable = false;
		return 0;
	}
	if (!spawn->unreachable)
		log_event(
			LOG_LEVEL_WARN, "root_helper_unreachable",
			log_str("path", spawn->root_path), log_errno("error", err),
			log_str("effect", "programs of other users do not run"),
			log_str("help", "systemctl enable --now tocsin-root.socket")
		);
	spawn->unreachable = true;
	return -ENOTCONN;
}

struct spawn *spawn_destroy(struct spawn *spawn) {
	struct spawn_job *job;

	if (spawn == NULL)
		return NULL;
	loop_remove(&spawn->source);
	if (spawn->root_path == NULL)
		spawn_helper_end(&spawn->helper);
	else
		loop_timer_cancel(spawn->loop, &spawn->silent);
	if (spawn->root_path != NULL && spawn->alive)
		close(spawn->helper.fd);
	while ((job = spawn->first) != NULL) {
		if (job->request != NULL)
			job->request->job = NULL;
		spawn_job_unlink(spawn, job);
		free(job);
	}
	free(spawn);
	return NULL;
}

// The root helper gets the name of a program, which is no path.
static int
spawn_job_create(const struct spawn_program *program, bool is_named, struct spawn_job **ret_job) {
	const char *user = program->user != NULL ? program->user : "";
	size_t bytes = 0, count = 0;
	struct spawn_job *job;
	char *at;

	for (; program->argv[count] != NULL; count++) {
		bytes += strnlen(program->argv[count], SPAWN_ARGUMENT_BYTES_MAX) + 1;
		if (bytes > SPAWN_ARGUMENT_BYTES_MAX || count == SPAWN_ARGUMENTS_MAX)
			return -E2BIG;
	}
	if (count == 0 || (!is_named && strchr(program->argv[0], '/') == NULL))
		return -EINVAL;
	if (program->input_bytes > SPAWN_INPUT_BYTES_MAX || strlen(user) >= SPAWN_USER_BYTES_MAX)
		return -E2BIG;
	bytes += program->input_bytes;
	job = calloc(1, sizeof(*job) + bytes);
	if (job == NULL)
		return -ENOMEM;
	job->size = sizeof(job->head) + bytes;
	job->head.order = SPAWN_ORDER_RUN;
	job->head.protocol = SPAWN_PROTOCOL;
	job->head.timeout_ns = program->timeout_ns;
	job->head.output_max = program->output_max;
	job->head.has_input = program->input != NULL;
	job->head.input_bytes = (uint32_t)program->input_bytes;
	memcpy(job->head.user, user, strlen(user));
	at = (char *)(job + 1);
	if (program->input != NULL)
		at = mempcpy(at, program->input, program->input_bytes);
	for (size_t n = 0; n < count; n++) // the sizes were checked above
		at = mempcpy(at, program->argv[n], strlen(program->argv[n]) + 1);
	*ret_job = job;
	return 0;
}

int spawn_run(
	struct spawn *spawn, const struct spawn_program *program, struct spawn_request *request
) {
	struct spawn_job **last = &spawn->first;
	struct spawn_job *job = NULL;
	int err = 0;

	must(request->ended != NULL && request->job == NULL);
	spawn->counters->runs++;
	if (!spawn->alive)
		err = spawn->root_path == NULL || spawn->losing ? -EPIPE
								: root_helper_connect(spawn);
	if (err == 0 && program->output_max > SPAWN_OUTPUT_BYTES_MAX)
		err = -EINVAL;
	if (err == 0 && spawn->pending >= SPAWN_PENDING_MAX)
		err = -EAGAIN;
	if (err == 0)
		err = spawn_job_create(program, spawn->root_path != NULL, &job);
	if (err != 0) {
		spawn->counters->refused++;
		return err;
	}
	job->spawn = spawn;
	job->request = request;
	job->head.id = ++spawn->next_id;
	request->job = job;
	while (*last != NULL)
		last = &(*last)->next;
	*last = job;
	spawn->pending++;
	jobs_send(spawn);
	return 0;
}

// A running job keeps its entry until the helper reports its end. If the helper does not take the
// order, the deadline ends the program.
void spawn_cancel(struct spawn_request *request) {
	struct spawn_job *job = request->job;

	if (job == NULL)
		return;
	request->job = NULL;
	job->request = NULL;
	if (!job->sent) {
		spawn_job_unlink(job->spawn, job);
		free(job);
		return;
	}
	job->head.order = SPAWN_ORDER_CANCEL;
	(void
	)!send(job->spawn->helper.fd, &job->head, sizeof(job->head), MSG_NOSIGNAL | MSG_DONTWAIT);
}

const struct spawn_counters *spawn_counters(const struct spawn *spawn) {
	return spawn->counters;
}
