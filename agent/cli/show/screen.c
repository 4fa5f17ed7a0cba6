// SPDX-License-Identifier: BSD-3-Clause
// Terminal of `tocsin top` and `watch`: full screen, keys and signals. The terminal is restored on
// exit.
#include "show/screen.h"

#include "show/frame.h"
#include "show/paint.h"

#include <lib/clock.h>

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/signalfd.h>
#include <termios.h>
#include <unistd.h>

// Alternate screen, hidden cursor, no line wrapping; and the reverse.
#define ENTER "\x1b[?1049h\x1b[?25l\x1b[?7l\x1b[2J"
#define LEAVE "\x1b[?7h\x1b[?25h\x1b[?1049l"
#define SIZE_MIN 4 // a terminal that reports fewer columns or rows does not know its size

static const int caught[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGWINCH, SIGTSTP};
static const int fatal[] = {SIGABRT, SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGPIPE};
#define CAUGHT_COUNT (sizeof(caught) / sizeof(caught[0]))
#define FATAL_COUNT (sizeof(fatal) / sizeof(fatal[0]))

// Saved state for the signal handler.
static struct termios before;
static volatile sig_atomic_t taken;

// Restore the terminal. Uses only async-signal-safe functions.
static void terminal_restore(void) {
	ssize_t written;

	if (!taken)
		return;
	taken = 0;
	written = write(STDOUT_FILENO, LEAVE, sizeof(LEAVE) - 1);
	(void)written; // an error means that the terminal is gone
	tcsetattr(STDIN_FILENO, TCSAFLUSH, &before);
}

static void on_fatal_signal(int number) {
	terminal_restore();
	signal(number, SIG_DFL);
	raise(number);
}

static void screen_measure(struct screen *screen) {
	struct winsize size = {0};

	screen->columns = 80;
	screen->rows = 24;
	if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0)
		return;
	if (size.ws_col >= SIZE_MIN)
		screen->columns = size.ws_col;
	if (size.ws_row >= SIZE_MIN)
		screen->rows = size.ws_row;
	if (screen->rows > FRAME_LINES_MAX)
		screen->rows = FRAME_LINES_MAX;
}

static int terminal_enter(struct screen *screen) {
	struct termios raw;

	if (tcgetattr(STDIN_FILENO, &before) != 0)
		return -errno;
	raw = before;
	raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
	raw.c_cc[VMIN] = 0;
	raw.c_cc[VTIME] = 0;
	taken = 1;
	if (tcsetattr(STDIN_FILENO, TCSAFLUSH, &raw) != 0) {
		taken = 0;
		return -errno;
	}
	screen_measure(screen);
	fputs(ENTER, stdout);
	fflush(stdout);
	return 0;
}

static void signal_set(sigset_t *set) {
	sigemptyset(set);
	for (size_t n = 0; n < CAUGHT_COUNT; n++)
		sigaddset(set, caught[n]);
}

int screen_enter(struct screen *screen) {
	struct sigaction action = {.sa_handler = on_fatal_signal};
	sigset_t set;

	*screen = (struct screen){.signals = -1};
	signal_set(&set);
	screen->signals = signalfd(-1, &set, SFD_NONBLOCK | SFD_CLOEXEC);
	if (screen->signals < 0)
		return -errno;
	pthread_sigmask(SIG_BLOCK, &set, NULL);
	for (size_t n = 0; n < FATAL_COUNT; n++)
		sigaction(fatal[n], &action, NULL);
	return terminal_enter(screen);
}

void screen_leave(struct screen *screen) {
	fflush(stdout);
	terminal_restore();
	if (screen->signals >= 0)
		close(screen->signals);
	screen->signals = -1;
}

void screen_raise_quit_signal(const struct screen *screen) {
	sigset_t set;

	if (screen->fatal_signal == 0)
		return;
	signal(screen->fatal_signal, SIG_DFL);
	raise(screen->fatal_signal); // pending until unblocked
	signal_set(&set);
	pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static enum screen_event screen_read_signal(struct screen *screen) {
	struct signalfd_siginfo info;

	if (read(screen->signals, &info, sizeof(info)) != sizeof(info))
		return SCREEN_DUE;
	switch (info.ssi_signo) {
	case SIGWINCH:
		screen_measure(screen);
		return SCREEN_REDRAW;
	case SIGTSTP: // suspend this process; the shell has the terminal meanwhile
		terminal_restore();
		raise(SIGSTOP);
		return terminal_enter(screen) == 0 ? SCREEN_REDRAW : SCREEN_QUIT;
	default:
		screen->fatal_signal = (int)info.ssi_signo;
		return SCREEN_QUIT;
	}
}

enum screen_event screen_wait(struct screen *screen, uint64_t due_ns) {
	struct pollfd polled[] = {
		{.fd = screen->signals, .events = POLLIN},
		{.fd = STDIN_FILENO, .events = POLLIN},
	};
	enum screen_event event = SCREEN_DUE;
	char keys[64];
	ssize_t size;
	int count =
		poll(polled, 2,
		     deadline_poll_timeout_ms((struct deadline){due_ns}, clock_monotonic_ns()));

	if (count <= 0)
		return count < 0 && errno != EINTR ? SCREEN_QUIT : SCREEN_DUE;
	if (polled[0].revents != 0)
		event = screen_read_signal(screen);
	if (event != SCREEN_DUE || polled[1].revents == 0)
		return event;
	size = read(STDIN_FILENO, keys, sizeof(keys));
	if (size <= 0)
		return SCREEN_QUIT; // hang-up: there is no more input
	for (ssize_t n = 0; n < size; n++) {
		if (keys[n] == 'q' || keys[n] == 'Q')
			return SCREEN_QUIT;
	}
	return SCREEN_REDRAW;
}

void screen_show(const struct screen *screen, const struct frame *frame) {
	(void)screen;
	fputs("\x1b[H", stdout);
	// \x1b[K clears the rest of each line, \x1b[J the lines below.
	frame_print(frame, paint_is_enabled(stdout), "\x1b[K\n", stdout);
	fputs("\x1b[J", stdout);
	fflush(stdout);
}
