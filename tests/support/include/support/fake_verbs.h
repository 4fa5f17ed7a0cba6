// SPDX-License-Identifier: BSD-3-Clause
// RDMA devices in memory, programmable by the test. The fake implements struct verbs_calls with
// real libibverbs structs, and the hot calls in context->ops. So the code under test runs
// unchanged.
//
// The fake behaves like a device. Two connected queue pairs move real bytes, in order. Both sides
// check keys, bounds, access, PSN, MTU and depths. An error moves the queue pair to ERR and flushes
// posted work. Completion queues and work queues have exactly the requested size. Numbers of queue
// pairs and places of keys are reused at once and are the same on all devices. A completion only
// has the fields that verbs defines; the others contain rubbish on purpose.
//
// fake_verbs_broken() reports violations by the code under test. Violations are: an overflow of a
// completion queue; deregistration of memory that a work request may still access; an access to
// forbidden memory; destruction in an order that would hang a driver.
//
// One fabric per process, because the table has no context. Time is the test's clock. Work is done
// when it is due and the test or the code polls, arms or calls fake_verbs_run(). Without a clock,
// work is done while it is posted. One thread, unless fake_verbs_share() was called.
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
	// attr.pkey_tbl_len keys. Two queue pairs communicate only within one partition, and if one
	// of them is a full member.
	uint16_t pkeys[FAKE_PKEYS_MAX];
};

// A device. The test may change any field before `private`, before or after the device is opened.
struct fake_device {
	struct ibv_device verbs; // names and paths; ibdev_path is empty
	struct ibv_device_attr attr;
	struct fake_port ports[FAKE_PORTS_MAX];
	uint64_t delay_ns;	      // from posting to completion, ns
	uint64_t (*delay)(void *ctx); // delay function; NULL: delay_ns
	void *delay_ctx;
	uint64_t flush_ns;	// from ERR to the flush of posted work, ns
	bool never_flushes;	// queue pairs in ERR never complete posted work
	bool keeps_completions; // completions of destroyed queue pairs stay (as with Soft-RoCE)
	bool no_rc;		// create_qp returns EOPNOTSUPP
	bool no_dmabuf;		// reg_dmabuf_mr returns EOPNOTSUPP
	uint32_t vendor_error;	// vendor error of failures that the device detects
	int vectors;		// number of completion vectors; 0: one
	bool loses_silently;	// no DEVICE_FATAL event when the device is lost

	struct fake_device_private *private;
};

// Fault points: every call of the table, and the hot calls. Postings are counted by work requests,
// so that any request of a chain can fail.
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
	FAKE_ANY_COLD = FAKE_CALL_COUNT, // any call up to FAKE_DESTROY_QP, counted together
};

extern const struct verbs_calls fake_verbs_calls;

// Start with an empty fabric. clock may be NULL, see above; it belongs to the test.
void fake_verbs_init(const struct clock *clock);
// Allow calls from several threads from now on, under one lock.
void fake_verbs_share(void);
// Use light mode, for benchmarks without a clock. Sends posted in RTS complete successfully at
// once. No bytes move, nothing is checked, and no fault occurs; queues keep their size.
void fake_verbs_light(void);
// Handler for requests to an InfiniBand LID that no device of this process has. Reads or writes
// `length` bytes at `address` there. Returns false if nobody responds. Other processes make no
// checks.
typedef bool fake_far_fn(uint16_t lid, bool write, uint64_t address, void *local, uint64_t length);
void fake_verbs_far(fake_far_fn *far);
// Free everything. Returns NULL, the first violation, or the objects that are still alive, as
// static text.
const char *fake_verbs_fini(void);
// Return the first violation, or NULL. Violations are also printed to stderr when they occur.
const char *fake_verbs_broken(void);
// Forget the violation. For tests of the fake itself.
void fake_verbs_forgive(void);

// Add a RoCE device with one active port at 10.0.0.(1 + number of earlier devices), in the order of
// device_list. Lives until fake_verbs_fini().
struct fake_device *fake_device_add(const char *name);
// Make port 1 a native InfiniBand port with this LID. Its GID has the default subnet prefix.
void fake_device_infiniband(struct fake_device *device, uint16_t lid);
struct fake_device *fake_device_of(const struct ibv_context *context);
// Cut a device off: nothing leaves or reaches it, and requests of both sides get no response.
void fake_device_cut(struct fake_device *device, bool cut);
// Unplug the cable: like fake_device_cut(), but messages to itself still arrive, because NICs loop
// them back inside.
void fake_device_unplug(struct fake_device *device, bool unplugged);
// Send an event to every context that has the device open. `port` is used by port events only.
void fake_device_event(struct fake_device *device, enum ibv_event_type type, uint8_t port);
void fake_qp_event(struct ibv_qp *qp, enum ibv_event_type type);
void fake_cq_event(struct ibv_cq *cq, enum ibv_event_type type);

// Lose a device: it is removed or reset while open, see docs/hardware.md for observations. Every
// call on an open context returns EIO for ever. Its descriptors are in error and deliver
// DEVICE_FATAL, then nothing. Posted work never completes. The device is not listed until
// fake_device_return(); then it can be opened again. A lost context can be closed even if it has
// objects. Any thread without the fake's lock, so a hook may call this.
void fake_device_lose(struct fake_device *device);
void fake_device_return(struct fake_device *device);
// Withdraw a device as by a driver that cannot take it from its users. It is not listed, and open
// contexts keep working. The removal waits until the last one is closed. Returns true if none is
// open.
bool fake_device_withdraw(struct fake_device *device);
// Rename a device and change its node GUID (0: unchanged). Open contexts are not affected.
void fake_device_rename(struct fake_device *device, const char *name, uint64_t guid);

// Make calls of a kind fail with err (-errno): the nth from now (1: the next) and the `times - 1`
// after it.
void fake_verbs_fail(enum fake_call call, uint32_t nth, uint32_t times, int err);
void fake_verbs_fail_no_more(void);
// Return the number of calls of this kind, including failed ones.
uint64_t fake_verbs_calls_made(enum fake_call call);
// Set a hook that runs before each cold call, in its thread and without lock. The hook may block
// like a hung driver.
void fake_verbs_on_call(void (*hook)(void *ctx, enum fake_call call), void *ctx);

// Behaviour of one queue pair, from now on:
//
// End the nth work request that the device processes in the send queue (1: the next) with this
// status. The queue pair then is in ERR. Up to 8 at a time.
void fake_qp_error(struct ibv_qp *qp, uint32_t nth, enum ibv_wc_status status, uint32_t vendor);
// End the next receive that gets a message with this status.
void fake_qp_receive_error(struct ibv_qp *qp, enum ibv_wc_status status, uint32_t vendor);
// Override the device's delay. FAKE_NEVER: use the device's again.
void fake_qp_delay(struct ibv_qp *qp, uint64_t delay_ns);
// Lose this share of its requests, per mille, and retransmit each after again_ns, like hardware.
// Only the delay is visible.
void fake_qp_lose(struct ibv_qp *qp, uint32_t permille, uint64_t again_ns);
// Hold the send queue: only released requests are processed, in order. This includes errors and
// flushes.
void fake_qp_hold(struct ibv_qp *qp);
void fake_qp_let_go(struct ibv_qp *qp, uint32_t count); // UINT32_MAX: end the hold
// End the hold after the clock was advanced, as if the process had been stopped: no poll happens in
// between.
void fake_qp_let_go_after(struct ibv_qp *qp, struct clock *clock, uint64_t stopped_ns);
// Flush at most this number of work requests in ERR. 0: never flush.
void fake_qp_flush_at_most(struct ibv_qp *qp, uint32_t count);
// Move a queue pair to ERR by itself, like a device with an internal fault: no event, no
// completion.
void fake_qp_break(struct ibv_qp *qp);
// Return the number of posted, incomplete work requests of both queues.
uint32_t fake_qp_posted(const struct ibv_qp *qp);
// Return the device's state of the queue pair, which may differ from ibv_qp.state.
enum ibv_qp_state fake_qp_state(const struct ibv_qp *qp);
struct ibv_qp *fake_qp_find(const struct fake_device *device, uint32_t queue_number);

// Faults of remote reads from a registration, by its rkey. SILENT: no response, as when memory
// behind a PCIe switch stalls the device. REFUSED: REM_OP_ERR, as when the memory is unreachable.
// One registration at a time.
enum fake_key_fault {
	FAKE_KEY_SOUND,
	FAKE_KEY_SILENT,
	FAKE_KEY_REFUSED,
};
void fake_key_fault(uint32_t key, enum fake_key_fault fault);

// Process all work that is due.
void fake_verbs_run(void);
// Return the time of the next work, or FAKE_NEVER.
uint64_t fake_verbs_next_ns(void);

// Forbid access to this memory through a device, until fake_verbs_allow(). Up to 64 ranges.
void fake_verbs_forbid(const void *address, size_t length);
void fake_verbs_allow(const void *address, size_t length);
// Return how often a device accessed this memory. Counts only with a clock, among the last 4,096
// accesses.
uint32_t fake_verbs_touches(const void *address, size_t length);

struct fake_alive {
	uint32_t lists, contexts, pds, mrs, channels, cqs, qps;
	uint32_t completion_events; // taken, not acknowledged
	uint32_t async_events;
};

struct fake_alive fake_verbs_alive(void);
