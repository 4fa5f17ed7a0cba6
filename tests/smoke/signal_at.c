// SPDX-License-Identifier: BSD-3-Clause
// Preloaded into an agent by a test: sends signals at a chosen step. A step is a call of one of the
// functions below. A name such as "0 bind 2" has the thread, the function, and the number of its
// calls in this thread. Thread 0 is main's; the others follow in order of creation. Calls before
// main() are ignored.
//
//	SIGNAL_AT_REPORT=FILE      output file for reports
//	SIGNAL_AT_LIST=1           report every step
//	SIGNAL_AT="0 bind 2 15 1"  before that step send these signals, 4 at most; reported as
//	                           "fired BLOCKED", where 0 means default action
//	SIGNAL_THEN="7 15"         this many steps of main's thread later send this signal, too
//	SIGNAL_HOLD=7              the signalled thread, if not main's, hangs for this many steps of
//	                           main's thread; reported as "held"
//
// The helper, which is a fork of the agent, gets no signals.
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#define THREADS_MAX 512
#define SIGNALS_MAX 4
#define REPORT_FD_MIN 300 // above the agent's own descriptors

static struct {
	int report;
	bool list;
	pid_t agent;
	int thread;
	char call[32];
	unsigned ordinal;
	int signals[SIGNALS_MAX];
	int count;
	int then; // steps; < 0: none
	int then_signal;
	int hold; // steps; 0: no hang
} plan = {.report = -1, .then = -1};

static atomic_bool counts; // main() has started
static atomic_bool fired;
static atomic_int since; // steps of main's thread since the signal
static atomic_int threads = 1;
static __thread int own_number;

struct begin {
	void *(*start)(void *argument);
	void *argument;
	int number;
};

static struct begin begins[THREADS_MAX];

static const char *variable(const char *name) {
	return getenv(name); // NOLINT(concurrency-mt-unsafe): never set here
}

static void tell(const char *format, ...) __attribute__((format(printf, 1, 2)));

static void tell(const char *format, ...) {
	char line[128];
	va_list arguments;
	int size;

	va_start(arguments, format);
	size = vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	if (size > 0 && plan.report >= 0)
		(void)!syscall(SYS_write, plan.report, line, (size_t)size);
}

__attribute__((constructor)) static void read_plan(void) {
	const char *report = variable("SIGNAL_AT_REPORT");
	const char *at = variable("SIGNAL_AT"), *then = variable("SIGNAL_THEN");
	const char *hold = variable("SIGNAL_HOLD");
	int *to = plan.signals;
	int fd =
		report != NULL ? open(report, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;

	plan.report = fcntl(fd, F_DUPFD_CLOEXEC, REPORT_FD_MIN);
	close(fd);
	plan.list = variable("SIGNAL_AT_LIST") != NULL;
	plan.agent = getpid();
	// NOLINTBEGIN(cert-err34-c): the test writes valid text
	if (at != NULL)
		plan.count = sscanf(at, "%d %31s %u %d %d %d %d", &plan.thread, plan.call,
				    &plan.ordinal, &to[0], &to[1], &to[2], &to[3]) -
			     3;
	if (then != NULL)
		(void)sscanf(then, "%d %d", &plan.then, &plan.then_signal);
	if (hold != NULL)
		(void)sscanf(hold, "%d", &plan.hold);
	// NOLINTEND(cert-err34-c)
}

static int is_blocked(int number) {
	sigset_t blocked;

	sigemptyset(&blocked);
	syscall(SYS_rt_sigprocmask, SIG_BLOCK, NULL, &blocked, (size_t)8);
	return sigismember(&blocked, number);
}

static void fire(void) {
	tell("fired %d\n", is_blocked(plan.signals[0]));
	atomic_store(&fired, true);
	for (int n = 0; n < plan.count; n++)
		kill(plan.agent, plan.signals[n]);
}

// Hang like a call into a hung driver: main's thread must not wait for it.
static void hang(void) {
	const struct timespec a_while = {.tv_nsec = 200000};

	tell("held\n");
	while (atomic_load(&since) < plan.hold)
		syscall(SYS_nanosleep, &a_while, NULL);
}

static void step(const char *call, unsigned ordinal) {
	int saved_errno = errno;
	char comm[16];

	if (!atomic_load(&counts) || getpid() != plan.agent)
		return;
	if (plan.list && pthread_getname_np(pthread_self(), comm, sizeof(comm)) == 0)
		tell("%d %s %u %s\n", own_number, call, ordinal, comm);
	if (own_number == 0 && atomic_load(&fired) && atomic_fetch_add(&since, 1) == plan.then) {
		tell("then %d\n", is_blocked(plan.then_signal));
		kill(plan.agent, plan.then_signal);
	}
	if (plan.count > 0 && own_number == plan.thread && ordinal == plan.ordinal &&
	    strcmp(call, plan.call) == 0) {
		fire();
		if (own_number != 0)
			hang();
	}
	errno = saved_errno;
}

// Find the real function once; concurrent callers find the same.
static void *next(void *_Atomic *known, const char *name) {
	void *found = atomic_load(known);

	if (found == NULL) {
		found = dlsym(RTLD_NEXT, name);
		atomic_store(known, found);
	}
	return found;
}

// NOLINTBEGIN(bugprone-macro-parentheses,readability-inconsistent-declaration-parameter-name)
#define STEP(result, name, parameters, arguments)      \
	result name parameters {                       \
		static void *_Atomic known;            \
		static __thread unsigned made;         \
		result(*real) parameters;              \
                                                       \
		*(void **)&real = next(&known, #name); \
		step(#name, ++made);                   \
		return real arguments;                 \
	}

STEP(int, socket, (int domain, int type, int protocol), (domain, type, protocol))
STEP(int,
     socketpair,
     (int domain, int type, int protocol, int fds[2]),
     (domain, type, protocol, fds))
STEP(int, bind, (int fd, const struct sockaddr *address, socklen_t size), (fd, address, size))
STEP(int, listen, (int fd, int backlog), (fd, backlog))
STEP(int, connect, (int fd, const struct sockaddr *address, socklen_t size), (fd, address, size))
STEP(int,
     accept4,
     (int fd, struct sockaddr *address, socklen_t *size, int flags),
     (fd, address, size, flags))
STEP(int, shutdown, (int fd, int how), (fd, how))
STEP(int,
     setsockopt,
     (int fd, int level, int name, const void *value, socklen_t size),
     (fd, level, name, value, size))
STEP(ssize_t, send, (int fd, const void *bytes, size_t size, int flags), (fd, bytes, size, flags))
STEP(ssize_t,
     sendto,
     (int fd, const void *bytes, size_t size, int flags, const struct sockaddr *to, socklen_t length
     ),
     (fd, bytes, size, flags, to, length))
STEP(ssize_t, sendmsg, (int fd, const struct msghdr *message, int flags), (fd, message, flags))
STEP(ssize_t, recv, (int fd, void *bytes, size_t size, int flags), (fd, bytes, size, flags))
STEP(ssize_t, recvmsg, (int fd, struct msghdr *message, int flags), (fd, message, flags))
STEP(int, close, (int fd), (fd))
STEP(ssize_t, read, (int fd, void *bytes, size_t size), (fd, bytes, size))
STEP(ssize_t, write, (int fd, const void *bytes, size_t size), (fd, bytes, size))
STEP(int, poll, (struct pollfd * fds, nfds_t count, int timeout_ms), (fds, count, timeout_ms))
STEP(int, epoll_create1, (int flags), (flags))
STEP(int,
     epoll_ctl,
     (int epoll, int what, int fd, struct epoll_event *event),
     (epoll, what, fd, event))
STEP(int,
     epoll_wait,
     (int epoll, struct epoll_event *events, int count, int timeout_ms),
     (epoll, events, count, timeout_ms))
STEP(int, eventfd, (unsigned value, int flags), (value, flags))
STEP(int, timerfd_create, (clockid_t clock, int flags), (clock, flags))
STEP(int,
     timerfd_settime,
     (int fd, int flags, const struct itimerspec *fresh, struct itimerspec *old),
     (fd, flags, fresh, old))
STEP(int, signalfd, (int fd, const sigset_t *set, int flags), (fd, set, flags))
STEP(int, mkdir, (const char *path, mode_t mode), (path, mode))
STEP(int, rmdir, (const char *path), (path))
STEP(int, unlink, (const char *path), (path))
STEP(int, unlinkat, (int directory, const char *path, int flags), (directory, path, flags))
STEP(int,
     renameat,
     (int from_fd, const char *from, int to_fd, const char *to),
     (from_fd, from, to_fd, to))
STEP(int, fsync, (int fd), (fd))
STEP(int, flock, (int fd, int what), (fd, what))
STEP(FILE *, fopen64, (const char *path, const char *mode), (path, mode))
STEP(DIR *, opendir, (const char *path), (path))
STEP(void *,
     mmap64,
     (void *at, size_t size, int access, int flags, int fd, off64_t offset),
     (at, size, access, flags, fd, offset))
STEP(int, munmap, (void *at, size_t size), (at, size))
STEP(int,
     getaddrinfo,
     (const char *host, const char *service, const struct addrinfo *hints, struct addrinfo **result
     ),
     (host, service, hints, result))
STEP(ssize_t, getrandom, (void *bytes, size_t size, unsigned flags), (bytes, size, flags))
STEP(pid_t, fork, (void), ())
STEP(pid_t, waitpid, (pid_t pid, int *status, int flags), (pid, status, flags))
STEP(int, pthread_join, (pthread_t thread, void **result), (thread, result))
STEP(int, pthread_detach, (pthread_t thread), (thread))
STEP(int, pthread_setname_np, (pthread_t thread, const char *name), (thread, name))
STEP(int,
     pthread_cond_wait,
     (pthread_cond_t * condition, pthread_mutex_t *mutex),
     (condition, mutex))
// NOLINTEND(bugprone-macro-parentheses,readability-inconsistent-declaration-parameter-name)

// The first call of main(): enables the counting of steps.
int pthread_sigmask(int how, const sigset_t *set, sigset_t *old) {
	static void *_Atomic known;
	static __thread unsigned made;
	int (*real)(int, const sigset_t *, sigset_t *);
	int err;

	*(void **)&real = next(&known, "pthread_sigmask");
	step("pthread_sigmask", ++made);
	err = real(how, set, old);
	atomic_store(&counts, true);
	return err;
}

static mode_t mode_of(int flags, va_list arguments) {
	return (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(arguments, mode_t) : 0;
}

int open64(const char *path, int flags, ...) {
	static void *_Atomic known;
	static __thread unsigned made;
	int (*real)(const char *, int, mode_t);
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = mode_of(flags, arguments);
	va_end(arguments);
	*(void **)&real = next(&known, "open64");
	step("open64", ++made);
	return real(path, flags, mode);
}

int openat64(int directory, const char *path, int flags, ...) {
	static void *_Atomic known;
	static __thread unsigned made;
	int (*real)(int, const char *, int, mode_t);
	va_list arguments;
	mode_t mode;

	va_start(arguments, flags);
	mode = mode_of(flags, arguments);
	va_end(arguments);
	*(void **)&real = next(&known, "openat64");
	step("openat64", ++made);
	return real(directory, path, flags, mode);
}

static void *begin_thread(void *argument) {
	struct begin *place = argument, begin = *place;

	*place = (struct begin){0}; // clear the pointers, so that they do not hide a leak
	own_number = begin.number;
	return begin.start(begin.argument);
}

int pthread_create(
	pthread_t *thread,
	const pthread_attr_t *attributes,
	void *(*start)(void *argument),
	void *argument
) {
	static void *_Atomic known;
	static __thread unsigned made;
	int (*real)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
	int number = atomic_fetch_add(&threads, 1);

	*(void **)&real = next(&known, "pthread_create");
	step("pthread_create", ++made);
	if (number >= THREADS_MAX)
		return EAGAIN;
	begins[number] = (struct begin){start, argument, number};
	return real(thread, attributes, begin_thread, &begins[number]);
}
