// SPDX-License-Identifier: BSD-3-Clause
#include "ends.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#define WAIT_MS_MAX 60000

char present[128] = "the start";

void fail(const char *format, ...) {
	va_list arguments;

	va_start(arguments, format);
	printf("FAILED: %s: ", present);
	vprintf(format, arguments);
	printf("\n");
	va_end(arguments);
	exit(1);
}

static int tcp_listen(uint16_t port) {
	const struct sockaddr_in any = {.sin_family = AF_INET, .sin_port = htons(port)};
	const int listening = socket(AF_INET, SOCK_STREAM, 0);
	const int one = 1;
	int accepted;

	setsockopt(listening, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one));
	check(bind(listening, (const struct sockaddr *)&any, sizeof(any)) == 0);
	check(listen(listening, 1) == 0);
	accepted = accept(listening, NULL, NULL);
	check(accepted >= 0);
	close(listening);
	return accepted;
}

static int tcp_connect(uint16_t port, const char *peer) {
	struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port)};
	const int tcp = socket(AF_INET, SOCK_STREAM, 0);

	check(inet_pton(AF_INET, peer, &to.sin_addr) == 1);
	check(connect(tcp, (const struct sockaddr *)&to, sizeof(to)) == 0);
	return tcp;
}

static void tell(struct end *end, const void *bytes, size_t size) {
	check(send(end->tcp, bytes, size, MSG_NOSIGNAL) == (ssize_t)size);
}

static void hear(struct end *end, void *bytes, size_t size) {
	check(recv(end->tcp, bytes, size, MSG_WAITALL) == (ssize_t)size);
}

void end_meet(struct end *end) {
	char mark = 'm';

	tell(end, &mark, 1);
	hear(end, &mark, 1);
	check(mark == 'm');
}

static struct ibv_context *device_open(const char *name) {
	int count = 0;
	struct ibv_device **list = ibv_get_device_list(&count);
	struct ibv_context *context = NULL;

	check(list != NULL);
	for (int n = 0; n < count; n++) {
		if (strcmp(ibv_get_device_name(list[n]), name) == 0)
			context = ibv_open_device(list[n]);
	}
	ibv_free_device_list(list);
	if (context == NULL)
		fail("there is no device %s, or it cannot be opened", name);
	return context;
}

void end_open(
	struct end *end, const char *device, uint8_t gid_index, uint16_t port, const char *peer
) {
	const int access = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE |
			   IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC;
	const int one = 1;
	struct ibv_port_attr attr;

	end->listened = peer == NULL;
	end->tcp = peer == NULL ? tcp_listen(port) : tcp_connect(port, peer);
	setsockopt(end->tcp, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	end->gid_index = gid_index;
	end->context = device_open(device);
	end->pd = ibv_alloc_pd(end->context);
	check(end->pd != NULL);
	end->channel = ibv_create_comp_channel(end->context);
	check(end->channel != NULL);
	end->cq = ibv_create_cq(end->context, 2 * QUEUE_DEPTH, NULL, end->channel, 0);
	check(end->cq != NULL);
	end->memory =
		mmap(NULL, MEMORY_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		     0);
	check(end->memory != MAP_FAILED);
	end->mr = ibv_reg_mr(end->pd, end->memory, MEMORY_BYTES, access);
	check(end->mr != NULL);
	check(ibv_query_port(end->context, 1, &attr) == 0);
	check(ibv_query_gid(end->context, 1, gid_index, &end->own.gid) == 0);
	end->own.mtu = attr.active_mtu;
	end->own.key = end->mr->rkey;
	end->own.address = (uintptr_t)end->memory;
}

static void to_init(struct end *end) {
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags =
			IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ | IBV_ACCESS_REMOTE_ATOMIC,
	};

	check(ibv_modify_qp(
		      end->qp, &attr,
		      IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS
	      ) == 0);
}

static void to_receive(struct end *end, enum ibv_mtu mtu) {
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = mtu,
		.dest_qp_num = end->peer.queue_pair,
		.rq_psn = end->peer.psn,
		.max_dest_rd_atomic = READS_MAX,
		.min_rnr_timer = 12,
		.ah_attr =
			{.is_global = 1,
			 .port_num = 1,
			 .grh =
				 {
					 .dgid = end->peer.gid,
					 .sgid_index = end->gid_index,
					 .hop_limit = 64,
				 }},
	};

	check(ibv_modify_qp(
		      end->qp, &attr,
		      IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
			      IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER
	      ) == 0);
}

// Use six retries, because with seven the kernel's device never gives up.
static void to_send(struct end *end) {
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTS,
		.timeout = 15,
		.retry_cnt = 6,
		.rnr_retry = 7,
		.sq_psn = end->own.psn,
		.max_rd_atomic = READS_MAX,
	};

	check(ibv_modify_qp(
		      end->qp, &attr,
		      IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
			      IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC
	      ) == 0);
}

void end_connect(struct end *end) {
	struct ibv_qp_init_attr init = {
		.send_cq = end->cq,
		.recv_cq = end->cq,
		.qp_type = IBV_QPT_RC,
		.cap =
			{
				.max_send_wr = QUEUE_DEPTH,
				.max_recv_wr = QUEUE_DEPTH,
				.max_send_sge = SGES_MAX,
				.max_recv_sge = SGES_MAX,
				.max_inline_data = 64,
			},
	};
	uint32_t smaller;

	if (end->qp != NULL)
		check(ibv_destroy_qp(end->qp) == 0);
	end->qp = ibv_create_qp(end->pd, &init);
	check(end->qp != NULL);
	to_init(end);
	end->own.queue_pair = end->qp->qp_num;
	// Start shortly before the numbers wrap around, at a different number for each pair.
	end->own.psn = 0xffffe0 - end->pairs++ * 7 - (end->listened ? 3 : 0);
	tell(end, &end->own, sizeof(end->own));
	hear(end, &end->peer, sizeof(end->peer));
	smaller = end->own.mtu < end->peer.mtu ? end->own.mtu : end->peer.mtu;
	end->mtu = 128U << smaller;
	to_receive(end, (enum ibv_mtu)smaller);
	to_send(end);
	end_meet(end);
}

void end_close(struct end *end) {
	end_meet(end);
	check(ibv_destroy_qp(end->qp) == 0);
	check(ibv_dereg_mr(end->mr) == 0);
	check(ibv_destroy_cq(end->cq) == 0);
	check(ibv_destroy_comp_channel(end->channel) == 0);
	check(ibv_dealloc_pd(end->pd) == 0);
	check(ibv_close_device(end->context) == 0);
	munmap(end->memory, MEMORY_BYTES);
	close(end->tcp);
}

struct ibv_wc end_completion(struct end *end) {
	struct pollfd waiting = {.fd = end->channel->fd, .events = POLLIN};
	struct ibv_wc wc;
	struct ibv_cq *cq;
	void *context;
	int count;

	while ((count = ibv_poll_cq(end->cq, 1, &wc)) == 0) {
		check(ibv_req_notify_cq(end->cq, 0) == 0);
		count = ibv_poll_cq(end->cq, 1, &wc);
		if (count != 0)
			break;
		if (poll(&waiting, 1, WAIT_MS_MAX) != 1)
			fail("no completion in %d ms", WAIT_MS_MAX);
		check(ibv_get_cq_event(end->channel, &cq, &context) == 0);
		ibv_ack_cq_events(cq, 1);
	}
	check(count == 1);
	return wc;
}

struct ibv_wc end_success(struct end *end, uint64_t id, enum ibv_wc_opcode opcode) {
	const struct ibv_wc wc = end_completion(end);

	if (wc.status != IBV_WC_SUCCESS)
		fail("request %lu ended with %s", wc.wr_id, ibv_wc_status_str(wc.status));
	if (wc.wr_id != id || wc.opcode != opcode)
		fail("completion of request %lu, opcode %u, instead of %lu, %u", wc.wr_id,
		     wc.opcode, id, opcode);
	return wc;
}
