// SPDX-License-Identifier: BSD-3-Clause
// Writes the path table. Control owns the next version; the reclaimer frees replaced versions.
#include "table/path_table_impl.h"

#include <lib/error.h>
#include <lib/must.h>
#include <lib/rcu_reclaimer.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct path_snapshot *snapshot_create(struct path_table *table, uint32_t row_count) {
	struct path_snapshot *snapshot;
	size_t size = sizeof(*snapshot) + row_count * sizeof(snapshot->rows[0]);

	snapshot = aligned_alloc(64, (size + 63) & ~(size_t)63);
	if (snapshot == NULL)
		return NULL;
	memset(snapshot, 0, size);
	snapshot->row_count = row_count;
	snapshot->table = table;
	return snapshot;
}

// Create the next version with room for row_count rows; it starts as a copy of the current one.
static int open_next_version(struct path_table *table, uint32_t row_count) {
	const struct path_snapshot *from = table->next != NULL ? table->next : table->current;
	struct path_snapshot *next;

	must(from != NULL); // a version always exists
	if (from == table->next && row_count <= from->row_count)
		return 0;
	next = snapshot_create(table, row_count > from->row_count ? row_count : from->row_count);
	if (next == NULL)
		return -ENOMEM;
	memcpy(next->rows, from->rows, from->row_count * sizeof(from->rows[0]));
	free(table->next);
	table->next = next;
	return 0;
}

const struct path_row *path_table_next_row(const struct path_table *table, uint32_t slot) {
	return path_snapshot_row(table->next != NULL ? table->next : table->current, slot);
}

int path_table_set(struct path_table *table, uint32_t slot, const struct path_row *row) {
	int err;

	if (slot >= PATH_TABLE_ROWS_MAX || row->peer == 0)
		return -EINVAL;
	err = open_next_version(table, slot + 1);
	if (err == 0)
		table->next->rows[slot] = *row;
	return err;
}

int path_table_clear(struct path_table *table, uint32_t slot) {
	int err;

	if (slot >= PATH_TABLE_ROWS_MAX)
		return -EINVAL;
	if (path_table_next_row(table, slot) == NULL)
		return 0;
	err = open_next_version(table, slot + 1);
	if (err == 0)
		table->next->rows[slot] = (struct path_row){0};
	return err;
}

// Free a retired version, on the reclaimer's thread, in the order of retirement.
static void free_retired_version(struct rcu_head *head) {
	struct path_snapshot *stale = caa_container_of(head, struct path_snapshot, rcu);
	struct path_table *table = stale->table;

	atomic_store_explicit(&table->settled, stale->version + 1, memory_order_release);
	// Relaxed: the counter bounds memory and orders nothing.
	atomic_fetch_sub_explicit(&table->waiting, 1, memory_order_relaxed);
	// A full counter is readable too, which is sufficient.
	(void)eventfd_write(table->fd, 1);
	free(stale);
}

int path_table_publish(struct path_table *table, uint64_t *ret_version) {
	struct path_snapshot *stale;

	if (table->next == NULL) {
		*ret_version = table->current->version;
		return 0;
	}
	if (atomic_load_explicit(&table->waiting, memory_order_relaxed) >= PATH_TABLE_WAITING_MAX)
		return -EAGAIN;
	table->next->version = table->current->version + 1;
	*ret_version = table->next->version;
	atomic_fetch_add_explicit(&table->waiting, 1, memory_order_relaxed);
	// 1. swap, 2. wait until no reader can hold the old version (call_rcu), 3.
	//    free_retired_version()
	stale = rcu_xchg_pointer(&table->current, table->next);
	table->next = NULL;
	urcu_qsbr_call_rcu(&stale->rcu, free_retired_version);
	return 0;
}

uint64_t path_table_oldest_in_use(struct path_table *table) {
	eventfd_t count;

	// Read first: a later retirement makes the descriptor readable again
	(void)eventfd_read(table->fd, &count);
	return atomic_load_explicit(&table->settled, memory_order_acquire);
}

int path_table_fd(const struct path_table *table) {
	return table->fd;
}

int path_table_create(struct path_table **ret_table) {
	struct path_table *table = aligned_alloc(64, sizeof(*table));
	int err;

	if (table == NULL)
		return -ENOMEM;
	memset(table, 0, sizeof(*table));
	table->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (table->fd < 0) {
		err = neg_errno();
		free(table);
		return err;
	}
	table->current = snapshot_create(table, 0);
	if (table->current == NULL) {
		path_table_destroy(table);
		return -ENOMEM;
	}
	*ret_table = table;
	return 0;
}

struct path_table *path_table_destroy(struct path_table *table) {
	if (table == NULL)
		return NULL;
	rcu_reclaimer_drain();
	close(table->fd);
	free(table->next);
	free(table->current);
	free(table);
	return NULL;
}
