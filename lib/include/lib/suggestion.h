// SPDX-License-Identifier: BSD-3-Clause
// Suggestions after an unknown word: the nearest known word, or a list of all.
#pragma once

#include <stddef.h>

// Longer words get no suggestion: they are untrusted, and the comparison takes quadratic time.
#define SUGGESTION_WORD_BYTES_MAX 64
#define SUGGESTION_TEXT_BYTES 512

struct suggestion {
	const char *word; // of the caller, outlives the suggestion
	size_t nearest_distance;
	size_t nearest_size;
	size_t known_used;
	char nearest[SUGGESTION_WORD_BYTES_MAX];
	char known[SUGGESTION_TEXT_BYTES];
	char text[SUGGESTION_TEXT_BYTES];
};

void suggestion_init(struct suggestion *suggestion, const char *word);
void suggestion_add(struct suggestion *suggestion, const char *known, size_t known_size);

// Return the suggestion, which belongs to the object. 'did you mean "interval"?' if a known word is
// near, else 'known are: interval, size'. Near means at most one typing error plus one per four
// bytes of the known word. A typing error is a missing, extra or wrong letter, or a swap of two
// letters.
const char *suggestion_text(struct suggestion *suggestion);
