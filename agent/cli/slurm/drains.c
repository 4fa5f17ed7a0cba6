// SPDX-License-Identifier: BSD-3-Clause
// tocsin drains: lists the drained nodes of Slurm, and which of them Tocsin drained.
#include "command.h"
#include "slurm/drain_record.h"
#include "slurm/slurm_round.h"
#include "slurm/slurm_way.h"

#include <lib/escape.h>
#include <lib/parse.h>
#include <lib/show.h>

#include <jansson.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define BY_COLUMNS 27
#define SECONDS_MAX INT64_C(253402300799) // last second of the year 9999

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
		 "treat the drain of this node as ours, or with the word\n"
		 "all each drain that looks like ours; then `tocsin slurm\n"
		 "sync` undrains the nodes once they are healthy"},
	[OPTION_JSON] = {"json", NULL, "print one JSON object"},
	[OPTION_RECORD] = SLURM_OPTION_RECORD("slurm-sync.json"),
	[OPTION_REST] = SLURM_OPTION_REST,
	[OPTION_REST_API] = SLURM_OPTION_REST_API,
	[OPTION_REST_TOKEN] = SLURM_OPTION_REST_TOKEN,
	[OPTION_REST_USER] = SLURM_OPTION_REST_USER,
	[OPTION_SCONTROL] = SLURM_OPTION_SCONTROL,
};

static const char details[] =
	"Lists the drained nodes of Slurm whose reason begins with \"" SLURM_PREFIX "\". A drain\n"
	"is ours if FILE holds exactly its reason, its user and its time. All other\n"
	"drains are nobody's: another controller, a node's own `tocsin slurm check`, an\n"
	"earlier version or a person made them, or their FILE was lost. They stay until\n"
	"somebody ends them, or adopts them with --adopt.\n"
	"\n"
	"Exit status: 0 done, 1 Slurm does not answer, or there is no such drain to\n"
	"adopt, 2 a mistake in the command line.\n";

static bool is_listed(const struct slurm_node *node) {
	return node->drain && (node->ours || slurm_reason_has_prefix(node->reason));
}

// Print a reason; any user may have written it.
static void print_escaped(const char *text) {
	size_t size = strlen(text);

	for (size_t at = 0; at < size;) {
		struct escape_unit unit;

		escape_next(text + at, size - at, &unit);
		fwrite(unit.text, 1, unit.text_size, stdout);
		at += unit.taken_bytes;
	}
}

static void print_rows(const struct slurm_nodes *nodes) {
	bool any = false;

	for (size_t n = 0; n < nodes->count; n++) {
		const struct slurm_node *node = &nodes->rows[n];
		const char *at = strrchr(node->stamp, '@');
		char by[SLURM_STAMP_MAX + 1] = "-", when[SHOW_BYTES];
		struct parse_error error;
		int64_t at_s;

		if (!is_listed(node))
			continue;
		if (!any)
			printf("%-20s %-9s %-27s %s\n", "NODE", "WHOSE", "BY", "REASON");
		any = true;
		printf("%-20s %-9s ", node->name, node->ours ? "ours" : "nobody's");
		// "root@1764028800" is shown as "root@2025-11-25T00:00:00Z".
		if (at != NULL &&
		    parse_i64(at + 1, strlen(at + 1), 0, SECONDS_MAX, &error, &at_s) == 0) {
			show_time(at_s * 1000000000, when);
			snprintf(
				by, sizeof(by), "%.*s@%.19sZ", (int)(at - node->stamp), node->stamp,
				when
			);
		}
		print_escaped(by);
		printf("%*s ", (int)(strlen(by) < BY_COLUMNS ? BY_COLUMNS - strlen(by) : 0), "");
		print_escaped(node->reason);
		putchar('\n');
	}
	if (!any)
		puts("no node is drained with a reason like ours");
}

// Return text as JSON. Bytes that are not UTF-8 are escaped, as in the table.
static json_t *text_to_json(const char *text) {
	json_t *value = json_string(text);
	char escaped[4 * sizeof(((struct slurm_node *)0)->reason)];
	size_t size = strlen(text), used = 0;

	if (value != NULL)
		return value;
	for (size_t at = 0; at < size;) {
		struct escape_unit unit;

		escape_next(text + at, size - at, &unit);
		if (used + unit.text_size >= sizeof(escaped))
			break;
		memcpy(escaped + used, unit.text, unit.text_size);
		used += unit.text_size;
		at += unit.taken_bytes;
	}
	return json_stringn(escaped, used);
}

static int print_json(const struct slurm_nodes *nodes) {
	json_t *rows = json_array(), *whole = json_pack("{s:o}", "drains", rows);
	int err = whole == NULL ? -ENOMEM : 0;

	for (size_t n = 0; err == 0 && n < nodes->count; n++) {
		const struct slurm_node *node = &nodes->rows[n];

		if (is_listed(node) &&
		    json_array_append_new(
			    rows, json_pack(
					  "{s:o,s:b,s:o,s:o}", "node", text_to_json(node->name),
					  "ours", node->ours, "by", text_to_json(node->stamp),
					  "reason", text_to_json(node->reason)
				  )
		    ) != 0)
			err = -ENOMEM;
	}
	if (err == 0 && json_dumpf(whole, stdout, JSON_COMPACT | JSON_ENSURE_ASCII) != 0)
		err = -EIO;
	if (err == 0)
		putchar('\n');
	json_decref(whole);
	return err;
}

// Adopt the drain of one node or of all. Returns the number adopted, or -errno after reporting a
// failure.
static int drain_adopt(const char *file, struct slurm_nodes *nodes, const char *wanted) {
	bool all = strcmp(wanted, "all") == 0;
	int adopted = 0, failed = 0;

	for (size_t n = 0; n < nodes->count; n++) {
		struct slurm_node *node = &nodes->rows[n];
		struct drain_row row = {.node = ""};
		char why[DRAIN_WHY_BYTES];
		int err;

		if (!is_listed(node) || node->ours || node->stamp[0] == '\0' ||
		    (!all && strcmp(node->name, wanted) != 0))
			continue;
		memcpy(row.node, node->name, sizeof(row.node));
		memcpy(row.reason, node->reason, sizeof(row.reason));
		memcpy(row.stamp, node->stamp, sizeof(row.stamp));
		err = drain_record_change(file, NULL, NULL, &row, why);
		if (err != 0) {
			command_error("drains", "%s is not adopted: %s", node->name, why);
			failed = err;
			continue;
		}
		node->ours = true;
		adopted++;
	}
	return failed != 0 ? failed : adopted;
}

static int nodes_read(const char *file, struct slurm_way *way, struct slurm_nodes *ret_nodes) {
	struct drain_record record;
	char why[SLURM_WHY_BYTES];

	if (drain_record_read(file, &record, why) != 0) {
		command_error("drains", "%s", why);
		return EXIT_NEGATIVE;
	}
	if (way->ops->read(way, NULL, ret_nodes, why) != 0) {
		command_error("drains", "%s", why);
		drain_record_free(&record);
		return EXIT_NEGATIVE;
	}
	for (size_t n = 0; n < ret_nodes->count; n++) {
		struct slurm_node *node = &ret_nodes->rows[n];

		node->ours = slurm_drain_is_recorded(&record, node);
	}
	drain_record_free(&record);
	return EXIT_DONE;
}

static int drains_run(const struct arguments *arguments) {
	const char *const *values = arguments->values;
	const struct slurm_way_options words = {
		.scontrol = values[OPTION_SCONTROL],
		.rest = values[OPTION_REST],
		.rest_api = values[OPTION_REST_API],
		.rest_token = values[OPTION_REST_TOKEN],
		.rest_user = values[OPTION_REST_USER],
	};
	const char *file = values[OPTION_RECORD];
	struct slurm_nodes nodes;
	struct slurm_way way;
	int status = slurm_way_select("drains", &words, &way);

	if (file == NULL)
		file = slurm_record_default("sync");
	if (status == 0)
		status = nodes_read(file, &way, &nodes);
	if (status != 0)
		return status;
	if (values[OPTION_ADOPT] != NULL) {
		int adopted = drain_adopt(file, &nodes, values[OPTION_ADOPT]);

		if (adopted == 0)
			command_error(
				"drains", "%s: there is no drain that could be adopted",
				values[OPTION_ADOPT]
			);
		if (adopted <= 0)
			status = EXIT_NEGATIVE;
	}
	if (values[OPTION_JSON] == NULL) {
		print_rows(&nodes);
	} else if (print_json(&nodes) != 0) {
		command_error("drains", "the rows could not be printed as JSON");
		status = EXIT_NEGATIVE;
	}
	slurm_nodes_free(&nodes);
	return status;
}

const struct command drains_command = {
	.name = "drains",
	.summary = "List the nodes that Tocsin drained in Slurm, and adopt drains",
	.details = details,
	.options = options,
	.option_count = OPTION_COUNT,
	.target = TARGET_NONE,
	.run = drains_run,
};
