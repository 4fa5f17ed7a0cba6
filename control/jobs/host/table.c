// SPDX-License-Identifier: BSD-3-Clause
// Hash tables with chains. The number of buckets doubles with the number of entries.
#include "jobs/host/table.h"

#include <sodium.h>

#include <errno.h>
#include <stdlib.h>

#define BUCKETS_FIRST 64

_Static_assert(TABLE_SECRET_BYTES == crypto_shorthash_KEYBYTES, "the key of the hash function");
_Static_assert(sizeof(uint64_t) == crypto_shorthash_BYTES, "one word");

int table_init(struct table *table) {
	table->buckets = calloc(BUCKETS_FIRST, sizeof(struct table_entry *));
	if (table->buckets == NULL)
		return -ENOMEM;
	table->bucket_count = BUCKETS_FIRST;
	return 0;
}

void table_fini(struct table *table) {
	free(table->buckets);
	*table = (struct table){0};
}

uint64_t table_hash(const uint8_t secret[static TABLE_SECRET_BYTES], const void *key, size_t size) {
	uint64_t hash;

	crypto_shorthash((uint8_t *)&hash, key, size, secret);
	return hash;
}

static struct table_entry **entry_bucket(const struct table *table, uint64_t hash) {
	return &table->buckets[hash & (table->bucket_count - 1)];
}

// Double the buckets. Without memory the chains only become longer.
static void table_grow(struct table *table) {
	struct table grown = {.bucket_count = 2 * table->bucket_count};

	grown.buckets = calloc(grown.bucket_count, sizeof(struct table_entry *));
	if (grown.buckets == NULL)
		return;
	for (uint32_t n = 0; n < table->bucket_count; n++) {
		struct table_entry *entry = table->buckets[n], *next;

		for (; entry != NULL; entry = next) {
			struct table_entry **bucket = entry_bucket(&grown, entry->hash);

			next = entry->next;
			entry->next = *bucket;
			*bucket = entry;
		}
	}
	free(table->buckets);
	table->buckets = grown.buckets;
	table->bucket_count = grown.bucket_count;
}

void table_add(struct table *table, struct table_entry *entry, uint64_t hash) {
	struct table_entry **bucket;

	if (table->count >= table->bucket_count)
		table_grow(table);
	bucket = entry_bucket(table, hash);
	entry->hash = hash;
	entry->next = *bucket;
	*bucket = entry;
	table->count++;
}

void table_remove(struct table *table, const struct table_entry *entry) {
	struct table_entry **at = entry_bucket(table, entry->hash);

	while (*at != entry)
		at = &(*at)->next;
	*at = entry->next;
	table->count--;
}

static struct table_entry *
first_match(struct table *table, struct table_entry *entry, uint64_t hash) {
	for (; entry != NULL; entry = entry->next) {
		table->compared++;
		if (entry->hash == hash)
			return entry;
	}
	return NULL;
}

struct table_entry *table_first(struct table *table, uint64_t hash) {
	return first_match(table, *entry_bucket(table, hash), hash);
}

struct table_entry *table_next(struct table *table, const struct table_entry *entry) {
	return first_match(table, entry->next, entry->hash);
}
