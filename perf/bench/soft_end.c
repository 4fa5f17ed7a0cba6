// SPDX-License-Identifier: BSD-3-Clause
// One end of a connection in the software device's benchmark.
#include "soft_end.h"

#include <lib/error.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GIDS_MAX 64
#define INLINE_MAX 64

static int parse_setup(
	const struct soft_setup *setup,
	uint32_t number,
	struct soft_why *why,
	struct soft_config *config
) {
	const char *address = setup->address[number], *faults = setup->faults;
	struct parse_error error = {0};
	int err = 0;

	config->address_any = address == NULL;
	if (address != NULL)
		err = sock_addr_parse_host(address, strlen(address), &error, &config->address);
	if (err == 0 && faults != NULL)
		err = soft_faults_parse(faults, strlen(faults), &error, &config->faults);
	if (setup->wire_args[number] != NULL)
		snprintf(
			config->wire_args, sizeof(config->wire_args), "%s", setup->wire_args[number]
		);
	return soft_fail(why, err, "%s", error.text);
}

int end_add_device(
	const struct soft_setup *setup, uint32_t number, struct soft_why *why, const char **ret_name
) {
	static const char *const names[2] = {"soft0", "soft1"};
	struct soft_config config = {.wire = setup->wire, .clock = setup->clock};
	int err = parse_setup(setup, number, why, &config);

	if (err != 0)
		return err;
	snprintf(config.name, sizeof(config.name), "%s", names[number]);
	*ret_name = names[number];
	return soft_fail(why, soft_device_add(&config), "no software device can be added");
}

static int open_device(struct end *end, const char *name) {
	char reason[SOFT_REASON_MAX + 1] = "";
	struct ibv_device **devices;
	uint32_t count;
	int err = end->calls->device_list(&devices, &count);

	if (err != 0)
		return soft_fail(end->why, err, "no list of devices: %s", strerrordesc_np(-err));
	err = -ENODEV;
	for (uint32_t n = 0; n < count; n++) {
		if (strcmp(devices[n]->name, name) == 0)
			err = end->calls->open(devices[n], &end->context);
	}
	end->calls->device_list_free(devices);
	if (err != 0 && end->calls == &verbs_calls_soft)
		soft_device_open_error(name, reason);
	if (reason[0] != '\0')
		return soft_fail(end->why, err, "%s", reason);
	return soft_fail(end->why, err, "%s: %s", name, strerrordesc_np(-err));
}

// Find the first RoCEv2 GID that is an IPv4 address.
static int find_gid(struct end *end) {
	static const uint8_t mapped[12] = {[10] = 0xff, 0xff};
	struct ibv_gid_entry entries[GIDS_MAX];
	uint32_t count;
	int err = end->calls->query_gids(end->context, entries, GIDS_MAX, &count);

	for (uint32_t n = 0; err == 0 && n < count; n++) {
		if (entries[n].gid_type == IBV_GID_TYPE_ROCE_V2 &&
		    memcmp(entries[n].gid.raw, mapped, sizeof(mapped)) == 0) {
			end->mine.gid = entries[n].gid;
			end->gid_index = (uint8_t)entries[n].gid_index;
			return 0;
		}
	}
	return err != 0 ? err : -ENOENT;
}

int end_make_qp(struct end *end, struct ibv_qp **ret_qp) {
	struct ibv_qp_init_attr attr = {
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.cap = {.max_send_wr = END_DEPTH,
			.max_recv_wr = END_DEPTH,
			.max_send_sge = 1,
			.max_recv_sge = 1,
			.max_inline_data = INLINE_MAX},
		.qp_type = IBV_QPT_RC,
	};

	return end->calls->create_qp(end->pd, &attr, ret_qp);
}

static int make_objects(struct end *end) {
	const struct verbs_calls *calls = end->calls;
	int err = calls->alloc_pd(end->context, &end->pd);

	if (err == 0)
		err = calls->create_cq(end->context, 2 * END_DEPTH, NULL, &end->cq);
	end->area = aligned_alloc(4096, END_AREA_BYTES);
	if (end->area == NULL)
		return -ENOMEM;
	memset(end->area, 0, END_AREA_BYTES);
	if (err == 0)
		err = calls->reg_mr(
			end->pd, end->area, END_AREA_BYTES,
			IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE, &end->mr
		);
	return err != 0 ? err : end_make_qp(end, &end->qp);
}

int end_connect(struct end *end, struct ibv_qp *qp, uint8_t timeout) {
	const struct end_info *mine = &end->mine, *theirs = &end->theirs;
	struct ibv_qp_attr init = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE,
	};
	struct ibv_qp_attr rtr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mine->mtu < theirs->mtu ? mine->mtu : theirs->mtu,
		.dest_qp_num = theirs->queue_pair,
		.max_dest_rd_atomic = 1,
		.min_rnr_timer = 12,
		.ah_attr =
			{.is_global = 1,
			 .port_num = 1,
			 .grh = {.dgid = theirs->gid,
				 .sgid_index = end->gid_index,
				 .hop_limit = 64}},
	};
	struct ibv_qp_attr rts = {
		.qp_state = IBV_QPS_RTS,
		.timeout = timeout,
		.retry_cnt = 7,
		.rnr_retry = 7,
		.max_rd_atomic = 1,
	};
	int err = end->calls->modify_qp(
		qp, &init, IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS
	);

	if (err == 0)
		err = end->calls->modify_qp(
			qp, &rtr,
			IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER
		);
	if (err == 0)
		err = end->calls->modify_qp(
			qp, &rts,
			IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC
		);
	return err;
}

int end_open(struct end *end, const char *name) {
	struct soft_why *why = end->why;
	struct ibv_port_attr port;
	int err = open_device(end, name);

	if (err != 0)
		return err;
	err = soft_fail(why, make_objects(end), "%s: its objects cannot be made", name);
	if (err == 0)
		err = soft_fail(why, find_gid(end), "%s: no RoCEv2 GID for IPv4", name);
	if (err == 0)
		err = soft_fail(
			why, end->calls->query_port(end->context, 1, &port), "%s: no port", name
		);
	if (err != 0)
		return err;
	end->mine.address = (uintptr_t)end->area;
	end->mine.queue_pair = end->qp->qp_num;
	end->mine.key = end->mr->rkey;
	end->mine.mtu = port.active_mtu;
	return 0;
}

int end_post(struct end *end, uint32_t from, uint32_t to, uint32_t size) {
	struct ibv_sge sge = {(uintptr_t)end->area + from, size, end->mr->lkey};
	struct ibv_send_wr wr = {
		.sg_list = &sge,
		.num_sge = 1,
		.opcode = IBV_WR_RDMA_WRITE,
		.send_flags = IBV_SEND_SIGNALED | (size <= INLINE_MAX ? IBV_SEND_INLINE : 0u),
		.wr.rdma = {end->theirs.address + to, end->theirs.key},
	};
	struct ibv_send_wr *bad;

	end->out++;
	return soft_fail(end->why, -ibv_post_send(end->qp, &wr, &bad), "ibv_post_send() refused");
}

int end_reap(struct end *end) {
	struct ibv_wc wcs[16];
	int count = ibv_poll_cq(end->cq, 16, wcs);

	for (int n = 0; n < count; n++) {
		if (wcs[n].status != IBV_WC_SUCCESS)
			return soft_fail(
				end->why, -EIO, "a write ended with '%s'",
				ibv_wc_status_str(wcs[n].status)
			);
		end->out--;
	}
	return soft_fail(end->why, count < 0 ? -EIO : 0, "ibv_poll_cq() failed");
}

int end_drain(struct end *end) {
	int err = 0;

	while (end->out > 0 && err == 0)
		err = end_reap(end);
	return err;
}
