// SPDX-License-Identifier: BSD-3-Clause
// The software device: RoCEv2 RC in user space, so that any machine has RDMA.
//
// One implementation with two faces: this table for the agent (verbs_calls_soft), and
// libtocsin-verbs.so for unmodified programs, which is the same table behind libibverbs' names.
// A device that was added is listed by verbs_calls_soft.device_list() and comes to life (socket,
// engine thread) with its first open. Devices are added before anything is listed, by one thread;
// everything else may be called by any thread.
#pragma once

#include <dataplane/verbs_calls.h>
#include <lib/clock.h>
#include <lib/error.h>
#include <lib/sockaddr.h>

#include <stdbool.h>
#include <stdint.h>

#define SOFT_DEVICES_MAX 16
#define SOFT_DEVICE_NAME "soft0" // of the one that a program has by itself
#define SOFT_NAME_MAX 31
#define SOFT_WIRE_ARGS_MAX 255
#define SOFT_UDP_PORT 4791
#define SOFT_HOLDER_MAX 159

enum soft_wire_kind {
	SOFT_WIRE_UDP,	  // "udp": a plain socket on the address, port 4791
	SOFT_WIRE_DPDK,	  // "dpdk:DEVARGS": any ethdev, as "dpdk:net_af_packet0,iface=veth0"
	SOFT_WIRE_MEMORY, // "memory": between devices of this process; for tests
};

// What is done to packets that are sent; each is drawn independently from `seed`.
#define SOFT_LARGE_BYTES 1500 // that every Ethernet carries

struct soft_faults {
	uint32_t loss_ppm, reorder_ppm, duplicate_ppm, corrupt_ppm;
	uint64_t delay_ns, jitter_ns; // each packet: delay, plus or minus up to jitter
	uint64_t seed;
	bool any;
	uint32_t large_ppm;  // loss of what is larger than SOFT_LARGE_BYTES
	struct sock_addr to; // of packets to this address only; of no family: of all
};

// "loss=1%,delay=50us±20us,reorder=2%,dup=0.5%,corrupt=0.1%,large=100%,to=192.0.2.7,seed=7": any of
// them, in any order, each once; "+-" stands for "±" too. -EINVAL names the item, its value and
// what is allowed.
int soft_faults_parse(
	const char *text,
	size_t length,
	struct parse_error *ret_error,
	struct soft_faults *ret_faults
);

struct soft_config {
	char name[SOFT_NAME_MAX + 1]; // "soft0"
	enum soft_wire_kind wire;
	char wire_args[SOFT_WIRE_ARGS_MAX + 1]; // devargs of the dpdk wire
	struct sock_addr address; // its own; the port is SOFT_UDP_PORT whatever it says
	bool address_any;	  // udp: the first free one of 127.64.0.0/16 instead
	struct soft_faults faults;
	// Of tests. NULL: the processor's. With a clock of its own nothing moves but by
	// soft_turn(), and there is no engine thread.
	const struct clock *clock;
	uint64_t random_seed; // of keys, numbers and PSNs; 0: the kernel's
};

// "udp", "memory" or "dpdk:DEVARGS" into kind and args. -EINVAL.
int soft_wire_parse(
	const char *text,
	size_t length,
	struct parse_error *ret_error,
	enum soft_wire_kind *ret_kind,
	char ret_args[static SOFT_WIRE_ARGS_MAX + 1]
);

// An address that a device can have: of one machine alone, without a port. -EINVAL.
int soft_address_parse(
	const char *text,
	size_t length,
	struct parse_error *ret_error,
	struct sock_addr *ret_address
);

// Whether a device of this configuration could be opened on this machine, as far as that can be
// seen without opening it: a socket is bound for a moment, a DPDK port is not attached. As opening
// would say it, -EADDRINUSE and -EADDRNOTAVAIL among them, with the reason.
int soft_config_check(
	const struct soft_config *config, char ret_reason[static SOFT_HOLDER_MAX + 1]
);

// -EEXIST (the name), -ENOSPC, -EINVAL.
int soft_device_add(const struct soft_config *config);
// Takes all of them away again; none is open any more.
void soft_devices_clear(void);

// Calibrates the clock that its devices have now, else the first open does, which takes 10 to 200
// ms: for a process whose children open them.
void soft_clock_prepare(void);

// Sends what calls left to be sent soon, for a process that ends with devices open: its last
// acknowledgements. Does not wait; any thread, also where it interrupted a call.
void soft_devices_settle(void);

// Why the latest open of that device failed, in words: "127.0.0.1 port 4791 is held by tocsind,
// process 4711", "the DPDK port ...". "" if it did not fail.
void soft_device_reason(const char *name, char ret_reason[static SOFT_HOLDER_MAX + 1]);
// The address it has, once it is open. -ENODEV, -ENOTCONN (not open).
int soft_device_address(const char *name, struct sock_addr *ret_address);

// Other faults from now on, or from its first open on if it is not open. Any thread. -ENODEV,
// -ENOMEM: the faults of before stay.
int soft_device_set_faults(const char *name, const struct soft_faults *faults);

// Its node GUID, as query_device() says it: the same whether it is open or not, and another one in
// each process. 0: there is no such device.
__be64 soft_device_guid(const char *name);

// For tests with a clock of their own: one turn of the device, as its engine would do. True if
// anything moved. *ret_due_ns is the next time at which something falls due, UINT64_MAX for none.
bool soft_turn(struct ibv_context *context, uint64_t *ret_due_ns);

extern const struct verbs_calls verbs_calls_soft;

// Beside the table, what unmodified programs call: same habits, 0 or -errno.
int soft_resize_cq(struct ibv_cq *cq, int entries);
int soft_reg_mr_iova(
	struct ibv_pd *pd,
	void *address,
	size_t length,
	uint64_t iova,
	int access,
	struct ibv_mr **ret_mr
);
int soft_create_srq(struct ibv_pd *pd, struct ibv_srq_init_attr *attr, struct ibv_srq **ret_srq);
int soft_modify_srq(struct ibv_srq *srq, struct ibv_srq_attr *attr, int mask);
int soft_query_srq(struct ibv_srq *srq, struct ibv_srq_attr *ret_attr);
int soft_destroy_srq(struct ibv_srq *srq);

// Counters of a device, all in one table: what came, what went, and every packet that was dropped,
// by reason; each with what it counts in words. Any thread; each is read by itself.
#define SOFT_COUNTERS(COUNTER)                                                               \
	COUNTER(packets_sent, "packets sent")                                                \
	COUNTER(packets_received, "packets received")                                        \
	COUNTER(bytes_sent, "bytes sent, from the IP header on")                             \
	COUNTER(bytes_received, "bytes received, counted alike")                             \
	COUNTER(acks_sent, "acknowledgements sent")                                          \
	COUNTER(naks_sent, "refusals sent (NAK)")                                            \
	COUNTER(rnr_naks_sent, "times we were not ready to receive (RNR NAK)")               \
	COUNTER(naks_received, "refusals received (NAK)")                                    \
	COUNTER(rnr_naks_received, "times a peer was not ready to receive")                  \
	COUNTER(retransmitted, "packets sent again")                                         \
	COUNTER(probes, "of these, to ask after a silence")                                  \
	COUNTER(timeouts, "requests without an answer in time")                              \
	COUNTER(duplicates, "requests that had been executed")                               \
	COUNTER(out_of_sequence, "requests after a gap")                                     \
	COUNTER(foreign_icrc, "packets accepted by some IP id, not a known one")             \
	COUNTER(send_full, "times the wire took no more for now")                            \
	COUNTER(send_failed, "packets that the wire refused")                                \
	COUNTER(send_unresolved, "packets whose address nobody told yet")                    \
	COUNTER(drop_short, "packets without a whole header")                                \
	COUNTER(drop_header, "packets with a wrong IP or UDP header, version, P_Key or pad") \
	COUNTER(drop_icrc, "packets with a wrong ICRC")                                      \
	COUNTER(drop_opcode, "packets that are not of RC, or unknown")                       \
	COUNTER(drop_queue_pair, "packets to no queue pair that there is")                   \
	COUNTER(drop_address, "packets that are not from their queue pair's peer")           \
	COUNTER(drop_state, "packets to queue pairs that do not receive")                    \
	COUNTER(drop_sequence, "packets after a gap that was told of already")               \
	COUNTER(drop_ghost, "answers to nothing that is under way")                          \
	COUNTER(drop_answer, "answers that contradict what was asked for")                   \
	COUNTER(drop_old_read, "repeated reads and atomics that are forgotten")              \
	COUNTER(fault_lost, "packets lost on purpose")                                       \
	COUNTER(fault_delayed, "packets delayed on purpose")                                 \
	COUNTER(fault_reordered, "packets held back on purpose")                             \
	COUNTER(fault_duplicated, "packets doubled on purpose")                              \
	COUNTER(fault_corrupted, "packets corrupted on purpose")                             \
	COUNTER(engine_wakes, "times the engine woke")                                       \
	COUNTER(engine_useful, "of these, something was there")

#define SOFT_COUNTER_FIELD(field, help) uint64_t field;
struct soft_counters {
	SOFT_COUNTERS(SOFT_COUNTER_FIELD)
};

// Of the device with this context; the last values if it is closed. -ENODEV.
int soft_counters_read(const char *name, struct soft_counters *ret_counters);
