// SPDX-License-Identifier: BSD-3-Clause
// Reason of a failure: a sentence for people, in addition to the error code.
#pragma once

#define LAB_WHY_BYTES 512

struct lab_why {
	char text[LAB_WHY_BYTES]; // "" until a failure
};

// Store the reason of a failure and return err. The first reason stays, since later ones explain
// less. The text is made safe to print.
__attribute__((format(printf, 3, 4))) int
lab_fail(struct lab_why *why, int err, const char *format, ...);

// Replace control characters and invalid UTF-8 by "?", in texts from files and other machines. The
// text never grows.
void lab_sanitize(char *text);

// Return the plural ending for a count: "1 run", "2 runs".
#define PLURAL(count) ((count) == 1 ? "" : "s")

// Static analysis does not look into other files. Without this macro it assumes that lab_fail() may
// return 0 after a failure.
#ifdef __clang_analyzer__
#define lab_fail(why, err, ...) ((void)lab_fail(why, err, __VA_ARGS__), (err))
#endif
