// SPDX-License-Identifier: BSD-3-Clause
// Reads Slurm's nodes and the agent's findings from JSON into tables.
#include "slurm/slurm_tables.h"

#include <lib/fact.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NS_PER_SEC UINT64_C(1000000000)

static int compare_nodes(const void *a, const void *b) {
	return strcmp(((const struct slurm_node *)a)->name, ((const struct slurm_node *)b)->name);
}

static int compare_findings(const void *a, const void *b) {
	const struct slurm_finding *left = a, *right = b;

	return strcmp(left->node, right->node);
}

int slurm_nodes_parse(const char *text, struct slurm_nodes *ret_nodes) {
	struct slurm_nodes nodes = {.count = 0};
	size_t line_count = 1;

	for (const char *at = text; *at != '\0'; at++)
		line_count += *at == '\n';
	nodes.rows = calloc(line_count, sizeof(*nodes.rows));
	if (nodes.rows == NULL)
		return -ENOMEM;
	while (*text != '\0') {
		size_t length = strcspn(text, "\n");
		char *line = strndup(text, length);

		if (line == NULL) {
			free(nodes.rows);
			return -ENOMEM;
		}
		if (slurm_node_parse(line, &nodes.rows[nodes.count])) {
			const struct slurm_node *node = &nodes.rows[nodes.count++];

			nodes.out += !node->known || node->drain || node->down;
		}
		free(line);
		text += length + (text[length] == '\n');
	}
	qsort(nodes.rows, nodes.count, sizeof(*nodes.rows), compare_nodes);
	*ret_nodes = nodes;
	return 0;
}

static bool state_append_word(const json_t *word, char *text, size_t size) {
	size_t used = strlen(text);

	if (!json_is_string(word))
		return false;
	used += (size_t
	)snprintf(text + used, size - used, "%s%s", used > 0 ? "+" : "", json_string_value(word));
	return used < size;
}

// Append a state to the text. It is "IDLE" with ["DRAIN"] in another member (v0.0.38), or one array
// of both (since v0.0.39).
static bool state_append_words(const json_t *words, char *text, size_t size) {
	if (!json_is_array(words))
		return words == NULL || state_append_word(words, text, size);
	for (size_t n = 0; n < json_array_size(words); n++) {
		if (!state_append_word(json_array_get(words, n), text, size))
			return false;
	}
	return true;
}

bool slurm_name_is_plain(const char *name) {
	return name[0] != '\0' &&
	       name[strspn(
		       name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."
	       )] == '\0';
}

int slurm_nodes_read(const json_t *answer, struct slurm_nodes *ret_nodes) {
	const json_t *rows = json_object_get(answer, "nodes");
	struct slurm_nodes nodes = {.count = 0};

	if (!json_is_array(rows))
		return -EBADMSG;
	nodes.rows = calloc(json_array_size(rows) + 1, sizeof(*nodes.rows));
	if (nodes.rows == NULL)
		return -ENOMEM;
	for (size_t n = 0; n < json_array_size(rows); n++) {
		const json_t *row = json_array_get(rows, n);
		const char *name = json_string_value(json_object_get(row, "name"));
		const char *by = json_string_value(json_object_get(row, "reason_set_by_user"));
		const json_t *at = json_object_get(row, "reason_changed_at");
		const json_t *reason = json_object_get(row, "reason");
		struct slurm_node *node = &nodes.rows[nodes.count];
		char state[512] = "";

		if (name == NULL || strlen(name) > SLURM_NODE_MAX || !slurm_name_is_plain(name))
			continue;
		snprintf(node->name, sizeof(node->name), "%s", name);
		if (state_append_words(json_object_get(row, "state"), state, sizeof(state)) &&
		    state_append_words(json_object_get(row, "state_flags"), state, sizeof(state)))
			slurm_node_parse_state(state, strlen(state), node);
		// A reason that is not text is not ours.
		if (reason != NULL && !json_is_null(reason))
			snprintf(
				node->reason, sizeof(node->reason), "%s",
				json_is_string(reason) ? json_string_value(reason) : "unreadable"
			);
		// The time is a number, or {"set": true, "number": N} (since v0.0.39).
		if (json_is_object(at))
			at = json_is_true(json_object_get(at, "set"))
				     ? json_object_get(at, "number")
				     : NULL;
		if (by != NULL)
			slurm_node_set_stamp(by, strlen(by), json_integer_value(at), node);
		nodes.out += !node->known || node->drain || node->down;
		nodes.count++;
	}
	qsort(nodes.rows, nodes.count, sizeof(*nodes.rows), compare_nodes);
	*ret_nodes = nodes;
	return 0;
}

void slurm_nodes_free(struct slurm_nodes *nodes) {
	free(nodes->rows);
	*nodes = (struct slurm_nodes){0};
}

const struct slurm_node *slurm_nodes_find(const struct slurm_nodes *nodes, const char *name) {
	struct slurm_node key;

	if (nodes->count == 0 || strlen(name) > SLURM_NODE_MAX)
		return NULL;
	snprintf(key.name, sizeof(key.name), "%s", name);
	return bsearch(&key, nodes->rows, nodes->count, sizeof(*nodes->rows), compare_nodes);
}

// Return the advice of a finding. A word that is not understood, perhaps from a newer agent, counts
// as unknown. Under [health] act = no, it is the advice that the agent holds back.
static enum slurm_advice row_advice(const json_t *row, bool observes_only) {
	const char *advice = fact_word(row, "advice"), *verdict = fact_word(row, "verdict");

	if (json_is_true(json_object_get(row, "maint")))
		return SLURM_ADVICE_NONE;
	if (strcmp(verdict, "unknown") == 0)
		return SLURM_ADVICE_UNKNOWN;
	if (strcmp(advice, "drain") == 0 || (observes_only && fact_is(row, "would", "drain")))
		return SLURM_ADVICE_DRAIN;
	if (strcmp(advice, "nothing") == 0 && strcmp(verdict, "healthy") == 0 &&
	    strcmp(fact_word(row, "grade"), "ok") == 0)
		return SLURM_ADVICE_HEALTHY;
	if (strcmp(advice, "warn") == 0 || strcmp(advice, "restart") == 0 ||
	    strcmp(advice, "drain-later") == 0 || strcmp(verdict, "none") == 0)
		return SLURM_ADVICE_NONE;
	return SLURM_ADVICE_UNKNOWN;
}

// Return true if the node itself is the only observer of the finding.
static bool row_is_own_word(const json_t *row, const char *node) {
	const json_t *observers = json_object_get(row, "observers");
	const char *first = json_string_value(json_array_get(observers, 0));

	return json_array_size(observers) == 1 && first != NULL && strcmp(first, node) == 0;
}

int slurm_findings_read(const json_t *answer, struct slurm_findings *ret_findings) {
	const json_t *rows = json_object_get(answer, "findings");
	struct slurm_findings findings = {0};

	if (!json_is_array(rows))
		return -EBADMSG;
	findings.rows = calloc(json_array_size(rows) + 1, sizeof(*findings.rows));
	if (findings.rows == NULL)
		return -ENOMEM;
	findings.observes_only = json_is_false(json_object_get(answer, "act"));
	for (size_t n = 0; n < json_array_size(rows); n++) {
		const json_t *row = json_array_get(rows, n);
		const char *node = fact_word(row, "node");
		struct slurm_finding *finding = &findings.rows[findings.count];
		uint64_t for_ns = 0;

		if (node[0] == '\0' || strlen(node) > SLURM_NODE_MAX)
			continue;
		finding->advice = row_advice(row, findings.observes_only);
		finding->own_word = row_is_own_word(row, node);
		// "unstable" hides verdicts that come and go, and may be critical.
		finding->is_mild = (strcmp(fact_word(row, "grade"), "ok") == 0 ||
				    strcmp(fact_word(row, "grade"), "warning") == 0) &&
				   strcmp(fact_word(row, "verdict"), "unstable") != 0;
		fact_read_ns(row, "for_ns", &for_ns);
		finding->for_s = for_ns / NS_PER_SEC;
		snprintf(finding->node, sizeof(finding->node), "%s", node);
		snprintf(finding->reason, sizeof(finding->reason), "%s", fact_word(row, "reason"));
		snprintf(
			finding->evidence, sizeof(finding->evidence), "%s",
			fact_word(row, "evidence")
		);
		findings.count++;
	}
	qsort(findings.rows, findings.count, sizeof(*findings.rows), compare_findings);
	findings.doubtful = !json_is_true(json_object_get(answer, "joined")) ||
			    !json_is_false(json_object_get(answer, "brake"));
	*ret_findings = findings;
	return 0;
}

void slurm_findings_free(struct slurm_findings *findings) {
	free(findings->rows);
	*findings = (struct slurm_findings){0};
}

const struct slurm_finding *
slurm_findings_find(const struct slurm_findings *findings, const char *node) {
	struct slurm_finding key;

	if (strlen(node) > SLURM_NODE_MAX || findings->doubtful)
		return NULL;
	snprintf(key.node, sizeof(key.node), "%s", node);
	return bsearch(
		&key, findings->rows, findings->count, sizeof(*findings->rows), compare_findings
	);
}
