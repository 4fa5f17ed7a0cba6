// SPDX-License-Identifier: BSD-3-Clause
// JSON for communicators and their ranks.
#include "jobs/answers/comm_json.h"

#include "client/names.h"
#include "client/peer_list.h"
#include "client/server.h"

#include <records/communicators.h>
#include <records/ranks.h>

#include <inttypes.h>
#include <jobs/report.h>
#include <stdio.h>

static void node_name(void *ctx, uint64_t node, char *text, uint32_t size) {
	char name[NAMES_TEXT_BYTES];

	names_format_id(session_ras(ctx), node, name);
	snprintf(text, size, "%s", name);
}

int comm_look_init_session(
	struct comm_look *look, struct session *session, const struct overlay_answer *answer
) {
	const struct comm_look_config config = {
		.health = session->server->config.health,
		.now_ns = loop_now_ns(session->server->loop),
		.limits = session->server->config.job_limits,
		.book = session->server->comm_book,
		.words = {.node_name = node_name, .ctx = session},
	};

	return comm_look_init(look, &config, answer);
}

// Convert the flags of what a rank reports to the words of docs/jobs.md.
static json_t *knows_json(uint8_t knows) {
	static const char *const names[] = {"started", "completed", "signatures", "process"};
	json_t *array = json_array();

	for (uint32_t n = 0; n < sizeof(names) / sizeof(names[0]); n++) {
		if ((knows & 1u << n) != 0)
			json_array_append_new(array, json_string(names[n]));
	}
	return array;
}

static json_t *unread_json(uint8_t unread) {
	json_t *array = json_array();

	for (uint32_t n = 0; n < JOBS_SOURCES; n++)
		if ((unread & 1u << n) != 0)
			json_array_append_new(array, json_string(jobs_source_name(n)));
	return array;
}

static json_t *device_json(int16_t device) {
	return device >= 0 ? json_integer(device) : json_null();
}

json_t *comm_json_rank(const struct comm_look *look, uint32_t place, uint32_t rank) {
	const struct ras_merged_rank *merged = &look->comms[place].ranks[rank];
	bool gpu_by_job = merged->rank.cuda_device >= 0 || merged->rank.nvml_device >= 0;
	bool gpu_by_nccl = (merged->rank.knows & RAS_RANK_KNOWS_GPU_OF_NCCL) != 0;
	bool is_over = (merged->rank.flags & RAS_RANK_EXITED) != 0;
	const char *end = jobs_rank_end(&merged->rank);
	char node[NAMES_TEXT_BYTES], doing[JOBS_DOING_BYTES];
	const struct rank_row row = {
		.rank = (uint32_t)merged->rank.rank,
		.node = node,
		.pid = (uint32_t)merged->rank.pid,
		.process = end != NULL && (is_over || merged->rank.left != 0)
				   ? end
				   : jobs_process_name(merged->rank.process_state),
		.launched = merged->rank.launched,
		.started = merged->rank.started,
		.completed = merged->rank.completed,
		.still_ns = merged->rank.idle_ms * RAS_NS_PER_MS,
		.worked_ns = merged->rank.worked_ms * RAS_NS_PER_MS,
		.told = knows_json(merged->rank.knows),
		.doing = merged->rank.doing.activity != JOBS_DOES_UNKNOWN ||
					 merged->rank.doing.busy_s != 0
				 ? doing
				 : NULL,
		.unread = unread_json(merged->rank.doing.unread),
		.cuda_dev = device_json(merged->rank.cuda_device),
		.nvml_dev = device_json(merged->rank.nvml_device),
		.gpu_from = gpu_by_nccl	 ? "nccl-ras"
			    : gpu_by_job ? "job"
					 : NULL,
	};

	look->config.words.node_name(look->config.words.ctx, merged->node, node, sizeof(node));
	jobs_describe_doing(&merged->rank.doing, doing);
	return record_to_json(&rank_record, &row);
}

json_t *comm_json(const struct comm_look *look, uint32_t place) {
	const struct jobs_finding *finding = &look->findings[place];
	char sentence[JOBS_SENTENCE_BYTES], via[32];
	const struct diagnosis_row row = {
		.state = jobs_grade_name(finding->grade),
		.cause = jobs_cause_name(finding->cause),
		.sentence = sentence,
		.operation = finding->seq,
		.waited_ns = finding->waited_ms * RAS_NS_PER_MS,
		.waiting = finding->waiting,
		.late_count = finding->late_count,
		.absent = finding->absent,
		.late = json_array(),
		.told = knows_json(finding->knows),
		.waits_in = finding->via != JOBS_NOBODY ? via : NULL,
		.mismatch = finding->mismatch.seq != 0 ? finding->mismatch.seq : RECORD_UNKNOWN,
	};

	comm_look_describe(look, place, sentence);
	for (uint32_t n = 0; n < finding->late_count && n < JOBS_NAMED_MAX; n++) {
		if (finding->late[n] != JOBS_NOBODY)
			json_array_append_new(
				row.late, comm_json_rank(look, place, finding->late[n])
			);
	}
	if (finding->via != JOBS_NOBODY)
		snprintf(via, sizeof(via), "0x%016" PRIx64, look->comms[finding->via].id.hash);
	return record_to_json(&diagnosis_record, &row);
}
