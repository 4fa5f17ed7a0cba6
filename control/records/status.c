// SPDX-License-Identifier: BSD-3-Clause
// The fields that STATUS adds to NCCL's report.
#include <records/status.h>

#define COMMUNICATOR(...) RECORD_MEMBER(struct status_communicator_row, __VA_ARGS__)
#define CLUSTER(...) RECORD_MEMBER(struct status_cluster_row, __VA_ARGS__)
#define UNANSWERED(...) RECORD_MEMBER(struct unanswered_row, __VA_ARGS__)

static const struct record_field communicators[] = {
	COMMUNICATOR(job, UNIT_NONE, "job that the communicator belongs to, or null"),
	COMMUNICATOR(jobs_differ, UNIT_NONE, "whether its ranks name different jobs"),
	COMMUNICATOR(finding, UNIT_NONE, "diagnosis, as in comms"),
};

static const struct record_field clusters[] = {
	CLUSTER(version, UNIT_NONE, "version of the agent"),
	CLUSTER(cluster, UNIT_NONE, "name of the cluster"),
	CLUSTER(node, UNIT_NONE, "the node that answers"),
	CLUSTER(view, UNIT_NONE, "number of its view"),
	CLUSTER(digest, UNIT_NONE, "digest of the view"),
	CLUSTER(joined, UNIT_NONE, "whether the node is a member of a ring"),
	CLUSTER(brake, UNIT_NONE, "whether the brake is on"),
	CLUSTER(alive, UNIT_COUNT, "members, with those that are suspect or unreachable"),
	CLUSTER(suspect, UNIT_COUNT, "members that are suspect"),
	CLUSTER(unreachable, UNIT_COUNT, "members that are unreachable"),
	CLUSTER(dead, UNIT_COUNT, "nodes that are dead"),
	CLUSTER(left, UNIT_COUNT, "nodes that left"),
	CLUSTER(answered, UNIT_COUNT, "members that sent their communicators"),
	CLUSTER(dead_nodes, UNIT_NONE, "names of the dead nodes"),
	CLUSTER(suspect_nodes, UNIT_NONE, "names of the suspect nodes"),
	CLUSTER(unreachable_nodes, UNIT_NONE, "names of the unreachable nodes"),
	CLUSTER(unanswered, UNIT_NONE, "a row for each member that sent nothing"),
	CLUSTER(missing_nodes, UNIT_NONE, "names of nodes that are expected and were not seen"),
	CLUSTER(error, UNIT_NONE, "why communicators could not be collected, or null"),
};

static const struct record_field unanswered[] = {
	UNANSWERED(node, UNIT_NONE, "the member"),
	UNANSWERED(reason, UNIT_NONE, "why it sent nothing"),
};

const struct record status_communicator_record = RECORD("communicators.tocsin", communicators);
const struct record status_cluster_record = RECORD("tocsin", clusters);
const struct record unanswered_record = RECORD("tocsin.unanswered", unanswered);
