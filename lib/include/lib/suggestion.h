// SPDX-License-Identifier: BSD-3-Clause
// What to say after an unknown word: the nearest known one, or else all of them.
//
//	suggestion_init(&suggestion, word);
//	for each known word: suggestion_add(&suggestion, known, strlen(known));
//	... "unknown key, %s", suggestion_text(&suggestion)
#pragma once

#include <stddef.h>

// Longer words are near nothing: they come from outside, and comparing costs their square.
#define SUGGESTION_WORD_BYTES_MAX 64
#define SUGGESTION_TEXT_BYTES 512

struct suggestion {
	const char *word; // the caller's, outlives the suggestion
	size_t nearest_distance;
	size_t nearest_size;
	size_t known_used;
	char nearest[SUGGESTION_WORD_BYTES_MAX];
	char known[SUGGESTION_TEXT_BYTES];
	char text[SUGGESTION_TEXT_BYTES];
};

void suggestion_init(struct suggestion *suggestion, const char *word);
void suggestion_add(struct suggestion *suggestion, const char *known, size_t known_size);

// 'did you mean "interval"?' if one known word is at most one typing error away, and one more
// for every four bytes of it; else 'known are: interval, size'. A typing error is a letter too
// many, too few or wrong, or two that changed places. Belongs to the suggestion.
const char *suggestion_text(struct suggestion *suggestion);
