// SPDX-License-Identifier: BSD-3-Clause
// Writes the metrics page. Names are tocsin_GROUP_NAME, counters end in _total, times are in
// seconds. In OpenMetrics, the family name of a counter has no _total, and the page ends with #
// EOF.
#include "feeds/http/metrics_page.h"

#include <control/snapshot.h>
#include <dataplane/peer_table.h>

#include <inttypes.h>
#include <string.h>

// limits the series of peers that are not alive, so that a scrape stays small
#define NAMED_PEERS_MAX 1000

void page_family(
	FILE *out, bool open_metrics, const char *name, const char *type, const char *help
) {
	const char *total = !open_metrics && strcmp(type, "counter") == 0 ? "_total" : "";

	fprintf(out, "# HELP %s%s %s\n# TYPE %s%s %s\n", name, total, help, name, total, type);
}

static void gauge_write(FILE *out, const char *name, const char *help, uint64_t value) {
	page_family(out, true, name, "gauge", help);
	fprintf(out, "%s %" PRIu64 "\n", name, value);
}

static bool counter_is_duration(const struct counter *counter) {
	return counter->kind == COUNTER_TIME || counter->kind == COUNTER_LONGEST;
}

static bool is_gauge(const struct counter *counter) {
	return counter->kind == COUNTER_GAUGE || counter->kind == COUNTER_LONGEST;
}

// Write all counters. The counter loop.busy_ns becomes "tocsin_loop_busy_seconds".
static void counters_write(const struct snapshot *snapshot, bool open_metrics, FILE *out) {
	char before[128] = "", name[128];

	for (uint32_t n = 0; n < counters_count(); n++) {
		uint64_t value = snapshot->values[n];
		struct counter counter;

		counter_at(n, &counter);
		if (counter_is_duration(&counter))
			snprintf(
				name, sizeof(name), "tocsin_%s_%.*s_seconds", counter.group,
				(int)strlen(counter.name) - 3, counter.name
			);
		else
			snprintf(name, sizeof(name), "tocsin_%s_%s", counter.group, counter.name);
		if (strcmp(name, before) != 0)
			page_family(
				out, open_metrics, name, is_gauge(&counter) ? "gauge" : "counter",
				counter.help
			);
		memcpy(before, name, sizeof(before));
		fprintf(out, "%s%s", name, is_gauge(&counter) ? "" : "_total");
		if (counter.labels[0] != '\0')
			fprintf(out, "{%s}", counter.labels);
		if (counter_is_duration(&counter))
			fprintf(out, " %" PRIu64 ".%09" PRIu64 "\n", value / 1000000000,
				value % 1000000000);
		else
			fprintf(out, " %" PRIu64 "\n", value);
	}
}

static void states_write(const struct ras_view *view, FILE *out) {
	const struct {
		const char *name;
		uint32_t count;
	} rows[] = {
		{"alive", view->alive - view->suspect - view->unreachable},
		{"suspect", view->suspect},
		{"unreachable", view->unreachable},
		{"dead", view->dead},
		{"left", view->left},
	};

	page_family(out, true, "tocsin_peers", "gauge", "nodes of the cluster by state");
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++)
		fprintf(out, "tocsin_peers{state=\"%s\"} %u\n", rows[n].name, rows[n].count);
}

// Write a label value with escapes. Names of this cluster have only letters, digits, '-', '_' and
// '.'; another agent may send any bytes.
void page_label(FILE *out, const char *text, size_t size) {
	for (size_t n = 0; n < size; n++) {
		if (text[n] == '"' || text[n] == '\\')
			fputc('\\', out);
		if (text[n] == '\n')
			fputs("\\n", out);
		else
			fputc(text[n], out);
	}
}

static void not_alive_peers_write(const struct peer_table *peers, FILE *out) {
	const struct peer_snapshot *snapshot = peer_table_snapshot(peers);
	const struct peer_view *view = peer_snapshot_view(snapshot);
	uint32_t named = 0;

	page_family(
		out, true, "tocsin_peer_not_alive", "gauge",
		"1 for each node that is not alive, 2 if it is in maintenance; at most 1000 nodes"
	);
	for (uint32_t slot = 0; slot < view->slots_max && named < NAMED_PEERS_MAX; slot++) {
		const struct peer_row *row = peer_snapshot_row(snapshot, slot);

		if (row == NULL || row->state == PEER_ALIVE)
			continue;
		fputs("tocsin_peer_not_alive{node=\"", out);
		page_label(out, row->name, row->name_length);
		fprintf(out, "\",state=\"%s\"} %d\n", ras_state_name((enum ras_state)row->state),
			row->maint ? 2 : 1);
		named++;
	}
}

static void self_write(const struct page_facts *facts, bool open_metrics, FILE *out) {
	const struct snapshot *snapshot = facts->snapshot;

	page_family(out, true, "tocsin_build_info", "gauge", "version of this agent");
	fprintf(out, "tocsin_build_info{version=\"%s\"} 1\n", facts->version);
	page_process(open_metrics, out);
	if (snapshot->at_ns == 0)
		return;
	gauge_write(
		out, "tocsin_joined", "whether this node is a member of its cluster",
		snapshot->view.joined
	);
	gauge_write(
		out, "tocsin_alone",
		"whether this node is alone although it remembers or expects other nodes",
		snapshot->alone
	);
	gauge_write(
		out, "tocsin_brake",
		"whether so many members are silent that none is declared dead for silence",
		snapshot->view.brake
	);
	gauge_write(
		out, "tocsin_view_number", "number of this node's view, which only grows",
		snapshot->view.number
	);
	gauge_write(out, "tocsin_memory_bytes", "memory of the protocol core", snapshot->ras_bytes);
	gauge_write(out, "tocsin_links", "links of this node", snapshot->links);
	gauge_write(
		out, "tocsin_links_ready", "links of this node that are up", snapshot->links_ready
	);
	gauge_write(out, "tocsin_expected", "nodes that the roster names", snapshot->expected);
	gauge_write(
		out, "tocsin_missing", "nodes of the roster that never joined", snapshot->missing
	);
	page_family(
		out, true, "tocsin_snapshot_age_seconds", "gauge",
		"age of these numbers; more than 5 means that the agent hangs"
	);
	fprintf(out, "tocsin_snapshot_age_seconds %.3f\n",
		(double)(facts->now_ns - snapshot->at_ns) / 1e9);
	page_family(
		out, open_metrics, "tocsin_log_lost_lines", "counter",
		"lines of the log that could not be written"
	);
	fprintf(out, "tocsin_log_lost_lines_total %" PRIu64 "\n", snapshot->log_lost);
	states_write(&snapshot->view, out);
	counters_write(snapshot, open_metrics, out);
}

uint8_t page_part_find(const char *name) {
	static const char *const names[] = {"self", "verdicts", "paths", "jobs"};

	for (uint32_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
		if (strcmp(name, names[n]) == 0)
			return (uint8_t)(1u << n);
	}
	return 0;
}

void page_metrics(const struct page_facts *facts, uint8_t parts, bool open_metrics, FILE *out) {
	const struct snapshot *snapshot = facts->snapshot;
	bool has_begun = snapshot->at_ns != 0;

	if ((parts & PAGE_PART_SELF) != 0)
		self_write(facts, open_metrics, out);
	if ((parts & PAGE_PART_VERDICTS) != 0 && has_begun) {
		not_alive_peers_write(facts->peers, out);
		page_verdicts(snapshot, facts->now_ns, open_metrics, out);
	}
	if ((parts & PAGE_PART_PATHS) != 0 && has_begun) {
		page_paths(snapshot, open_metrics, out);
		page_congestion(snapshot, open_metrics, out);
	}
	if ((parts & PAGE_PART_JOBS) != 0 && has_begun)
		page_jobs(snapshot, out);
	if (open_metrics)
		fputs("# EOF\n", out);
}
