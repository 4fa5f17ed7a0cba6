// SPDX-License-Identifier: BSD-3-Clause
// One round of `tocsin slurm`: reads nodes and findings, decides for each node, changes it and
// records that.
#include "slurm/slurm_round.h"

#include <lib/clock.h>
#include <lib/show.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND_NS UINT64_C(1000000000)
#define UNANSWERED_AGENTS_MAX 3 // per round; each may take seconds, and delays other drains

struct slurm_node_report {
	char node[SLURM_NODE_MAX + 1];
	enum slurm_action action;
	enum slurm_why why;
	bool powers, returned; // state of the node in that round
	uint64_t back_ns;      // time at which the node returned
};

static int node_report_compare(const void *a, const void *b) {
	return strcmp(
		((const struct slurm_node_report *)a)->node,
		((const struct slurm_node_report *)b)->node
	);
}

static void round_print(
	const struct slurm_rounds *rounds, const char *node, const char *what, const char *why
) {
	struct timespec time_now;
	char now[SHOW_BYTES];
	json_t *line;

	clock_gettime(CLOCK_REALTIME, &time_now);
	show_time((int64_t)time_now.tv_sec * 1000000000 + time_now.tv_nsec, now);
	if (!rounds->json) {
		printf("%s %s: %s%s%s\n", now, node, what, why[0] != '\0' ? ": " : "", why);
	} else {
		line = json_pack(
			"{s:s,s:s,s:s,s:s}", "time", now, "node", node, "what", what, "why", why
		);
		if (line != NULL && json_dumpf(line, stdout, JSON_COMPACT | JSON_ENSURE_ASCII) == 0)
			putchar('\n');
		json_decref(line);
	}
	fflush(stdout);
}

void slurm_round_report_error(struct slurm_rounds *rounds, const char *what) {
	if (strcmp(rounds->trouble, what) == 0)
		return;
	snprintf(rounds->trouble, sizeof(rounds->trouble), "%s", what);
	round_print(rounds, "-", "nothing is done", what);
}

static bool reason_was_extended(const struct drain_row *row, const struct slurm_node *node) {
	return row->stamp[0] != '\0' && node->drain &&
	       slurm_reason_was_extended(node->reason, row->reason);
}

bool slurm_drain_is_recorded(const struct drain_record *record, const struct slurm_node *node) {
	const struct drain_row *row = drain_record_find(record, node->name);

	return row != NULL && (drain_record_holds(record, node->name, node->reason, node->stamp) ||
			       reason_was_extended(row, node));
}

static int
round_read_nodes(struct slurm_rounds *rounds, const char *only, struct slurm_nodes *ret_nodes) {
	struct slurm_way *way = &rounds->way;
	char why[SLURM_WHY_BYTES];
	int err = way->ops->read(way, only, ret_nodes, why);

	for (size_t n = 0; err == 0 && n < ret_nodes->count; n++) {
		struct slurm_node *node = &ret_nodes->rows[n];

		node->ours = slurm_drain_is_recorded(&rounds->record, node);
	}
	if (err == 0 && ret_nodes->count == 0) {
		snprintf(why, sizeof(why), "%.60s lists no node", way->place);
		slurm_nodes_free(ret_nodes);
		err = -EBADMSG;
	}
	if (err != 0)
		slurm_round_report_error(rounds, why);
	return err;
}

// Return the last report about a node, or NULL.
static const struct slurm_node_report *
node_report_find(const struct slurm_rounds *rounds, const char *node) {
	struct slurm_node_report key = {.action = SLURM_KEEP};

	snprintf(key.node, sizeof(key.node), "%s", node);
	if (rounds->said == NULL)
		return NULL;
	return bsearch(
		&key, rounds->said, rounds->said_count, sizeof(*rounds->said), node_report_compare
	);
}

// Read this node again and decide again, because a person may have set a reason meanwhile.
static bool decision_still_holds(
	struct slurm_rounds *rounds,
	const struct slurm_tally *tally,
	const struct slurm_node *node,
	const struct slurm_finding *finding,
	enum slurm_action action
) {
	struct slurm_nodes again;
	enum slurm_why why;
	bool same;

	if (round_read_nodes(rounds, node->name, &again) != 0)
		return false;
	again.rows[0].returned = node->returned;
	again.rows[0].returned_for_s = node->returned_for_s;
	same = again.count == 1 && strcmp(again.rows[0].name, node->name) == 0 &&
	       slurm_decide(&rounds->limits, tally, &again.rows[0], finding, &why) == action;
	slurm_nodes_free(&again);
	return same;
}

static void record_report_error(struct slurm_rounds *rounds, char *said, const char *why) {
	if (strcmp(said, why) == 0)
		return;
	snprintf(said, DRAIN_WHY_BYTES, "%s", why);
	if (why[0] != '\0')
		round_print(
			rounds, "-", "drains that are made now stay until a person ends them", why
		);
}

static int
record_put(struct slurm_rounds *rounds, const char *node, const char *reason, const char *stamp) {
	struct drain_row row = {.node = ""};
	char why[DRAIN_WHY_BYTES];
	int err;

	snprintf(row.node, sizeof(row.node), "%s", node);
	snprintf(row.reason, sizeof(row.reason), "%s", reason);
	snprintf(row.stamp, sizeof(row.stamp), "%s", stamp);
	err = drain_record_change(rounds->record_file, NULL, NULL, &row, why);
	record_report_error(rounds, rounds->write_error_reported, err == 0 ? "" : why);
	return err;
}

static bool node_is_drained_with(const struct slurm_node *node, const char *reason) {
	return node->drain && strcmp(node->reason, reason) == 0;
}

// Record the drain with the stamp that Slurm reports now. If somebody changed the reason meanwhile,
// the drain belongs to that person.
static void
drain_record_stamp(struct slurm_rounds *rounds, const struct slurm_node *node, const char *reason) {
	if (!node_is_drained_with(node, reason))
		return;
	if (node->stamp[0] != '\0')
		// Failure was reported; retried in the next round.
		(void)record_put(rounds, node->name, reason, node->stamp);
	else
		record_report_error(
			rounds, rounds->write_error_reported,
			"Slurm does not report the user and the time of a reason"
		);
}

// Record drains whose stamp is missing, because Slurm did not answer, the disk was full, or this
// program ended. Also update reasons that Slurm has extended.
static void drain_record_pending(struct slurm_rounds *rounds, const struct slurm_nodes *nodes) {
	for (size_t n = 0; n < rounds->record.count; n++) {
		const struct drain_row *row = &rounds->record.rows[n];
		const struct slurm_node *node = slurm_nodes_find(nodes, row->node);

		if (node != NULL && reason_was_extended(row, node))
			drain_record_stamp(rounds, node, node->reason);
		else if (node != NULL && row->stamp[0] == '\0')
			drain_record_stamp(rounds, node, row->reason);
	}
}

struct record_cleanup {
	const struct slurm_rounds *rounds;
	const struct slurm_nodes *nodes;
};

// Return true if a row is still valid. A drain that a person changed or ended is no longer ours,
// and neither is one that we undid. A row that changed since this round began is newer than Slurm's
// answer, so it stays.
static bool record_row_is_valid(void *ctx, const struct drain_row *row) {
	const struct record_cleanup *record_cleanup = ctx;
	const struct drain_row *before =
		drain_record_find(&record_cleanup->rounds->record, row->node);
	const struct slurm_node *node = slurm_nodes_find(record_cleanup->nodes, row->node);

	if (node == NULL || before == NULL || strcmp(before->reason, row->reason) != 0 ||
	    strcmp(before->stamp, row->stamp) != 0)
		return true;
	return row->stamp[0] != '\0' ? node->ours : node_is_drained_with(node, row->reason);
}

// Return whether this round only prints what it would do.
static bool round_is_dry_run(const struct slurm_rounds *rounds) {
	return rounds->dry_run || rounds->observes_only;
}

static void record_drop_stale(struct slurm_rounds *rounds, const struct slurm_nodes *nodes) {
	struct record_cleanup record_cleanup = {rounds, nodes};
	char why[DRAIN_WHY_BYTES] = "";
	bool any = false;

	for (size_t n = 0; n < rounds->record.count; n++)
		any = any || !record_row_is_valid(&record_cleanup, &rounds->record.rows[n]);
	if (!any || round_is_dry_run(rounds))
		return;
	if (drain_record_change(
		    rounds->record_file, record_row_is_valid, &record_cleanup, NULL, why
	    ) != 0)
		record_report_error(rounds, rounds->write_error_reported, why);
}

static void tally_add_drain(struct slurm_tally *tally, bool drains) {
	tally->drained += drains;
	tally->out += drains;
}

static void node_apply_action(
	struct slurm_rounds *rounds,
	struct slurm_tally *tally,
	const struct slurm_node *node,
	const struct slurm_finding *finding,
	enum slurm_action action,
	bool change
) {
	bool drains = action == SLURM_DRAIN;
	char reason[SLURM_REASON_MAX + 1] = "", why[SLURM_WHY_BYTES];
	struct slurm_nodes again;

	if (drains)
		slurm_reason_make(finding, node->silence, reason);
	if (round_is_dry_run(rounds)) {
		tally_add_drain(tally, drains);
		if (change)
			round_print(
				rounds, node->name,
				drains ? "would be drained" : "would be undrained", reason
			);
	} else {
		if (!decision_still_holds(rounds, tally, node, finding, action))
			return;
		// A failed drain counts too, since slurmctld may have executed it.
		tally_add_drain(tally, drains);
		// Record the drain first, so that it counts as ours even if the answer is lost.
		if (drains)
			(void)record_put(rounds, node->name, reason, "");
		if (rounds->way.ops->update(
			    &rounds->way, node->name, drains ? reason : NULL, why
		    ) != 0) {
			round_print(
				rounds, node->name,
				drains ? "could not be drained" : "could not be undrained", why
			);
			return;
		}
		round_print(rounds, node->name, drains ? "drained" : "undrained", reason);
		// A failure to read was reported; the next round records the stamp.
		if (!drains || round_read_nodes(rounds, node->name, &again) != 0)
			return;
		if (again.count == 1 && strcmp(again.rows[0].name, node->name) == 0)
			drain_record_stamp(rounds, &again.rows[0], reason);
		slurm_nodes_free(&again);
	}
}

// Read what the node's own agent says of its node. Returns false if the answer is malformed or of
// another node: the view of other agents is already known.
static bool
own_answer_read(const json_t *answer, const char *node, struct slurm_own_answer *ret_own) {
	const char *said_by = json_string_value(json_object_get(answer, "node"));
	const struct slurm_finding *finding;
	struct slurm_findings findings;
	bool doubtful;

	if (said_by == NULL || strcmp(said_by, node) != 0 ||
	    slurm_findings_read(answer, &findings) != 0)
		return false;
	// An agent under the brake still knows its own checks and devices.
	doubtful = findings.doubtful;
	findings.doubtful = false;
	finding = slurm_findings_find(&findings, node);
	if (finding != NULL)
		*ret_own = (struct slurm_own_answer){
			.is_healthy = !doubtful && finding->advice == SLURM_ADVICE_HEALTHY,
			.is_mild = finding->is_mild,
		};
	slurm_findings_free(&findings);
	return finding != NULL;
}

// Ask the node's own agent. Findings of other agents may be old, wrong, or concern only their
// network. node->silence tells why there is no valid answer.
static void own_agent_ask(
	struct slurm_rounds *rounds,
	struct slurm_tally *tally,
	struct slurm_node *node,
	struct slurm_own_answer *ret_own
) {
	char why[SLURM_WHY_BYTES] = "not asked, others do not answer";
	struct slurm_own_answer own = {.skipped = tally->unanswered >= UNANSWERED_AGENTS_MAX};
	json_t *answer = NULL;

	if (!own.skipped) {
		answer = rounds->ask(rounds->ask_ctx, node->name, why);
		tally->unanswered += answer == NULL;
	}
	if (answer != NULL && own_answer_read(answer, node->name, &own))
		why[0] = '\0';
	else if (answer != NULL)
		snprintf(why, sizeof(why), "invalid answer");
	json_decref(answer);
	snprintf(node->silence, sizeof(node->silence), "%.*s", (int)sizeof(node->silence) - 1, why);
	*ret_own = own;
}

// Let the node's own agent object to a change.
static void action_confirm(
	struct slurm_rounds *rounds,
	struct slurm_tally *tally,
	struct slurm_node *node,
	const struct slurm_finding *finding,
	struct slurm_node_report *said
) {
	struct slurm_own_answer own;

	own_agent_ask(rounds, tally, node, &own);
	if (said->action == SLURM_DRAIN)
		said->why = slurm_drain_objection(finding, &own);
	else if (!own.is_healthy)
		said->why = SLURM_WHY_UNCONFIRMED;
	if (said->why != SLURM_WHY_NOTHING)
		said->action = SLURM_KEEP;
}

static void node_decide(
	struct slurm_rounds *rounds,
	struct slurm_tally *tally,
	struct slurm_node *node,
	const struct slurm_finding *finding,
	struct slurm_node_report *said
) {
	const struct slurm_node_report *last = node_report_find(rounds, node->name);
	bool change;

	// Record whether the node was powered on between two rounds, and since when it is back.
	said->powers = node->powers;
	if (last != NULL && last->powers && !node->powers) {
		said->returned = true;
		said->back_ns = rounds->now_ns;
	} else if (last != NULL && !node->powers) {
		said->returned = last->returned;
		said->back_ns = last->back_ns;
	}
	node->returned = said->returned;
	node->returned_for_s = (rounds->now_ns - said->back_ns) / SECOND_NS;

	said->action = slurm_decide(&rounds->limits, tally, node, finding, &said->why);
	if (said->action != SLURM_KEEP)
		action_confirm(rounds, tally, node, finding, said);
	snprintf(said->node, sizeof(said->node), "%s", node->name);
	change = (said->action != SLURM_KEEP || said->why != SLURM_WHY_NOTHING) &&
		 (last == NULL || last->action != said->action || last->why != said->why);
	if (said->action != SLURM_KEEP)
		node_apply_action(rounds, tally, node, finding, said->action, change);
	else if (change)
		round_print(rounds, node->name, "left as it is", slurm_why_words(said->why));
}

static int round_decide_nodes(
	struct slurm_rounds *rounds,
	struct slurm_nodes *nodes,
	const struct slurm_findings *findings
) {
	struct slurm_tally tally = {.nodes = (uint32_t)nodes->count, .out = nodes->out};
	struct slurm_node_report *said = calloc(nodes->count, sizeof(*said));
	size_t from = rounds->turn;

	if (said == NULL)
		return -ENOMEM;
	if (!round_is_dry_run(rounds))
		drain_record_pending(rounds, nodes);
	record_drop_stale(rounds, nodes);
	rounds->turn = 0;
	for (size_t n = 0; n < nodes->count; n++) {
		size_t at = (from + n) % nodes->count;
		struct slurm_node *node = &nodes->rows[at];

		node_decide(
			rounds, &tally, node, slurm_findings_find(findings, node->name), &said[at]
		);
		if (rounds->turn == 0 && tally.unanswered >= UNANSWERED_AGENTS_MAX)
			rounds->turn = at + 1;
	}
	free(rounds->said);
	rounds->said = said;
	rounds->said_count = nodes->count;
	return 0;
}

// Return true if a round for one node may change that node: a drain of it is advised or recorded.
// Otherwise Slurm is not read. slurmd runs its health program before it registers, and scontrol may
// hang until that program ends.
static bool round_needs_slurm(
	const struct slurm_rounds *rounds, const struct slurm_findings *findings, const char *node
) {
	const struct slurm_finding *finding = slurm_findings_find(findings, node);

	if (drain_record_find(&rounds->record, node) != NULL)
		return true;
	if (finding == NULL || finding->advice == SLURM_ADVICE_UNKNOWN)
		round_print(rounds, node, "left as it is", slurm_why_words(SLURM_WHY_UNKNOWN));
	return finding != NULL && finding->advice == SLURM_ADVICE_DRAIN;
}

int slurm_round(struct slurm_rounds *rounds, const json_t *health, const char *only) {
	struct slurm_findings findings;
	char why[DRAIN_WHY_BYTES];
	struct slurm_nodes nodes;
	int err = slurm_findings_read(health, &findings);

	if (err != 0) {
		slurm_round_report_error(rounds, "the agent's answer is not valid");
		return err;
	}
	rounds->observes_only = findings.observes_only;

	// An unreadable record counts as empty: bad nodes are still drained, and no node is
	// undrained.
	drain_record_free(&rounds->record);
	err = drain_record_read(rounds->record_file, &rounds->record, why);
	record_report_error(rounds, rounds->unread, err == 0 ? "" : why);
	if (only != NULL && !round_needs_slurm(rounds, &findings, only)) {
		slurm_findings_free(&findings);
		return 0;
	}
	err = round_read_nodes(rounds, only, &nodes);
	if (err == 0) {
		if (rounds->trouble[0] != '\0') {
			rounds->trouble[0] = '\0';
			round_print(rounds, "-", "working again", "");
		}
		err = round_decide_nodes(rounds, &nodes, &findings);
		slurm_nodes_free(&nodes);
	}
	slurm_findings_free(&findings);
	return err;
}

void slurm_rounds_fini(struct slurm_rounds *rounds) {
	free(rounds->said);
	rounds->said = NULL;
	drain_record_free(&rounds->record);
}
