// SPDX-License-Identifier: BSD-3-Clause
// Messages for the user on standard error: whole lines with one write each, because many programs
// started together share it.
#include "preload.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_BYTES 512
// Level: 0: no reports about unsupported requests; 1: addresses of opened devices; 2: also packet
// counters.
#define SAY "TOCSIN_SOFT_SAY"

static pthread_once_t at_exit = PTHREAD_ONCE_INIT;

void preload_print(const char *format, ...) {
	char line[LINE_BYTES];
	va_list args;

	va_start(args, format);
	// NOLINTNEXTLINE(clang-analyzer-valist.Uninitialized): va_start() is the line above
	if (vsnprintf(line, sizeof(line), format, args) < 0)
		line[0] = '\0';
	va_end(args);
	dprintf(STDERR_FILENO, "libtocsin-verbs.so: %s\n", line);
}

#define KINDS_MAX 16

// Kinds already reported, compared by text. Read and written by any thread, relaxed, because the
// texts are constant. There is no lock, because a child could inherit it locked at the fork.
static _Atomic(const char *) refused[KINDS_MAX];

// Return true the first time for each kind.
static bool kind_is_new(const char *asked) {
	for (uint32_t n = 0; n < KINDS_MAX; n++) {
		const char *said = NULL;

		if (atomic_compare_exchange_strong_explicit(
			    &refused[n], &said, asked, memory_order_relaxed, memory_order_relaxed
		    ))
			return true;
		if (strcmp(said, asked) == 0)
			return false;
	}
	return false;
}

void preload_report_unsupported(const char *asked, const char *instead) {
	// NOLINTNEXTLINE(concurrency-mt-unsafe): what programs set is not this
	const char *text = getenv(SAY);
	bool silenced = text != NULL && text[0] == '0';

	if (!silenced && kind_is_new(asked))
		preload_print(
			"%s: not supported by a software device; use %s (TOCSIN_SOFT_SAY=0 hides this)",
			asked, instead
		);
}

static int report_level(void) {
	// NOLINTNEXTLINE(concurrency-mt-unsafe): what programs set is not this
	const char *text = getenv(SAY);

	return text == NULL || text[0] < '0' || text[0] > '2' ? 0 : text[0] - '0';
}

static void report_left_open(void) {
	preload_each_open(preload_report_closed);
}

// A program that fails often exits without closing its devices; then the counters matter most.
static void report_at_exit(void) {
	(void)!atexit(report_left_open);
}

void preload_report_opened(const struct ibv_device *device, const struct soft_config *config) {
	char text[SOCK_ADDR_TEXT_BYTES];
	struct sock_addr address;

	if (report_level() < 1 || soft_device_address(device->name, &address) != 0)
		return;
	if (report_level() > 1)
		pthread_once(&at_exit, report_at_exit);
	sock_addr_format_host(&address, text);
	dprintf(STDERR_FILENO, "%s on %s (%s)\n", device->name, text,
		config->wire == SOFT_WIRE_UDP ? "udp" : "dpdk");
}

// Lines of at most 100 columns with the counters that are not 0.
struct paragraph {
	const char *name;
	char line[LINE_BYTES];
	size_t used;
};

#define COLUMNS_MAX 100

static void paragraph_end(struct paragraph *paragraph) {
	if (paragraph->used > 0)
		dprintf(STDERR_FILENO, "%s: %s\n", paragraph->name, paragraph->line);
	paragraph->used = 0;
}

static void paragraph_add(struct paragraph *paragraph, const char *what, uint64_t count) {
	char text[80];
	size_t size = (size_t)snprintf(text, sizeof(text), "%s %" PRIu64, what, count);

	if (count == 0)
		return;
	if (strlen(paragraph->name) + 2 + paragraph->used + 2 + size > COLUMNS_MAX)
		paragraph_end(paragraph);
	paragraph->used += (size_t)snprintf(
		paragraph->line + paragraph->used, sizeof(paragraph->line) - paragraph->used,
		"%s%s", paragraph->used > 0 ? ", " : "", text
	);
}

void preload_report_closed(const char *name) {
	struct paragraph paragraph = {.name = name};
	struct soft_counters counters;

	if (report_level() < 2 || soft_counters_read(name, &counters) != 0)
		return;
#define SAY_COUNTER(field, help) paragraph_add(&paragraph, #field, counters.field);
	SOFT_COUNTERS(SAY_COUNTER)
	paragraph_end(&paragraph);
}
