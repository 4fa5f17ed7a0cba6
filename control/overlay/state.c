// SPDX-License-Identifier: BSD-3-Clause
// The state directory: start counter, journal, paths and members, written by one thread.
#include "overlay/state_file.h"

#include <control/keeper.h>
#include <control/member_list.h>
#include <control/path_book.h>
#include <control/state.h>
#include <lib/error.h>
#include <lib/log.h>
#include <lib/must.h>
#include <lib/parse.h>
#include <lib/scoped.h>
#include <lib/thread.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define CLOSE_WAIT_S 2
#define JOURNAL_BYTES_MIN 65536
#define RETRY_S 2 // a text that could not be written is tried again, also on an idle agent

static const struct {
	const char *name;
	size_t bytes_max;
	const char *effect; // effect of its loss
} texts[STATE_TEXT_COUNT] = {
	[STATE_PATHS] = {"paths", PATH_BOOK_BYTES, "path baselines are relearned after a restart"},
	[STATE_MEMBERS] =
		{"members", MEMBER_LIST_BYTES,
		 "after a restart the agent joins through older or configured addresses"},
	[STATE_MAINTENANCE] =
		{"maintenance", STATE_MAINTENANCE_BYTES,
		 "if all agents restart together, nodes may be out of maintenance"},
};

struct state {
	int directory;
	int lock;
	uint64_t start;
	uint64_t journal_bytes_max; // limit of both files together
	struct state_event *earlier;
	uint32_t earlier_count;
	char *texts[STATE_TEXT_COUNT]; // from an earlier run, until they are taken
	int text_errs[STATE_TEXT_COUNT];

	pthread_t writer;
	bool writer_runs;
	// Used by the writer only.
	bool journal_cut;			  // the file does not end in a newline
	uint64_t journal_failures;		  // consecutive failures
	uint64_t text_failures[STATE_TEXT_COUNT]; // likewise
	// Protected by the mutex, which nobody holds while waiting for a disk.
	pthread_mutex_t mutex;
	pthread_cond_t wanted, idle;
	struct state_event queue[STATE_QUEUE_EVENTS];
	uint32_t queue_first, queue_count;
	uint64_t start_wanted;		      // start counter to be written; 0: none
	char *texts_wanted[STATE_TEXT_COUNT]; // texts to be written; NULL: none
	char *texts_failed[STATE_TEXT_COUNT]; // texts to be tried again; NULL: none
	bool busy, stop;
	bool left_behind; // closed while the writer was busy: the writer frees it

	_Atomic uint64_t written;  // writer: rw, others: ro; all counters relaxed, no order needed
	_Atomic uint64_t lost;	   // loop: rw, others: ro
	_Atomic uint64_t failures; // writer: rw, others: ro
};

static void counter_increment(_Atomic uint64_t *counter) {
	atomic_fetch_add_explicit(counter, 1, memory_order_relaxed);
}

// The writer: only this thread touches the disk once the loop runs.

static int journal_open(struct state *state) {
	int fd =
		openat(state->directory, "journal",
		       O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0600);
	struct stat info;
	char last;

	// The last line is incomplete if a full disk or a crash cut it short. Then the next line
	// begins with a newline, and the reader leaves out only the broken line.
	state->journal_cut = fd >= 0 && fstat(fd, &info) == 0 && info.st_size > 0 &&
			     pread(fd, &last, 1, info.st_size - 1) == 1 && last != '\n';
	return fd;
}

// Append the event with one write. The line begins with a newline, which is used only after a
// broken line. Returns false and sets errno if the event is lost.
static bool journal_write(struct state *state, int *fd, const struct state_event *event) {
	char line[1 + STATE_LINE_BYTES_MAX] = "\n";
	int size = state_line_format(event, line + 1, sizeof(line) - 1);
	const char *from;
	struct stat info;
	ssize_t written;
	size_t wanted;

	if (*fd < 0)
		*fd = journal_open(state);
	if (size < 0 || *fd < 0 || fstat(*fd, &info) != 0)
		return false;
	size++;
	if ((uint64_t)info.st_size + (uint64_t)size > state->journal_bytes_max / 2) {
		bool moved =
			renameat(state->directory, "journal", state->directory, "journal.1") == 0;
		int saved_errno = errno;

		close(*fd);
		*fd = -1;
		errno = saved_errno;
		if (!moved)
			return false; // nothing more is written to a full journal
		*fd = journal_open(state);
	}
	if (*fd < 0)
		return false;
	from = state->journal_cut ? line : line + 1;
	wanted = (size_t)size - (size_t)(from - line);
	written = write(*fd, from, wanted);
	if (written > 0)
		state->journal_cut = from[written - 1] != '\n';
	if (written >= 0 && written < (ssize_t)wanted)
		errno = ENOSPC; // the disk had room for a part of the line only
	return written == (ssize_t)wanted;
}

static int start_write_file(struct state *state, uint64_t start) {
	char text[32];

	snprintf(text, sizeof(text), "%" PRIu64 "\n", start);
	return state_file_replace(state->directory, "start", text);
}

static void writer_write_event(struct state *state, int *fd, const struct state_event *event) {
	if (journal_write(state, fd, event)) {
		counter_increment(&state->written);
		if (state->journal_failures > 0)
			log_event(
				LOG_LEVEL_INFO, "journal_is_written_again",
				log_u64("events_lost", state->journal_failures)
			);
		state->journal_failures = 0;
		return;
	}
	counter_increment(&state->failures);
	// Log this only once, because a full disk stays full for a while.
	if (state->journal_failures++ == 0)
		log_event(
			LOG_LEVEL_WARN, "journal_write_failed", log_errno("error", errno),
			log_str("effect",
				"events are not stored until the journal can be written again")
		);
}

// Returns false if the text has to be tried again.
static bool writer_write_text(struct state *state, enum state_text which, const char *text) {
	int err = state_file_replace(state->directory, texts[which].name, text);

	if (err == 0) {
		if (state->text_failures[which] > 0)
			log_event(
				LOG_LEVEL_INFO, "state_is_written_again",
				log_str("file", texts[which].name),
				log_u64("failures", state->text_failures[which])
			);
		state->text_failures[which] = 0;
		return true;
	}
	counter_increment(&state->failures);
	if (state->text_failures[which]++ == 0)
		log_event(
			LOG_LEVEL_WARN, "state_write_failed", log_str("file", texts[which].name),
			log_errno("error", err), log_str("effect", texts[which].effect)
		);
	return false;
}

// The mutex must be held, also for writer_wait_for_work().
static bool state_has_work(const struct state *state) {
	for (int which = 0; which < STATE_TEXT_COUNT; which++) {
		if (state->texts_wanted[which] != NULL)
			return true;
	}
	return state->queue_count > 0 || state->start_wanted != 0;
}

struct work {
	struct state_event event;
	bool has_event;
	uint64_t start;
	char *texts[STATE_TEXT_COUNT];
};

// Wait until there may be work. A text whose write failed is written again after RETRY_S.
static void writer_wait(struct state *state) {
	struct timespec until;
	bool failed = false;

	for (int which = 0; which < STATE_TEXT_COUNT; which++)
		failed = failed || state->texts_failed[which] != NULL;
	if (!failed) {
		pthread_cond_wait(&state->wanted, &state->mutex);
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += RETRY_S;
	if (pthread_cond_clockwait(&state->wanted, &state->mutex, CLOCK_MONOTONIC, &until) !=
	    ETIMEDOUT)
		return;
	for (int which = 0; which < STATE_TEXT_COUNT; which++) {
		if (state->texts_failed[which] == NULL)
			continue;
		must(state->texts_wanted[which] == NULL); // a newer text drops the failed one
		state->texts_wanted[which] = state->texts_failed[which];
		state->texts_failed[which] = NULL;
	}
}

// Wait for work and take it. Returns false if there is none and none will come.
static bool writer_wait_for_work(struct state *state, struct work *ret_work) {
	while (!state_has_work(state)) {
		state->busy = false;
		pthread_cond_broadcast(&state->idle);
		if (state->stop)
			return false;
		writer_wait(state);
	}
	state->busy = true;
	ret_work->start = state->start_wanted;
	memcpy(ret_work->texts, state->texts_wanted, sizeof(ret_work->texts));
	ret_work->has_event = state->queue_count > 0;
	state->start_wanted = 0;
	memset(state->texts_wanted, 0, sizeof(state->texts_wanted));
	if (!ret_work->has_event)
		return true;
	ret_work->event = state->queue[state->queue_first];
	state->queue_first = (state->queue_first + 1) % STATE_QUEUE_EVENTS;
	// Begin at the front again. Otherwise the pages of all 1,024 entries would be touched in
	// time.
	if (--state->queue_count == 0)
		state->queue_first = 0;
	return true;
}

// Keep the texts whose write failed for another try, unless newer texts are queued. The mutex must
// be held.
static void texts_requeue_failed(struct state *state, char *const failed[static STATE_TEXT_COUNT]) {
	for (int which = 0; which < STATE_TEXT_COUNT; which++) {
		if (state->texts_wanted[which] != NULL)
			free(failed[which]);
		else if (failed[which] != NULL)
			state->texts_failed[which] = failed[which];
	}
}

static void state_free(struct state *state) {
	if (state->lock >= 0)
		close(state->lock);
	if (state->directory >= 0)
		close(state->directory);
	pthread_mutex_destroy(&state->mutex);
	pthread_cond_destroy(&state->wanted);
	pthread_cond_destroy(&state->idle);
	free(state->earlier);
	for (int which = 0; which < STATE_TEXT_COUNT; which++) {
		free(state->texts[which]);
		free(state->texts_wanted[which]);
		free(state->texts_failed[which]);
	}
	free(state);
}

static void *writer_main(void *argument) {
	struct state *state = argument;
	struct work work;
	bool left_behind;
	int fd = -1;
	int err;

	pthread_mutex_lock(&state->mutex);
	while (writer_wait_for_work(state, &work)) {
		pthread_mutex_unlock(&state->mutex);
		err = work.start != 0 ? start_write_file(state, work.start) : 0;
		if (err != 0) {
			counter_increment(&state->failures);
			log_event(
				LOG_LEVEL_WARN, "start_counter_write_failed",
				log_errno("error", err)
			);
		}
		for (int which = 0; which < STATE_TEXT_COUNT; which++) {
			char *text = work.texts[which];

			if (text == NULL || !writer_write_text(state, (enum state_text)which, text))
				continue;
			free(text);
			work.texts[which] = NULL;
		}
		if (work.has_event)
			writer_write_event(state, &fd, &work.event);
		pthread_mutex_lock(&state->mutex);
		texts_requeue_failed(state, work.texts);
	}
	left_behind = state->left_behind;
	pthread_mutex_unlock(&state->mutex);
	if (fd >= 0)
		close(fd);
	if (left_behind)
		state_free(state);
	return NULL;
}

// Opening.

static int state_load_text(const struct state *state, enum state_text which, char **ret_text) {
	scoped_mem char *text = malloc(texts[which].bytes_max);
	int err;

	if (text == NULL)
		return -ENOMEM;
	err = state_file_read(state->directory, texts[which].name, text, texts[which].bytes_max);
	if (err != 0)
		return err;
	*ret_text = strdup(text);
	return *ret_text != NULL ? 0 : -ENOMEM;
}

static void start_counter_advance(struct state *state) {
	char text[32];
	uint64_t last = 0;
	int err = state_file_read(state->directory, "start", text, sizeof(text));

	if (err == 0) {
		text[strcspn(text, "\n")] = '\0';
		err = parse_u64(text, strlen(text), 1, RAS_START_MAX - 1, NULL, &last);
	}
	if (err != 0 && err != -ENOENT) {
		// Do not use 1: the cluster may know a larger counter, which the join assigns.
		log_event(
			LOG_LEVEL_WARN, "start_counter_unreadable", log_errno("error", err),
			log_str("effect", "other members tell this agent which start this is")
		);
		return;
	}
	err = start_write_file(state, last + 1);
	if (err != 0) {
		log_event(LOG_LEVEL_WARN, "start_counter_write_failed", log_errno("error", err));
		return;
	}
	// Without a file this is the first start, or the file was lost: the join assigns the
	// counter.
	state->start = last == 0 ? 0 : last + 1;
}

int state_open(
	const char *directory,
	uint64_t journal_bytes_max,
	char ret_detail[static STATE_DETAIL_BYTES],
	struct state **ret_state
) {
	struct state *state = calloc(1, sizeof(*state));
	int err;

	if (state == NULL)
		return state_detail(ret_detail, "cannot open", directory, -ENOMEM);
	state->directory = -1;
	state->lock = -1;
	state->journal_bytes_max =
		journal_bytes_max < JOURNAL_BYTES_MIN ? JOURNAL_BYTES_MIN : journal_bytes_max;
	pthread_mutex_init(&state->mutex, NULL);
	pthread_cond_init(&state->wanted, NULL);
	pthread_cond_init(&state->idle, NULL);
	err = state_directory_open(directory, ret_detail, &state->directory, &state->lock);
	if (err == 0) {
		err = state_earlier_read(state->directory, &state->earlier, &state->earlier_count);
		if (err == 0) {
			start_counter_advance(state);
			for (int n = 0; n < STATE_TEXT_COUNT; n++)
				state->text_errs[n] = state_load_text(
					state, (enum state_text)n, &state->texts[n]
				);
			err = thread_start_masked(
				"tocsin-state", writer_main, state, &state->writer
			);
			state->writer_runs = err == 0;
		}
		if (err != 0)
			state_detail(ret_detail, "cannot use", directory, err);
	}
	if (err != 0) {
		state_close(state);
		return err;
	}
	*ret_state = state;
	return 0;
}

// A disk that hangs must not keep the agent from ending. The writer is left behind then, and frees
// the state when the disk answers.
struct state *state_close(struct state *state) {
	struct timespec until;
	pthread_t writer;
	bool idle;

	if (state == NULL)
		return NULL;
	if (!state->writer_runs) {
		state_free(state);
		return NULL;
	}
	writer = state->writer; // `state` may be freed below
	pthread_mutex_lock(&state->mutex);
	state->stop = true;
	pthread_cond_signal(&state->wanted);
	clock_gettime(CLOCK_REALTIME, &until);
	until.tv_sec += CLOSE_WAIT_S;
	while ((state->busy || state_has_work(state)) &&
	       pthread_cond_timedwait(&state->idle, &state->mutex, &until) == 0)
		continue;
	idle = !state->busy && !state_has_work(state);
	state->left_behind = !idle;
	pthread_mutex_unlock(&state->mutex);
	if (idle) {
		pthread_join(writer, NULL);
		state_free(state);
	} else {
		pthread_detach(writer);
		log_event(
			LOG_LEVEL_WARN, "journal_hangs", log_str("effect", "queued events are lost")
		);
	}
	return NULL;
}

uint64_t state_start(const struct state *state) {
	return state->start;
}

void state_save_start(struct state *state, uint64_t start) {
	pthread_mutex_lock(&state->mutex);
	state->start_wanted = start;
	pthread_cond_signal(&state->wanted);
	pthread_mutex_unlock(&state->mutex);
}

int state_read_text(struct state *state, enum state_text which, char **ret_text) {
	int err = state->text_errs[which];

	state->text_errs[which] = -ENOENT;
	if (err != 0)
		return err;
	*ret_text = state->texts[which];
	state->texts[which] = NULL;
	return 0;
}

void state_save_text(struct state *state, enum state_text which, char *text) {
	char *before, *failed;

	pthread_mutex_lock(&state->mutex);
	before = state->texts_wanted[which];
	failed = state->texts_failed[which];
	state->texts_wanted[which] = text;
	state->texts_failed[which] = NULL;
	pthread_cond_signal(&state->wanted);
	pthread_mutex_unlock(&state->mutex);
	free(before);
	free(failed);
}

void state_journal(struct state *state, const struct state_event *event) {
	pthread_mutex_lock(&state->mutex);
	if (state->queue_count == STATE_QUEUE_EVENTS) {
		counter_increment(&state->lost);
	} else {
		uint32_t last = (state->queue_first + state->queue_count) % STATE_QUEUE_EVENTS;

		state->queue[last] = *event;
		state->queue_count++;
		pthread_cond_signal(&state->wanted);
	}
	pthread_mutex_unlock(&state->mutex);
}

uint32_t state_earlier(const struct state *state, const struct state_event **ret_events) {
	*ret_events = state->earlier;
	return state->earlier_count;
}

void state_counters(const struct state *state, struct state_counters *ret_counters) {
	ret_counters->events_written = atomic_load_explicit(&state->written, memory_order_relaxed);
	ret_counters->events_lost = atomic_load_explicit(&state->lost, memory_order_relaxed);
	ret_counters->write_failures = atomic_load_explicit(&state->failures, memory_order_relaxed);
}
