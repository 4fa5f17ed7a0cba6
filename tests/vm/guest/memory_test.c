// SPDX-License-Identifier: BSD-3-Clause
// Runs in the guest: registered memory on the kernel's devices. rxe0 offers buffers, rxe1 is the
// peer that reads them over the wire.
#include "hear.h"

#include <dataplane/memory.h>
#include <support/cmocka.h>

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

#define PAGES_BYTES 65536
#define OWN_BYTES 4096
#define DEPTH 16
#define WAIT_NS UINT64_C(10000000000)
#define CYCLES 1000

static const struct verbs_calls *const calls = &verbs_calls_system;

struct side {
	struct device *device;
	struct memory_registry *registry;
	struct ibv_cq *cq;
	struct ibv_qp *qp;
};

static struct clock clock_;
static struct side owner, peer;
static struct memory_view own; // destination of the peer's reads
static uint8_t own_bytes[OWN_BYTES];
static char reason[MEMORY_REASON_MAX + 1];
static uint32_t released;

// Owner callback: no device can access the memory any more.
static void let_go(void *ctx) {
	(void)ctx;
	released++;
}

static void side_open(struct side *side, const char *name) {
	struct memory_config config = {.clock = &clock_};
	char why[DEVICE_REASON_MAX + 1];

	assert_int_equal(device_open(calls, name, NULL, why, &side->device), 0);
	config.device = side->device;
	assert_int_equal(memory_registry_create(&config, &side->registry), 0);
	assert_int_equal(
		calls->create_cq(device_context(side->device), 2 * DEPTH, NULL, &side->cq), 0
	);
}

static void side_close(struct side *side) {
	assert_int_equal(calls->destroy_qp(side->qp), 0);
	assert_int_equal(calls->destroy_cq(side->cq), 0);
	assert_null(memory_registry_destroy(side->registry));
	device_put(side->device);
	memset(side, 0, sizeof(*side));
}

static void side_make_pair(struct side *side) {
	struct ibv_qp_init_attr init = {
		.send_cq = side->cq,
		.recv_cq = side->cq,
		.cap = {DEPTH, DEPTH, 1, 1, 0},
		.qp_type = IBV_QPT_RC,
	};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_INIT,
		.port_num = 1,
		.qp_access_flags = IBV_ACCESS_REMOTE_READ,
	};

	assert_int_equal(calls->create_qp(device_pd(side->device), &init, &side->qp), 0);
	assert_int_equal(
		calls->modify_qp(
			side->qp, &attr,
			IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS
		),
		0
	);
}

static void side_connect(struct side *side, const struct side *other) {
	struct device_endpoint theirs = {
		.link = DEVICE_LINK_ETHERNET, .gid = device_facts(other->device)->port.gid};
	struct ibv_qp_attr attr = {
		.qp_state = IBV_QPS_RTR,
		.path_mtu = IBV_MTU_1024,
		.dest_qp_num = other->qp->qp_num,
		.max_dest_rd_atomic = 4,
		.max_rd_atomic = 4,
		.min_rnr_timer = 12,
		.timeout = 14,
		.retry_cnt = 6,
		.rnr_retry = 6,
	};

	device_route(side->device, device_facts(side->device), &theirs, 0, &attr.ah_attr);
	assert_int_equal(
		calls->modify_qp(
			side->qp, &attr,
			IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
				IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER
		),
		0
	);
	attr.qp_state = IBV_QPS_RTS;
	assert_int_equal(
		calls->modify_qp(
			side->qp, &attr,
			IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY |
				IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC
		),
		0
	);
}

static int set_up(void **state) {
	struct memory_request request = {
		.address = (uintptr_t)own_bytes,
		.length = OWN_BYTES,
		.access = MEMORY_LOCAL_WRITES};

	(void)state;
	released = 0;
	clock_init_monotonic(&clock_);
	side_open(&owner, "rxe0");
	side_open(&peer, "rxe1");
	side_make_pair(&owner);
	side_make_pair(&peer);
	side_connect(&owner, &peer);
	side_connect(&peer, &owner);
	assert_int_equal(memory_view_get(peer.registry, &request, reason, &own), 0);
	return 0;
}

static int tear_down(void **state) {
	(void)state;
	memory_view_put(&own);
	assert_int_equal(memory_deregister_dead(owner.registry), 0);
	side_close(&owner);
	side_close(&peer);
	return 0;
}

static uint8_t *pages(void) {
	uint8_t *bytes =
		mmap(NULL, PAGES_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_true(bytes != MAP_FAILED);
	return bytes;
}

static const struct memory_owner owner_of_pages = {.drop = let_go};

// Offer memory with a separate registration: its key becomes invalid when the memory is revoked.
static struct memory_view offer(const uint8_t *bytes, uint64_t length) {
	struct memory_request request = {
		.address = (uintptr_t)bytes,
		.length = length,
		.access = MEMORY_PEER_READS | MEMORY_UNSHARED,
		.owner = &owner_of_pages};
	struct memory_view view;
	int err = memory_view_get(owner.registry, &request, reason, &view);

	if (err != 0)
		fail_msg("%s", reason);
	return view;
}

static void post_read(uint64_t address, uint32_t key, uint32_t length) {
	struct ibv_sge sge = {own.wire_address, length, own.local_key};
	struct ibv_send_wr *bad, wr = {
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_RDMA_READ,
					 .send_flags = IBV_SEND_SIGNALED,
				 };

	wr.wr.rdma.remote_addr = address;
	wr.wr.rdma.rkey = key;
	assert_int_equal(ibv_post_send(peer.qp, &wr, &bad), 0);
}

static enum ibv_wc_status next_status(void) {
	uint64_t give_up_ns = clock_monotonic_ns() + WAIT_NS;
	struct ibv_wc wc;

	for (;;) {
		int count = ibv_poll_cq(peer.cq, 1, &wc);

		assert_true(count >= 0);
		if (count == 1)
			return wc.status;
		assert_true(clock_monotonic_ns() < give_up_ns);
	}
}

static enum ibv_wc_status read_at(const struct memory_view *view, int64_t offset, uint32_t length) {
	post_read(view->wire_address + (uint64_t)offset, view->remote_key, length);
	return next_status();
}

static void a_peer_reads_what_it_was_given(void **state) {
	uint8_t *bytes = pages();
	struct memory_view buffer;

	(void)state;
	memset(bytes + 100, 0x5a, 1000);
	buffer = offer(bytes + 100, 1000);
	assert_int_equal(read_at(&buffer, 0, 1000), IBV_WC_SUCCESS);
	for (uint32_t n = 0; n < 1000; n++)
		assert_int_equal(own_bytes[n], 0x5a);
	memory_view_put(&buffer);
	assert_int_equal(memory_deregister_dead(owner.registry), 0);
	munmap(bytes, PAGES_BYTES);
}

static void a_peer_reads_no_byte_beyond_on_either_side(void **state) {
	static const struct {
		int64_t offset;
		uint32_t length;
	} rows[] = {{0, 1001}, {-1, 8}, {999, 2}};
	uint8_t *bytes = pages();
	int err = 0;

	(void)state;
	// A queue pair stays in error, so each row uses its own.
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		struct memory_view buffer = offer(bytes + 100, 1000);

		assert_int_equal(
			read_at(&buffer, rows[n].offset, rows[n].length), IBV_WC_REM_ACCESS_ERR
		);
		memory_view_put(&buffer);
		err |= tear_down(state);
		err |= set_up(state);
	}
	assert_int_equal(err, 0);
	munmap(bytes, PAGES_BYTES);
}

static void a_released_buffer_is_out_of_reach_once_that_is_told(void **state) {
	uint8_t *bytes = pages();
	struct memory_view buffer = offer(bytes, PAGES_BYTES);

	(void)state;
	assert_int_equal(read_at(&buffer, 0, 100), IBV_WC_SUCCESS);
	memory_view_put(&buffer);
	assert_int_equal(released, 0);
	assert_int_equal(memory_deregister_dead(owner.registry), 0);
	assert_int_equal(released, 1);
	assert_int_equal(munmap(bytes, PAGES_BYTES), 0);
	assert_int_equal(read_at(&buffer, 0, 100), IBV_WC_REM_ACCESS_ERR);
}

static void a_buffer_may_be_released_while_reads_run(void **state) {
	uint8_t *bytes = pages();
	struct memory_view buffer = offer(bytes, PAGES_BYTES);
	enum ibv_wc_status status = IBV_WC_SUCCESS;
	uint32_t flying = 0, well = 0;

	(void)state;
	while (status == IBV_WC_SUCCESS) {
		for (; flying < DEPTH / 2; flying++)
			post_read(buffer.wire_address, buffer.remote_key, OWN_BYTES);
		if (well == 100) {
			memory_view_put(&buffer);
			assert_int_equal(memory_deregister_dead(owner.registry), 0);
			assert_int_equal(released, 1);
			assert_int_equal(munmap(bytes, PAGES_BYTES), 0);
		}
		status = next_status();
		flying--;
		well += status == IBV_WC_SUCCESS;
	}
	assert_int_equal(status, IBV_WC_REM_ACCESS_ERR);
	// No read that was posted after the release was reported may succeed.
	assert_in_range(well, 100, 100 + DEPTH / 2);
	for (; flying > 0; flying--)
		assert_int_equal(next_status(), IBV_WC_WR_FLUSH_ERR);
}

static void memory_that_is_not_there_is_refused_with_the_drivers_word(void **state) {
	uint8_t *bytes = pages();
	struct memory_request request = {.address = (uintptr_t)bytes, .length = PAGES_BYTES};
	struct memory_view view;

	(void)state;
	munmap(bytes, PAGES_BYTES);
	assert_int_equal(memory_view_get(owner.registry, &request, reason, &view), -EFAULT);
	assert_string_equal(reason, "host memory: ibv_reg_mr failed with EFAULT");
}

static void memory_to_be_written_must_be_writable(void **state) {
	uint8_t *bytes = pages();
	struct memory_request request = {.address = (uintptr_t)bytes, .length = PAGES_BYTES};
	struct memory_view view;

	(void)state;
	assert_int_equal(mprotect(bytes, PAGES_BYTES, PROT_READ), 0);
	assert_int_equal(memory_view_get(owner.registry, &request, reason, &view), 0);
	memory_view_put(&view);
	request.access = MEMORY_LOCAL_WRITES;
	assert_int_equal(memory_view_get(owner.registry, &request, reason, &view), -EFAULT);
	munmap(bytes, PAGES_BYTES);
}

// Count the regions in the kernel's list.
static uint32_t regions_of_kernel(void) {
	static const char *const words[] = {"rdma", "resource", "show", "mr", NULL};
	char said[16384];
	uint32_t count = 0;

	run_and_hear(words, said, sizeof(said));
	for (const char *line = strstr(said, "dev "); line != NULL; line = strstr(line + 1, "dev "))
		count++;
	return count;
}

static void a_thousand_registrations_leave_nothing_in_the_kernel(void **state) {
	uint8_t *bytes = pages();
	uint32_t before = regions_of_kernel();
	struct memory_request request = {.length = 100, .access = MEMORY_PEER_READS};
	struct memory_view views[8];

	(void)state;
	assert_true(before > 0); // regions of the peer
	for (uint32_t n = 0; n < CYCLES; n++) {
		request.address = (uintptr_t)bytes + n % 100 * 500;
		assert_int_equal(
			memory_view_get(owner.registry, &request, reason, &views[n % 8]), 0
		);
		if (n == 4)
			assert_int_equal(regions_of_kernel(), before + 5);
		if (n % 8 != 7)
			continue;
		for (uint32_t k = 0; k < 8; k++)
			memory_view_put(&views[k]);
		assert_int_equal(memory_deregister_dead(owner.registry), 0);
	}
	assert_int_equal(memory_counts(owner.registry).registered, CYCLES);
	assert_int_equal(regions_of_kernel(), before);
	munmap(bytes, PAGES_BYTES);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
	const struct CMUnitTest tests[] = {
		WORLD(a_peer_reads_what_it_was_given),
		WORLD(a_peer_reads_no_byte_beyond_on_either_side),
		WORLD(a_released_buffer_is_out_of_reach_once_that_is_told),
		WORLD(a_buffer_may_be_released_while_reads_run),
		WORLD(memory_that_is_not_there_is_refused_with_the_drivers_word),
		WORLD(memory_to_be_written_must_be_writable),
		WORLD(a_thousand_registrations_leave_nothing_in_the_kernel),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
