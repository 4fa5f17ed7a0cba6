// SPDX-License-Identifier: BSD-3-Clause
// Slurm through its program scontrol.
#include "slurm/slurm_program.h"
#include "slurm/slurm_way.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#define UPDATE_BYTES (SLURM_NODE_MAX + 16)

static int scontrol_run(
	const struct slurm_way *way, const char *const *argv, char **ret_output, char *ret_why
) {
	const struct slurm_program program = {way->place, way->timeout_ns};

	return slurm_program_run(&program, argv, ret_output, ret_why);
}

static int scontrol_read(
	struct slurm_way *way,
	const char *only,
	struct slurm_nodes *ret_nodes,
	char ret_why[static SLURM_WHY_BYTES]
) {
	const char *const argv[] = {"", "-o", "show", "node", only, NULL};
	char *output;
	int err = scontrol_run(way, argv, &output, ret_why);

	if (err != 0)
		return err;
	err = slurm_nodes_parse(output, ret_nodes);
	free(output);
	if (err != 0)
		snprintf(ret_why, SLURM_WHY_BYTES, "out of memory");
	return err;
}

static int scontrol_update(
	struct slurm_way *way,
	const char *node,
	const char *reason,
	char ret_why[static SLURM_WHY_BYTES]
) {
	const char *state = reason != NULL ? "State=DRAIN" : "State=UNDRAIN";
	char name[UPDATE_BYTES], reason_text[SLURM_REASON_MAX + 16];
	const char *argv[] = {"", "update", name, state, reason_text, NULL};
	char *output;
	int err;

	snprintf(name, sizeof(name), "NodeName=%s", node);
	if (reason != NULL)
		snprintf(reason_text, sizeof(reason_text), "Reason=%s", reason);
	else
		argv[4] = NULL;
	err = scontrol_run(way, argv, &output, ret_why);
	if (err == 0)
		free(output);
	return err;
}

const struct slurm_way_ops slurm_scontrol_ops = {scontrol_read, scontrol_update};
