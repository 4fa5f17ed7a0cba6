// SPDX-License-Identifier: BSD-3-Clause
// The two sides of a comparison: nodes as Slurm has them, and findings as the agent has them.
#pragma once

#include "slurm/slurm_policy.h"

#include <jansson.h>

struct slurm_nodes {
	struct slurm_node *rows; // by name
	size_t count;
	uint32_t out; // drained or down
};

// The output of `scontrol -o show node`. Lines that name no node are left out. -ENOMEM.
int slurm_nodes_parse(const char *text, struct slurm_nodes *ret_nodes);
// Whether it can be a part of an address: letters, digits and -_. as Slurm has them.
bool slurm_name_is_plain(const char *name);
// The answer of slurmrestd to nodes/ and node/NAME, v0.0.38 and later. Rows without a name are left
// out; a state that is not understood makes the node unread. -EBADMSG: it is none; -ENOMEM.
int slurm_nodes_read(const json_t *answer, struct slurm_nodes *ret_nodes);
void slurm_nodes_free(struct slurm_nodes *nodes);
// NULL: there is no such node.
const struct slurm_node *slurm_nodes_find(const struct slurm_nodes *nodes, const char *name);

struct slurm_findings {
	struct slurm_finding *rows; // by node
	size_t count;
	bool doubtful; // the agent is no member, or holds its verdicts: nothing of it is acted on
};

// The answer to HEALTH in JSON. -EBADMSG: it is none; -ENOMEM.
int slurm_findings_read(const json_t *answer, struct slurm_findings *ret_findings);
void slurm_findings_free(struct slurm_findings *findings);
// NULL: nothing is said of it.
const struct slurm_finding *
slurm_findings_find(const struct slurm_findings *findings, const char *node);
