// SPDX-License-Identifier: BSD-3-Clause
// RDMA devices in memory, programmable by the test: a filling of struct verbs_calls whose objects
// are real structs of libibverbs with the hot calls in context->ops, so that the code under test
// runs as it is.
//
// What it does as a device does: two queue pairs that are connected to each other move real bytes,
// in order on each; keys, bounds, access, PSN, MTU and depths are checked on both sides; an error
// moves the queue pair to ERR, and what was posted is flushed; a completion queue has exactly the
// entries that were asked for, a queue exactly the places; numbers of queue pairs and places of
// keys are used again as soon as they are free, and are the same on all devices. Of a completion
// only those fields are sound that verbs promises, the others are rubbish on purpose.
//
// Breaches of promise of the code under test are kept as a text, fake_verbs_broken(): an overflow
// of a completion queue, memory deregistered while a work request may reach it, an access to
// memory that the test forbade, objects destroyed in an order on which a driver would hang.
//
// One fabric per process, since the table has no context. Time is the clock's that the test turns:
// work is done when its time has come and somebody looks (poll, arm, fake_verbs_run()). Without a
// clock everything is done while it is posted. One thread, unless fake_verbs_share().
#pragma once

#include <dataplane/verbs_calls.h>
#include <lib/clock.h>

#include <stdbool.h>
#include <stdint.h>

#define FAKE_DEVICES_MAX 48
#define FAKE_PORTS_MAX 2
#define FAKE_GIDS_MAX 16
#define FAKE_PKEYS_MAX 4
#define FAKE_SGE_MAX 8
#define FAKE_NEVER UINT64_MAX

struct fake_port {
	struct ibv_port_attr attr;
	struct ibv_gid_entry gids[FAKE_GIDS_MAX];
	uint32_t gid_count;
	// attr.pkey_tbl_len of them. Two queue pairs reach each other in one partition only, and if
	// one of them is a full member.
	uint16_t pkeys[FAKE_PKEYS_MAX];
};

// The test changes any field up to `private`, before or after the device is opened.
struct fake_device {
	struct ibv_device verbs; // names and paths; ibdev_path is empty
	struct ibv_device_attr attr;
	struct fake_port ports[FAKE_PORTS_MAX];
	uint64_t delay_ns;	      // from posting to completion
	uint64_t (*delay)(void *ctx); // or drawn; NULL: delay_ns
	void *delay_ctx;
	uint64_t flush_ns;	// from ERR to the flush of what was posted
	bool never_flushes;	// queue pairs in ERR keep silent about what was posted
	bool keeps_completions; // of queue pairs that are destroyed (as Soft-RoCE does)
	bool no_rc;		// create_qp says EOPNOTSUPP
	bool no_dmabuf;		// reg_dmabuf_mr says EOPNOTSUPP
	uint32_t vendor_error;	// of errors that the device finds by itself
	int vectors;		// completion vectors; 0: one
	bool loses_silently;	// no DEVICE_FATAL when it is lost

	struct fake_device_private *private;
};

// Fault points: every call of the table, and the hot ones. For a posting a work request is counted,
// not the call, so that any place of a chain can fail.
enum fake_call {
	FAKE_DEVICE_LIST,
	FAKE_OPEN,
	FAKE_CLOSE,
	FAKE_QUERY_DEVICE,
	FAKE_QUERY_PORT,
	FAKE_QUERY_GIDS,
	FAKE_QUERY_PKEY,
	FAKE_GET_ASYNC_EVENT,
	FAKE_ALLOC_PD,
	FAKE_DEALLOC_PD,
	FAKE_REG_MR,
	FAKE_REG_DMABUF_MR,
	FAKE_DEREG_MR,
	FAKE_CREATE_COMP_CHANNEL,
	FAKE_DESTROY_COMP_CHANNEL,
	FAKE_CREATE_CQ,
	FAKE_DESTROY_CQ,
	FAKE_GET_CQ_EVENT,
	FAKE_CREATE_QP,
	FAKE_MODIFY_QP,
	FAKE_QUERY_QP,
	FAKE_DESTROY_QP,
	FAKE_POST_SEND,
	FAKE_POST_RECV,
	FAKE_POLL_CQ,
	FAKE_REQ_NOTIFY_CQ,
	FAKE_CALL_COUNT,
	FAKE_ANY_COLD = FAKE_CALL_COUNT, // any up to FAKE_DESTROY_QP, counted together
};

extern const struct verbs_calls fake_verbs_calls;

// An empty fabric. clock may be NULL: see above; it stays the test's.
void fake_verbs_init(const struct clock *clock);
// Several threads may call from now on: one lock for all.
void fake_verbs_share(void);
// Without a clock, for benchmarks: from now on what is posted in RTS to a send queue ends well at
// once. No bytes are moved, nothing is checked, no fault comes; queues have their places still.
void fake_verbs_light(void);
// Who answers at a LID of InfiniBand that no device of this process has: reads `length` bytes at
// `address` there, or writes them. False: nobody. Of other processes nothing is checked.
typedef bool fake_far_fn(uint16_t lid, bool write, uint64_t address, void *local, uint64_t length);
void fake_verbs_far(fake_far_fn *far);
// Frees everything. NULL, or what was broken, or what is still alive. Static text.
const char *fake_verbs_fini(void);
// The first breach of promise, NULL if there is none. Also on stderr when it happens.
const char *fake_verbs_broken(void);
// Of the fake's own tests: forgets it.
void fake_verbs_forgive(void);

// A RoCE device with one active port at 10.0.0.(1 + how many there were), in the order of
// device_list. Lives until fake_verbs_fini().
struct fake_device *fake_device_add(const char *name);
// Its port 1 becomes native InfiniBand with this LID; its GID has the default subnet prefix.
void fake_device_infiniband(struct fake_device *device, uint16_t lid);
struct fake_device *fake_device_of(const struct ibv_context *context);
// Nothing leaves it and nothing arrives: requests of both sides go unanswered.
void fake_device_cut(struct fake_device *device, bool cut);
// The same but for what it sends to itself, which NICs loop inside: its cable is dead.
void fake_device_unplug(struct fake_device *device, bool unplugged);
// To every context that has it open. port counts for port events only.
void fake_device_event(struct fake_device *device, enum ibv_event_type type, uint8_t port);
void fake_qp_event(struct ibv_qp *qp, enum ibv_event_type type);
void fake_cq_event(struct ibv_cq *cq, enum ibv_event_type type);

// Removed or reset under whoever has it open, as docs/hardware.md says where it was seen: contexts
// that are open say EIO to every call for good, their descriptors are in error, they bring
// DEVICE_FATAL and nothing else any more; what was posted never completes; the device is not in the
// list, until it returns: then it can be opened anew. A context that is lost can be closed,
// whatever is left in it. Any thread that has not the fake's lock, so a hook may.
void fake_device_lose(struct fake_device *device);
void fake_device_return(struct fake_device *device);
// Removed as a driver that cannot take it from its users does it: it is not in the list, and
// whoever has it open may go on. The removal waits until nobody has; true: nobody has it.
bool fake_device_withdraw(struct fake_device *device);
// Under another name, and another GUID of the node (0: the same). Who has it open notices nothing.
void fake_device_rename(struct fake_device *device, const char *name, uint64_t guid);

// The nth call (1: the next) of a kind and the `times - 1` after it fail with err (-errno).
void fake_verbs_fail(enum fake_call call, uint32_t nth, uint32_t times, int err);
void fake_verbs_fail_no_more(void);
// How many calls of this kind there were, those that failed too.
uint64_t fake_verbs_calls_made(enum fake_call call);
// Before each cold call, in its thread, without a lock: to wait there as a stuck driver does.
void fake_verbs_on_call(void (*hook)(void *ctx, enum fake_call call), void *ctx);

// What a queue pair does, by number or pointer; from now on.
//
// The nth work request of its send queue that the device looks at (1: the next) ends with this
// status; the queue pair is in ERR then. Up to 8 at a time.
void fake_qp_error(struct ibv_qp *qp, uint32_t nth, enum ibv_wc_status status, uint32_t vendor);
// The next receive that a message takes ends with this status.
void fake_qp_receive_error(struct ibv_qp *qp, enum ibv_wc_status status, uint32_t vendor);
// Overrides the device's. FAKE_NEVER: the device's again.
void fake_qp_delay(struct ibv_qp *qp, uint64_t delay_ns);
// Of its requests as many per mille are lost on the way, and sent again after so long, as hardware
// does: nobody sees more of that than the delay.
void fake_qp_lose(struct ibv_qp *qp, uint32_t permille, uint64_t again_ns);
// Nothing of its send queue is done but what is let go, in order; errors and flushes too are.
void fake_qp_hold(struct ibv_qp *qp);
void fake_qp_let_go(struct ibv_qp *qp, uint32_t count); // UINT32_MAX: no longer held
// No longer held, and so much time has passed, as when the process was stopped: nobody polls
// between the two.
void fake_qp_let_go_after(struct ibv_qp *qp, struct clock *clock, uint64_t stopped_ns);
// In ERR at most so many work requests are flushed. 0: it never flushes.
void fake_qp_flush_at_most(struct ibv_qp *qp, uint32_t count);
// To ERR by itself, as a device does on a fault of its own: no event, no completion of its own.
void fake_qp_break(struct ibv_qp *qp);
// What is posted and not complete, of both queues.
uint32_t fake_qp_posted(const struct ibv_qp *qp);
// What the device knows, which ibv_qp.state does not.
enum ibv_qp_state fake_qp_state(const struct ibv_qp *qp);
struct ibv_qp *fake_qp_find(const struct fake_device *device, uint32_t queue_number);

// What reads of a registration that peers may reach come to from now on, by its key there: nothing
// comes, as where the memory behind a PCIe switch holds the device up, or REM_OP_ERR, as where it
// cannot be reached any more. Of one registration at a time.
enum fake_key_fault {
	FAKE_KEY_SOUND,
	FAKE_KEY_SILENT,
	FAKE_KEY_REFUSED,
};
void fake_key_fault(uint32_t key, enum fake_key_fault fault);

// Does what is due.
void fake_verbs_run(void);
// When there will be something to do, FAKE_NEVER if nothing.
uint64_t fake_verbs_next_ns(void);

// From here on nobody may touch this memory through a device; allow ends it. Up to 64 ranges.
void fake_verbs_forbid(const void *address, size_t length);
void fake_verbs_allow(const void *address, size_t length);
// How often a device read or wrote there; counted with a clock only, of the last 4,096 accesses.
uint32_t fake_verbs_touches(const void *address, size_t length);

struct fake_alive {
	uint32_t lists, contexts, pds, mrs, channels, cqs, qps;
	uint32_t completion_events; // taken, not acknowledged
	uint32_t async_events;
};

struct fake_alive fake_verbs_alive(void);
