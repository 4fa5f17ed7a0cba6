// SPDX-License-Identifier: BSD-3-Clause
// Tables of nodes as Slurm reports them, and of findings as the agent reports them.
#pragma once

#include "slurm/slurm_policy.h"

#include <jansson.h>

struct slurm_nodes {
	struct slurm_node *rows; // sorted by name
	size_t count;
	uint32_t out; // number of nodes drained or down
};

// Parse the output of `scontrol -o show node`. Lines without a node name are skipped. Returns 0 or
// -ENOMEM.
int slurm_nodes_parse(const char *text, struct slurm_nodes *ret_nodes);
// Return true if a name may be part of a URL: letters, digits and -_. as Slurm allows.
bool slurm_name_is_plain(const char *name);
// Read slurmrestd's answer to nodes/ or node/NAME, v0.0.38 and later. Rows without a name are
// skipped; a state that is not understood leaves `known` false. Returns 0, -EBADMSG if the answer
// is malformed, or -ENOMEM.
int slurm_nodes_read(const json_t *answer, struct slurm_nodes *ret_nodes);
void slurm_nodes_free(struct slurm_nodes *nodes);
// Return the node of this name, or NULL.
const struct slurm_node *slurm_nodes_find(const struct slurm_nodes *nodes, const char *name);

struct slurm_findings {
	struct slurm_finding *rows; // sorted by node
	size_t count;
	bool observes_only; // [health] act = no: nothing may be changed
	bool doubtful; // the agent has not joined or its brake is on, so its findings are not used
};

// Read the answer of HEALTH. Returns 0, -EBADMSG if it is malformed, or -ENOMEM.
int slurm_findings_read(const json_t *answer, struct slurm_findings *ret_findings);
void slurm_findings_free(struct slurm_findings *findings);
// Return the finding on a node, or NULL if there is none or all are doubtful.
const struct slurm_finding *
slurm_findings_find(const struct slurm_findings *findings, const char *node);
