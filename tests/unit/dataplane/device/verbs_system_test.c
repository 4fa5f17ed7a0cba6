// SPDX-License-Identifier: BSD-3-Clause
// Tests of the system's call table. The test replaces libibverbs; each call returns what the test
// sets.
#include <dataplane/verbs_calls.h>
#include <support/cmocka.h>

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#undef ibv_reg_mr
#undef ibv_query_port

static struct {
	void *object; // result of calls that return an object
	int code;     // result of the other calls
	int leaves;   // value left in errno, if not 0
	int closed, channels_destroyed;
	unsigned int access;
	uint64_t iova;
	int cq_entries;
} played;

static void *object(void) {
	if (played.leaves != 0)
		errno = played.leaves;
	return played.object;
}

static int code(void) {
	if (played.leaves != 0)
		errno = played.leaves;
	return played.code;
}

static void play(void *gives_object, int gives_code, int leaves) {
	memset(&played, 0, sizeof(played));
	played.object = gives_object;
	played.code = gives_code;
	played.leaves = leaves;
	errno = ENOTTY; // left over from an earlier call
}

struct ibv_device **ibv_get_device_list(int *count) {
	*count = 2;
	return object();
}

void ibv_free_device_list(struct ibv_device **list) {
	(void)list;
}

struct ibv_context *ibv_open_device(struct ibv_device *device) {
	(void)device;
	return object();
}

int ibv_close_device(struct ibv_context *context) {
	(void)context;
	played.closed++;
	return code();
}

int ibv_query_device(struct ibv_context *context, struct ibv_device_attr *attr) {
	(void)context;
	attr->max_qp = 7;
	return code();
}

int ibv_query_port(
	struct ibv_context *context, uint8_t port, struct _compat_ibv_port_attr *compat
) {
	struct ibv_port_attr attr = {.lid = 7};

	(void)context;
	(void)port;
	memcpy(compat, &attr, offsetof(struct ibv_port_attr, port_cap_flags2));
	return code();
}

ssize_t _ibv_query_gid_table(
	struct ibv_context *context,
	struct ibv_gid_entry *entries,
	size_t max,
	uint32_t flags,
	size_t size
) {
	(void)context;
	(void)entries;
	(void)max;
	(void)flags;
	(void)size;
	return code();
}

int ibv_query_pkey(struct ibv_context *context, uint8_t port, int index, __be16 *pkey) {
	(void)context;
	(void)port;
	(void)index;
	*pkey = htobe16(0x8001);
	return code();
}

int ibv_get_async_event(struct ibv_context *context, struct ibv_async_event *event) {
	(void)context;
	event->event_type = IBV_EVENT_PORT_ERR;
	return code();
}

void ibv_ack_async_event(struct ibv_async_event *event) {
	(void)event;
}

struct ibv_pd *ibv_alloc_pd(struct ibv_context *context) {
	(void)context;
	return object();
}

int ibv_dealloc_pd(struct ibv_pd *pd) {
	(void)pd;
	return code();
}

struct ibv_mr *ibv_reg_mr(struct ibv_pd *pd, void *address, size_t length, int access) {
	(void)pd;
	(void)address;
	(void)length;
	played.access = (unsigned int)access;
	return object();
}

struct ibv_mr *ibv_reg_mr_iova2(
	struct ibv_pd *pd, void *address, size_t length, uint64_t iova, unsigned int access
) {
	(void)pd;
	(void)address;
	(void)length;
	played.access = access;
	played.iova = iova;
	return object();
}

struct ibv_mr *ibv_reg_dmabuf_mr(
	struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access
) {
	(void)pd;
	played.access = (unsigned int)access;
	played.iova = offset + length + iova + (uint64_t)fd;
	return object();
}

int ibv_dereg_mr(struct ibv_mr *mr) {
	(void)mr;
	return code();
}

struct ibv_comp_channel *ibv_create_comp_channel(struct ibv_context *context) {
	(void)context;
	return object();
}

int ibv_destroy_comp_channel(struct ibv_comp_channel *channel) {
	(void)channel;
	played.channels_destroyed++;
	return code();
}

struct ibv_cq *ibv_create_cq(
	struct ibv_context *context,
	int entries,
	void *cq_context,
	struct ibv_comp_channel *channel,
	int vector
) {
	(void)context;
	(void)cq_context;
	(void)channel;
	(void)vector;
	played.cq_entries = entries;
	return object();
}

int ibv_destroy_cq(struct ibv_cq *cq) {
	(void)cq;
	return code();
}

int ibv_get_cq_event(struct ibv_comp_channel *channel, struct ibv_cq **cq, void **context) {
	(void)channel;
	*cq = played.object;
	*context = NULL;
	return code();
}

void ibv_ack_cq_events(struct ibv_cq *cq, unsigned int count) {
	(void)cq;
	(void)count;
}

struct ibv_qp *ibv_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr) {
	(void)pd;
	(void)attr;
	return object();
}

int ibv_modify_qp(struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask) {
	(void)qp;
	(void)attr;
	(void)mask;
	return code();
}

int ibv_query_qp(
	struct ibv_qp *qp, struct ibv_qp_attr *attr, int mask, struct ibv_qp_init_attr *init
) {
	(void)qp;
	(void)mask;
	attr->dest_qp_num = 7;
	init->sq_sig_all = 7;
	return code();
}

int ibv_destroy_qp(struct ibv_qp *qp) {
	(void)qp;
	return code();
}

static const struct verbs_calls *const calls = &verbs_calls_system;
static struct ibv_context context = {.async_fd = -1};
static struct ibv_pd pd;
static struct ibv_mr mr;
static struct ibv_cq cq;
static struct ibv_qp qp;
static struct ibv_comp_channel channel = {.fd = -1};
static const struct verbs_dmabuf dmabuf = {.fd = 1, .offset = 20, .length = 300, .iova = 4000};

#define OBJECT_CALLS 8

// Run call number `which` of those that return an object; store the object in *ret_object.
static int make(int which, void **ret_object) {
	struct ibv_device **devices;
	struct ibv_qp_init_attr init = {0};
	uint32_t count;
	int err = 0;

	switch (which) {
	case 0:
		err = calls->device_list(&devices, &count);
		*ret_object = err == 0 ? devices : *ret_object;
		return err;
	case 1:
		return calls->open(NULL, (struct ibv_context **)ret_object);
	case 2:
		return calls->alloc_pd(&context, (struct ibv_pd **)ret_object);
	case 3:
		return calls->reg_mr(&pd, &pd, 1, 0, (struct ibv_mr **)ret_object);
	case 4:
		return calls->reg_dmabuf_mr(&pd, &dmabuf, 0, (struct ibv_mr **)ret_object);
	case 5:
		return calls->create_comp_channel(&context, (struct ibv_comp_channel **)ret_object);
	case 6:
		return calls->create_cq(&context, 1, NULL, (struct ibv_cq **)ret_object);
	default:
		return calls->create_qp(&pd, &init, (struct ibv_qp **)ret_object);
	}
}

static void a_call_that_gives_no_object_gives_errno_and_leaves_its_output(void **state) {
	(void)state;
	for (int which = 0; which < OBJECT_CALLS; which++) {
		void *made = &played;

		play(NULL, 0, EMFILE);
		assert_int_equal(make(which, &made), -EMFILE);
		assert_ptr_equal(made, &played);
	}
}

#define CODE_CALLS 12

// Run call number `which` of those that return a code. *ret_touched: whether it wrote its output.
static int call(int which, bool *ret_touched) {
	struct ibv_device_attr device = {0};
	struct ibv_port_attr port = {0};
	struct ibv_async_event event = {.event_type = IBV_EVENT_CQ_ERR};
	struct ibv_qp_attr attr = {0};
	struct ibv_qp_init_attr init = {0};
	struct ibv_cq *taken = NULL;
	uint16_t pkey = 0;
	int err;

	*ret_touched = false;
	switch (which) {
	case 0:
		return calls->close(&context);
	case 1:
		return calls->dealloc_pd(&pd);
	case 2:
		return calls->dereg_mr(&mr);
	case 3:
		return calls->destroy_comp_channel(&channel);
	case 4:
		return calls->destroy_cq(&cq);
	case 5:
		return calls->destroy_qp(&qp);
	case 6:
		err = calls->query_device(&context, &device);
		*ret_touched = device.max_qp == 7;
		return err;
	case 7:
		err = calls->query_port(&context, 1, &port);
		*ret_touched = port.lid == 7;
		return err;
	case 8:
		err = calls->query_pkey(&context, 1, 0, &pkey);
		*ret_touched = pkey == 0x8001; // the key in host byte order
		return err;
	case 9:
		err = calls->get_async_event(&context, &event);
		*ret_touched = event.event_type == IBV_EVENT_PORT_ERR;
		return err;
	case 10:
		err = calls->get_cq_event(&channel, &taken);
		*ret_touched = taken == &cq;
		return err;
	default:
		err = calls->query_qp(&qp, 0, &attr, &init);
		*ret_touched = attr.dest_qp_num == 7 && init.sq_sig_all == 7;
		return err;
	}
}

static void a_code_is_an_errno_in_every_dialect_and_never_an_old_one(void **state) {
	static const struct {
		int code, leaves, expected;
	} cases[] = {
		{EBUSY, 0, -EBUSY},    {EBUSY, EIO, -EBUSY}, {-EBUSY, 0, -EBUSY},
		{-1, EAGAIN, -EAGAIN}, {-1, 0, -EIO},
	};
	bool touched;

	(void)state;
	for (int which = 0; which < CODE_CALLS; which++) {
		for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
			play(&cq, cases[n].code, cases[n].leaves);
			assert_int_equal(call(which, &touched), cases[n].expected);
			assert_false(touched);
		}
		play(&cq, 0, 0);
		assert_int_equal(call(which, &touched), 0);
		assert_int_equal(touched, which >= 6);
	}
	play(NULL, EINVAL, 0);
	assert_int_equal(calls->modify_qp(&qp, NULL, 0), -EINVAL);
}

static void a_table_of_gids_is_a_count_or_an_errno_where_1_is_eperm(void **state) {
	struct ibv_gid_entry entries[4];
	uint32_t count = 99;

	(void)state;
	play(NULL, -1, EAGAIN);
	assert_int_equal(calls->query_gids(&context, entries, 4, &count), -EPERM);
	play(NULL, -EINVAL, 0);
	assert_int_equal(calls->query_gids(&context, entries, 4, &count), -EINVAL);
	assert_int_equal(count, 99);
	play(NULL, 3, 0);
	assert_int_equal(calls->query_gids(&context, entries, 4, &count), 0);
	assert_int_equal(count, 3);
}

static void assert_prepared(int fd) {
	assert_true(fcntl(fd, F_GETFL) & O_NONBLOCK);
	assert_true(fcntl(fd, F_GETFD) & FD_CLOEXEC);
}

static void descriptors_of_events_do_not_block_and_are_not_inherited(void **state) {
	int ends[2];
	struct ibv_context *opened = NULL;
	struct ibv_comp_channel *made = NULL;

	(void)state;
	assert_int_equal(pipe2(ends, 0), 0);
	context.async_fd = ends[0];
	channel.fd = ends[1];
	play(&context, 0, 0);
	assert_int_equal(calls->open(NULL, &opened), 0);
	assert_ptr_equal(opened, &context);
	assert_prepared(ends[0]);
	play(&channel, 0, 0);
	assert_int_equal(calls->create_comp_channel(&context, &made), 0);
	assert_ptr_equal(made, &channel);
	assert_prepared(ends[1]);
	close(ends[0]);
	close(ends[1]);
	context.async_fd = channel.fd = -1;
}

static void what_has_no_good_descriptor_is_closed_again(void **state) {
	struct ibv_context *opened = NULL;
	struct ibv_comp_channel *made = NULL;

	(void)state;
	play(&context, 0, 0);
	assert_int_equal(calls->open(NULL, &opened), -EBADF);
	assert_int_equal(played.closed, 1);
	assert_null(opened);
	play(&channel, 0, 0);
	assert_int_equal(calls->create_comp_channel(&context, &made), -EBADF);
	assert_int_equal(played.channels_destroyed, 1);
	assert_null(made);
}

static void what_was_asked_reaches_libibverbs(void **state) {
	struct ibv_mr *made;
	struct ibv_cq *queue = NULL;

	(void)state;
	play(&mr, 0, 0);
	assert_int_equal(calls->reg_mr(&pd, &pd, 8, IBV_ACCESS_REMOTE_READ, &made), 0);
	assert_int_equal(played.access, IBV_ACCESS_REMOTE_READ);
	assert_int_equal(calls->reg_dmabuf_mr(&pd, &dmabuf, IBV_ACCESS_LOCAL_WRITE, &made), 0);
	assert_int_equal(played.access, IBV_ACCESS_LOCAL_WRITE);
	assert_int_equal(played.iova, 4321);
	play(&cq, 0, 0);
	assert_int_equal(calls->create_cq(&context, UINT32_MAX, NULL, &queue), -EINVAL);
	assert_null(queue);
	assert_int_equal(calls->create_cq(&context, 100, NULL, &queue), 0);
	assert_int_equal(played.cq_entries, 100);
}

static void no_call_is_missing_and_the_kernel_or_a_nic_answers(void **state) {
	const char *bytes = (const char *)calls;

	(void)state;
	for (size_t at = offsetof(struct verbs_calls, device_list); at < sizeof(*calls);
	     at += sizeof(void *)) {
		void *function;

		memcpy(&function, bytes + at, sizeof(function));
		assert_non_null(function);
	}
	assert_false(calls->in_process);
	assert_string_equal(calls->name, "system");
}

UNIT_GROUP(verbs_system) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_call_that_gives_no_object_gives_errno_and_leaves_its_output),
		cmocka_unit_test(a_code_is_an_errno_in_every_dialect_and_never_an_old_one),
		cmocka_unit_test(a_table_of_gids_is_a_count_or_an_errno_where_1_is_eperm),
		cmocka_unit_test(descriptors_of_events_do_not_block_and_are_not_inherited),
		cmocka_unit_test(what_has_no_good_descriptor_is_closed_again),
		cmocka_unit_test(what_was_asked_reaches_libibverbs),
		cmocka_unit_test(no_call_is_missing_and_the_kernel_or_a_nic_answers),
	};

	return cmocka_run_group_tests_name("verbs_system", tests, NULL, NULL);
}
