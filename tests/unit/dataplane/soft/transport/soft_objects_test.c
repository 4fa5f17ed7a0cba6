// SPDX-License-Identifier: BSD-3-Clause
// Tests of devices, domains, memory and queue pairs: creation, refusal, and the allowed order of
// destruction.
#include "dataplane/soft/soft_bed.h"
#include "transport/verbs_limits.h"
#include "verbs/verbs_soft.h"

#include <support/cases.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static const struct verbs_calls *const calls = &verbs_calls_soft;
static struct bed_end *const here = &bed.ends[0], *const there = &bed.ends[1];

// Tests of devices.

static void devices_are_refused_that_cannot_be(void **state) {
	struct soft_config config = bed_config(2);
	char reason[SOFT_REASON_MAX + 1];
	struct sock_addr address;
	struct soft_counters counters;

	(void)state;
	config.name[0] = '\0';
	assert_int_equal(soft_device_add(&config), -EINVAL);
	memset(config.name, 'x', sizeof(config.name));
	assert_int_equal(soft_device_add(&config), -EINVAL);
	config = bed_config(1);
	assert_int_equal(soft_device_add(&config), -EEXIST);
	config = bed_config(2);
	config.address.family = SOCK_ADDR_NONE;
	assert_int_equal(soft_device_add(&config), -EINVAL);
	config = bed_config(2);
	config.wire = (enum soft_wire_kind)7;
	assert_int_equal(soft_device_add(&config), -EINVAL);
	assert_int_equal(soft_device_address("soft9", &address), -ENODEV);
	assert_int_equal(soft_counters_read("soft9", &counters), -ENODEV);
	assert_int_equal(soft_device_guid("soft9"), 0);
	soft_device_open_error("soft9", reason);
	assert_string_equal(reason, "");
}

static void there_are_so_many_devices_and_no_more(void **state) {
	struct soft_config config;

	(void)state;
	for (uint32_t n = 2; n < SOFT_DEVICES_MAX; n++) {
		config = bed_config(n);
		assert_int_equal(soft_device_add(&config), 0);
	}
	config = bed_config(SOFT_DEVICES_MAX);
	assert_int_equal(soft_device_add(&config), -ENOSPC);
}

static void a_device_lives_while_it_is_open(void **state) {
	const struct soft_config config = bed_config(2);
	struct ibv_context *one = NULL, *two = NULL;
	struct ibv_device **list = NULL;
	struct ibv_device_attr attr;
	struct sock_addr address;
	uint32_t count = 0;

	(void)state;
	assert_int_equal(soft_device_add(&config), 0);
	assert_int_equal(soft_device_address("soft2", &address), -ENOTCONN);
	assert_int_equal(calls->device_list(&list, &count), 0);
	assert_int_equal(count, 3);
	assert_null(list[3]);
	assert_string_equal(list[2]->name, "soft2");
	assert_int_equal(calls->open(list[2], &one), 0);
	assert_int_equal(calls->open(list[2], &two), 0);
	assert_int_equal(soft_device_address("soft2", &address), 0);
	assert_int_equal(address.address[3], 3);
	assert_int_equal(calls->query_device(two, &attr), 0);
	assert_int_equal(attr.node_guid, soft_device_guid("soft2"));
	assert_int_not_equal(attr.node_guid, soft_device_guid("soft1"));
	assert_int_equal(calls->close(one), 0);
	assert_int_equal(soft_device_address("soft2", &address), 0);
	assert_int_equal(calls->close(two), 0);
	assert_int_equal(soft_device_address("soft2", &address), -ENOTCONN);
	assert_int_equal(calls->open(list[2], &one), 0);
	assert_int_equal(calls->close(one), 0);
	calls->device_list_free(list);
}

// Two devices have the same address. The second reports why it cannot open, until the first is
// closed.
static void an_open_that_failed_says_why(void **state) {
	struct soft_config config = bed_config(2);
	struct ibv_context *context = NULL;
	struct ibv_device **list = NULL;
	char reason[SOFT_REASON_MAX + 1];
	uint32_t count;

	(void)state;
	config.address = bed_config(0).address;
	assert_int_equal(soft_device_add(&config), 0);
	assert_int_equal(calls->device_list(&list, &count), 0);
	assert_int_equal(calls->open(list[2], &context), -EADDRINUSE);
	assert_null(context);
	soft_device_open_error("soft2", reason);
	assert_non_null(strstr(reason, "10.0.0.1"));
	soft_device_open_error("soft0", reason);
	assert_string_equal(reason, "");
	assert_int_equal(calls->close(here->context), 0);
	here->context = NULL;
	assert_int_equal(calls->open(list[2], &context), 0);
	soft_device_open_error("soft2", reason);
	assert_string_equal(reason, "");
	assert_int_equal(calls->close(context), 0);
	calls->device_list_free(list);
}

// libibverbs' inline calls must return the same as our call table.
static void inline_queries_say_the_same(void **state) {
	struct ibv_port_attr port, inlined;
	struct ibv_device_attr_ex extended = {0};
	struct ibv_device_attr attr;
	struct ibv_gid_entry gids[2];
	uint32_t count = 0;
	uint16_t pkey = 0;

	(void)state;
	assert_int_equal(calls->query_port(here->context, 1, &port), 0);
	assert_int_equal(ibv_query_port(here->context, 1, &inlined), 0);
	assert_memory_equal(&port, &inlined, sizeof(port));
	assert_int_equal(port.state, IBV_PORT_ACTIVE);
	assert_int_equal(port.link_layer, IBV_LINK_LAYER_ETHERNET);
	assert_int_equal(port.active_mtu, IBV_MTU_4096);
	assert_int_equal(calls->query_port(here->context, 0, &port), -EINVAL);
	assert_int_equal(calls->query_port(here->context, 2, &port), -EINVAL);
	assert_int_equal(ibv_query_port(here->context, 2, &inlined), EINVAL);
	assert_int_equal(calls->query_device(here->context, &attr), 0);
	assert_int_equal(ibv_query_device_ex(here->context, NULL, &extended), 0);
	assert_memory_equal(&attr, &extended.orig_attr, sizeof(attr));
	assert_int_equal(attr.max_qp, 4096);
	assert_int_equal(attr.atomic_cap, IBV_ATOMIC_HCA);
	assert_int_equal(calls->query_gids(here->context, gids, 1, &count), -EINVAL);
	assert_int_equal(calls->query_gids(here->context, gids, 2, &count), 0);
	assert_int_equal(count, 2);
	for (uint32_t n = 0; n < 2; n++) {
		assert_int_equal(gids[n].gid_index, n);
		assert_int_equal(gids[n].gid.raw[15], 1);
		assert_int_equal(gids[n].gid_type, IBV_GID_TYPE_ROCE_V2);
	}
	assert_int_equal(calls->query_pkey(here->context, 1, 0, &pkey), 0);
	assert_int_equal(pkey, 0xffff);
	assert_int_equal(calls->query_pkey(here->context, 1, 1, &pkey), -EINVAL);
	assert_int_equal(calls->query_pkey(here->context, 2, 0, &pkey), -EINVAL);
}

// Tests of objects.

static void what_is_used_is_not_destroyed(void **state) {
	(void)state;
	assert_int_equal(calls->close(here->context), -EBUSY);
	assert_int_equal(calls->destroy_comp_channel(here->channel), -EBUSY);
	assert_int_equal(calls->destroy_cq(here->cq), -EBUSY);
	assert_int_equal(calls->dealloc_pd(here->pd), -EBUSY);
	assert_int_equal(calls->destroy_qp(here->qp), 0);
	here->qp = NULL;
	assert_int_equal(calls->dealloc_pd(here->pd), -EBUSY); // the region still uses it
	assert_int_equal(calls->close(here->context), -EBUSY);
	assert_int_equal(calls->dereg_mr(here->mr), 0);
	here->mr = NULL;
	assert_int_equal(calls->dealloc_pd(here->pd), 0);
	here->pd = NULL;
	assert_int_equal(calls->destroy_comp_channel(here->channel), -EBUSY);
}

static void a_shared_receive_queue_is_in_use_by_its_queue_pairs(void **state) {
	struct ibv_srq_init_attr srq_attr = {.attr = {.max_wr = 16, .max_sge = 1}};
	struct ibv_qp_init_attr attr = bed_qp_attr(here);
	struct ibv_recv_wr wr = {0}, *bad = NULL;
	struct ibv_srq *srq = NULL;
	struct ibv_qp *qp = NULL;

	(void)state;
	assert_int_equal(soft_create_srq(here->pd, &srq_attr, &srq), 0);
	attr.srq = srq;
	assert_int_equal(calls->create_qp(here->pd, &attr, &qp), 0);
	assert_int_equal(attr.cap.max_recv_wr, 0);
	assert_int_equal(bed_to_init(qp), 0);
	assert_int_equal(ibv_post_recv(qp, &wr, &bad), EINVAL);
	assert_ptr_equal(bad, &wr);
	assert_int_equal(ibv_post_srq_recv(srq, &wr, &bad), 0);
	assert_int_equal(soft_destroy_srq(srq), -EBUSY);
	assert_int_equal(calls->destroy_qp(qp), 0);
	attr = bed_qp_attr(there);
	attr.srq = srq; // it belongs to another device
	assert_int_equal(calls->create_qp(there->pd, &attr, &qp), -EINVAL);
	assert_int_equal(soft_destroy_srq(srq), 0);
}

static void queue_pairs_are_refused_that_cannot_be(void **state) {
	static const enum ibv_qp_type types[] = {
		IBV_QPT_UC, IBV_QPT_UD, IBV_QPT_RAW_PACKET, IBV_QPT_XRC_SEND, IBV_QPT_XRC_RECV,
	};
	struct ibv_qp_init_attr attr;
	struct ibv_qp *qp = NULL;

	(void)state;
	for (size_t n = 0; n < COUNT_OF(types); n++) {
		attr = bed_qp_attr(here);
		attr.qp_type = types[n];
		assert_int_equal(calls->create_qp(here->pd, &attr, &qp), -EOPNOTSUPP);
	}
#define REFUSED(field, value)     \
	attr = bed_qp_attr(here); \
	attr.field = (value);     \
	assert_int_equal(calls->create_qp(here->pd, &attr, &qp), -EINVAL)
	REFUSED(qp_type, (enum ibv_qp_type)0);
	REFUSED(qp_type, (enum ibv_qp_type)99);
	REFUSED(send_cq, NULL);
	REFUSED(recv_cq, NULL);
	REFUSED(send_cq, there->cq);
	REFUSED(recv_cq, there->cq);
	REFUSED(cap.max_send_wr, LIMIT_QP_WORKS + 1);
	REFUSED(cap.max_recv_wr, LIMIT_QP_WORKS + 1);
	REFUSED(cap.max_send_wr, UINT32_MAX);
	REFUSED(cap.max_recv_wr, UINT32_MAX);
	REFUSED(cap.max_send_sge, REQUESTER_SGE_MAX + 1);
	REFUSED(cap.max_recv_sge, UINT32_MAX);
	REFUSED(cap.max_inline_data, REQUESTER_INLINE_MAX + 1);
#undef REFUSED
	assert_null(qp);
	attr = bed_qp_attr(here);
	attr.cap = (struct ibv_qp_cap){0};
	assert_int_equal(calls->create_qp(here->pd, &attr, &qp), 0);
	assert_int_equal(calls->destroy_qp(qp), 0);
	attr.cap = (struct ibv_qp_cap
	){LIMIT_QP_WORKS, LIMIT_QP_WORKS, REQUESTER_SGE_MAX, REQUESTER_SGE_MAX,
	  REQUESTER_INLINE_MAX};
	assert_int_equal(calls->create_qp(here->pd, &attr, &qp), 0);
	assert_int_equal(calls->destroy_qp(qp), 0);
}

static int by_number(const void *a, const void *b) {
	const uint32_t *one = a, *two = b;

	return (*one > *two) - (*one < *two);
}

static void numbers_are_not_given_out_again_soon(void **state) {
	static uint32_t numbers[2000];

	(void)state;
	for (size_t n = 0; n < COUNT_OF(numbers); n++) {
		struct ibv_qp_init_attr attr = bed_qp_attr(here);
		struct ibv_qp *qp = NULL;

		assert_int_equal(calls->create_qp(here->pd, &attr, &qp), 0);
		numbers[n] = qp->qp_num;
		assert_in_range(numbers[n], 2, 0xffffff);
		assert_int_equal(calls->destroy_qp(qp), 0);
	}
	qsort(numbers, COUNT_OF(numbers), sizeof(numbers[0]), by_number);
	for (size_t n = 1; n < COUNT_OF(numbers); n++)
		assert_int_not_equal(numbers[n - 1], numbers[n]);
}

static void there_are_so_many_queue_pairs_and_no_more(void **state) {
	static struct ibv_qp *qps[LIMIT_QPS];
	struct ibv_qp_init_attr attr = bed_qp_attr(here);
	struct ibv_qp *more = NULL;

	(void)state;
	attr.cap = (struct ibv_qp_cap){1, 1, 1, 1, 0};
	for (uint32_t n = 1; n < LIMIT_QPS; n++)
		assert_int_equal(calls->create_qp(here->pd, &attr, &qps[n]), 0);
	assert_int_equal(calls->create_qp(here->pd, &attr, &more), -ENOMEM);
	assert_null(more);
	for (uint32_t n = 1; n < LIMIT_QPS; n++)
		assert_int_equal(calls->destroy_qp(qps[n]), 0);
}

static void a_destroyed_queue_pair_takes_its_completions_along(void **state) {
	struct ibv_qp_attr attr = {.qp_state = IBV_QPS_ERR};
	struct ibv_recv_wr wr = {.wr_id = 1}, *bad = NULL;

	(void)state;
	assert_int_equal(ibv_post_recv(here->qp, &wr, &bad), 0);
	assert_int_equal(calls->modify_qp(here->qp, &attr, IBV_QP_STATE), 0);
	assert_int_equal(calls->destroy_qp(here->qp), 0);
	here->qp = NULL;
	assert_true(bed_is_quiet(here));
}

// An unread event is removed with its object.
static void a_destroyed_queue_pair_takes_its_events_along(void **state) {
	struct ibv_async_event event;

	(void)state;
	nic_lock(nic_of(here->context));
	async_raise_qp_event(soft_qp_of(here->qp), IBV_EVENT_COMM_EST);
	nic_unlock(nic_of(here->context));
	assert_int_equal(calls->destroy_qp(here->qp), 0);
	here->qp = NULL;
	assert_int_equal(calls->get_async_event(here->context, &event), -EAGAIN);
}

// A queue pair that was never connected has no MTU to split messages by.
static void one_that_was_never_connected_flushes_what_is_posted(void **state) {
	struct ibv_qp_attr to_error = {.qp_state = IBV_QPS_ERR};
	struct ibv_qp_init_attr attr = bed_qp_attr(here);
	struct ibv_sge sge = {(uintptr_t)here->bytes, 64, here->mr->lkey};
	struct ibv_send_wr wr = {.sg_list = &sge, .num_sge = 1, .opcode = IBV_WR_SEND};
	struct ibv_send_wr *bad = NULL;
	struct ibv_qp *qp = NULL;
	struct ibv_wc wc;

	(void)state;
	assert_int_equal(calls->create_qp(here->pd, &attr, &qp), 0);
	assert_int_equal(calls->modify_qp(qp, &to_error, IBV_QP_STATE), 0);
	assert_int_equal(ibv_post_send(qp, &wr, &bad), 0);
	assert_int_equal(ibv_poll_cq(here->cq, 1, &wc), 1);
	assert_int_equal(wc.status, IBV_WC_WR_FLUSH_ERR);
	assert_int_equal(calls->destroy_qp(qp), 0);
}

// A queue pair with a shared receive queue has none of its own. Posting to it must not raise the
// event again.
static void an_error_is_told_once_to_who_shares_receives(void **state) {
	struct ibv_srq_init_attr shared = {.attr = {.max_wr = 4, .max_sge = 1}};
	struct ibv_qp_attr to_error = {.qp_state = IBV_QPS_ERR};
	struct ibv_qp_init_attr attr = bed_qp_attr(here);
	struct ibv_recv_wr wr = {.wr_id = 1}, *bad = NULL;
	struct ibv_async_event event;
	struct ibv_srq *srq = NULL;
	struct ibv_qp *qp = NULL;

	(void)state;
	assert_int_equal(soft_create_srq(here->pd, &shared, &srq), 0);
	attr.srq = srq;
	assert_int_equal(calls->create_qp(here->pd, &attr, &qp), 0);
	assert_int_equal(calls->modify_qp(qp, &to_error, IBV_QP_STATE), 0);
	assert_int_equal(ibv_post_recv(qp, &wr, &bad), EINVAL);
	assert_int_equal(calls->get_async_event(here->context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_QP_LAST_WQE_REACHED);
	calls->ack_async_event(&event);
	assert_int_equal(calls->get_async_event(here->context, &event), -EAGAIN);
	assert_int_equal(calls->destroy_qp(qp), 0);
	assert_int_equal(soft_destroy_srq(srq), 0);
}

// The event is requested for one drain only, not for later ones.
static void a_drained_queue_pair_is_told_of_if_asked_for(void **state) {
	struct ibv_qp_attr drain = {.qp_state = IBV_QPS_SQD, .en_sqd_async_notify = 1};
	struct ibv_qp_attr resume = {.qp_state = IBV_QPS_RTS};
	struct ibv_async_event event;

	(void)state;
	assert_int_equal(
		calls->modify_qp(here->qp, &drain, IBV_QP_STATE | IBV_QP_EN_SQD_ASYNC_NOTIFY), 0
	);
	assert_int_equal(calls->get_async_event(here->context, &event), 0);
	assert_int_equal(event.event_type, IBV_EVENT_SQ_DRAINED);
	calls->ack_async_event(&event);
	assert_int_equal(calls->modify_qp(here->qp, &resume, IBV_QP_STATE), 0);
	assert_int_equal(calls->modify_qp(here->qp, &drain, IBV_QP_STATE), 0);
	assert_int_equal(calls->get_async_event(here->context, &event), -EAGAIN);
}

static void a_device_on_the_loopback_of_ipv6_reaches_itself(void **state) {
	struct soft_config config = bed_config(2);
	struct ibv_device **list = bed.devices;
	struct bed_end end = {0};
	struct ibv_qp_init_attr attr;
	struct ibv_qp_attr rtr;
	uint32_t count;

	(void)state;
	config.address = (struct sock_addr){.family = SOCK_ADDR_V6, .address = {[15] = 1}};
	assert_int_equal(soft_device_add(&config), 0);
	assert_int_equal(calls->device_list(&bed.devices, &count), 0);
	calls->device_list_free(list);
	assert_int_equal(calls->open(bed.devices[2], &end.context), 0);
	assert_int_equal(calls->alloc_pd(end.context, &end.pd), 0);
	assert_int_equal(calls->create_cq(end.context, 1, NULL, &end.cq), 0);
	attr = bed_qp_attr(&end);
	assert_int_equal(calls->create_qp(end.pd, &attr, &end.qp), 0);
	assert_int_equal(bed_to_init(end.qp), 0);
	rtr = bed_rtr_attr(&end, end.qp->qp_num);
	assert_int_equal(calls->modify_qp(end.qp, &rtr, bed_rtr_mask), 0);
	assert_int_equal(calls->destroy_qp(end.qp), 0);
	assert_int_equal(calls->destroy_cq(end.cq), 0);
	assert_int_equal(calls->dealloc_pd(end.pd), 0);
	assert_int_equal(calls->close(end.context), 0);
}

// Tests of memory.

// Return a pointer with an arbitrary value.
static void *pointer_of(uintptr_t number) {
	void *pointer;

	memcpy(&pointer, &number, sizeof(pointer));
	return pointer;
}

static void regions_are_refused_that_cannot_be(void **state) {
	static uint8_t bytes[64];
	const uintptr_t sound = (uintptr_t)bytes;
	const struct {
		uintptr_t address;
		size_t length;
		int access, err;
	} cases[] = {
		{sound, 0, 0, -EINVAL},
		{sound, SIZE_MAX, 0, -EINVAL},
		{sound, (size_t)1 << 47, 0, -EINVAL},
		{UINTPTR_MAX, 2, 0, -EINVAL},
		{UINTPTR_MAX, 1, 0, -EFAULT},
		{0, 64, 0, -EFAULT},
		{sound, 64, IBV_ACCESS_REMOTE_WRITE, -EINVAL},
		{sound, 64, IBV_ACCESS_REMOTE_ATOMIC, -EINVAL},
		{sound, 64, IBV_ACCESS_MW_BIND, -EOPNOTSUPP},
		{sound, 64, IBV_ACCESS_ON_DEMAND, -EOPNOTSUPP},
		{sound, 64, 1 << 30, -EOPNOTSUPP},
	};
	struct ibv_mr *mr = NULL;

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		int err = calls->reg_mr(
			here->pd, pointer_of(cases[n].address), cases[n].length, cases[n].access,
			&mr
		);

		if (err != cases[n].err)
			print_error("cases[%zu]\n", n);
		assert_int_equal(err, cases[n].err);
		assert_null(mr);
	}
	assert_int_equal(soft_reg_mr_iova(here->pd, bytes, 64, UINT64_MAX - 62, 0, &mr), -EINVAL);
	assert_int_equal(soft_reg_mr_iova(here->pd, bytes, 64, UINT64_MAX - 63, 0, &mr), 0);
	assert_int_equal(calls->dereg_mr(mr), 0);
	assert_int_equal(calls->reg_mr(here->pd, bytes, 64, IBV_ACCESS_RELAXED_ORDERING, &mr), 0);
	assert_int_equal(calls->dereg_mr(mr), 0);
}

// The memory is not mapped, or not writable.
static void memory_that_is_not_there_is_refused(void **state) {
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	uint8_t *bytes = mmap(NULL, 3 * page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct ibv_mr *mr = NULL;

	(void)state;
	assert_ptr_not_equal(bytes, MAP_FAILED);
	assert_int_equal(
		calls->reg_mr(here->pd, bytes, page, IBV_ACCESS_LOCAL_WRITE, &mr), -EFAULT
	);
	assert_int_equal(calls->reg_mr(here->pd, bytes, 3 * page, IBV_ACCESS_REMOTE_READ, &mr), 0);
	assert_int_equal(calls->dereg_mr(mr), 0);
	munmap(bytes + page, page);
	assert_int_equal(calls->reg_mr(here->pd, bytes + page - 1, 2, 0, &mr), -EFAULT);
	assert_int_equal(calls->reg_mr(here->pd, bytes + page - 1, 1, 0, &mr), 0);
	assert_int_equal(calls->dereg_mr(mr), 0);
	munmap(bytes, page);
	munmap(bytes + 2 * page, page);
}

static int dmabuf_make(size_t size) {
	int fd = memfd_create("dmabuf", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	return fd;
}

static void dmabufs_are_refused_that_do_not_reach_so_far(void **state) {
	int fd = dmabuf_make(10000), pipes[2];
	const struct verbs_dmabuf cases[] = {
		{.fd = fd, .offset = 0, .length = 10001},
		{.fd = fd, .offset = 10000, .length = 1},
		{.fd = fd, .offset = 9999, .length = 2},
		{.fd = fd, .offset = 0, .length = 0},
		{.fd = fd, .offset = UINT64_MAX, .length = 1},
		{.fd = fd, .offset = UINT64_MAX, .length = 2},
		{.fd = fd, .offset = 1, .length = UINT64_MAX},
		{.fd = fd, .offset = 0, .length = 100, .iova = UINT64_MAX - 98},
	};
	struct ibv_mr *mr = NULL;

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++)
		assert_int_equal(calls->reg_dmabuf_mr(here->pd, &cases[n], 0, &mr), -EINVAL);
	assert_int_equal(
		calls->reg_dmabuf_mr(
			here->pd, &(struct verbs_dmabuf){.fd = -1, .length = 1}, 0, &mr
		),
		-EBADF
	);
	assert_int_equal(pipe(pipes), 0);
	assert_int_equal(
		calls->reg_dmabuf_mr(
			here->pd, &(struct verbs_dmabuf){.fd = pipes[0], .length = 1}, 0, &mr
		),
		-ESPIPE
	);
	assert_null(mr);
	close(pipes[0]);
	close(pipes[1]);
	close(fd);
}

// The peer writes to the iova; the bytes must appear in the file descriptor.
static void a_dmabuf_is_written_where_it_says(void **state) {
	int fd = dmabuf_make(20000);
	const struct verbs_dmabuf dmabuf = {
		.fd = fd,
		.offset = 5001,
		.length = 9000,
		.iova = 0x7000,
	};
	struct ibv_sge sge = {(uintptr_t)there->bytes, 100, there->mr->lkey};
	struct ibv_send_wr wr =
				   {
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = IBV_WR_RDMA_WRITE,
					   .send_flags = IBV_SEND_SIGNALED,
				   },
			   *bad = NULL;
	struct ibv_mr *mr = NULL;
	uint8_t seen[102];

	(void)state;
	assert_int_equal(calls->reg_dmabuf_mr(here->pd, &dmabuf, BED_RIGHTS, &mr), 0);
	memset(there->bytes, 0x33, 100);
	wr.wr.rdma.remote_addr = 0x7000 + 8900;
	wr.wr.rdma.rkey = mr->rkey;
	assert_int_equal(ibv_post_send(there->qp, &wr, &bad), 0);
	assert_int_equal(bed_wait(there).status, IBV_WC_SUCCESS);
	assert_int_equal(pread(fd, seen, sizeof(seen), 5001 + 8900 - 1), sizeof(seen));
	assert_int_equal(seen[0], 0);
	assert_memory_equal(seen + 1, there->bytes, 100);
	assert_int_equal(seen[101], 0);
	assert_int_equal(calls->dereg_mr(mr), 0);
	close(fd);
}

static void a_region_that_is_gone_is_not_reached(void **state) {
	struct ibv_sge sge = {(uintptr_t)there->bytes, 8, there->mr->lkey};
	struct ibv_send_wr wr =
				   {
					   .sg_list = &sge,
					   .num_sge = 1,
					   .opcode = IBV_WR_RDMA_WRITE,
					   .wr.rdma = {(uintptr_t)here->bytes, here->mr->rkey},
				   },
			   *bad = NULL;
	struct ibv_async_event event;

	(void)state;
	memset(there->bytes, 0x33, 8);
	assert_int_equal(ibv_post_send(there->qp, &wr, &bad), 0);
	assert_int_equal(calls->dereg_mr(here->mr), 0);
	here->mr = NULL;
	assert_int_equal(bed_wait(there).status, IBV_WC_REM_ACCESS_ERR);
	assert_int_equal(here->bytes[0], 0);
	while (calls->get_async_event(here->context, &event) == 0)
		calls->ack_async_event(&event);
}

UNIT_GROUP(soft_objects) {
#define BARE(test) cmocka_unit_test_setup_teardown(test, bed_make_bare, bed_end)
#define BED(test) cmocka_unit_test_setup_teardown(test, bed_make, bed_end)
	const struct CMUnitTest tests[] = {
		BARE(devices_are_refused_that_cannot_be),
		BARE(there_are_so_many_devices_and_no_more),
		BARE(a_device_lives_while_it_is_open),
		BARE(an_open_that_failed_says_why),
		BARE(inline_queries_say_the_same),
		BED(what_is_used_is_not_destroyed),
		BED(a_shared_receive_queue_is_in_use_by_its_queue_pairs),
		BED(queue_pairs_are_refused_that_cannot_be),
		BED(numbers_are_not_given_out_again_soon),
		BED(there_are_so_many_queue_pairs_and_no_more),
		BED(a_destroyed_queue_pair_takes_its_completions_along),
		BED(a_destroyed_queue_pair_takes_its_events_along),
		BED(one_that_was_never_connected_flushes_what_is_posted),
		BED(an_error_is_told_once_to_who_shares_receives),
		BED(a_drained_queue_pair_is_told_of_if_asked_for),
		BED(a_device_on_the_loopback_of_ipv6_reaches_itself),
		BED(regions_are_refused_that_cannot_be),
		BED(memory_that_is_not_there_is_refused),
		BED(dmabufs_are_refused_that_do_not_reach_so_far),
		BED(a_dmabuf_is_written_where_it_says),
		BED(a_region_that_is_gone_is_not_reached),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
