// SPDX-License-Identifier: BSD-3-Clause
// The software device: RoCEv2 RC in user space, so that every machine has RDMA.
//
// One implementation has two interfaces. The agent uses this table (verbs_calls_soft). Unmodified
// programs use libtocsin-verbs.so, which offers the same table under libibverbs' names. Each added
// device is listed by verbs_calls_soft.device_list(); its socket and engine thread start with the
// first open. One thread adds all devices before any listing. Every other function may be called by
// any thread.
#pragma once

#include <dataplane/verbs_calls.h>
#include <lib/clock.h>
#include <lib/error.h>
#include <lib/sockaddr.h>

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#define SOFT_DEVICES_MAX 16
#define SOFT_DEVICE_NAME "soft0" // default device of an unmodified program
#define SOFT_NAME_MAX 31
#define SOFT_WIRE_ARGS_MAX 255
#define SOFT_UDP_PORT 4791
#define SOFT_REASON_MAX 159

enum soft_wire_kind {
	SOFT_WIRE_UDP, // "udp": a plain socket on the address, port 4791
	// "dpdk:DEVARGS": any ethdev, for example "dpdk:net_af_packet0,iface=veth0"
	SOFT_WIRE_DPDK,
	SOFT_WIRE_MEMORY, // "memory": between devices of this process, for tests
};

// Faults applied to sent packets; each fault is drawn independently with `seed`.
#define SOFT_LARGE_BYTES 1500 // largest frame that every Ethernet carries

struct soft_faults {
	uint32_t loss_ppm, reorder_ppm, duplicate_ppm, corrupt_ppm;
	uint64_t delay_ns, jitter_ns; // every packet waits delay_ns, plus or minus up to jitter_ns
	uint64_t seed;
	bool any;
	uint32_t large_ppm;  // loss of packets larger than SOFT_LARGE_BYTES
	struct sock_addr to; // destination of the affected packets; no family: all packets
};

// Parse "loss=1%,delay=50us±20us,reorder=2%,dup=0.5%,corrupt=0.1%,large=100%,to=192.0.2.7,seed=7".
// Each item may appear once, in any order; "+-" stands for "±" too. Returns -EINVAL, with a text
// that names the item, its value and the allowed values.
int soft_faults_parse(
	const char *text,
	size_t length,
	struct parse_error *ret_error,
	struct soft_faults *ret_faults
);

struct soft_config {
	char name[SOFT_NAME_MAX + 1]; // "soft0"
	enum soft_wire_kind wire;
	char wire_args[SOFT_WIRE_ARGS_MAX + 1]; // devargs of the DPDK wire
	struct sock_addr address;		// own address; the port is always SOFT_UDP_PORT
	bool address_any; // udp: use the first free address of 127.64.0.0/16, not `address`
	struct soft_faults faults;
	// For tests. NULL: the processor's clock. A device with a clock of its own has no engine
	// thread and advances only by soft_turn().
	const struct clock *clock;
	// Seed of keys, queue pair numbers and PSNs; 0: the kernel's random numbers
	uint64_t random_seed;
};

// Parse "udp", "memory" or "dpdk:DEVARGS" into kind and args. Returns -EINVAL.
int soft_wire_parse(
	const char *text,
	size_t length,
	struct parse_error *ret_error,
	enum soft_wire_kind *ret_kind,
	char ret_args[static SOFT_WIRE_ARGS_MAX + 1]
);

// Parse an address for a device: one host's address, without a port. Returns -EINVAL.
int soft_address_parse(
	const char *text,
	size_t length,
	struct parse_error *ret_error,
	struct sock_addr *ret_address
);

// Check whether a device with this configuration could be opened on this machine, without opening
// it. A socket is bound for a moment; a DPDK port is not attached. Returns the error that opening
// would return, for example -EADDRINUSE or -EADDRNOTAVAIL, with a reason.
int soft_config_check(
	const struct soft_config *config, char ret_reason[static SOFT_REASON_MAX + 1]
);

// Add a device. Returns -EEXIST (the name), -ENOSPC or -EINVAL.
int soft_device_add(const struct soft_config *config);
// Remove all devices, none of which is open.
void soft_devices_clear(void);

// Calibrate the clock of the devices now, for a process whose children open them. Otherwise the
// first open does it, which takes 10 to 200 ms.
void soft_clock_prepare(void);

// Send the acknowledgements that calls have deferred, for a process that ends with open devices.
// Does not block. Any thread may call, even one that interrupted a call.
void soft_devices_flush_acks(void);

// Return the reason why the latest open of this device failed, for example "127.0.0.1 port 4791 is
// held by tocsind, process 4711". "": it did not fail.
void soft_device_open_error(const char *name, char ret_reason[static SOFT_REASON_MAX + 1]);
// Return the address of an open device. Returns -ENODEV or -ENOTCONN (not open).
int soft_device_address(const char *name, struct sock_addr *ret_address);

// Replace the faults, at once or with the first open. Returns -ENODEV or -ENOMEM; then the old
// faults remain. Any thread.
int soft_device_set_faults(const char *name, const struct soft_faults *faults);

// Return the node GUID, as query_device() does. It is derived from the device's address. A device
// without a configured address has a preliminary GUID until its first open. 0: no such device.
__be64 soft_device_guid(const char *name);

// Run one turn of the device, as its engine would; for tests with their own clock. Returns true if
// anything moved. *ret_due_ns is the time of the next timer, UINT64_MAX for none.
bool soft_turn(struct ibv_context *context, uint64_t *ret_due_ns);

extern const struct verbs_calls verbs_calls_soft;

// Functions for unmodified programs that are not in the table. Each returns 0 or -errno.
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

// Counters of a device in one table: received and sent packets, and dropped packets by reason. Each
// entry has a help text. Any thread may read them, each independently.
#define SOFT_COUNTERS(COUNTER)                                                                  \
	COUNTER(packets_sent, "packets sent")                                                   \
	COUNTER(packets_received, "packets received")                                           \
	COUNTER(bytes_sent, "bytes sent, from the IP header on")                                \
	COUNTER(bytes_received, "bytes received, from the IP header on")                        \
	COUNTER(acks_sent, "acknowledgements sent")                                             \
	COUNTER(naks_sent, "NAKs sent, for a refused or a missing request")                     \
	COUNTER(rnr_naks_sent, "RNR NAKs sent, because no receive was posted")                  \
	COUNTER(naks_received, "NAKs received, for a refused or a missing request")             \
	COUNTER(rnr_naks_received, "RNR NAKs received, because the peer had posted no receive") \
	COUNTER(retransmitted, "packets sent again")                                            \
	COUNTER(probes, "of these, sent early because an answer was late")                      \
	COUNTER(timeouts, "requests that got no answer in time")                                \
	COUNTER(duplicates, "requests received again after they were executed")                 \
	COUNTER(out_of_sequence, "requests received while an earlier one was missing")          \
	COUNTER(foreign_icrc, "packets whose ICRC is right only with another IP id")            \
	COUNTER(send_full, "times the wire accepted no more packets for now")                   \
	COUNTER(send_failed, "packets that the wire could not send")                            \
	COUNTER(send_unresolved, "packets dropped while the peer's MAC address was unknown")    \
	COUNTER(drop_short, "packets with incomplete headers")                                  \
	COUNTER(drop_header, "packets with a wrong IP or UDP header, version, P_Key or pad")    \
	COUNTER(drop_icrc, "packets with a wrong ICRC")                                         \
	COUNTER(drop_opcode, "packets with an unknown opcode, or not of an RC queue pair")      \
	COUNTER(drop_queue_pair, "packets to a queue pair that does not exist")                 \
	COUNTER(drop_address, "packets that did not come from the queue pair's peer")           \
	COUNTER(drop_state, "packets to queue pairs in a state that receives nothing")          \
	COUNTER(drop_sequence, "further packets after a gap that was reported")                 \
	COUNTER(drop_ghost, "answers to no request in flight")                                  \
	COUNTER(drop_answer, "answers that contradict their request")                           \
	COUNTER(drop_old_read, "repeated reads and atomics too old to be answered again")       \
	COUNTER(fault_lost, "packets dropped by an injected fault")                             \
	COUNTER(fault_delayed, "packets delayed by an injected fault")                          \
	COUNTER(fault_reordered, "packets reordered by an injected fault")                      \
	COUNTER(fault_duplicated, "packets duplicated by an injected fault")                    \
	COUNTER(fault_corrupted, "packets corrupted by an injected fault")                      \
	COUNTER(engine_wakes, "times the engine thread woke")                                   \
	COUNTER(engine_useful, "times the engine thread woke and found work")

#define SOFT_COUNTER_FIELD(field, help) uint64_t field;
struct soft_counters {
	SOFT_COUNTERS(SOFT_COUNTER_FIELD)
};

// Return the thread that advances a device while no caller does; 0 if there is none. Any thread.
pid_t soft_engine_tid(const char *name);
// Read the counters of a device; its last values if it is closed. Returns -ENODEV.
int soft_counters_read(const char *name, struct soft_counters *ret_counters);
