// SPDX-License-Identifier: BSD-3-Clause
// Spawn helper: a single-threaded process with its own memory.
//
// The spawn helper trusts the agent, which is the same binary, but no program that it runs. The
// root helper is the same code with a catalog, and does not trust the agent. The helper blocks only
// in poll(), and while a catalog is read. An answer that the agent does not read stays in its slot,
// and other deadlines are still kept. There are as many slots as the agent may have requests.
//
// The helper is the subreaper of its programs' descendants, so it sees when a process group is
// gone.
#include "loop/spawn_inside.h"

#include <lib/clock.h>
#include <lib/deadline.h>
#include <lib/error.h>
#include <lib/must.h>

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define NEVER UINT64_MAX
#define READ_BYTES 4096
#define READS_MAX 16 // reads of one stream per turn
#define FIRST_FREE_FD 3
#define PROGRAMS_MAX SPAWN_PENDING_MAX

struct stream {
	int fd; // -1: closed
	char *bytes;
	uint32_t used, max;
	bool cut;
};

struct program {
	bool used, left, ended, timed_out; // left: the process ended, its group not yet
	bool stuck, stuck_told;
	uint64_t id;
	pid_t pid; // also of the group; the number stays reserved while the group has a process
	uint64_t started_ns;
	uint64_t term_ns, kill_ns; // NEVER: not set
	// Deadline for killed processes to disappear; NEVER: not killed.
	uint64_t gone_ns;
	struct stream streams[2];
	int failure_fd; // receives -errno of exec(), or end of file if exec() succeeds
	struct spawn_answer_head answer;
};

struct helper {
	int fd, signal_fd;
	const struct spawn_catalog *catalog; // NULL: spawn helper
	struct program programs[PROGRAMS_MAX];
};

static void close_fd(int *fd) {
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

static void program_clear(struct program *program) {
	for (unsigned n = 0; n < 2; n++) {
		close_fd(&program->streams[n].fd);
		free(program->streams[n].bytes);
	}
	close_fd(&program->failure_fd);
	*program = (struct program){0};
}

// Parameters of a new process. Pipe ends are above FIRST_FREE_FD.
struct program_setup {
	const struct spawn_order_head *head;
	char *const *argv;
	int input;   // -1: the helper's own, which is /dev/null
	int ends[2]; // standard output and standard error
	int failure;
	pid_t helper;
};

// Prepare and execute the program. Runs in the new single-threaded process. A change of user resets
// the death signal, so that is set afterwards.
static _Noreturn void program_exec(const struct program_setup *program_setup) {
	static const char oom_score_most[] = "1000";
	const struct spawn_order_head *head = program_setup->head;
	char detail[FILE_TRUST_DETAIL_BYTES];
	uid_t agent = geteuid();
	char *resolved;
	sigset_t none;
	int err, oom_fd;

	setpgid(0, 0);
	// Make the program the first victim of the OOM killer. Programs share the agent's memory
	// limit, and the agent's own oom_score_adj protects it.
	oom_fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
	if (oom_fd >= 0) {
		(void)!write(oom_fd, oom_score_most, sizeof(oom_score_most) - 1);
		close(oom_fd);
	}
	err = head->user[0] != '\0' ? spawn_become_user(head->user) : 0;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (getppid() != program_setup->helper)
		_exit(127);
	for (int number = 1; number < NSIG; number++)
		signal(number, SIG_DFL);
	sigemptyset(&none);
	pthread_sigmask(SIG_SETMASK, &none, NULL);
	if (dup3(program_setup->failure, FIRST_FREE_FD, O_CLOEXEC) < 0)
		_exit(126);
	if (err == 0 &&
	    (program_setup->input < 0 || dup2(program_setup->input, STDIN_FILENO) >= 0) &&
	    dup2(program_setup->ends[0], STDOUT_FILENO) >= 0 &&
	    dup2(program_setup->ends[1], STDERR_FILENO) >= 0 &&
	    close_range(FIRST_FREE_FD + 1, ~0U, 0) == 0) {
		err = spawn_program_resolve(program_setup->argv[0], agent, detail, &resolved);
		if (err == 0)
			execv(resolved, program_setup->argv);
		else if (err == SPAWN_REFUSED)
			(void)!write(STDERR_FILENO, detail, strlen(detail));
	}
	if (err == 0)
		err = neg_errno();
	if (write(FIRST_FREE_FD, &err, sizeof(err)) < 0)
		_exit(126);
	_exit(127);
}

// Create a pipe whose write end is above FIRST_FREE_FD, so that dup2() in the new process does not
// overwrite it.
static int pipe_create_high(int *ret_read, int *ret_write) {
	int ends[2];
	int high;

	if (pipe2(ends, O_CLOEXEC) != 0)
		return neg_errno();
	high = fcntl(ends[1], F_DUPFD_CLOEXEC, FIRST_FREE_FD + 1);
	close(ends[1]);
	if (high < 0 || fcntl(ends[0], F_SETFL, O_NONBLOCK) != 0) {
		close(ends[0]);
		close_fd(&high);
		return -EMFILE;
	}
	*ret_read = ends[0];
	*ret_write = high;
	return 0;
}

// Replace the name of a program by what the catalog has. The storage is valid until the next call.
static int program_find(const struct helper *helper, struct spawn_order_head *head, char **argv) {
	static struct spawn_named named;
	int err;

	memset(&named, 0, sizeof(named));
	err = helper->catalog->find(helper->catalog->ctx, argv[0], &named);
	if (err == 0 && (named.user[0] == '\0' || (head->has_input && !named.takes_input)))
		err = SPAWN_NOT_LISTED;
	if (err != 0)
		return err;
	memcpy(head->user, named.user, sizeof(head->user));
	memcpy(argv, named.argv, sizeof(named.argv));
	return 0;
}

static int program_fork(
	struct program *program,
	const struct spawn_order_head *head,
	const void *input,
	char *const *argv
) {
	struct program_setup program_setup = {head, argv, -1, {-1, -1}, -1, getpid()};
	int err = pipe_create_high(&program->streams[0].fd, &program_setup.ends[0]);

	if (err == 0)
		err = pipe_create_high(&program->streams[1].fd, &program_setup.ends[1]);
	if (err == 0)
		err = pipe_create_high(&program->failure_fd, &program_setup.failure);
	if (err == 0 && head->has_input)
		err = spawn_input_open(input, head->input_bytes, &program_setup.input);
	if (err == 0) {
		program->pid = fork();
		if (program->pid == 0)
			program_exec(&program_setup);
		err = program->pid < 0 ? neg_errno() : 0;
	}
	if (err == 0)
		// Both processes do it, since a signal must find the group.
		setpgid(program->pid, program->pid);
	close_fd(&program_setup.input);
	close_fd(&program_setup.ends[0]);
	close_fd(&program_setup.ends[1]);
	close_fd(&program_setup.failure);
	return err;
}

static void
program_start(struct helper *helper, struct spawn_order_head *head, char *text, size_t size) {
	char *argv[SPAWN_ARGUMENTS_MAX + 1];
	struct program *program = NULL;
	size_t count = 0;
	int err = 0;

	for (unsigned n = 0; n < PROGRAMS_MAX && program == NULL; n++) {
		if (!helper->programs[n].used)
			program = &helper->programs[n];
	}
	must(program != NULL); // the agent sends no more than there are slots
	must(head->input_bytes < size);
	// The agent's side ended each string within the record.
	for (size_t at = head->input_bytes; at < size; at += strlen(text + at) + 1) {
		must(count < SPAWN_ARGUMENTS_MAX);
		argv[count++] = text + at;
	}
	argv[count] = NULL;
	must(count > 0);
	*program = (struct program){
		.used = true,
		.id = head->id,
		.started_ns = clock_monotonic_ns(),
		.kill_ns = NEVER,
		.gone_ns = NEVER,
		.failure_fd = -1,
		.answer.id = head->id,
	};
	program->term_ns = head->timeout_ns < NEVER - program->started_ns
				   ? program->started_ns + head->timeout_ns
				   : NEVER;
	for (unsigned n = 0; n < 2; n++) {
		program->streams[n] = (struct stream){.fd = -1, .max = head->output_max};
		program->streams[n].bytes = malloc(head->output_max + 1);
		if (program->streams[n].bytes == NULL)
			err = -ENOMEM;
	}
	if (err == 0 && helper->catalog != NULL)
		err = program_find(helper, head, argv);
	if (err == 0)
		err = program_fork(program, head, text, argv);
	if (err != 0) {
		program->ended = true;
		program->answer.end = SPAWN_NOT_STARTED;
		program->answer.status = err;
	}
}

static void stream_read(struct stream *stream) {
	char bytes[READ_BYTES];

	for (unsigned n = 0; n < READS_MAX && stream->fd >= 0; n++) {
		ssize_t got = read(stream->fd, bytes, sizeof(bytes));
		size_t kept;

		if (got < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (got <= 0) {
			close_fd(&stream->fd);
			return;
		}
		kept = (size_t)got;
		if (kept > stream->max - stream->used) {
			kept = stream->max - stream->used;
			// The rest is read and dropped, so that the program does not block.
			stream->cut = true;
		}
		memcpy(stream->bytes + stream->used, bytes, kept);
		stream->used += (uint32_t)kept;
	}
}

static void program_kill(struct program *program) {
	kill(-program->pid, SIGKILL);
	program->term_ns = program->kill_ns = NEVER;
	if (program->gone_ns == NEVER)
		program->gone_ns = clock_monotonic_ns() + SPAWN_STUCK_NS;
}

// Handle the end of a program. Its process is not reaped yet, so the group's number is still
// reserved. Its descendants were reparented to this helper.
static void program_end(struct program *program, const siginfo_t *info) {
	int err;

	program_kill(program);
	waitpid(program->pid, NULL, 0);
	program->left = true;
	for (unsigned n = 0; n < 2; n++) {
		stream_read(&program->streams[n]);
		close_fd(&program->streams[n].fd);
	}
	program->answer.took_ns = clock_monotonic_ns() - program->started_ns;
	program->answer.status = info->si_status;
	if (read(program->failure_fd, &err, sizeof(err)) == (ssize_t)sizeof(err)) {
		program->answer.end = SPAWN_NOT_STARTED;
		program->answer.status = err;
	} else if (program->timed_out)
		program->answer.end = SPAWN_TIMED_OUT;
	else
		program->answer.end = info->si_code == CLD_EXITED ? SPAWN_EXITED : SPAWN_SIGNALLED;
}

static bool group_is_gone(pid_t group) {
	pid_t got;

	do
		got = waitpid(-group, NULL, WNOHANG);
	while (got > 0);
	return got < 0;
}

static void children_reap(struct helper *helper) {
	siginfo_t info = {0};

	while (waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) == 0 && info.si_pid > 0) {
		struct program *program = NULL;

		for (unsigned n = 0; n < PROGRAMS_MAX && program == NULL; n++) {
			if (helper->programs[n].pid == info.si_pid && !helper->programs[n].left)
				program = &helper->programs[n];
		}
		if (program != NULL)
			program_end(program, &info);
		else
			waitpid(info.si_pid, NULL, 0);
		info.si_pid = 0;
	}
	for (unsigned n = 0; n < PROGRAMS_MAX; n++) {
		struct program *program = &helper->programs[n];

		if (!program->left || program->ended || !group_is_gone(program->pid))
			continue;
		program->pid = 0;
		program->ended = true;
	}
}

static void enforce_deadlines(struct helper *helper) {
	uint64_t now = clock_monotonic_ns();

	for (unsigned n = 0; n < PROGRAMS_MAX; n++) {
		struct program *program = &helper->programs[n];

		if (program->pid <= 0)
			continue;
		if (now >= program->kill_ns) {
			program_kill(program);
		} else if (now >= program->term_ns) {
			program->timed_out = true;
			kill(-program->pid, SIGTERM);
			program->term_ns = NEVER;
			program->kill_ns = now + SPAWN_GRACE_NS;
		} else if (now >= program->gone_ns) {
			program->gone_ns = NEVER;
			program->stuck = true;
			for (unsigned k = 0; k < 2; k++)
				close_fd(&program->streams[k].fd);
		}
	}
}

// Send one record. Returns false if the agent accepts no more now.
static bool record_send(const struct helper *helper, struct iovec *parts, size_t count) {
	struct msghdr message = {.msg_iov = parts, .msg_iovlen = count};

	return sendmsg(helper->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT) >= 0 ||
	       (errno != EAGAIN && errno != ENOBUFS && errno != EINTR);
}

// Send all answers. Returns whether one is left that the agent does not accept now.
static bool answers_send(struct helper *helper) {
	bool left = false;

	for (unsigned n = 0; n < PROGRAMS_MAX; n++) {
		struct program *program = &helper->programs[n];
		struct iovec parts[3] = {{&program->answer, sizeof(program->answer)}};

		// A hanging program is reported once, before the answer.
		if (program->used && program->stuck && !program->stuck_told) {
			struct spawn_answer_head head = {
				.id = program->id,
				.end = SPAWN_END_STUCK,
				.sizes = {sizeof(struct spawn_stuck)},
			};
			struct spawn_stuck stuck;
			struct iovec stuck_parts[2] = {
				{&head, sizeof(head)}, {&stuck, sizeof(stuck)}};

			spawn_stuck_describe(program->pid, &stuck);
			program->stuck_told = record_send(helper, stuck_parts, 2);
			left = left || !program->stuck_told;
		}
		if (!program->used || !program->ended || program->stuck != program->stuck_told)
			continue;
		for (unsigned k = 0; k < 2; k++) {
			parts[k + 1].iov_base = program->streams[k].bytes;
			parts[k + 1].iov_len = program->streams[k].used;
			program->answer.sizes[k] = program->streams[k].used;
			program->answer.cut[k] = program->streams[k].cut;
		}
		if (record_send(helper, parts, 3))
			program_clear(program);
		else
			left = true;
	}
	return left;
}

// Return false if the agent is not trusted and its order is malformed, or if it has no slot.
static bool order_is_acceptable(const struct helper *helper, const char *record, size_t size) {
	struct spawn_order_head head;
	bool has_slot = false;

	if (helper->catalog == NULL)
		return true;
	if (!spawn_order_is_valid(record, size))
		return false;
	memcpy(&head, record, sizeof(head));
	if (head.order == SPAWN_ORDER_CANCEL)
		return true;
	for (unsigned n = 0; n < PROGRAMS_MAX; n++) {
		if (helper->programs[n].used && helper->programs[n].id == head.id)
			return false;
		has_slot = has_slot || !helper->programs[n].used;
	}
	return has_slot;
}

static void orders_receive(struct helper *helper) {
	static char record[SPAWN_ORDER_BYTES_MAX];
	struct spawn_order_head head;
	uint32_t orders = 0;
	ssize_t got;

	while ((got = recv(helper->fd, record, sizeof(record), MSG_DONTWAIT)) > 0) {
		if (!order_is_acceptable(helper, record, (size_t)got))
			break;
		must((size_t)got >= sizeof(head));
		memcpy(&head, record, sizeof(head));
		if (head.order != SPAWN_ORDER_CANCEL) {
			program_start(
				helper, &head, record + sizeof(head), (size_t)got - sizeof(head)
			);
			continue;
		}
		for (unsigned n = 0; n < PROGRAMS_MAX; n++) {
			if (helper->programs[n].id == head.id && helper->programs[n].pid > 0)
				program_kill(&helper->programs[n]);
		}
		// Deadlines must be enforced although an agent sends orders without end.
		if (++orders == SPAWN_PENDING_MAX)
			return;
	}
	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	// The agent is gone or broken: kill all programs and exit.
	for (unsigned n = 0; n < PROGRAMS_MAX; n++) {
		if (helper->programs[n].pid > 0)
			kill(-helper->programs[n].pid, SIGKILL);
	}
	_exit(got > 0 ? 1 : 0);
}

static void helper_turn(struct helper *helper) {
	bool unsent = answers_send(helper);
	struct pollfd fds[2 + 2 * PROGRAMS_MAX] = {
		{helper->fd, (short)(POLLIN | (unsent ? POLLOUT : 0)), 0},
		{helper->signal_fd, POLLIN, 0},
	};
	struct stream *streams[2 * PROGRAMS_MAX];
	uint64_t next_ns = NEVER, polled_ns;
	struct signalfd_siginfo info;
	nfds_t count = 2;

	for (unsigned n = 0; n < 2 * PROGRAMS_MAX; n++) {
		struct program *program = &helper->programs[n / 2];

		if (!program->used || program->streams[n % 2].fd < 0)
			continue;
		streams[count - 2] = &program->streams[n % 2];
		fds[count++] = (struct pollfd){program->streams[n % 2].fd, POLLIN, 0};
	}
	polled_ns = clock_monotonic_ns();
	for (unsigned n = 0; n < PROGRAMS_MAX; n++) {
		const struct program *program = &helper->programs[n];
		uint64_t at_ns =
			program->term_ns < program->kill_ns ? program->term_ns : program->kill_ns;

		if (program->gone_ns < at_ns)
			at_ns = program->gone_ns;
		if (program->pid > 0 && at_ns < next_ns)
			next_ns = at_ns;
	}
	if (poll(fds, count, deadline_poll_timeout_ms((struct deadline){next_ns}, polled_ns)) < 0)
		return;
	for (nfds_t n = 2; n < count; n++) {
		if (fds[n].revents != 0)
			stream_read(streams[n - 2]);
	}
	while (read(helper->signal_fd, &info, sizeof(info)) > 0)
		continue;
	children_reap(helper);
	enforce_deadlines(helper);
	if ((fds[0].revents & (POLLIN | POLLHUP | POLLERR)) != 0)
		orders_receive(helper);
}

void spawn_helper_main(int fd, const struct spawn_catalog *catalog) {
	static const int ignored[] = {SIGTERM, SIGINT, SIGHUP, SIGQUIT, SIGPIPE, SIGTSTP};
	static const char *const unset[] = {
		"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID",
		"LISTEN_FDS",	 "LISTEN_PID",	  "LISTEN_FDNAMES",
	};
	static struct helper helper;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t set;

	prctl(PR_SET_NAME, "tocsin-spawn");
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	setsid();
	if (null < 0 || dup2(null, STDIN_FILENO) < 0 || dup2(fd, FIRST_FREE_FD) < 0 ||
	    close_range(FIRST_FREE_FD + 1, ~0U, 0) != 0)
		_exit(1);
	fcntl(FIRST_FREE_FD, F_SETFD, FD_CLOEXEC);
	// Programs must not notify the service manager in the agent's name.
	for (size_t n = 0; n < sizeof(unset) / sizeof(unset[0]); n++)
		unsetenv(unset[n]); // NOLINT(concurrency-mt-unsafe): one thread
	helper.fd = FIRST_FREE_FD;
	helper.catalog = catalog;
	// Signals of terminal and service manager are meant for the agent; the helper ends with the
	// agent.
	for (size_t n = 0; n < sizeof(ignored) / sizeof(ignored[0]); n++)
		signal(ignored[n], SIG_IGN);
	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	pthread_sigmask(SIG_SETMASK, &set, NULL);
	helper.signal_fd = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (helper.signal_fd < 0)
		_exit(1);
	for (;;)
		helper_turn(&helper);
}
