// SPDX-License-Identifier: BSD-3-Clause
// The log: one line per event, on stderr.
//
//	2026-03-01T09:30:00.125Z error start_failed part=rcu error=ENOMEM
//
// Time (UTC), level, event name, then key=value. Values are typed fields, never a format
// string, so each can be escaped by itself and a hostile value cannot forge a key or a line:
//
//	log_event(LOG_LEVEL_ERROR, "start_failed", log_str("part", name), log_errno("error", err));
//
// A value is bare if it is visible ASCII or UTF-8 without blank, quote, backslash or '=',
// else between double quotes and escaped as <lib/escape.h> says. A line that would pass
// LOG_LINE_BYTES_MAX is cut inside a value and ends in truncated=1.
//
// Each place in the source may log LOG_BURST_MAX lines at once and then one per
// LOG_REFILL_NS; what is held back is counted, and the next line let through says
// suppressed=N. A disabled level costs one relaxed load and evaluates no argument.
//
// Every call keeps errno, takes no lock and no memory, and hands the kernel whole lines, one
// write each, from any thread. A line that stderr has no room for, since nobody reads it, is
// lost and counted. Control and agent log; workers count, and never call this.
#pragma once

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// At most PIPE_BUF, up to which writers to one pipe do not mix their bytes.
#define LOG_LINE_BYTES_MAX 2048
#define LOG_BURST_MAX 20
#define LOG_REFILL_NS UINT64_C(1000000000)

enum log_level {
	LOG_LEVEL_ERROR, // something is lost, or a person must act
	LOG_LEVEL_WARN,	 // we go on, but not as intended
	LOG_LEVEL_INFO,	 // what an operator wants to read after the fact; the default
	LOG_LEVEL_DEBUG,
};

enum log_prefix {
	LOG_PREFIX_NONE,
	LOG_PREFIX_PRIORITY, // "<3>" and so on, which journald takes off again
};

// Where lines go. Both clocks may be replaced, so that a test turns them by hand.
struct log_sink {
	int fd;
	enum log_prefix prefix;
	uint64_t (*monotonic_ns)(void); // feeds the rate limit
	uint64_t (*realtime_ns)(void);	// since 1970, UTC; what a line shows
};

enum log_field_type {
	LOG_FIELD_END, // closes the list that log_event() builds
	LOG_FIELD_TEXT,
	LOG_FIELD_UNSIGNED,
	LOG_FIELD_SIGNED,
	LOG_FIELD_BOOL,
	LOG_FIELD_ERRNO,
};

struct log_field {
	const char *key;
	enum log_field_type type;
	size_t size_bytes; // of text
	union {
		const char *text;
		uint64_t number;
		int64_t signed_number;
	};
};

// One per place in the source; zero-initialised, written by any thread that logs there.
struct log_site {
	_Atomic uint64_t paid_until_ns; // the time up to which lines already used their share
	_Atomic uint64_t suppressed;	// since the last line let through
};

// The current level: the one thing about the log that every thread reads, changed at run
// time by log_set_level(). Public only for log_enabled().
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

// Any thread. What log_event() calls once the level is known to be enabled.
void log_write(
	struct log_site *site,
	enum log_level level,
	const char *event,
	const struct log_field *fields
);

// Chooses stderr, and priorities for journald unless stderr is a terminal or has been turned
// away from the journal that JOURNAL_STREAM names. Call once, before other threads exist;
// until then lines go to stderr without priorities.
void log_init(void);

// Replaces the sink (NULL: stderr without priorities). While no other thread logs.
void log_set_sink(const struct log_sink *sink);

// The answer log_init() acts upon, for a descriptor and the value of JOURNAL_STREAM (NULL if
// unset).
enum log_prefix log_choose_prefix(int fd, const char *journal_stream);

// Any thread. Takes effect on other threads soon, not at once.
void log_set_level(enum log_level level);

const char *log_level_name(enum log_level level);

// Returns 0, or -EINVAL for anything but error, warn, info, debug.
int log_level_parse(const char *name, enum log_level *ret_level);

// Any thread. Lines the kernel did not take whole since the start (a full disk, a closed pipe).
uint64_t log_lost_count(void);

// NULL is shown as (null).
static inline struct log_field log_str(const char *key, const char *text) {
	if (text == NULL)
		text = "(null)";
	return (struct log_field){key, LOG_FIELD_TEXT, strlen(text), {.text = text}};
}

// Bytes that need not be terminated.
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

// By name, ECONNREFUSED. Takes errno and -errno alike.
static inline struct log_field log_errno(const char *key, int err) {
	return (struct log_field){key, LOG_FIELD_ERRNO, 0, {.signed_number = err}};
}
