// SPDX-License-Identifier: BSD-3-Clause
// Log lines are built on the caller's stack and written at once. The only state is the sink, the
// level and two words per call site.
#include <lib/clock.h>
#include <lib/escape.h>
#include <lib/log.h>
#include <lib/must.h>
#include <lib/parse.h>

#include <assert.h>
#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S UINT64_C(1000000000)
#define TRUNCATED_TAIL " truncated=1"

static_assert(LOG_LINE_BYTES_MAX <= PIPE_BUF, "lines from several processes would mix");

static const struct {
	const char *name;
	char priority; // syslog severity
} levels[] = {
	[LOG_LEVEL_ERROR] = {"error", '3'},
	[LOG_LEVEL_WARN] = {"warn", '4'},
	[LOG_LEVEL_INFO] = {"info", '6'},
	[LOG_LEVEL_DEBUG] = {"debug", '7'},
};

#define LEVEL_COUNT (sizeof(levels) / sizeof(levels[0]))

static uint64_t realtime_ns(void) {
	struct timespec now;

	must(clock_gettime(CLOCK_REALTIME, &now) == 0);
	return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

#define PLAIN_STDERR                                                            \
	{                                                                       \
		.fd = STDERR_FILENO, .prefix = LOG_PREFIX_NONE,                 \
		.monotonic_ns = clock_monotonic_ns, .realtime_ns = realtime_ns, \
	}

static const struct log_sink plain_stderr = PLAIN_STDERR;

// State of this file. A process has one stderr, and passing a log object to every caller is
// impractical. The sink is set while one thread runs and only read afterwards. The others are
// atomics.
static struct log_sink sink = PLAIN_STDERR;
static _Atomic uint64_t lost_lines;
// Set if a full disk truncated the last line, so that the next line starts with a newline. Relaxed:
// in a race, both or none of two threads write the newline.
static _Atomic bool is_cut;
_Atomic int log_level_now = LOG_LEVEL_INFO;

// A line being built. Space for the tail and the newline is reserved, so that closing a line always
// succeeds.
struct line {
	char text[LOG_LINE_BYTES_MAX];
	size_t used;
	size_t limit;
	bool truncated;
};

// Append all of the text or nothing. After the first text that does not fit, nothing more is
// appended.
static bool line_put(struct line *line, const char *text, size_t size) {
	if (line->truncated || size > line->limit - line->used) {
		line->truncated = true;
		return false;
	}
	memcpy(line->text + line->used, text, size);
	line->used += size;
	return true;
}

static void line_put_text(struct line *line, const char *text) {
	line_put(line, text, strlen(text));
}

static bool text_needs_no_quotes(const char *text, size_t size) {
	struct escape_unit unit;

	for (size_t at = 0; at < size; at += unit.taken_bytes) {
		escape_next(text + at, size - at, &unit);
		if (unit.text_size != unit.taken_bytes) // escaped
			return false;
		if (unit.text[0] == ' ' || unit.text[0] == '=')
			return false;
	}
	return size > 0;
}

static void line_put_value(struct line *line, const char *text, size_t size) {
	struct escape_unit unit;
	// A value longer than a line is truncated anyway. So hostile input cannot prolong the scan.
	if (size > LOG_LINE_BYTES_MAX)
		size = LOG_LINE_BYTES_MAX;
	if (size <= line->limit - line->used && text_needs_no_quotes(text, size)) {
		line_put(line, text, size);
		return;
	}
	if (line->limit - line->used < 2) {
		line->truncated = true;
		return;
	}
	line->limit--; // reserves the space of the closing quote
	if (line_put(line, "\"", 1)) {
		for (size_t at = 0; at < size; at += unit.taken_bytes) {
			escape_next(text + at, size - at, &unit);
			if (!line_put(line, unit.text, unit.text_size))
				break;
		}
		line->text[line->used++] = '"';
	}
	line->limit++;
}

static void line_put_field(struct line *line, const struct log_field *field) {
	size_t field_at = line->used;
	char digits[24]; // -2^63 has 20 characters
	const char *name;
	size_t value_at;
	long long err;

	line_put_text(line, " ");
	line_put_text(line, field->key);
	line_put_text(line, "=");
	value_at = line->used;
	if (line->truncated) {
		line->used = field_at;
		return;
	}
	switch (field->type) {
	case LOG_FIELD_TEXT:
		line_put_value(line, field->text, field->size_bytes);
		break;
	case LOG_FIELD_UNSIGNED:
		snprintf(digits, sizeof(digits), "%llu", (unsigned long long)field->number);
		line_put_text(line, digits);
		break;
	case LOG_FIELD_SIGNED:
		snprintf(digits, sizeof(digits), "%lld", (long long)field->signed_number);
		line_put_text(line, digits);
		break;
	case LOG_FIELD_BOOL:
		line_put_text(line, field->number != 0 ? "true" : "false");
		break;
	case LOG_FIELD_ERRNO:
		// The field came from an int, so this cannot overflow.
		err = field->signed_number < 0 ? -field->signed_number : field->signed_number;
		snprintf(digits, sizeof(digits), "%lld", err);
		name = err <= INT_MAX ? strerrorname_np((int)err) : NULL;
		line_put_text(line, name != NULL ? name : digits);
		break;
	case LOG_FIELD_END:
		break; // write_line() stops before it
	}
	if (line->used == value_at) // drop a key without a value
		line->used = field_at;
}

static void line_close_and_write(struct line *line) {
	struct pollfd room = {.fd = sink.fd, .events = POLLOUT};
	struct iovec parts[] = {{.iov_base = (char[]){'\n'}, .iov_len = 1}, {.iov_len = 0}};
	ssize_t n = -1;
	bool cut;

	line->limit = sizeof(line->text);
	if (line->truncated) {
		line->truncated = false;
		line_put_text(line, TRUNCATED_TAIL);
	}
	line->text[line->used++] = '\n';
	parts[1] = (struct iovec){.iov_base = line->text, .iov_len = line->used};
	// POLLOUT means that PIPE_BUF bytes fit. The descriptor is shared with other processes, so
	// it must not be set to O_NONBLOCK.
	while (poll(&room, 1, 0) > 0 && (room.revents & POLLOUT) != 0) {
		// Write the line with one call. After a truncated line, a newline goes first.
		cut = atomic_load_explicit(&is_cut, memory_order_relaxed);
		n = writev(sink.fd, cut ? parts : parts + 1, cut ? 2 : 1);
		if (cut && n > 0)
			n--;
		if (n > 0 || (cut && n == 0))
			atomic_store_explicit(
				&is_cut, n > 0 && n < (ssize_t)line->used, memory_order_relaxed
			);
		if (n >= 0 || errno != EINTR)
			break; // with EINTR nothing was written yet
	}
	if (n != (ssize_t)line->used)
		atomic_fetch_add_explicit(&lost_lines, 1, memory_order_relaxed);
}

// Account one line of a call site. Every line costs LOG_REFILL_NS, and a site may be ahead of the
// clock by a burst. One word holds the account, so threads need no lock. Relaxed: no other data
// depends on it.
static bool site_account_line(struct log_site *site, uint64_t now_ns) {
	uint64_t paid = atomic_load_explicit(&site->paid_until_ns, memory_order_relaxed);
	uint64_t from;

	do {
		from = paid > now_ns ? paid : now_ns;
		if (from - now_ns > (LOG_BURST_MAX - 1) * LOG_REFILL_NS) {
			atomic_fetch_add_explicit(&site->suppressed, 1, memory_order_relaxed);
			return false;
		}
	} while (!atomic_compare_exchange_weak_explicit(
		&site->paid_until_ns, &paid, from + LOG_REFILL_NS, memory_order_relaxed,
		memory_order_relaxed
	));
	return true;
}

static void write_line(
	struct log_site *site,
	enum log_level level,
	const char *event,
	const struct log_field *fields
) {
	const char priority[] = {'<', levels[level].priority, '>'};
	uint64_t since_1970_ns = sink.realtime_ns();
	time_t seconds = (time_t)(since_1970_ns / NS_PER_S);
	struct log_field suppressed;
	struct line line;
	char stamp[64];
	struct tm utc;
	size_t size;

	line.used = 0;
	line.limit = sizeof(line.text) - strlen(TRUNCATED_TAIL) - 1;
	line.truncated = false;
	if (sink.prefix == LOG_PREFIX_PRIORITY)
		line_put(&line, priority, sizeof(priority));

	// RFC 3339 with milliseconds.
	must(gmtime_r(&seconds, &utc) != NULL);
	size = strftime(stamp, sizeof(stamp), "%Y-%m-%dT%H:%M:%S", &utc);
	snprintf(
		stamp + size, sizeof(stamp) - size, ".%03uZ ",
		(unsigned)(since_1970_ns % NS_PER_S / 1000000)
	);
	line_put_text(&line, stamp);
	line_put_text(&line, levels[level].name);
	line_put_text(&line, " ");
	line_put_text(&line, event);
	suppressed =
		log_u64("suppressed",
			atomic_exchange_explicit(&site->suppressed, 0, memory_order_relaxed));
	if (suppressed.number > 0)
		line_put_field(&line, &suppressed);
	for (const struct log_field *field = fields;
	     field->type != LOG_FIELD_END && !line.truncated; field++)
		line_put_field(&line, field);
	line_close_and_write(&line);
}

void log_write(
	struct log_site *site,
	enum log_level level,
	const char *event,
	const struct log_field *fields
) {
	int saved_errno = errno;

	must((size_t)level < LEVEL_COUNT);
	if (site_account_line(site, sink.monotonic_ns()))
		write_line(site, level, event, fields);
	errno = saved_errno;
}

enum log_prefix log_choose_prefix(int fd, const char *journal_stream) {
	struct stat status;
	const char *colon;
	uint64_t device;
	uint64_t inode;

	if (journal_stream == NULL)
		return LOG_PREFIX_NONE;
	// "device:inode" of the socket from systemd. If stderr is another descriptor, somebody
	// redirected it and reads the lines directly.
	colon = strchrnul(journal_stream, ':');
	if (parse_u64(
		    journal_stream, (size_t)(colon - journal_stream), 0, UINT64_MAX, NULL, &device
	    ) != 0 ||
	    *colon == '\0' ||
	    parse_u64(colon + 1, strlen(colon + 1), 0, UINT64_MAX, NULL, &inode) != 0)
		return LOG_PREFIX_NONE;
	if (fstat(fd, &status) != 0 || device != status.st_dev || inode != status.st_ino)
		return LOG_PREFIX_NONE;
	return LOG_PREFIX_PRIORITY;
}

void log_init(void) {
	sink = plain_stderr;
	// NOLINTNEXTLINE(concurrency-mt-unsafe): called before there are threads
	sink.prefix = log_choose_prefix(STDERR_FILENO, getenv("JOURNAL_STREAM"));
}

void log_set_sink(const struct log_sink *replacement) {
	sink = replacement != NULL ? *replacement : plain_stderr;
}

void log_set_level(enum log_level level) {
	must((size_t)level < LEVEL_COUNT);
	atomic_store_explicit(&log_level_now, (int)level, memory_order_relaxed);
}

const char *log_level_name(enum log_level level) {
	must((size_t)level < LEVEL_COUNT);
	return levels[level].name;
}

int log_level_parse(const char *name, enum log_level *ret_level) {
	for (size_t i = 0; i < LEVEL_COUNT; i++) {
		if (strcmp(name, levels[i].name) == 0) {
			*ret_level = (enum log_level)i;
			return 0;
		}
	}
	return -EINVAL;
}

uint64_t log_lost_count(void) {
	return atomic_load_explicit(&lost_lines, memory_order_relaxed);
}
