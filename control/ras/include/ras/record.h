// SPDX-License-Identifier: BSD-3-Clause
// A record: the facts of one start of one agent. Immutable, reference-counted, and shared by all
// its users.
//
// A record is its canonical encoding: equal facts have equal bytes, so two agents agree on a
// digest. An interner keeps one copy of equal records. An agent has its own interner; a simulation
// of thousands of agents shares one.
//
// The agent signs its record with its key, and each receiver checks this once. So nobody else can
// make up a start, an address or a device of an agent whose key is known.
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

// The decoded facts of a record. The overlay uses the first address.
struct ras_peer_info {
	char name[RAS_NAME_MAX + 1];
	char host[RAS_NAME_MAX + 1]; // failure domain: agents of one host and boot fail together
	uint8_t boot_id[16];	     // all 0: unknown
	uint64_t start;		     // start number, the upper part of the incarnation
	uint32_t pid;
	char version[RAS_VERSION_MAX + 1];
	uint8_t key[RAS_KEY_BYTES]; // public key of the agent; all 0: none
	uint32_t address_count;
	struct sock_addr addresses[RAS_ADDRESSES_MAX];
	uint32_t device_count;
	struct ras_device devices[RAS_DEVICES_MAX];
};

struct ras_record {
	uint64_t id;	 // hash of the name
	uint64_t digest; // hash of the encoding
	uint64_t order;	 // first bytes of the host, big-endian: decides most comparisons
	// Failure domain: hash of the host name and, where known, the boot. The name alone is not
	// enough, since machines booted from one image may share it.
	uint64_t host_id;
	uint64_t host_name_id;
	uint64_t start;
	uint64_t run;	     // hash of boot, process and start: two runs may have the same start
	uint32_t references; // count, owned by the interner
	uint32_t size;
	const char *name; // points into the encoding, not terminated
	const char *host;
	uint8_t name_length;
	uint8_t host_length;
	uint8_t key[RAS_KEY_BYTES]; // public key of the agent; all 0: none
	struct sock_addr address;   // addresses[0], the address that links connect to
	struct ras_record *next;    // next in the bucket of the interner
	uint8_t encoding[];
};

// Return the key of every table: 64 bits of a hash of the name. Two names with one id are
// distinguished by the record and refused as a conflict.
uint64_t ras_id(const char *name, size_t length);

// Compare in ring order: by host, then by name. Returns <0, 0 or >0.
int ras_record_compare(const struct ras_record *a, const struct ras_record *b);

struct ras_memory;
struct ras_interner;

// Makes and checks the signatures of records, see struct ras_ops. `key` is the public key in the
// record.
struct ras_signer {
	void *ctx;
	const char *cluster; // a record is valid in one cluster only
	void (*sign
	)(void *ctx,
	  const uint8_t key[static RAS_KEY_BYTES],
	  const void *bytes,
	  size_t size,
	  uint8_t ret_signature[static RAS_SIGNATURE_BYTES]);
	bool (*verify
	)(void *ctx,
	  const uint8_t key[static RAS_KEY_BYTES],
	  const void *bytes,
	  size_t size,
	  const uint8_t signature[static RAS_SIGNATURE_BYTES]);
};

// Create or destroy an interner. All its records must have been released before it is destroyed.
int ras_interner_create(const struct ras_memory *memory, struct ras_interner **ret_interner);
struct ras_interner *ras_interner_destroy(struct ras_interner *interner);
size_t ras_interner_count(const struct ras_interner *interner);

// Sign new records and check those from outside. Before this call neither happens, for tools and
// tests. The signer is copied, its cluster is not kept.
void ras_interner_set_signer(struct ras_interner *interner, const struct ras_signer *signer);

// Return a reference on the record with this encoding; a new record is created if needed. The bytes
// come from outside. Returns 0, -ENOMEM, or -EBADMSG, -EMSGSIZE, -EILSEQ if they are no valid
// record, or its key did not sign it.
int ras_record_intern(
	struct ras_interner *interner,
	const void *encoding,
	size_t size,
	struct ras_record **ret_record
);

// Do the same from decoded facts. Returns -EINVAL if they cannot be encoded (no name, no address).
int ras_record_from_info(
	struct ras_interner *interner,
	const struct ras_peer_info *info,
	struct ras_record **ret_record
);

struct ras_record *ras_record_get(struct ras_record *record);
void ras_record_put(struct ras_interner *interner, struct ras_record *record);

// Return the fingerprint of a key. A public key of Ed25519 is spread evenly, so its first 8 bytes
// are as hard to find again as those of a hash.
uint64_t ras_key_fingerprint(const uint8_t key[static RAS_KEY_BYTES]);

// Decode a record.
void ras_record_info(const struct ras_record *record, struct ras_peer_info *ret_info);
