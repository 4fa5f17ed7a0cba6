// SPDX-License-Identifier: BSD-3-Clause
// The report as text: NCCL's sections in NCCL's order, with Tocsin's content.
#include "client/absent.h"
#include "client/names.h"
#include "client/peer_list.h"
#include "client/server.h"
#include "feeds/nccl/status.h"
#include "feeds/nccl/status_ranks.h"

#include <lib/hostlist.h>
#include <lib/show.h>

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LIST_COLUMNS 94

// The job summary

struct spread {
	uint32_t min, max;
};

static void spread_add(struct spread *spread, uint32_t value, bool first) {
	if (first || value < spread->min)
		spread->min = value;
	if (first || value > spread->max)
		spread->max = value;
}

static void show_spread(const struct spread *spread, char text[static SHOW_BYTES]) {
	if (spread->min == spread->max)
		snprintf(text, SHOW_BYTES, "%u", spread->min);
	else
		snprintf(text, SHOW_BYTES, "%u-%u", spread->min, spread->max);
}

static int compare_hosts(const void *left, const void *right) {
	uint64_t a = *(const uint64_t *)left;
	uint64_t b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

static void print_job_summary(struct session *session) {
	const struct ras *ras = session_ras(session);
	struct spread per_node = {0}, per_agent = {0};
	char agents[SHOW_BYTES], devices[SHOW_BYTES];
	uint32_t count = 0, nodes = 0, device_count = 0, from = 0;
	struct ras_peer_info info;
	struct ras_peer peer;
	struct ras_view view;
	uint64_t *hosts;

	ras_view(ras, &view);
	hosts = calloc((size_t)view.slots_max + 1, sizeof(*hosts));
	if (hosts == NULL) {
		session->out.failed = true;
		return;
	}
	// Count all known agents, also dead ones, except those that left.
	for (uint32_t slot = 0; slot < view.slots_max; slot++) {
		if (ras_peer_at(ras, slot, &peer) < 0 || peer.state == RAS_LEFT)
			continue;
		ras_record_info(peer.record, &info);
		spread_add(&per_agent, info.device_count, count == 0);
		device_count += info.device_count;
		hosts[count++] = peer.record->host_id;
	}
	qsort(hosts, count, sizeof(*hosts), compare_hosts);
	for (uint32_t n = 1; n <= count; n++) {
		if (n < count && hosts[n] == hosts[from])
			continue;
		spread_add(&per_node, n - from, nodes++ == 0);
		from = n;
	}
	free(hosts);
	show_spread(&per_node, agents);
	show_spread(&per_agent, devices);
	text_print(
		&session->out,
		"Job summary\n===========\n\n"
		"  Nodes     Agents      Devices     Agents  Devices\n"
		"(total)   per node    per agent    (total)  (total)\n"
		"%7u  %9s  %11s  %9u  %7u\n",
		nodes, agents, devices, count, device_count
	);
}

void status_print_banner(struct session *session) {
	const struct client_server *server = session->server;
	const struct ras *ras = session_ras(session);
	char node[NAMES_TEXT_BYTES], address[SOCK_ADDR_TEXT_BYTES];
	struct sock_addr self = overlay_address(server->overlay);
	struct ras_view view;

	ras_view(ras, &view);
	names_format_id(ras, ras_self_id(ras), node);
	sock_addr_format(&self, address);
	text_print(
		&session->out,
		"Tocsin version %s, cluster %s\nNode %s at %s, view %" PRIu64
		", %u agent%s alive, %u suspect, %u unreachable, %u dead, %u left\n\n",
		server->version, server->cluster, node, address, view.number, view.alive,
		view.alive == 1 ? "" : "s", view.suspect, view.unreachable, view.dead, view.left
	);
	print_job_summary(session);
	text_print(&session->out, "\nCommunicators...");
}

// Communicators

static bool print_comm_table(struct session *session, struct status *status) {
	const struct comm_table *table = &status->comms;
	char ranks[SHOW_BYTES], errors[32];
	uint32_t first = 0;

	text_print(&session->out, " (%.3fs)\n=============\n\n", collect_seconds(&status->collect));
	if (table->count == 0) {
		text_print(&session->out, "No communicator data collected!\n");
		return true;
	}
	text_print(
		&session->out,
		"Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors\n"
		"    #  in group  per comm  per node  per comm  in group\n"
	);
	for (uint32_t n = 1; n <= table->count; n++) {
		const struct comm_summary *row = &table->rows[first];
		struct spread per_node = {row->per_node_min, row->per_node_max};

		if (n < table->count && table->rows[n].group == row->group)
			continue;
		for (uint32_t same = first + 1; same < n; same++) {
			spread_add(&per_node, table->rows[same].per_node_min, false);
			spread_add(&per_node, table->rows[same].per_node_max, false);
		}
		show_spread(&per_node, ranks);
		text_print(
			&session->out, "%5u  %8u  %8u  %8s  %8u  %8u  %8s  %6s\n", row->group,
			n - first, row->nodes, ranks, row->size,
			comm_group_count_ranks(
				table, status->collect.answer->comms, first, n - first
			),
			comm_state_name(row->state), comm_error_name(row->errors, errors)
		);
		first = n;
	}
	return true;
}

// Agents with a problem

struct agent_list {
	const char **names;
	char (*texts)[NAMES_TEXT_BYTES];
	struct ras_peer *peers;
	const char **reasons;
	uint32_t count;
};

static void agent_list_fini(struct agent_list *agent_list) {
	free(agent_list->names);
	free(agent_list->texts);
	free(agent_list->peers);
	free(agent_list->reasons);
}

static bool agent_list_init(struct agent_list *agent_list, size_t capacity) {
	*agent_list = (struct agent_list){
		.names = calloc(capacity + 1, sizeof(*agent_list->names)),
		.texts = calloc(capacity + 1, sizeof(*agent_list->texts)),
		.peers = calloc(capacity + 1, sizeof(*agent_list->peers)),
		.reasons = calloc(capacity + 1, sizeof(*agent_list->reasons)),
	};
	if (agent_list->names != NULL && agent_list->texts != NULL && agent_list->peers != NULL &&
	    agent_list->reasons != NULL)
		return true;
	agent_list_fini(agent_list);
	return false;
}

static void
agent_list_add(struct agent_list *agent_list, const struct ras_peer *peer, const char *reason) {
	uint32_t n = agent_list->count++;

	names_format_record(peer->record, agent_list->texts[n]);
	agent_list->names[n] = agent_list->texts[n];
	agent_list->peers[n] = *peer;
	agent_list->reasons[n] = reason;
}

// Write a hostlist of the names. A long list is cut after a comma, so that no name is cut.
static void print_hostlist(struct session *session, const char **names, uint32_t count) {
	char *text;
	size_t length;

	if (hostlist_compress(names, count, &text) < 0)
		return; // a name is not a valid host name; the count alone must suffice
	length = strlen(text);
	if (length > LIST_COLUMNS) {
		for (length = LIST_COLUMNS; length > 0 && text[length] != ',';)
			length--;
	}
	text_print(
		&session->out, "  %.*s%s\n", (int)length, text, text[length] != '\0' ? ",..." : ""
	);
	free(text);
}

static void print_agents(
	struct session *session, const struct status *status, const struct agent_list *agent_list
) {
	char address[SOCK_ADDR_TEXT_BYTES], host[NAMES_TEXT_BYTES];
	struct ras_view view;

	ras_view(session_ras(session), &view);
	if (!status_is_outlier(status, agent_list->count, view.alive + view.dead)) {
		print_hostlist(session, agent_list->names, agent_list->count);
		return;
	}
	for (uint32_t n = 0; n < agent_list->count; n++) {
		const struct ras_record *record = agent_list->peers[n].record;

		sock_addr_format(&record->address, address);
		names_format_host(record, host);
		text_print(
			&session->out, "  Agent %s on host %.24s at %s: %s\n", agent_list->texts[n],
			host, address, agent_list->reasons[n]
		);
	}
}

static void
print_agents_in_state(struct session *session, const struct status *status, enum ras_state state) {
	static const struct {
		const char *title;
		const char *words;
	} blocks[] = {
		[RAS_DEAD] = {"DEAD", "considered dead (unreachable via the RAS network)"},
		[RAS_SUSPECT] = {"SUSPECT", "suspected to be dead; other agents check this"},
		[RAS_UNREACHABLE] =
			{"UNREACHABLE", "silent; too many are silent at once to declare deaths"},
	};
	const struct ras *ras = session_ras(session);
	struct agent_list agent_list;
	struct ras_peer peer;
	struct ras_view view;

	ras_view(ras, &view);
	if (!agent_list_init(&agent_list, view.slots_max)) {
		session->out.failed = true;
		return;
	}
	for (uint32_t slot = 0; slot < view.slots_max; slot++) {
		if (ras_peer_at(ras, slot, &peer) == 0 && peer.state == state)
			agent_list_add(&agent_list, &peer, ras_cause_name(peer.cause));
	}
	if (agent_list.count > 0) {
		text_print(
			&session->out, "%s\n  %u agent%s %s\n", blocks[state].title,
			agent_list.count, agent_list.count == 1 ? " is" : "s are",
			blocks[state].words
		);
		print_agents(session, status, &agent_list);
		text_print(&session->out, "\n");
	}
	agent_list_fini(&agent_list);
}

static void print_unanswered(struct session *session, const struct status *status) {
	const struct ras_collective_result *result;
	struct agent_list agent_list;
	struct ras_peer peer;

	if (status->collect.answer == NULL) {
		text_print(
			&session->out,
			"INCOMPLETE\n  Missing communicator data from all other agents: %s\n\n",
			collect_error_text(&status->collect)
		);
		return;
	}
	result = &status->collect.answer->result;
	if (!agent_list_init(&agent_list, result->missing_count)) {
		session->out.failed = true;
		return;
	}
	for (uint32_t n = 0; n < result->missing_count; n++) {
		enum ras_missing reason = result->missing[n].reason;

		if (reason != RAS_MISSING_DEAD && reason != RAS_MISSING_LEFT &&
		    ras_peer_find(session_ras(session), result->missing[n].id, &peer) == 0)
			agent_list_add(&agent_list, &peer, ras_missing_name(reason));
	}
	if (agent_list.count > 0) {
		text_print(
			&session->out, "INCOMPLETE\n  Missing communicator data from %u agent%s\n",
			agent_list.count, agent_list.count == 1 ? "" : "s"
		);
		print_agents(session, status, &agent_list);
		text_print(&session->out, "\n");
	}
	agent_list_fini(&agent_list);
}

static bool print_agent_errors(struct session *session, struct status *status) {
	struct absent absent;

	text_print(&session->out, "\nErrors\n======\n\n");
	print_unanswered(session, status);
	print_agents_in_state(session, status, RAS_DEAD);
	// The absent nodes ([overlay] expect) have no agent to be listed with.
	if (absent_collect_all(session->server->overlay, &absent) != 0) {
		session->out.failed = true;
		return true;
	}
	if (absent.count > 0) {
		text_print(
			&session->out, "NEVER SEEN\n  %u node%s expected, but %s never joined\n",
			absent.count, absent.count == 1 ? " is" : "s are",
			absent.count == 1 ? "its agent" : "their agents"
		);
		print_hostlist(session, (const char **)absent.names, absent.count);
		text_print(&session->out, "\n");
	}
	absent_fini(&absent);
	return true;
}

// Write one communicator after the other. Each one iterates over all its ranks.
static bool print_each_comm(
	struct session *session,
	struct status *status,
	void (*say)(struct session *, const struct status *, const struct comm_summary *)
) {
	while (status->comm < status->comms.count) {
		if (text_size(&session->out) >= SESSION_STEP_BYTES)
			return false;
		say(session, status, &status->comms.rows[status->comm++]);
	}
	return true;
}

static bool print_comm_errors(struct session *session, struct status *status) {
	return print_each_comm(session, status, status_print_errors);
}

static bool print_agent_warnings(struct session *session, struct status *status) {
	uint32_t timeouts = collect_timeouts(&status->collect);

	text_print(&session->out, "Warnings\n========\n\n");
	if (timeouts > 0)
		text_print(
			&session->out,
			"TIMEOUT\n  Encountered %u communication timeout%s while gathering "
			"communicator data\n\n",
			timeouts, timeouts == 1 ? "" : "s"
		);
	if (status->collect.answer != NULL && status->collect.answer->result.truncated > 0)
		text_print(
			&session->out,
			"TRUNCATED\n  %u parts were left out: the answer exceeds its size "
			"limit\n\n",
			status->collect.answer->result.truncated
		);
	print_agents_in_state(session, status, RAS_SUSPECT);
	print_agents_in_state(session, status, RAS_UNREACHABLE);
	return true;
}

static bool print_comm_warnings(struct session *session, struct status *status) {
	return print_each_comm(session, status, status_print_mismatches);
}

status_phase_fn *const status_text_phases[] = {
	status_summarise,
	print_comm_table,
	print_agent_errors,
	print_comm_errors,
	print_agent_warnings,
	print_comm_warnings,
	NULL,
};
