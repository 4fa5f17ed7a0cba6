// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes the file of learnt path baselines: the input as it is, and with a valid first and last
// line.
#include <control/path_book.h>
#include <lib/must.h>
#include <support/fuzz.h>

#include <xxhash.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SELF UINT64_C(7)

static struct path_book book, again;
static char text[PATH_BOOK_BYTES], second[PATH_BOOK_BYTES], whole[PATH_BOOK_BYTES];

static void begin(const struct path_book_entry *past) {
	const struct path_learnt learnt = {
		.baseline_ns = past->baseline_ns,
		.baseline_mad_ns = past->baseline_mad_ns,
		.windows = past->windows,
	};

	must(learnt.baseline_ns > 0 && learnt.baseline_ns < PATH_LATENCY_MAX_NS);
	must(learnt.baseline_mad_ns < PATH_LATENCY_MAX_NS);
	must(learnt.windows >= PATH_LEARN_WINDOWS && learnt.windows <= PATH_PAST_WINDOWS);
	must(past->responder < OBSERVATION_RESPONDER_COUNT);
	must(path_book_find(&book, past->peer, past->device, past->peer_device) == past);
}

// Parse a file. An accepted file must survive formatting and parsing.
static void take(const char *from) {
	const char *reason = NULL;
	size_t size;

	if (path_book_parse(&book, from, SELF, &reason) != 0) {
		must(book.count == 0 && reason != NULL);
		return;
	}
	must(book.count <= PATH_BOOK_PATHS_MAX);
	for (uint32_t n = 0; n < book.count; n++)
		begin(&book.baselines[n]);
	size = path_book_format(&book, SELF, text);
	must(size == strlen(text));
	must(path_book_parse(&again, text, SELF, &reason) == 0);
	must(path_book_format(&again, SELF, second) == size && memcmp(second, text, size) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	uint32_t lines = 0;
	size_t used;

	if (size >= sizeof(whole) / 2)
		return 0;
	memcpy(whole, data, size);
	whole[size] = '\0';
	take(whole);
	used = (size_t)snprintf(whole, sizeof(whole), "paths 1 0x%" PRIx64 "\n", SELF);
	memcpy(whole + used, data, size);
	whole[used + size] = '\0';
	for (const char *at = whole + used; (at = strchr(at, '\n')) != NULL; at++)
		lines++;
	used = strlen(whole);
	snprintf(
		whole + used, sizeof(whole) - used, "end %" PRIu32 " 0x%" PRIx64 "\n", lines,
		(uint64_t)XXH3_64bits(whole, used)
	);
	take(whole);
	return 0;
}
