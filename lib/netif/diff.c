// SPDX-License-Identifier: BSD-3-Clause
// Compares two interface tables.
#include <lib/must.h>
#include <lib/netif/diff.h>
#include <lib/scoped.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// A table in sorted order, and the current position of the comparison.
struct side {
	const struct netif_table *table;
	uint32_t *order;
	size_t count;
	size_t at;
};

static int compare_u32(uint32_t a, uint32_t b) {
	return (a > b) - (a < b);
}

static const struct netif_link *link_at(const struct side *side, size_t n) {
	return &side->table->links[side->order[n]];
}

static const struct netif_address *address_at(const struct side *side, size_t n) {
	return &side->table->addresses[side->order[n]];
}

static uint32_t
address_link_index(const struct netif_table *table, const struct netif_address *address) {
	return table->links[address->link].index;
}

static int compare_addresses(
	const struct netif_table *a_table,
	const struct netif_address *a,
	const struct netif_table *b_table,
	const struct netif_address *b
) {
	int by_link = compare_u32(address_link_index(a_table, a), address_link_index(b_table, b));
	int by_ip = sock_addr_compare(&a->address, &b->address);

	if (by_link != 0)
		return by_link;
	return by_ip != 0 ? by_ip : compare_u32(a->prefix_bits, b->prefix_bits);
}

static int order_links(const void *left, const void *right, void *context) {
	const struct netif_table *table = context;

	return compare_u32(
		table->links[*(const uint32_t *)left].index,
		table->links[*(const uint32_t *)right].index
	);
}

static int order_addresses(const void *left, const void *right, void *context) {
	const struct netif_table *table = context;

	return compare_addresses(
		table, &table->addresses[*(const uint32_t *)left], table,
		&table->addresses[*(const uint32_t *)right]
	);
}

typedef int order_function(const void *left, const void *right, void *context);

static int side_sort(struct side *side, size_t count, order_function *compare) {
	side->order = calloc(count + 1, sizeof(*side->order));
	if (side->order == NULL)
		return -ENOMEM;
	for (size_t n = 0; n < count; n++)
		side->order[n] = (uint32_t)n;
	qsort_r(side->order, count, sizeof(*side->order), compare, (void *)side->table);
	side->count = count;
	return 0;
}

static bool link_same(const struct netif_link *a, const struct netif_link *b) {
	return strcmp(a->name, b->name) == 0 && a->flags == b->flags &&
	       a->has_carrier == b->has_carrier && a->master_index == b->master_index &&
	       a->mtu_bytes == b->mtu_bytes && a->class == b->class &&
	       a->sysfs.speed_mbps == b->sysfs.speed_mbps;
}

static bool routes_same(
	const struct netif_route *a, size_t a_count, const struct netif_route *b, size_t b_count
) {
	if (a_count != b_count)
		return false;
	for (; a_count > 0; a_count--, a++, b++) {
		if (a->link_index != b->link_index || a->error != b->error ||
		    a->metric != b->metric || !sock_addr_equal(&a->peer, &b->peer) ||
		    !sock_addr_equal(&a->source, &b->source) ||
		    !sock_addr_equal(&a->gateway, &b->gateway))
			return false;
	}
	return true;
}

// Return which side to advance. Negative: the old table (entry removed); positive: the new one
// (entry added); 0: both.
static int merge_pick_list(bool before_ends, bool after_ends, int order) {
	if (before_ends)
		return 1;
	return after_ends ? -1 : order;
}

static void
diff_links(struct side *before, struct side *after, netif_diff_report *report, void *context) {
	while (before->at < before->count || after->at < after->count) {
		bool before_ends = before->at == before->count;
		bool after_ends = after->at == after->count;
		const struct netif_link *old = before_ends ? NULL : link_at(before, before->at);
		const struct netif_link *new = after_ends ? NULL : link_at(after, after->at);
		int order = before_ends || after_ends ? 0 : compare_u32(old->index, new->index);
		struct netif_change change = {.link = new};

		order = merge_pick_list(before_ends, after_ends, order);
		before->at += order <= 0;
		after->at += order >= 0;
		if (order < 0) {
			change.link = old;
			change.kind = NETIF_LINK_REMOVED;
		} else {
			change.kind = order > 0 ? NETIF_LINK_ADDED : NETIF_LINK_CHANGED;
		}
		if (order != 0 || !link_same(old, new))
			report(context, &change);
	}
}

static void
diff_addresses(struct side *before, struct side *after, netif_diff_report *report, void *context) {
	while (before->at < before->count || after->at < after->count) {
		bool before_ends = before->at == before->count;
		bool after_ends = after->at == after->count;
		const struct netif_address *old =
			before_ends ? NULL : address_at(before, before->at);
		const struct netif_address *new = after_ends ? NULL : address_at(after, after->at);
		int order = before_ends || after_ends
				    ? 0
				    : compare_addresses(before->table, old, after->table, new);
		struct netif_change change = {.address = new};

		order = merge_pick_list(before_ends, after_ends, order);
		before->at += order <= 0;
		after->at += order >= 0;
		if (order < 0) {
			change.address = old;
			change.kind = NETIF_ADDRESS_REMOVED;
			change.link = &before->table->links[old->link];
		} else {
			change.kind = order > 0 ? NETIF_ADDRESS_ADDED : NETIF_ADDRESS_CHANGED;
			change.link = &after->table->links[new->link];
		}
		if (order != 0 || old->flags != new->flags)
			report(context, &change);
	}
}

static void diff_routes(
	const struct netif_table *before,
	const struct netif_table *after,
	netif_diff_report *report,
	void *context
) {
	struct netif_change change = {.kind = NETIF_ROUTES_CHANGED};

	if (routes_same(before->routes, before->route_count, after->routes, after->route_count) &&
	    routes_same(
		    before->defaults, before->default_count, after->defaults, after->default_count
	    ))
		return;
	report(context, &change);
}

int netif_diff(
	const struct netif_table *before,
	const struct netif_table *after,
	netif_diff_report *report,
	void *context
) {
	struct side links[2] = {{.table = before}, {.table = after}};
	struct side addresses[2] = {{.table = before}, {.table = after}};
	int err = 0;

	for (size_t n = 0; n < 2 && err == 0; n++) {
		err = side_sort(&links[n], links[n].table->link_count, order_links);
		if (err == 0)
			err = side_sort(
				&addresses[n], addresses[n].table->address_count, order_addresses
			);
	}
	if (err == 0) {
		diff_links(&links[0], &links[1], report, context);
		diff_addresses(&addresses[0], &addresses[1], report, context);
		diff_routes(before, after, report, context);
	}
	for (size_t n = 0; n < 2; n++) {
		free(links[n].order);
		free(addresses[n].order);
	}
	return err;
}

const char *netif_change_text(enum netif_change_kind kind) {
	static const char *const texts[] = {
		[NETIF_LINK_ADDED] = "link added",
		[NETIF_LINK_REMOVED] = "link removed",
		[NETIF_LINK_CHANGED] = "link changed",
		[NETIF_ADDRESS_ADDED] = "address added",
		[NETIF_ADDRESS_REMOVED] = "address removed",
		[NETIF_ADDRESS_CHANGED] = "address changed",
		[NETIF_ROUTES_CHANGED] = "routes changed",
	};

	must((size_t)kind < sizeof(texts) / sizeof(texts[0]));
	return texts[kind];
}
