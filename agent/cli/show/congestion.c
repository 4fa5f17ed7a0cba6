// SPDX-License-Identifier: BSD-3-Clause
// Says what ports count of congestion.
#include "show/congestion.h"

#include "show/paint.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>

#define RATE_SHOWN_MAX 1e12
#define NAME_COLUMNS 32
#define PERMILLE 1000

const char congestion_legend[] =
	"^ this node's device counts congestion now, ! it sends pauses most of the time; "
	"see tocsin why\n";

// 0 for what is missing, of another type, or no number that can be.
static double rate_of(const json_t *object, const char *key) {
	const json_t *value = json_object_get(object, key);
	double number = json_is_number(value) ? json_number_value(value) : 0;

	return isfinite(number) && number > 0 && number <= RATE_SHOWN_MAX ? number : 0;
}

// Return a share. An agent of schema 1 writes it as a part of 1, with another key.
static double permille_of(const json_t *object, const char *key, const char *old_key) {
	return fact_known(object, key) ? rate_of(object, key) : rate_of(object, old_key) * PERMILLE;
}

__attribute__((format(printf, 2, 3))) static void
words_add(char words[static CONGESTION_WORDS_BYTES], const char *format, ...) {
	size_t used = strlen(words);
	va_list arguments;

	used += (size_t
	)snprintf(words + used, CONGESTION_WORDS_BYTES - used, "%s", used > 0 ? ", " : "");
	if (used >= CONGESTION_WORDS_BYTES)
		return;
	va_start(arguments, format);
	vsnprintf(words + used, CONGESTION_WORDS_BYTES - used, format, arguments);
	va_end(arguments);
}

void congestion_words(const json_t *port, char words[static CONGESTION_WORDS_BYTES]) {
	double sent = permille_of(port, "paused_sent_permille", "paused_sent");
	double received = permille_of(port, "paused_received_permille", "paused_received");
	json_t *counts = json_object_get(port, "counts"), *count;
	char clean[4 * NAME_COLUMNS];
	const char *name;

	words[0] = '\0';
	json_object_foreach(counts, name, count) {
		double rate = rate_of(count, "per_s");

		paint_escape(name, NAME_COLUMNS, clean, sizeof(clean));
		if (rate > 0)
			words_add(words, "%s %.1f/s", clean, rate);
	}
	if (received > 0 && received <= PERMILLE)
		words_add(words, "paused by its switch %.1f %% of the time", received / 10);
	if (sent > 0 && sent <= PERMILLE)
		words_add(words, "pauses its switch %.1f %% of the time", sent / 10);
	if (words[0] == '\0')
		words_add(words, "nothing counted recently");
}
