// SPDX-License-Identifier: BSD-3-Clause
// Runs scontrol: without a shell, with a deadline, and with a bound on what is believed of it.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SLURM_OUTPUT_BYTES_MAX ((size_t)64 << 20) // of `show node` for some 50,000 nodes

struct slurm_program {
	const char *path; // with a slash, or sought in PATH
	uint64_t timeout_ns;
};

// argv[0] is replaced by the path. Standard output, terminated, is the caller's to free.
// 0; -errno of what could not be done; -ETIMEDOUT (it was killed); -EFBIG; -EREMOTEIO: it ended
// with another status than 0 or by a signal. What it said of it is in ret_why, one line.
int slurm_program_run(
	const struct slurm_program *program,
	const char *const *argv,
	char **ret_output,
	char ret_why[static 256]
);
