// SPDX-License-Identifier: BSD-3-Clause
// Hash tables of control/jobs/host. An entry is embedded in its owner, and is found by the hash of
// its key; the caller compares the key itself. Users choose keys, so a hash depends on a secret.
#pragma once

#include <stddef.h>
#include <stdint.h>

#define TABLE_SECRET_BYTES 16

struct table_entry {
	struct table_entry *next;
	uint64_t hash;
};

struct table {
	struct table_entry **buckets; // NULL: not initialized
	uint32_t bucket_count;	      // a power of two
	uint32_t count;
	uint64_t compared; // entries that lookups have compared; tests prove linear work with it
};

int table_init(struct table *table); // 0 or -ENOMEM
void table_fini(struct table *table);
uint64_t table_hash(const uint8_t secret[static TABLE_SECRET_BYTES], const void *key, size_t size);
void table_add(struct table *table, struct table_entry *entry, uint64_t hash);
void table_remove(struct table *table, const struct table_entry *entry);
// Return the first entry with this hash, or NULL. The caller compares the keys, because two keys
// may have one hash.
struct table_entry *table_first(struct table *table, uint64_t hash);
// Return the next entry with the same hash, or NULL.
struct table_entry *table_next(struct table *table, const struct table_entry *entry);
