// SPDX-License-Identifier: BSD-3-Clause
// Declarations shared by the files of the programmable device. Each object starts with the
// libibverbs struct that the code under test holds.
#pragma once

#include <lib/container.h>
#include <support/fake_verbs.h>

#include <errno.h>
#include <pthread.h>
#include <string.h>

#define FAKE_FAULTS_MAX 16
#define FAKE_ERRORS_MAX 8
#define FAKE_FORBIDDEN_MAX 64
#define FAKE_ACCESSES_MAX 4096
#define FAKE_RKEY UINT32_C(0x40000000) // set in remote keys, never in local ones

// An object without a number, kept in a list of its context. Objects of a lost context are freed
// through this list.
struct fake_object {
	struct fake_object *next, **at;
	void *owner; // enclosing object, to be freed
	int fd;	     // descriptor of a channel, else -1
};

struct fake_pd {
	struct ibv_pd verbs;
	struct fake_object object;
	uint32_t users;
};

struct fake_mr {
	struct ibv_mr verbs;
	uint64_t iova;
	uint8_t *bytes; // memory at `iova`
	int access;
	void *mapping; // mapping of a dmabuf, which the fake unmaps
	size_t mapping_length;
};

struct fake_event {
	struct fake_event *next;
	struct ibv_async_event verbs;
};

struct fake_context {
	struct ibv_context verbs;
	struct fake_device *device;
	struct fake_context *next; // next context of the same device
	struct fake_event *events; // oldest first
	uint32_t objects;
	struct fake_alive alive;
	struct fake_object *listed; // domains, channels and completion queues
	bool lost;
};

struct fake_cqe {
	struct ibv_wc wc;
	struct fake_qp *qp; // NULL: destroyed
	// Work requests of the queue that are done when this completion is polled.
	uint32_t end;
	bool receive;
	bool solicited;
};

struct fake_cq {
	struct ibv_cq verbs;
	struct fake_object object;
	struct fake_cqe *entries; // ring of verbs.cqe entries
	uint32_t head, count;
	uint32_t users, vector;
	bool armed, armed_solicited;
	uint32_t events_taken, events_acked, async_taken, async_acked;
	struct fake_cq *next_event; // next in its channel's list
	uint32_t events_waiting;
};

struct fake_channel {
	struct ibv_comp_channel verbs;
	struct fake_object object;
	struct fake_cq *ready; // completion queues with pending events
};

struct fake_send {
	struct ibv_send_wr wr; // sg_list points to sge
	struct ibv_sge sge[FAKE_SGE_MAX];
	uint64_t order; // number of the posting, over all queue pairs
	uint64_t due_ns;
	uint64_t give_up_ns; // 0: not yet tried without success
};

struct fake_receive {
	uint64_t wr_id;
	int num_sge;
	struct ibv_sge sge[FAKE_SGE_MAX];
};

struct fake_error {
	uint64_t at; // value of sends_tried at which the error occurs
	enum ibv_wc_status status;
	uint32_t vendor;
};

struct fake_qp {
	struct ibv_qp verbs;
	struct fake_device *device;
	struct ibv_qp_attr attr; // values of modify_qp; qp_state is the real state
	struct ibv_qp_init_attr init;
	struct fake_send *sends; // ring buffer; the counters below only grow
	struct fake_receive *receives;
	uint8_t *inlined; // init.cap.max_inline_data bytes for each entry of `sends`
	uint32_t sends_posted, sends_done, sends_free;
	uint32_t receives_posted, receives_done, receives_free;
	uint64_t last_due_ns, error_ns, delay_ns;
	uint32_t lost_permille;
	uint64_t again_ns, draws;
	uint64_t sends_tried;
	struct fake_error errors[FAKE_ERRORS_MAX];
	uint32_t error_count;
	struct fake_error receive_error; // status SUCCESS: no error
	bool held;
	uint32_t let_go;
	uint32_t flush_left;
	uint64_t tried_epoch; // epoch of the last try without success; unchanged: no new try needed
	struct fake_qp *peer; // valid for peer_epoch
	uint64_t peer_epoch;
	uint32_t async_taken, async_acked;
	bool listed; // in the list of queue pairs with work
	struct fake_qp *next, *previous;
};

struct fake_device_private {
	struct fake_context *contexts;
	struct fake_mr **mrs; // indexed by place, from 1
	uint8_t *mr_variants;
	uint32_t mr_places;
	struct fake_qp **qps; // indexed by number - FAKE_QPN_FIRST
	uint32_t qp_places;
	bool cut;
	bool unplugged; // cut, except for messages to itself
	bool gone;	// not in the device list
};

#define FAKE_QPN_FIRST 17

struct fake_fault {
	enum fake_call call;
	uint32_t nth, times;
	int err;
};

struct fake_range {
	uintptr_t from, to;
};

struct fake_fabric {
	const struct clock *clock;
	bool shared;
	bool light;
	pthread_mutex_t lock;
	struct fake_device *devices[FAKE_DEVICES_MAX];
	uint32_t device_count;
	struct fake_fault faults[FAKE_FAULTS_MAX];
	uint32_t fault_count;
	uint64_t calls[FAKE_CALL_COUNT];
	void (*hook)(void *ctx, enum fake_call call);
	void *hook_ctx;
	char broken[256];
	struct fake_range forbidden[FAKE_FORBIDDEN_MAX];
	uint32_t forbidden_count;
	struct fake_range accesses[FAKE_ACCESSES_MAX];
	uint64_t access_count;
	fake_far_fn *far;    // NULL: no devices in other processes
	uint64_t epoch;	     // incremented when a request that failed might succeed
	uint64_t peer_epoch; // incremented when a connection changes
	uint64_t order;
	struct fake_qp *busy; // queue pairs with work
	struct fake_object *buried;
	struct fake_qp *buried_qps; // linked by `next`
	struct fake_mr **buried_mrs;
	uint32_t buried_mr_count;
	uint32_t lists;
	uint32_t faulty_key; // key of the registration with a fault
	enum fake_key_fault key_fault;
};

extern struct fake_fabric fake;

// Cast away const from an object that belongs to the test.
static inline void *fake_unconst(const void *object) {
	void *pointer;

	memcpy(&pointer, &object, sizeof(pointer));
	return pointer;
}

static inline void *fake_pointer(uint64_t address) {
	void *pointer;

	memcpy(&pointer, &address, sizeof(pointer));
	return pointer;
}

static inline uint64_t fake_now_ns(void) {
	return fake.clock != NULL ? clock_now_ns(fake.clock) : 0;
}

static inline void fake_lock(void) {
	if (fake.shared)
		pthread_mutex_lock(&fake.lock);
}

static inline void fake_unlock(void) {
	if (fake.shared)
		pthread_mutex_unlock(&fake.lock);
}

// Return 0, or the error that the test requested for this call. Locked; the hook has already run.
int fake_fault(enum fake_call call);
void fake_break(const char *format, ...) __attribute__((format(printf, 1, 2)));

static inline struct fake_qp *fake_qp_of(const struct ibv_qp *qp) {
	return fake_unconst(qp);
}

static inline struct fake_cq *fake_cq_of(const struct ibv_cq *cq) {
	return fake_unconst(cq);
}

// Find a region by its key. Returns NULL if there is none, or if the key has another variant.
struct fake_mr *fake_mr_find(const struct fake_device *device, uint32_t key);
// Record that a device reads or writes these bytes.
void fake_touch(const uint8_t *bytes, uint64_t length);

// fake_verbs_hot.c
void fake_hot_ops(struct ibv_context_ops *ops);

// fake_verbs_queue.c
void fake_run_locked(void);
bool fake_qp_has_work(const struct fake_qp *qp);
void fake_qp_list(struct fake_qp *qp);
void fake_qp_unlist(struct fake_qp *qp);
void fake_qp_to_error(struct fake_qp *qp);
// Discard all posted work requests.
void fake_qp_empty(struct fake_qp *qp);
// Remove its completions from the completion queues, or keep them without an owner.
void fake_qp_forget(struct fake_qp *qp, bool keep);
struct fake_qp *fake_qp_by_number(const struct fake_device *device, uint32_t queue_number);

// fake_verbs_work.c
enum fake_answer {
	FAKE_ANSWER_DONE,   // done, see the status
	FAKE_ANSWER_SILENT, // no response
	FAKE_ANSWER_RNR,    // the peer has no receive posted
};

struct fake_outcome {
	enum ibv_wc_status status;
	uint32_t bytes;
};

enum fake_answer
fake_work_do(struct fake_qp *qp, struct fake_send *send, struct fake_outcome *ret_outcome);
void fake_cq_push(struct fake_cq *cq, const struct fake_cqe *entry);
void fake_qp_changed(void); // must be called when a connection changes

// fake_verbs_modify.c
int fake_modify_check(
	const struct fake_qp *qp,
	const struct ibv_qp_attr *attr,
	int mask,
	enum ibv_qp_state *ret_next
);

// Cold calls.

// Every call starts with fake_enter() and, if that returned 0, ends with fake_leave().
static inline int fake_enter(enum fake_call call) {
	int err;

	if (fake.hook != NULL)
		fake.hook(fake.hook_ctx, call);
	fake_lock();
	err = fake_fault(call);
	if (err != 0)
		fake_unlock();
	return err;
}

static inline int fake_leave(int err) {
	fake_unlock();
	return err;
}

static inline struct fake_context *fake_context_of(const struct ibv_context *context) {
	return fake_unconst(context);
}

static inline struct fake_alive *fake_alive_of(const struct ibv_context *context) {
	return &fake_context_of(context)->alive;
}

// Start a call on an existing object. On a lost context, every call returns -EIO for ever.
static inline int fake_enter_on(enum fake_call call, const struct ibv_context *context) {
	int err = fake_enter(call);

	if (err != 0 || !fake_context_of(context)->lost)
		return err;
	fake_unlock();
	return -EIO;
}

// fake_verbs_loss.c
void fake_object_add(struct ibv_context *context, struct fake_object *object, void *owner, int fd);
void fake_object_remove(struct fake_object *object);
// Bury a closed, lost context. Its remaining objects stay until the end, as in libibverbs.
void fake_context_bury(struct fake_context *context);
void fake_buried_free(void);

// Drop the unread events of an object (fake_verbs_calls.c).
void fake_events_drop(struct fake_context *context, const void *object);

// fake_verbs_regions.c, fake_verbs_pairs.c
int fake_reg_mr(
	struct ibv_pd *pd, void *address, size_t length, int access, struct ibv_mr **ret_mr
);
int fake_reg_dmabuf_mr(
	struct ibv_pd *pd, const struct verbs_dmabuf *dmabuf, int access, struct ibv_mr **ret_mr
);
int fake_dereg_mr(struct ibv_mr *verbs);
int fake_create_comp_channel(struct ibv_context *context, struct ibv_comp_channel **ret_channel);
int fake_destroy_comp_channel(struct ibv_comp_channel *verbs);
int fake_create_cq(
	struct ibv_context *context,
	uint32_t entries,
	struct ibv_comp_channel *channel,
	struct ibv_cq **ret_cq
);
int fake_create_cq_at(
	struct ibv_context *context,
	uint32_t entries,
	struct ibv_comp_channel *channel,
	uint32_t vector,
	struct ibv_cq **ret_cq
);
int fake_destroy_cq(struct ibv_cq *verbs);
int fake_get_cq_event(struct ibv_comp_channel *verbs, struct ibv_cq **ret_cq);
void fake_ack_cq_events(struct ibv_cq *verbs, uint32_t count);
int fake_create_qp(struct ibv_pd *pd, struct ibv_qp_init_attr *attr, struct ibv_qp **ret_qp);
int fake_modify_qp(struct ibv_qp *verbs, struct ibv_qp_attr *attr, int mask);
int fake_query_qp(
	struct ibv_qp *verbs,
	int mask,
	struct ibv_qp_attr *ret_attr,
	struct ibv_qp_init_attr *ret_init
);
int fake_destroy_qp(struct ibv_qp *verbs);
