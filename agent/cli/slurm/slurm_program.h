// SPDX-License-Identifier: BSD-3-Clause
// Runs scontrol without a shell, with a deadline and a bound on its output.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define SLURM_OUTPUT_BYTES_MAX ((size_t)64 << 20) // size of `show node` for about 50,000 nodes

struct slurm_program {
	const char *path; // path with a slash, or a name searched in PATH
	uint64_t timeout_ns;
};

// Run the program; argv[0] is replaced by its path. *ret_output is terminated and freed by the
// caller. Returns 0, -EREMOTEIO if the program failed or died by a signal, or another -errno. After
// -ETIMEDOUT and -EFBIG the program was killed. An error sets one line in ret_why.
int slurm_program_run(
	const struct slurm_program *program,
	const char *const *argv,
	char **ret_output,
	char ret_why[static 256]
);
