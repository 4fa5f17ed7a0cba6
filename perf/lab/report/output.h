// SPDX-License-Identifier: BSD-3-Clause
// Output of a run for people and programs.
#pragma once

#include "run/result.h"
#include "run/why.h"

#include <stdio.h>

struct json_t;

// Return the note of a quantile in a form short enough for a table; quantile_note_text() has the
// long form.
const char *output_note(enum quantile_note note);
// Print the table of lat to standard output, at most 100 columns wide.
void output_table(const struct lab_run *run);
// Print the table of bw.
void output_rates(const struct lab_run *run);
// Print the floors of the client's machine below the head of a table.
void output_yardsticks(const struct lab_run *run);
// Print course, warm-up, clock and noise of one size below a table.
void output_course(const struct lab_run *run, const struct lab_result *result);
// Print the columns of perftest 4.5. For bw these are the columns of *_bw, in MiB per second. For
// lat these are the columns of *_lat, in microseconds. As in perftest, write, send and write-imm
// show half of the round trip.
void output_perftest(const struct lab_run *run);

// Write a file; "-" is standard output. Each returns 0, or -errno with the reason in `why`.
int output_csv(const struct lab_run *run, const char *path, struct lab_why *why);
int output_hgrm(const struct lab_run *run, const char *path, struct lab_why *why);
int output_json(const struct lab_run *run, const char *path, struct lab_why *why);

// Check before a run that a file can be written, without creating it. NULL is allowed. Returns 0,
// or -errno with the reason in `why`.
int output_check(const char *path, struct lab_why *why);
// Open and close an output file. Closing fails if not all data was written.
int output_open(const char *path, struct lab_why *why, FILE **ret_file);
int output_close(const char *path, FILE *file, struct lab_why *why);
// Write a JSON root as one line; "-" is standard output. Returns 0, or -errno with the reason in
// `why`.
int output_json_root(const struct json_t *root, const char *path, struct lab_why *why);

// Print the reason of a failure to standard error. Returns EXIT_FAILED.
int output_failure(const struct lab_why *why);
// Print the reason why an argument is rejected to standard error. Returns EXIT_USAGE.
int output_usage_error(const char *argument, const char *reason);
