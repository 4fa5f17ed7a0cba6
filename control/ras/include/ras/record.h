// SPDX-License-Identifier: BSD-3-Clause
// What is known of one start of one agent: immutable, counted, and shared by all who hold it.
//
// A record is its canonical encoding; the same facts have the same bytes, so that two agents
// agree on a digest. An interner keeps one copy of equal records: an agent has one of its own,
// a simulation of thousands of agents shares one.
#pragma once

#include <lib/sockaddr.h>
#include <lib/wire.h>
#include <ras/types.h>

#define RAS_ADDRESSES_MAX 4
#define RAS_DEVICES_MAX 16
#define RAS_DEVICE_NAME_MAX 31
#define RAS_VERSION_MAX 31
#define RAS_RECORD_BYTES_MAX 1536

enum ras_link_layer {
	RAS_LINK_LAYER_NONE,
	RAS_LINK_LAYER_INFINIBAND,
	RAS_LINK_LAYER_ETHERNET,
	RAS_LINK_LAYER_SOFT,
};

struct ras_device {
	char name[RAS_DEVICE_NAME_MAX + 1];
	enum ras_link_layer link_layer;
};

// The facts in the clear. The first address is where the overlay is spoken.
struct ras_peer_info {
	char name[RAS_NAME_MAX + 1];
	char host[RAS_NAME_MAX + 1]; // failure domain: agents of one host and boot fall together
	uint8_t boot_id[16];	     // all 0: not known
	uint64_t start;		     // of the agent, the upper part of its incarnation
	uint32_t pid;
	char version[RAS_VERSION_MAX + 1];
	uint32_t address_count;
	struct sock_addr addresses[RAS_ADDRESSES_MAX];
	uint32_t device_count;
	struct ras_device devices[RAS_DEVICES_MAX];
};

struct ras_record {
	uint64_t id;	 // of the name
	uint64_t digest; // of the encoding
	uint64_t order;	 // first bytes of the host, big-endian: settles most comparisons
	// The failure domain: machines booted from one image may share their host's name, so it is
	// the name with the boot, where that is known.
	uint64_t host_id;
	uint64_t host_name_id;
	uint64_t start;
	uint64_t run;	     // of boot, process and start: two runs may count alike
	uint32_t references; // owned by the interner
	uint32_t size;
	const char *name; // into the encoding, not terminated
	const char *host;
	uint8_t name_length;
	uint8_t host_length;
	struct sock_addr address; // addresses[0], what a link connects to
	struct ras_record *next;  // in the interner's bucket
	uint8_t encoding[];
};

// The key of every table: 64 bits of the name. Two names with one id are told apart by the
// record and refused as a conflict.
uint64_t ras_id(const char *name, size_t length);

// Ring order: by host, then by name. <0, 0, >0.
int ras_record_compare(const struct ras_record *a, const struct ras_record *b);

struct ras_memory;
struct ras_interner;

// All records of an interner must have been released when it is destroyed.
int ras_interner_create(const struct ras_memory *memory, struct ras_interner **ret_interner);
struct ras_interner *ras_interner_destroy(struct ras_interner *interner);
size_t ras_interner_count(const struct ras_interner *interner);

// Takes a reference on the record with this encoding, made if it is new. The bytes come from
// outside: -EBADMSG, -EMSGSIZE, -EILSEQ if they are no record, -ENOMEM.
int ras_record_intern(
	struct ras_interner *interner,
	const void *encoding,
	size_t size,
	struct ras_record **ret_record
);

// The same from facts in the clear; -EINVAL if they cannot be encoded (no name, no address).
int ras_record_from_info(
	struct ras_interner *interner,
	const struct ras_peer_info *info,
	struct ras_record **ret_record
);

struct ras_record *ras_record_get(struct ras_record *record);
void ras_record_put(struct ras_interner *interner, struct ras_record *record);

// The facts in the clear again.
void ras_record_info(const struct ras_record *record, struct ras_peer_info *ret_info);
