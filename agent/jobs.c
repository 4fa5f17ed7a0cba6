// SPDX-License-Identifier: BSD-3-Clause
// [job]: serves the job processes of this node on a socket of their own.
#include "agent.h"
#include "socket_path.h"

#include <control/comms_share.h>
#include <control/jobhost.h>
#include <lib/must.h>
#include <lib/sockaddr.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define JOB_SOCKET "job.sock"
#define NCCL_RAS_PORT 28028
#define USUAL_CLIENTS "tocsind.sock"

// Return the configured socket path, or the default next to the client socket. The default is
// job.sock next to tocsind.sock, and n1-job.sock next to n1.sock, because several agents may share
// a directory.
static int job_socket_find_path(struct agent *agent, char ret_path[static SOCKET_PATH_BYTES]) {
	const char *given = agent->settings->job.socket;
	char clients[SOCKET_PATH_BYTES];
	const char *name;
	size_t stem, suffix = strlen(".sock");
	int length, err;

	if (given[0] != '\0') {
		snprintf(ret_path, SOCKET_PATH_BYTES, "%s", given);
		return 0;
	}
	err = socket_path_make(agent->settings, clients, agent->detail);
	if (err != 0)
		return err;
	name = strrchr(clients, '/') + 1;
	stem = strlen(name);
	if (stem > suffix && strcmp(name + stem - suffix, ".sock") == 0)
		stem -= suffix;
	if (strcmp(name, USUAL_CLIENTS) == 0)
		length = snprintf(
			ret_path, SOCKET_PATH_BYTES, "%.*s" JOB_SOCKET, (int)(name - clients),
			clients
		);
	else
		length = snprintf(
			ret_path, SOCKET_PATH_BYTES, "%.*s-" JOB_SOCKET,
			(int)((size_t)(name - clients) + stem), clients
		);
	if (length < SOCKET_PATH_BYTES)
		return 0;
	snprintf(
		agent->detail, sizeof(agent->detail),
		"%s-" JOB_SOCKET ": too long: give [job] socket", clients
	);
	return -ENAMETOOLONG;
}

static uint32_t
select_reports(void *ctx, const struct jobs_rank_report **ret_reports, uint32_t max) {
	return jobhost_select_reports(ctx, ret_reports, max);
}

static void count_unshown(void *ctx, uint32_t count) {
	jobhost_count_unshown(ctx, count);
}

int jobs_part_start(struct agent *agent) {
	char path[SOCKET_PATH_BYTES], detail[JOBHOST_DETAIL_BYTES];
	struct jobhost_config config = {
		.socket_path = path,
		.processes_max = agent->settings->job.processes,
		.per_user_max = agent->settings->job.per_user,
		.keep_max = agent->settings->job.keep,
		.keep_ns = agent->settings->job.keep_for_ns,
		.overlay = agent->overlay,
		.health = agent->health,
		.limits =
			{
				.confirm_ns = agent->settings->job.waiting_ns,
				.stuck_ns = agent->settings->job.stuck_ns,
				.busy_ns = agent->settings->job.stuck_busy_ns,
			},
	};
	const char *nccl_ras = agent->settings->job.nccl_ras;
	struct comms_source ranks = {.select = select_reports, .cut = count_unshown};
	struct sock_addr nccl_address;
	int err;

	if (!agent->settings->job.enabled)
		return 0;
	if (nccl_ras[0] != '\0') {
		must(sock_addr_parse(
			     nccl_ras, strlen(nccl_ras), NCCL_RAS_PORT, NULL, &nccl_address
		     ) == 0);
		config.nccl_ras = &nccl_address;
	}
	err = job_socket_find_path(agent, path);
	if (err != 0)
		return err;
	err = jobhost_create(agent->loop, &config, detail, &agent->jobhost);
	if (err != 0) {
		snprintf(agent->detail, sizeof(agent->detail), "%s", detail);
		return err;
	}
	jobhost_use_subuids(agent->jobhost, subuids_read(JOBHOST_SUBUID_FILE));
	ranks.ctx = agent->jobhost;
	return comms_share_create(agent->overlay, &ranks, &agent->comms_share);
}

void jobs_part_stop(struct agent *agent) {
	agent->comms_share = comms_share_destroy(agent->comms_share);
	agent->jobhost = jobhost_destroy(agent->jobhost);
}
