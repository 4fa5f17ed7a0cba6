// SPDX-License-Identifier: BSD-3-Clause
// Buffers that peers may reach: who gets which key, and when a release is told to be done. A second
// device plays the peer and reads.
#include "dataplane/memory/memory_world.h"
#include "support/fake_verbs_ends.h"

#include <dataplane/memory_buffers.h>

#include <sys/mman.h>

#define BUFFERS_MAX 4

static struct world world;
static struct memory_buffers *buffers;
static struct end here, peer;
static uint8_t memory[4 * WORLD_PAGE] __attribute__((aligned(WORLD_PAGE)));

static int set_up(void **state) {
	(void)state;
	world_open(&world);
	world_register(&world, (struct memory_config){0});
	assert_int_equal(memory_buffers_create(world.registry, BUFFERS_MAX, &buffers), 0);
	memset(&here, 0, sizeof(here));
	here.device = world.fake;
	here.context = device_context(world.device);
	here.pd = device_pd(world.device);
	assert_int_equal(end_furnish(&here), 0);
	assert_int_equal(end_make(&peer, fake_device_add("fake1")), 0);
	ends_connect(&peer, &here);
	return 0;
}

static int tear_down(void **state) {
	(void)state;
	end_destroy(&peer);
	end_strip(&here);
	buffers = memory_buffers_destroy(buffers);
	if (buffers != NULL) {
		memory_reap(world.registry);
		buffers = memory_buffers_destroy(buffers);
	}
	return buffers == NULL ? world_close(&world) : -1;
}

static struct memory_request request_of(uint32_t page, uint32_t access) {
	return (struct memory_request
	){.address = (uintptr_t)memory + page * WORLD_PAGE, .length = 1000, .access = access};
}

static struct memory_buffer offer(uint64_t id, uint32_t page) {
	struct memory_request request = request_of(page, MEMORY_PEER_READS);
	struct memory_buffer buffer;
	int err = memory_buffers_register(buffers, id, &request, world.reason, &buffer);

	if (err != 0)
		fail_msg("%s", world.reason);
	return buffer;
}

// How a peer's READ of the first 8 bytes ends.
static enum ibv_wc_status peer_reads(const struct memory_buffer *buffer) {
	struct ibv_sge sge = {(uintptr_t)peer.memory, 8, peer.local_key};
	struct ibv_send_wr *bad, wr = {
					 .sg_list = &sge,
					 .num_sge = 1,
					 .opcode = IBV_WR_RDMA_READ,
					 .send_flags = IBV_SEND_SIGNALED,
				 };
	struct ibv_wc wc;

	wr.wr.rdma.remote_addr = buffer->view.wire_address;
	wr.wr.rdma.rkey = buffer->view.remote_key;
	assert_int_equal(ibv_post_send(peer.qp, &wr, &bad), 0);
	return end_wait(&peer, &wc);
}

static struct {
	uint32_t count;
	struct memory_release *last;
	uint32_t regions; // of the device, at the last
} told;

static void tell(struct memory_release *release) {
	told.count++;
	told.last = release;
	told.regions = fake_verbs_alive().mrs;
}

static void told_reset(void) {
	memset(&told, 0, sizeof(told));
}

static void registering_the_same_again_is_the_same_buffer(void **state) {
	struct memory_buffer first = offer(7, 0), again = offer(7, 0);

	(void)state;
	assert_int_equal(first.generation, again.generation);
	assert_int_equal(first.view.remote_key, again.view.remote_key);
	assert_int_equal(memory_counts(world.registry).registered, 1);
	assert_int_equal(memory_buffers_count(buffers), 1);
	// One release is enough.
	assert_true(memory_buffers_release(buffers, 7, 0, NULL));
	assert_int_equal(memory_buffers_count(buffers), 0);
}

static void an_id_stands_for_one_range_and_use(void **state) {
	struct memory_request other[] = {
		request_of(1, MEMORY_PEER_READS), request_of(0, MEMORY_PEER_WRITES),
		request_of(0, MEMORY_PEER_READS)};
	struct memory_owner owner = {.ctx = &world};
	struct memory_buffer buffer = offer(7, 0), found;

	(void)state;
	other[2].owner = &owner;
	for (size_t n = 0; n < 3; n++)
		assert_int_equal(
			memory_buffers_register(buffers, 7, &other[n], world.reason, &found),
			-EEXIST
		);
	assert_non_null(strstr(world.reason, "buffer 7 is 1000 bytes at 0x"));
	assert_int_equal(memory_buffers_find(buffers, 7, 0, &found), 0);
	assert_int_equal(found.view.remote_key, buffer.view.remote_key);
}

static void two_buffers_on_one_page_have_keys_of_their_own(void **state) {
	struct memory_buffer one = offer(1, 0), two = offer(2, 0);

	(void)state;
	assert_int_not_equal(one.view.remote_key, two.view.remote_key);
	assert_true(memory_buffers_release(buffers, 1, 0, NULL));
	assert_int_equal(memory_reap(world.registry), 0);
	assert_int_equal(peer_reads(&two), IBV_WC_SUCCESS);
	assert_int_equal(peer_reads(&one), IBV_WC_REM_ACCESS_ERR);
}

static void releasing_what_is_unknown_does_nothing(void **state) {
	struct memory_release release = {.done = tell};
	struct memory_buffer old, present;

	(void)state;
	told_reset();
	assert_false(memory_buffers_release(buffers, 7, 0, &release));
	old = offer(7, 0);
	assert_false(memory_buffers_release(buffers, 8, 0, &release));
	assert_false(memory_buffers_release(buffers, 7, old.generation + 1, &release));
	assert_true(memory_buffers_release(buffers, 7, old.generation, NULL));
	assert_int_equal(memory_reap(world.registry), 0);
	present = offer(7, 0);
	assert_int_not_equal(present.generation, old.generation);
	// A late word on the one before does not harm the present one.
	assert_false(memory_buffers_release(buffers, 7, old.generation, &release));
	assert_int_equal(memory_buffers_find(buffers, 7, 0, &present), 0);
	assert_int_equal(peer_reads(&present), IBV_WC_SUCCESS);
	assert_int_equal(told.count, 0);
}

static void a_release_is_done_only_after_the_key_is_dead(void **state) {
	struct memory_release release = {.done = tell};
	struct memory_buffer buffer = offer(7, 0), found;
	uint32_t before = fake_verbs_alive().mrs;

	(void)state;
	told_reset();
	assert_int_equal(peer_reads(&buffer), IBV_WC_SUCCESS);
	assert_true(memory_buffers_release(buffers, 7, buffer.generation, &release));
	assert_int_equal(told.count, 0);
	assert_int_equal(memory_buffers_find(buffers, 7, 0, &found), -ENOENT);
	assert_int_equal(memory_buffers_find(buffers, 7, buffer.generation, &found), -ESTALE);
	assert_int_equal(memory_buffers_leaving(buffers), 1);
	assert_int_equal(memory_reap(world.registry), 0);
	assert_int_equal(told.count, 1);
	assert_int_equal(told.regions, before - 1);
	assert_int_equal(release.id, 7);
	assert_int_equal(release.generation, buffer.generation);
	assert_int_equal(memory_buffers_leaving(buffers), 0);
	// From here on the memory may be another's: nobody touches it.
	fake_verbs_forbid(memory, 1000);
	assert_int_equal(peer_reads(&buffer), IBV_WC_REM_ACCESS_ERR);
	fake_verbs_allow(memory, 1000);
}

static void a_release_waits_for_operations_on_the_buffer(void **state) {
	struct memory_release release = {.done = tell};
	struct memory_buffer buffer = offer(7, 0);
	struct memory_view operation;

	(void)state;
	told_reset();
	assert_int_equal(memory_view_part(&buffer.view, 0, 100, &operation), 0);
	assert_true(memory_buffers_release(buffers, 7, 0, &release));
	assert_int_equal(memory_reap(world.registry), 0);
	assert_int_equal(told.count, 0);
	memory_view_put(&operation);
	assert_int_equal(memory_reap(world.registry), 0);
	assert_int_equal(told.count, 1);
}

static void owner_and_peers_may_release_the_same_and_all_are_told(void **state) {
	struct memory_release releases[3] = {{.done = tell}, {.done = tell}, {.done = tell}};
	struct memory_buffer buffer = offer(7, 0);

	(void)state;
	told_reset();
	// By its owner, who knows no generation; by two peers, who know it.
	assert_true(memory_buffers_release(buffers, 7, 0, &releases[0]));
	assert_true(memory_buffers_release(buffers, 7, buffer.generation, &releases[1]));
	assert_true(memory_buffers_release(buffers, 7, buffer.generation, &releases[2]));
	// Of the present generation there is none any more.
	assert_false(memory_buffers_release(buffers, 7, 0, NULL));
	assert_int_equal(memory_reap(world.registry), 0);
	assert_int_equal(told.count, 3);
	assert_ptr_equal(told.last, &releases[2]);
	assert_int_equal(memory_counts(world.registry).regions, 0);
}

static void a_release_is_not_done_while_the_driver_refuses(void **state) {
	struct memory_release release = {.done = tell};
	struct memory_buffer buffer = offer(7, 0);

	(void)state;
	told_reset();
	fake_verbs_fail(FAKE_DEREG_MR, 1, 1, -EIO);
	assert_true(memory_buffers_release(buffers, 7, 0, &release));
	assert_int_equal(memory_reap(world.registry), -EIO);
	assert_int_equal(told.count, 0);
	assert_int_equal(peer_reads(&buffer), IBV_WC_SUCCESS);
	assert_int_equal(memory_reap(world.registry), 0);
	assert_int_equal(told.count, 1);
}

static void an_id_may_be_offered_anew_while_the_old_one_leaves(void **state) {
	struct memory_release release = {.done = tell};
	struct memory_buffer old = offer(7, 0), present;
	struct memory_view operation = old.view;

	(void)state;
	told_reset();
	memory_view_hold(&operation);
	assert_true(memory_buffers_release(buffers, 7, old.generation, &release));
	present = offer(7, 1);
	assert_int_not_equal(present.generation, old.generation);
	assert_int_not_equal(present.view.remote_key, old.view.remote_key);
	// The peer that has not heard yet still waits for the old one.
	assert_true(memory_buffers_release(buffers, 7, old.generation, NULL));
	memory_view_put(&operation);
	assert_int_equal(memory_reap(world.registry), 0);
	assert_int_equal(told.count, 1);
	assert_int_equal(peer_reads(&present), IBV_WC_SUCCESS);
}

static void what_leaves_counts_until_it_is_gone(void **state) {
	struct memory_request request = request_of(0, MEMORY_PEER_READS);
	struct memory_buffer buffer;

	(void)state;
	for (uint64_t id = 0; id < BUFFERS_MAX; id++)
		offer(id, 0);
	assert_true(memory_buffers_release(buffers, 0, 0, NULL));
	assert_int_equal(
		memory_buffers_register(buffers, 99, &request, world.reason, &buffer), -ENOSPC
	);
	assert_string_equal(world.reason, "there are 4 buffers, as many as there may be");
	assert_int_equal(memory_reap(world.registry), 0);
	offer(99, 0);
}

static void a_buffer_that_cannot_be_registered_leaves_nothing(void **state) {
	struct memory_request request = request_of(0, MEMORY_PEER_READS);
	struct memory_buffer buffer;

	(void)state;
	fake_verbs_fail(FAKE_REG_MR, 1, 1, -EFAULT);
	assert_int_equal(
		memory_buffers_register(buffers, 7, &request, world.reason, &buffer), -EFAULT
	);
	assert_string_equal(world.reason, "host memory: ibv_reg_mr says EFAULT");
	assert_int_equal(memory_buffers_count(buffers), 0);
	assert_int_equal(memory_buffers_find(buffers, 7, 0, &buffer), -ENOENT);
}

// More than 32 bits of offset, in address space of which two pages are used.
static void a_peer_reads_far_into_a_large_buffer(void **state) {
	const uint64_t size = UINT64_C(15) << 30, far = UINT64_C(0x266000000);
	uint8_t *bytes =
		mmap(NULL, size, PROT_READ | PROT_WRITE,
		     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	struct memory_request request = {
		.address = (uintptr_t)bytes, .length = size, .access = MEMORY_PEER_READS};
	struct memory_buffer buffer, part;

	(void)state;
	assert_true(bytes != MAP_FAILED);
	memcpy(bytes + far, "far away", 8);
	assert_int_equal(memory_buffers_register(buffers, 7, &request, world.reason, &buffer), 0);
	part = buffer;
	assert_int_equal(memory_view_part(&buffer.view, far, 8, &part.view), 0);
	assert_int_equal(peer_reads(&part), IBV_WC_SUCCESS);
	assert_memory_equal(peer.memory, "far away", 8);
	memory_view_put(&part.view);
	part.view.wire_address = buffer.view.wire_address + size - 7;
	assert_int_equal(peer_reads(&part), IBV_WC_REM_ACCESS_ERR);
	assert_true(memory_buffers_release(buffers, 7, 0, NULL));
	assert_int_equal(memory_reap(world.registry), 0);
	munmap(bytes, size);
}

struct owned {
	uint32_t held, dropped, told_at_drop;
};

static void owned_hold(void *ctx) {
	((struct owned *)ctx)->held++;
}

static void owned_drop(void *ctx) {
	struct owned *owned = ctx;

	owned->dropped++;
	owned->told_at_drop = told.count;
}

static void the_memory_is_kept_alive_until_the_release_is_done(void **state) {
	struct owned owned = {0};
	struct memory_owner owner = {owned_hold, owned_drop, &owned};
	struct memory_request request = request_of(0, MEMORY_PEER_READS);
	struct memory_release release = {.done = tell};
	struct memory_buffer buffer;

	(void)state;
	told_reset();
	request.owner = &owner;
	for (uint32_t n = 0; n < 3; n++)
		assert_int_equal(
			memory_buffers_register(buffers, 7, &request, world.reason, &buffer), 0
		);
	assert_int_equal(owned.held, 1);
	assert_true(memory_buffers_release(buffers, 7, 0, &release));
	assert_int_equal(owned.dropped, 0);
	assert_int_equal(memory_reap(world.registry), 0);
	assert_int_equal(owned.dropped, 1);
	assert_int_equal(owned.told_at_drop, 0);
	assert_int_equal(told.count, 1);
}

static void offer_again(struct memory_release *release) {
	tell(release);
	offer(release->id, 2);
}

static void who_is_told_may_offer_again_at_once(void **state) {
	struct memory_release release = {.done = offer_again};
	struct memory_buffer buffer;

	(void)state;
	told_reset();
	offer(7, 0);
	assert_true(memory_buffers_release(buffers, 7, 0, &release));
	assert_int_equal(memory_reap(world.registry), 0);
	assert_int_equal(memory_buffers_find(buffers, 7, 0, &buffer), 0);
	assert_int_equal(buffer.view.address, (uintptr_t)memory + 2 * WORLD_PAGE);
}

static void the_table_goes_when_its_last_buffer_is_gone(void **state) {
	struct memory_release release = {.done = tell};
	struct memory_request request = request_of(0, MEMORY_PEER_READS);
	struct memory_buffer buffer = offer(7, 0), none;
	struct memory_view operation = buffer.view;

	(void)state;
	told_reset();
	memory_view_hold(&operation);
	assert_true(memory_buffers_release(buffers, 7, 0, &release));
	offer(8, 1);
	assert_ptr_equal(memory_buffers_destroy(buffers), buffers);
	assert_int_equal(
		memory_buffers_register(buffers, 9, &request, world.reason, &none), -ESHUTDOWN
	);
	assert_int_equal(memory_reap(world.registry), 0);
	assert_ptr_equal(memory_buffers_destroy(buffers), buffers);
	memory_view_put(&operation);
	assert_int_equal(memory_reap(world.registry), 0);
	assert_int_equal(told.count, 1);
	buffers = memory_buffers_destroy(buffers);
	assert_null(buffers);
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void) {
	static const struct CMUnitTest tests[] = {
		WORLD(registering_the_same_again_is_the_same_buffer),
		WORLD(an_id_stands_for_one_range_and_use),
		WORLD(two_buffers_on_one_page_have_keys_of_their_own),
		WORLD(releasing_what_is_unknown_does_nothing),
		WORLD(a_release_is_done_only_after_the_key_is_dead),
		WORLD(a_release_waits_for_operations_on_the_buffer),
		WORLD(owner_and_peers_may_release_the_same_and_all_are_told),
		WORLD(a_release_is_not_done_while_the_driver_refuses),
		WORLD(an_id_may_be_offered_anew_while_the_old_one_leaves),
		WORLD(what_leaves_counts_until_it_is_gone),
		WORLD(a_buffer_that_cannot_be_registered_leaves_nothing),
		WORLD(the_memory_is_kept_alive_until_the_release_is_done),
		WORLD(a_peer_reads_far_into_a_large_buffer),
		WORLD(who_is_told_may_offer_again_at_once),
		WORLD(the_table_goes_when_its_last_buffer_is_gone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
