// SPDX-License-Identifier: BSD-3-Clause
// What people and programs read of a run.
#pragma once

#include "result.h"
#include "why.h"

#include <stdio.h>

struct json_t;

// The table, of at most 100 columns. Standard output.
void output_table(const struct lab_run *run);
// The columns of perftest 4.5's *_lat, in microseconds: of write, send and write-imm half of the
// round trip, as there.
void output_perftest(const struct lab_run *run);

// Into files; "-" is standard output. -errno with the reason.
int output_csv(const struct lab_run *run, const char *path, struct lab_why *why);
int output_hgrm(const struct lab_run *run, const char *path, struct lab_why *why);
int output_json(const struct lab_run *run, const char *path, struct lab_why *why);

// Opens a file for one of them; closing says whether all of it was written.
int output_open(const char *path, struct lab_why *why, FILE **ret_file);
int output_close(const char *path, FILE *file, struct lab_why *why);
