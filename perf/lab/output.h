// SPDX-License-Identifier: BSD-3-Clause
// What people and programs read of a run.
#pragma once

#include "result.h"
#include "why.h"

#include <stdio.h>

struct json_t;

// What a table has room to say of a quantile: quantile_note_words() in fewer of them.
const char *output_note(enum quantile_note note);
// The table, of at most 100 columns. Standard output.
void output_table(const struct lab_run *run);
// The same of bw.
void output_rates(const struct lab_run *run);
// Below what a table is of: floors of the client's machine.
void output_yardsticks(const struct lab_run *run);
// Below a table: course, warm-up, clock and noise of one size.
void output_course(const struct lab_run *run, const struct lab_result *result);
// The columns of perftest 4.5: of bw those of *_bw, in MiB a second; else those of *_lat, in
// microseconds, of write, send and write-imm half of the round trip, as there.
void output_perftest(const struct lab_run *run);

// Into files; "-" is standard output. -errno with the reason.
int output_csv(const struct lab_run *run, const char *path, struct lab_why *why);
int output_hgrm(const struct lab_run *run, const char *path, struct lab_why *why);
int output_json(const struct lab_run *run, const char *path, struct lab_why *why);

// Before a run: whether a file could be written there, as far as can be told without making it.
// NULL is fine.
int output_check(const char *path, struct lab_why *why);
// Opens a file for one of them; closing says whether all of it was written.
int output_open(const char *path, struct lab_why *why, FILE **ret_file);
int output_close(const char *path, FILE *file, struct lab_why *why);
