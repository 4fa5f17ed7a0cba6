// SPDX-License-Identifier: BSD-3-Clause
// tocsin drains: which drained nodes of Slurm are ours, and which only look so.
#include "command.h"
#include "drain_record.h"
#include "slurm_way.h"

#include <jansson.h>

#include <string.h>

enum {
	OPTION_ADOPT,
	OPTION_JSON,
	OPTION_RECORD,
	OPTION_REST,
	OPTION_REST_API,
	OPTION_REST_TOKEN,
	OPTION_REST_USER,
	OPTION_SCONTROL,
	OPTION_COUNT,
};

static const struct option_spec options[OPTION_COUNT] = {
	[OPTION_ADOPT] =
		{"adopt", "NODE",
		 "take the drain of this node for ours, or of all that look so by the\n"
		 "word all: `tocsin slurm sync` then undrains them once they are healthy"},
	[OPTION_JSON] = {"json", NULL, "one object of JSON"},
	[OPTION_RECORD] = SLURM_OPTION_RECORD("slurm-sync.json"),
	[OPTION_REST] = SLURM_OPTION_REST,
	[OPTION_REST_API] = SLURM_OPTION_REST_API,
	[OPTION_REST_TOKEN] = SLURM_OPTION_REST_TOKEN,
	[OPTION_REST_USER] = SLURM_OPTION_REST_USER,
	[OPTION_SCONTROL] = SLURM_OPTION_SCONTROL,
};

static const char details[] =
	"Listed are the drained nodes of Slurm whose reason begins with \"" SLURM_PREFIX
	"\". Ours are those\n"
	"that FILE holds word for word, with who gave the reason and when. The others are nobody's: of\n"
	"another controller, of a node's own `tocsin slurm check`, of an earlier version, of a FILE that\n"
	"was lost, or of a person who wrote so. They stay drained until somebody ends that, or takes them\n"
	"for ours by --adopt.\n"
	"\n"
	"Exit status: 0 done, 1 Slurm cannot be asked, or there is no such drain to adopt, 2 a mistake in\n"
	"the command line.\n";

static bool is_listed(const struct slurm_node *node) {
	return node->drain && (node->ours || slurm_reason_is_like_ours(node->reason));
}

static void print_rows(const struct slurm_nodes *nodes) {
	bool any = false;

	for (size_t n = 0; n < nodes->count; n++) {
		const struct slurm_node *node = &nodes->rows[n];

		if (!is_listed(node))
			continue;
		if (!any)
			printf("%-20s %-9s %-27s %s\n", "NODE", "WHOSE", "BY", "REASON");
		any = true;
		printf("%-20s %-9s %-27s %s\n", node->name, node->ours ? "ours" : "nobody's",
		       node->stamp[0] != '\0' ? node->stamp : "-", node->reason);
	}
	if (!any)
		puts("no node is drained in our words");
}

static void print_json(const struct slurm_nodes *nodes) {
	json_t *rows = json_array(), *whole = json_pack("{s:o}", "drains", rows);

	for (size_t n = 0; n < nodes->count; n++) {
		const struct slurm_node *node = &nodes->rows[n];

		if (is_listed(node))
			json_array_append_new(
				rows, json_pack(
					      "{s:s,s:b,s:s,s:s}", "node", node->name, "ours",
					      node->ours, "by", node->stamp, "reason", node->reason
				      )
			);
	}
	json_dumpf(whole, stdout, JSON_COMPACT | JSON_ENSURE_ASCII);
	putchar('\n');
	json_decref(whole);
}

static bool is_adoptable(const struct slurm_node *node) {
	return is_listed(node) && !node->ours && node->stamp[0] != '\0';
}

// The number of those adopted, or -errno, which has been said.
static int adopt(const char *file, struct slurm_nodes *nodes, const char *wanted) {
	bool all = strcmp(wanted, "all") == 0;
	int adopted = 0;

	for (size_t n = 0; n < nodes->count; n++) {
		struct slurm_node *node = &nodes->rows[n];
		struct drain_row row = {.node = ""};
		char why[DRAIN_WHY_BYTES];
		int err;

		if (!is_adoptable(node) || (!all && strcmp(node->name, wanted) != 0))
			continue;
		memcpy(row.node, node->name, sizeof(row.node));
		memcpy(row.reason, node->reason, sizeof(row.reason));
		memcpy(row.stamp, node->stamp, sizeof(row.stamp));
		err = drain_record_change(file, NULL, NULL, &row, why);
		if (err != 0) {
			command_complain("drains", "%s is not adopted: %s", node->name, why);
			return err;
		}
		node->ours = true;
		adopted++;
	}
	return adopted;
}

static int read_all(const char *file, struct slurm_way *way, struct slurm_nodes *ret_nodes) {
	struct drain_record record;
	char why[SLURM_WHY_BYTES];

	if (drain_record_read(file, &record, why) != 0) {
		command_complain("drains", "%s", why);
		return EXIT_NEGATIVE;
	}
	if (way->ops->read(way, NULL, ret_nodes, why) != 0) {
		command_complain("drains", "%s", why);
		drain_record_free(&record);
		return EXIT_NEGATIVE;
	}
	for (size_t n = 0; n < ret_nodes->count; n++) {
		struct slurm_node *node = &ret_nodes->rows[n];

		node->ours = drain_record_holds(&record, node->name, node->reason, node->stamp);
	}
	drain_record_free(&record);
	return EXIT_DONE;
}

static int run(const struct arguments *arguments) {
	const char *const *values = arguments->values;
	const struct slurm_way_words words = {
		.scontrol = values[OPTION_SCONTROL],
		.rest = values[OPTION_REST],
		.rest_api = values[OPTION_REST_API],
		.rest_token = values[OPTION_REST_TOKEN],
		.rest_user = values[OPTION_REST_USER],
	};
	const char *file = values[OPTION_RECORD];
	struct slurm_nodes nodes;
	struct slurm_way way;
	int status = slurm_way_take("drains", &words, &way);

	if (file == NULL)
		file = slurm_record_default("sync");
	if (status == 0)
		status = read_all(file, &way, &nodes);
	if (status != 0)
		return status;
	if (values[OPTION_ADOPT] != NULL) {
		int adopted = adopt(file, &nodes, values[OPTION_ADOPT]);

		if (adopted == 0)
			command_complain(
				"drains", "%s: no drain in our words that is not ours already",
				values[OPTION_ADOPT]
			);
		if (adopted <= 0)
			status = EXIT_NEGATIVE;
	}
	if (values[OPTION_JSON] != NULL)
		print_json(&nodes);
	else
		print_rows(&nodes);
	slurm_nodes_free(&nodes);
	return status;
}

const struct command drains_command = {
	.name = "drains",
	.summary = "List the nodes that are drained in Slurm by us, and adopt others",
	.details = details,
	.options = options,
	.option_count = OPTION_COUNT,
	.target = TARGET_NONE,
	.run = run,
};
