// SPDX-License-Identifier: BSD-3-Clause
// The report as NCCL's JSON: same keys, order and indentation, with an additional key "tocsin".
#include "client/names.h"
#include "client/peer_list.h"
#include "client/server.h"
#include "feeds/nccl/status.h"
#include "jobs/answers/comm_json.h"

#include <lib/show.h>
#include <records/status.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static bool put_head(struct session *session, struct status *status) {
	struct overlay *overlay = session->server->overlay;
	char when[SHOW_BYTES];

	show_local_time(overlay_realtime_ns(overlay, overlay_now_ns(overlay)), when);
	text_print(&session->out, "{\n  \"nccl_version\": ");
	text_add_json(&session->out, json_sprintf("tocsin %s", session->server->version));
	text_print(
		&session->out,
		",\n  \"cuda_runtime_version\": -1,\n  \"cuda_driver_version\": -1,\n"
		"  \"timestamp\": \"%s\",\n  \"communicators_count\": %u,\n"
		"  \"communicators\": [%s",
		when, status->comms.count, status->comms.count > 0 ? "\n" : ""
	);
	return true;
}

// Return data that NCCL does not have: the job, the operation that ranks wait for, and ended
// processes.
static json_t *status_comm_json(const struct status *status, uint32_t place) {
	const struct ras_merged_comm *comm = &status->look.comms[place];
	struct status_communicator_row row;

	if (!status->judged)
		return json_null();
	row = (struct status_communicator_row){
		.job = comm->job[0] != '\0' ? comm->job : NULL,
		.jobs_differ = comm->jobs_differ,
		.finding = comm_json(&status->look, place),
	};
	return record_to_json(&status_communicator_record, &row);
}

static const char *json_truth(bool value) {
	return value ? "true" : "false";
}

// Write the address of a node's agent, as NCCL's "host".
static void
show_host(const struct ras *ras, uint64_t node, char text[static SOCK_ADDR_TEXT_BYTES]) {
	struct ras_peer peer;

	if (ras_peer_find(ras, node, &peer) == 0)
		sock_addr_format_host(&peer.record->address, text);
	else
		snprintf(text, SOCK_ADDR_TEXT_BYTES, "unknown");
}

static void put_rank(struct session *session, const struct ras_merged_rank *merged, bool first) {
	const struct ras_comm_rank *rank = &merged->rank;
	char host[SOCK_ADDR_TEXT_BYTES];

	show_host(session_ras(session), merged->node, host);
	text_print(
		&session->out,
		"%s\n        {\n          \"rank\": %u,\n          \"host\": \"%s\",\n"
		"          \"pid\": %u,\n          \"cuda_dev\": %d,\n          \"nvml_dev\": %d,\n"
		"          \"status\": {\n            \"init_state\": %u,\n"
		"            \"async_error\": %u,\n            \"finalize_called\": %s,\n"
		"            \"destroy_flag\": %s,\n            \"abort_flag\": %s\n          },\n",
		first ? "" : ",", rank->rank, host, rank->pid, rank->cuda_device, rank->nvml_device,
		rank->init_state, rank->async_error,
		json_truth((rank->flags & RAS_RANK_FINALIZE) != 0),
		json_truth((rank->flags & RAS_RANK_DESTROY) != 0),
		json_truth((rank->flags & RAS_RANK_ABORT) != 0)
	);
	text_print(
		&session->out,
		"          \"collective_counts\": {\n            \"Broadcast\": %" PRIu64 ",\n"
		"            \"Reduce\": %" PRIu64 ",\n            \"AllGather\": %" PRIu64 ",\n"
		"            \"ReduceScatter\": %" PRIu64 ",\n            \"AllReduce\": %" PRIu64
		"\n          }\n        }",
		rank->ops[0], rank->ops[1], rank->ops[2], rank->ops[3], rank->ops[4]
	);
}

static void put_missing(
	struct session *session,
	const struct status *status,
	const struct ras_comm_missing *missing,
	bool first
) {
	const struct ras *ras = session_ras(session);
	struct sock_addr address = {.family = missing->family};
	char host[SOCK_ADDR_TEXT_BYTES];
	struct ras_peer peer;
	bool dead;

	dead = missing->node != 0 && ras_peer_find(ras, missing->node, &peer) == 0 &&
	       peer.state == RAS_DEAD;
	if (missing->family == 0) {
		show_host(ras, missing->node, host);
	} else {
		memcpy(address.address, missing->address, sizeof(address.address));
		sock_addr_format_host(&address, host);
	}
	text_print(
		&session->out,
		"%s\n        {\n          \"rank\": %u,\n          \"host\": \"%s\",\n"
		"          \"pid\": %d,\n          \"cuda_dev\": %d,\n          \"nvml_dev\": %d,\n"
		"          \"status\": {\n            \"unresponsive\": %s,\n"
		"            \"considered_dead\": %s\n          }\n        }",
		first ? "" : ",", missing->rank, host, missing->pid > 0 ? (int)missing->pid : -1,
		missing->cuda_device, missing->nvml_device,
		json_truth(status == NULL || !collect_has_node(&status->collect, missing->node)),
		json_truth(dead)
	);
}

// Write the missing ranks, then the ranks about which nothing is known: not present, and not
// reported missing. Returns true when all are written. A job may claim a million of them, so this
// stops at the end of a step.
static bool put_missing_ranks(
	struct session *session, struct status *status, const struct ras_merged_comm *comm
) {
	struct ras_comm_missing nobody = {.cuda_device = -1, .nvml_device = -1};
	struct status_absent *at = &status->absent;

	if (!at->begun) {
		*at = (struct status_absent){.begun = true, .put = comm->missing_count};
		text_print(
			&session->out, "%s],\n      \"missing_ranks\": [",
			comm->rank_count > 0 ? "\n      " : ""
		);
		for (uint32_t n = 0; n < comm->missing_count; n++)
			put_missing(session, status, &comm->missing[n].missing, n == 0);
	}
	for (; at->rank < comm->size; at->rank++) {
		if (at->held < comm->rank_count && comm->ranks[at->held].rank.rank == at->rank) {
			at->held++;
			continue;
		}
		if (at->missed < comm->missing_count &&
		    comm->missing[at->missed].missing.rank == at->rank) {
			at->missed++;
			continue;
		}
		if (text_size(&session->out) >= SESSION_STEP_BYTES)
			return false;
		nobody.rank = at->rank;
		put_missing(session, NULL, &nobody, at->put++ == 0);
	}
	return true;
}

// Write the communicators. status->rank is the next rank; the head is written before rank 0, the
// tail after the last rank.
static bool put_comms(struct session *session, struct status *status) {
	struct text *out = &session->out;
	struct ras_merged_comm comm;

	while (status->comm < status->comms.count) {
		uint32_t place = status->comms.rows[status->comm].place;

		if (text_size(out) >= SESSION_STEP_BYTES)
			return false;
		ras_comms_at(status->collect.answer->comms, place, &comm);
		if (status->rank == 0 && !status->absent.begun)
			text_print(
				out,
				"    {\n      \"hash\": \"0x%" PRIx64 "\",\n"
				"      \"secondary_hash\": \"0x%" PRIx64 ":0x%" PRIx64 "\",\n"
				"      \"size\": %u,\n      \"ranks_count\": %u,\n"
				"      \"missing_ranks_count\": %u,\n      \"ranks\": [",
				comm.id.hash, comm.id.host_hash, comm.id.pid_hash, comm.size,
				comm.rank_count, comm.size - comm.rank_count
			);
		if (status->rank < comm.rank_count) {
			put_rank(session, &comm.ranks[status->rank], status->rank == 0);
			status->rank++;
		}
		if (status->rank < comm.rank_count)
			continue;
		if (!put_missing_ranks(session, status, &comm))
			return false;
		text_print(
			out, "%s],\n      \"tocsin\": ", status->absent.put > 0 ? "\n      " : ""
		);
		text_add_json(out, status_comm_json(status, place));
		text_print(out, "\n    }%s\n", status->comm + 1 < status->comms.count ? "," : "");
		status->absent.begun = false;
		status->rank = 0;
		status->comm++;
	}
	return true;
}

static json_t *nodes_json(const struct ras *ras, enum ras_state state) {
	json_t *array = json_array();
	char name[NAMES_TEXT_BYTES];
	struct ras_peer peer;
	struct ras_view view;

	ras_view(ras, &view);
	for (uint32_t slot = 0; slot < view.slots_max; slot++) {
		if (ras_peer_at(ras, slot, &peer) < 0 || peer.state != state)
			continue;
		names_format_record(peer.record, name);
		json_array_append_new(array, safe_string_json(name));
	}
	return array;
}

static json_t *tocsin_json(struct session *session, const struct status *status) {
	const struct overlay_answer *answer = status->collect.answer;
	const struct ras *ras = session_ras(session);
	char node[NAMES_TEXT_BYTES], name[NAMES_TEXT_BYTES];
	struct status_cluster_row row = {
		.version = session->server->version,
		.cluster = session->server->cluster,
		.node = node,
		.answered = answer != NULL ? answer->result.answered : 0,
		.dead_nodes = nodes_json(ras, RAS_DEAD),
		.suspect_nodes = nodes_json(ras, RAS_SUSPECT),
		.unreachable_nodes = nodes_json(ras, RAS_UNREACHABLE),
		.unanswered = json_array(),
		.missing_nodes = json_array(),
		.error = collect_error_text(&status->collect),
	};
	const char *missing_name;
	struct ras_view view;
	uint32_t cursor = 0;

	// The absent nodes of the roster.
	while ((missing_name = overlay_missing_next(session->server->overlay, &cursor)) != NULL)
		json_array_append_new(row.missing_nodes, safe_string_json(missing_name));
	// The members that sent no communicator data, and why.
	for (uint32_t n = 0; answer != NULL && n < answer->result.missing_count; n++) {
		const struct ras_missing_peer *missing = &answer->result.missing[n];
		const struct unanswered_row peer = {name, ras_missing_name(missing->reason)};

		names_format_id(ras, missing->id, name);
		json_array_append_new(row.unanswered, record_to_json(&unanswered_record, &peer));
	}
	ras_view(ras, &view);
	row.view = view.number;
	snprintf(row.digest, sizeof(row.digest), "0x%016" PRIx64, view.digest);
	row.joined = view.joined;
	row.brake = view.brake;
	row.alive = view.alive;
	row.suspect = view.suspect;
	row.unreachable = view.unreachable;
	row.dead = view.dead;
	row.left = view.left;
	names_format_id(ras, ras_self_id(ras), node);
	return record_to_json(&status_cluster_record, &row);
}

static bool put_tail(struct session *session, struct status *status) {
	text_print(
		&session->out,
		"%s],\n  \"ras\": {\n    \"collection_time_sec\": %.3f,\n"
		"    \"timeouts_count\": %u\n  },\n  \"tocsin\": ",
		status->comms.count > 0 ? "  " : "", collect_seconds(&status->collect),
		collect_timeouts(&status->collect)
	);
	text_add_json(&session->out, tocsin_json(session, status));
	text_print(&session->out, "\n}\n");
	return true;
}

status_phase_fn *const status_json_phases[] = {
	status_summarise, put_head, put_comms, put_tail, NULL};
