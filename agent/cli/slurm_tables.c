// SPDX-License-Identifier: BSD-3-Clause
#include "slurm_tables.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int compare_nodes(const void *a, const void *b) {
	return strcmp(((const struct slurm_node *)a)->name, ((const struct slurm_node *)b)->name);
}

static int compare_findings(const void *a, const void *b) {
	const struct slurm_finding *left = a, *right = b;

	return strcmp(left->node, right->node);
}

static size_t count_lines(const char *text) {
	size_t count = 1;

	for (; *text != '\0'; text++)
		count += *text == '\n';
	return count;
}

int slurm_nodes_parse(const char *text, struct slurm_nodes *ret_nodes) {
	struct slurm_nodes nodes = {.rows = calloc(count_lines(text), sizeof(*nodes.rows))};

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

void slurm_nodes_free(struct slurm_nodes *nodes) {
	free(nodes->rows);
	*nodes = (struct slurm_nodes){0};
}

static const char *text_of(const json_t *row, const char *key) {
	const char *text = json_string_value(json_object_get(row, key));

	return text != NULL ? text : "";
}

// Only what is understood leads to something; a word of a newer agent is unknown.
static enum slurm_advice advice_of(const json_t *row) {
	const char *advice = text_of(row, "advice"), *verdict = text_of(row, "verdict");

	if (json_is_true(json_object_get(row, "maint")))
		return SLURM_ADVICE_NONE;
	if (strcmp(verdict, "unknown") == 0)
		return SLURM_ADVICE_UNKNOWN;
	if (strcmp(advice, "drain") == 0)
		return SLURM_ADVICE_DRAIN;
	if (strcmp(advice, "nothing") == 0 && strcmp(verdict, "healthy") == 0 &&
	    strcmp(text_of(row, "grade"), "ok") == 0)
		return SLURM_ADVICE_HEALTHY;
	if (strcmp(advice, "warn") == 0 || strcmp(advice, "restart") == 0 ||
	    strcmp(advice, "drain-later") == 0 || strcmp(verdict, "none") == 0)
		return SLURM_ADVICE_NONE;
	return SLURM_ADVICE_UNKNOWN;
}

static bool read_row(const json_t *row, struct slurm_finding *finding) {
	const char *node = text_of(row, "node");
	double for_s = json_number_value(json_object_get(row, "for_s"));

	if (node[0] == '\0' || strlen(node) > SLURM_NODE_MAX)
		return false;
	*finding = (struct slurm_finding){
		.advice = advice_of(row),
		.for_s = for_s > 0 && for_s < 1e9 ? (uint64_t)for_s : 0,
	};
	snprintf(finding->node, sizeof(finding->node), "%s", node);
	snprintf(finding->reason, sizeof(finding->reason), "%s", text_of(row, "reason"));
	snprintf(finding->evidence, sizeof(finding->evidence), "%s", text_of(row, "evidence"));
	return true;
}

int slurm_findings_read(const json_t *answer, struct slurm_findings *ret_findings) {
	const json_t *rows = json_object_get(answer, "findings");
	struct slurm_findings findings = {0};

	if (!json_is_array(rows))
		return -EBADMSG;
	findings.rows = calloc(json_array_size(rows) + 1, sizeof(*findings.rows));
	if (findings.rows == NULL)
		return -ENOMEM;
	for (size_t n = 0; n < json_array_size(rows); n++)
		findings.count += read_row(json_array_get(rows, n), &findings.rows[findings.count]);
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
