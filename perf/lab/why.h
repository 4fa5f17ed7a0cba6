// SPDX-License-Identifier: BSD-3-Clause
// Why something failed: a sentence for people beside the error for the program.
#pragma once

#define LAB_WHY_BYTES 512

struct lab_why {
	char text[LAB_WHY_BYTES]; // "" until something failed
};

// Returns err. What was said first stays: what follows a failure says less about it. It is clean.
__attribute__((format(printf, 3, 4))) int
lab_fail(struct lab_why *why, int err, const char *format, ...);

// What a terminal would take for an order, or is no UTF-8, becomes "?": of texts from files and
// other machines. It grows no longer.
void lab_clean(char *text);

// Behind a word of which there are so many: "1 run", "2 runs".
#define PLURAL(count) ((count) == 1 ? "" : "s")

// Static analysis does not look into another unit: without this it takes every failure that ends in
// lab_fail() for a possible success.
#ifdef __clang_analyzer__
#define lab_fail(why, err, ...) ((void)lab_fail(why, err, __VA_ARGS__), (err))
#endif
