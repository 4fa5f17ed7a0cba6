// SPDX-License-Identifier: BSD-3-Clause
// The log: one line per event, on stderr.
//
//	2026-03-01T09:30:00.125Z error start_failed part=rcu error=ENOMEM
//
// A line has time (UTC), level, event name, then key=value pairs. Values are typed fields, never a
// format string. Each is escaped by itself, so a hostile value cannot forge a key or a line:
//
//	log_event(LOG_LEVEL_ERROR, "start_failed", log_str("part", name), log_errno("error", err));
//
// A value is bare if it is visible ASCII or UTF-8 without blank, quote, backslash or '='. Other
// values are in double quotes and escaped, see <lib/escape.h>. A line longer than
// LOG_LINE_BYTES_MAX is cut inside a value and ends in truncated=1.
//
// Each call site may log LOG_BURST_MAX lines at once, then one per LOG_REFILL_NS. Suppressed lines
// are counted, and the next line of the site has suppressed=N. A disabled level costs one relaxed
// load and evaluates no argument.
//
// Every call preserves errno, takes no lock, allocates nothing, and writes each line with one
// system call. Any thread. A line for which stderr has no room, because nobody reads it, is dropped
// and counted. Control threads and the agent log. Workers keep counters and must not call this.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// At most PIPE_BUF: the kernel does not interleave such writes to one pipe.
#define LOG_LINE_BYTES_MAX 2048
#define LOG_BURST_MAX 20
#define LOG_REFILL_NS UINT64_C(1000000000)

enum log_level {
	LOG_LEVEL_ERROR, // data or service is lost, or a person must act
	LOG_LEVEL_WARN,	 // the program continues, but not as intended
	LOG_LEVEL_INFO,	 // useful to an operator afterwards; the default
	LOG_LEVEL_DEBUG,
};

enum log_prefix {
	LOG_PREFIX_NONE,
	LOG_PREFIX_PRIORITY, // "<3>" and so on; journald removes it
};

// Destination of the lines. Both clocks are replaceable for tests.
struct log_sink {
	int fd;
	enum log_prefix prefix;
	uint64_t (*monotonic_ns)(void); // clock of the rate limit
	uint64_t (*realtime_ns)(void);	// ns since 1970, UTC; shown in the line
};

enum log_field_type {
	LOG_FIELD_END, // end of the list that log_event() builds
	LOG_FIELD_TEXT,
	LOG_FIELD_UNSIGNED,
	LOG_FIELD_SIGNED,
	LOG_FIELD_BOOL,
	LOG_FIELD_ERRNO,
};

struct log_field {
	const char *key;
	enum log_field_type type;
	size_t size_bytes; // text only
	union {
		const char *text;
		uint64_t number;
		int64_t signed_number;
	};
};

// State of one call site, zero-initialized; written by every thread that logs there.
struct log_site {
	_Atomic uint64_t paid_until_ns; // time up to which past lines used the rate
	_Atomic uint64_t suppressed;	// lines since the last one that was written
};

// Current level, read by every thread and changed at run time by log_set_level(). Public only for
// log_enabled().
extern _Atomic int log_level_now;

static inline bool log_enabled(enum log_level level) {
	return (int)level <= atomic_load_explicit(&log_level_now, memory_order_relaxed);
}

// clang-format off
#define log_event(level, event, ...) \
	do { \
		static struct log_site log_site_; \
		if (log_enabled(level)) \
			log_write(&log_site_, (level), "" event, (const struct log_field[]){ \
				__VA_ARGS__ __VA_OPT__(,) {.type = LOG_FIELD_END}}); \
	} while (0)
// clang-format on

// Write one line. log_event() calls this for an enabled level. Any thread.
void log_write(
	struct log_site *site,
	enum log_level level,
	const char *event,
	const struct log_field *fields
);

// Choose stderr. Lines get journald priorities unless stderr is a terminal or differs from the
// socket in JOURNAL_STREAM. Call once, before other threads exist. Until then lines go to stderr
// without priorities.
void log_init(void);

// Replace the sink (NULL: stderr without priorities). No other thread may log meanwhile.
void log_set_sink(const struct log_sink *sink);

// Return the prefix that log_init() would choose for a descriptor and a value of JOURNAL_STREAM
// (NULL if unset).
enum log_prefix log_choose_prefix(int fd, const char *journal_stream);

// Set the level. Any thread. Other threads see the change soon, not at once.
void log_set_level(enum log_level level);

const char *log_level_name(enum log_level level);

// Parse a level. Returns 0, or -EINVAL for other words than error, warn, info and debug.
int log_level_parse(const char *name, enum log_level *ret_level);

// Return the number of lines that were not written completely since the start (full disk, closed
// pipe). Any thread.
uint64_t log_lost_count(void);

// A text field; NULL is shown as (null).
static inline struct log_field log_str(const char *key, const char *text) {
	if (text == NULL)
		text = "(null)";
	return (struct log_field){key, LOG_FIELD_TEXT, strlen(text), {.text = text}};
}

// A text field whose bytes need no terminator.
static inline struct log_field log_bytes(const char *key, const char *text, size_t size_bytes) {
	return (struct log_field){key, LOG_FIELD_TEXT, size_bytes, {.text = text}};
}

static inline struct log_field log_u64(const char *key, uint64_t number) {
	return (struct log_field){key, LOG_FIELD_UNSIGNED, 0, {.number = number}};
}

static inline struct log_field log_i64(const char *key, int64_t number) {
	return (struct log_field){key, LOG_FIELD_SIGNED, 0, {.signed_number = number}};
}

static inline struct log_field log_bool(const char *key, bool truth) {
	return (struct log_field){key, LOG_FIELD_BOOL, 0, {.number = truth}};
}

// An error field, shown by name: ECONNREFUSED. Accepts errno and -errno.
static inline struct log_field log_errno(const char *key, int err) {
	return (struct log_field){key, LOG_FIELD_ERRNO, 0, {.signed_number = err}};
}
