// SPDX-License-Identifier: BSD-3-Clause
// Looking up a path: what workers do for every probe and operation.
#include "table/path_table_impl.h"

const struct path_snapshot *path_table_snapshot(const struct path_table *table) {
	return rcu_dereference(table->current);
}

const struct path_row *path_snapshot_row(const struct path_snapshot *snapshot, uint32_t slot) {
	const struct path_row *row;

	if (slot >= snapshot->row_count)
		return NULL;
	row = &snapshot->rows[slot];
	return row->peer != 0 ? row : NULL;
}
