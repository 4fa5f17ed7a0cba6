// SPDX-License-Identifier: BSD-3-Clause
// Shows the answers of LINKS, the agent's own connections, of CONNS, those of all agents, and of
// MAINTENANCE.
#include "show/answers.h"

#include <records/connections.h>
#include <records/links.h>
#include <records/maintenance.h>

#include <inttypes.h>

// LINKS.

void show_links(struct page *page, const json_t *answer) {
	const json_t *links = json_object_get(answer, "links");

	page_print(page, "%zu links\n\n", json_array_size(links));
	page_table(page, &link_record, links, NULL);
}

// CONNS.

void show_conns(struct page *page, const json_t *answer) {
	const json_t *transports = json_object_get(answer, "transports");
	const json_t *slowest = json_object_get(answer, "worst");

	page_print(
		page,
		"%" PRIu64 " connections, each from either end, of %" PRIu64 " of %" PRIu64
		" agents in %.3f s\n",
		fact_number(answer, "rows"), fact_number(answer, "answered"),
		fact_number(answer, "members"), page_answer_seconds(answer)
	);
	if (json_array_size(transports) > 0) {
		page_print(page, "\n");
		page_table(page, &transport_record, transports, NULL);
	}
	if (json_array_size(slowest) > 0) {
		page_print(page, "\nThe slowest:\n");
		page_table(page, &connection_record, slowest, NULL);
	}
}

// MAINTENANCE.

void show_maintenance(struct page *page, const json_t *answer) {
	const json_t *nodes = json_object_get(answer, "maintenance");

	if (json_array_size(nodes) == 0) {
		page_print(page, "no node is in maintenance\n");
		return;
	}
	page_print(page, "%zu in maintenance\n\n", json_array_size(nodes));
	page_table(page, &maintenance_record, nodes, NULL);
}
