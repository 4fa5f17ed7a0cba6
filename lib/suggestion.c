// SPDX-License-Identifier: BSD-3-Clause
// Search for the known word that is nearest to a mistyped one.
#include <lib/suggestion.h>

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

// Bytes of the known words that are shown, so that the text around them fits.
#define KNOWN_SHOWN_BYTES_MAX (SUGGESTION_TEXT_BYTES - 32)

static size_t size_min(size_t a, size_t b) {
	return a < b ? a : b;
}

// Return the smallest number of typing errors between two words of at most
// SUGGESTION_WORD_BYTES_MAX bytes.
static size_t
edit_distance(const char *word, size_t word_size, const char *other, size_t other_size) {
	// cost[i % 3][j] is the cost of turning the first i bytes of `word` into the first j of
	// `other`. A swap looks two rows back, so three rows are kept.
	size_t cost[3][SUGGESTION_WORD_BYTES_MAX + 1];

	for (size_t j = 0; j <= other_size; j++)
		cost[0][j] = j;
	for (size_t i = 1; i <= word_size; i++) {
		const size_t *above = cost[(i - 1) % 3];
		size_t *row = cost[i % 3];

		row[0] = i;
		for (size_t j = 1; j <= other_size; j++) {
			row[j] = above[j - 1] + (word[i - 1] != other[j - 1]);
			row[j] = size_min(row[j], size_min(above[j], row[j - 1]) + 1);
			if (i > 1 && j > 1 && word[i - 1] == other[j - 2] &&
			    word[i - 2] == other[j - 1])
				row[j] = size_min(row[j], cost[(i - 2) % 3][j - 2] + 1);
		}
	}
	return cost[word_size % 3][other_size];
}

void suggestion_init(struct suggestion *suggestion, const char *word) {
	suggestion->word = word;
	suggestion->nearest_distance = SIZE_MAX;
	suggestion->nearest_size = 0;
	suggestion->known_used = 0;
	suggestion->known[0] = '\0';
}

static void
suggestion_update_nearest(struct suggestion *suggestion, const char *known, size_t known_size) {
	size_t word_size = strlen(suggestion->word);
	size_t distance;

	if (word_size > SUGGESTION_WORD_BYTES_MAX || known_size > SUGGESTION_WORD_BYTES_MAX)
		return;
	distance = edit_distance(suggestion->word, word_size, known, known_size);
	// A short word is not near if every letter is wrong.
	if (distance > 1 + known_size / 4 || distance >= known_size)
		return;
	if (distance >= suggestion->nearest_distance)
		return;
	memcpy(suggestion->nearest, known, known_size);
	suggestion->nearest_size = known_size;
	suggestion->nearest_distance = distance;
}

void suggestion_add(struct suggestion *suggestion, const char *known, size_t known_size) {
	size_t room = sizeof(suggestion->known) - suggestion->known_used;
	int n;

	suggestion_update_nearest(suggestion, known, known_size);
	n = snprintf(
		suggestion->known + suggestion->known_used, room, "%s%.*s",
		suggestion->known_used > 0 ? ", " : "", (int)known_size, known
	);
	if (n > 0)
		suggestion->known_used += size_min((size_t)n, room - 1);
}

const char *suggestion_text(struct suggestion *suggestion) {
	if (suggestion->nearest_size > 0)
		snprintf(
			suggestion->text, sizeof(suggestion->text), "did you mean \"%.*s\"?",
			(int)suggestion->nearest_size, suggestion->nearest
		);
	else
		snprintf(
			suggestion->text, sizeof(suggestion->text), "known are: %.*s%s",
			KNOWN_SHOWN_BYTES_MAX, suggestion->known,
			suggestion->known_used > KNOWN_SHOWN_BYTES_MAX ? "..." : ""
		);
	return suggestion->text;
}
