// SPDX-License-Identifier: BSD-3-Clause
// Fills a snapshot for readers of other threads.
#include <control/fabric.h>
#include <control/health.h>
#include <control/overlay.h>
#include <control/snapshot.h>
#include <lib/log.h>
#include <lib/must.h>

#include <stdio.h>
#include <string.h>

static void
copy_verdicts(const struct ras *ras, const struct health *health, struct snapshot *snapshot) {
	struct snapshot_verdict *row;
	struct verdict_view view;
	struct finding finding;
	struct ras_peer peer;
	uint32_t cursor = 0;

	snapshot->judged = true;
	snapshot->observes_only = health_observes_only(health);
	verdict_counts(health_engine(health), &snapshot->verdicts);
	snapshot->grants = health_grant_counters(health)->kept;
	while (verdict_unhealthy_next(health_engine(health), &cursor, &view)) {
		snapshot->withheld += !view.maint && health_withheld_reason(health, &view) != NULL;
		if (snapshot->verdict_rows == SNAPSHOT_VERDICTS_MAX ||
		    ras_peer_find(ras, view.subject, &peer) != 0)
			continue;
		finding_for_peer(health, &peer, &finding);
		row = &snapshot->rows[snapshot->verdict_rows++];
		*row = (struct snapshot_verdict){
			.verdict = finding.view.verdict,
			.advice = finding.advice,
			.grade = finding.grade,
			.maint = peer.maint,
			.since_ns = finding.view.since_ns,
		};
		memcpy(row->node, peer.record->name, peer.record->name_length);
		snprintf(row->reason, sizeof(row->reason), "%s", finding.reason);
	}
}

static void
copy_own(const struct health *health, const struct ras_peer *self, struct snapshot_self *own) {
	struct finding finding;

	finding_for_peer(health, self, &finding);
	own->grade = finding.grade;
	own->advice = finding.advice;
	own->would = finding.would;
	own->maint = self->maint;
	snprintf(own->verdict, sizeof(own->verdict), "%s", finding.verdict);
	snprintf(own->reason, sizeof(own->reason), "%s", finding.reason);
	snprintf(own->evidence, sizeof(own->evidence), "%s", finding.evidence);
}

// Copy the steady paths, which come first.
static void copy_paths(
	const struct ras *ras, const struct counter_sources *sources, struct snapshot *snapshot
) {
	struct fabric_path_view view;
	uint32_t cursor = 0;

	while (sources->fabric != NULL &&
	       sources->fabric_calls->path_next(sources->fabric, &cursor, &view) &&
	       view.neighbour) {
		struct snapshot_path *path = &snapshot->paths[snapshot->path_count];
		struct ras_peer peer;

		if (ras_peer_find(ras, view.peer, &peer) != 0)
			continue;
		if (snapshot->path_count == SNAPSHOT_PATHS_MAX) {
			snapshot->paths_left++;
			continue;
		}
		memcpy(path->peer, peer.record->name, peer.record->name_length);
		sources->fabric_calls->path_row(sources->fabric, &view, &path->row);
		path->gpu = view.gpu;
		snapshot->path_count++;
	}
}

void snapshot_take(
	const struct overlay *overlay,
	const struct health *health,
	const struct counter_sources *sources,
	uint64_t now_ns,
	struct snapshot *ret_snapshot
) {
	const struct ras *ras = overlay_ras(overlay);
	const struct congestion_port *ports = NULL;
	struct ras_link_info link;
	struct ras_peer self;
	uint32_t cursor = 0;
	const char *name;

	*ret_snapshot = (struct snapshot){.at_ns = now_ns, .log_lost = log_lost_count()};
	must(ras_peer_find(ras, ras_self_id(ras), &self) == 0);
	memcpy(ret_snapshot->node, self.record->name, self.record->name_length);
	ras_view(ras, &ret_snapshot->view);
	finding_for_cluster(overlay, health, &ret_snapshot->finding);
	copy_own(health, &self, &ret_snapshot->own);
	if (health != NULL)
		copy_verdicts(ras, health, ret_snapshot);
	ret_snapshot->maint_age_max_ns = overlay_maintenance_age_max_ns(overlay);
	ret_snapshot->ras_bytes = ras_memory_used(ras);
	while (ras_link_at(ras, ret_snapshot->links, &link) == 0) {
		ret_snapshot->links++;
		ret_snapshot->links_ready += link.ready;
	}
	ret_snapshot->expected = overlay_roster_count(overlay);
	while ((name = overlay_missing_next(overlay, &cursor)) != NULL) {
		if (ret_snapshot->missing < SNAPSHOT_MISSING_MAX)
			snprintf(
				ret_snapshot->missing_names[ret_snapshot->missing],
				RAS_NAME_MAX + 1, "%.*s", RAS_NAME_MAX, name
			);
		ret_snapshot->missing++;
	}
	ret_snapshot->alone = overlay_is_alone(overlay);
	copy_paths(ras, sources, ret_snapshot);
	if (sources->checks != NULL) {
		ret_snapshot->port_count = checks_congestion(sources->checks, &ports);
		for (uint32_t n = 0; n < ret_snapshot->port_count; n++)
			ret_snapshot->ports[n] = ports[n];
	}
	if (sources->jobhost != NULL)
		ret_snapshot->job_count = jobhost_jobs(
			sources->jobhost, ret_snapshot->jobs, &ret_snapshot->jobs_left
		);
	counters_read(sources, ret_snapshot->values);
}
