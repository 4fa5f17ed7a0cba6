// SPDX-License-Identifier: BSD-3-Clause
// Keeps the remembered addresses of an earlier run.
#include "member/remembered.h"

#include "core/core.h"

#include <errno.h>
#include <string.h>

static uint32_t address_find(const struct remembered *remembered, const struct sock_addr *address) {
	uint32_t n = 0;

	while (n < remembered->count && !sock_addr_equal(&remembered->addresses[n], address))
		n++;
	return n;
}

void remembered_fini(struct ras *ras) {
	struct remembered *remembered = &ras->remembered;

	memory_release(
		&ras->memory, remembered->addresses,
		remembered->capacity * sizeof(*remembered->addresses)
	);
	*remembered = (struct remembered){.name_taken = remembered->name_taken};
}

int ras_remembered(struct ras *ras, const struct sock_addr *addresses, uint32_t count) {
	struct remembered *remembered = &ras->remembered;
	struct sock_addr *copy = NULL;

	if (count > RAS_REMEMBERED_MAX)
		return -EINVAL;
	if (count > 0) {
		copy = memory_allocate(&ras->memory, count * sizeof(*copy));
		if (copy == NULL)
			return -ENOMEM;
		memcpy(copy, addresses, count * sizeof(*copy));
	}
	remembered_fini(ras);
	remembered->addresses = copy;
	remembered->count = count;
	remembered->capacity = count;
	return 0;
}

static void address_drop(struct remembered *remembered, uint32_t n) {
	// Keep the order, so that the current round skips no address.
	memmove(&remembered->addresses[n], &remembered->addresses[n + 1],
		(remembered->count - n - 1) * sizeof(*remembered->addresses));
	remembered->count--;
	if (remembered->next > n)
		remembered->next--;
}

void remembered_drop(struct ras *ras, const struct sock_addr *address) {
	struct remembered *remembered = &ras->remembered;
	uint32_t n = address_find(remembered, address);

	if (n < remembered->count)
		address_drop(remembered, n);
}

void ras_remembered_drop(struct ras *ras, const struct sock_addr *address) {
	remembered_drop(ras, address);
}

bool remembered_next_address(struct ras *ras, struct sock_addr *ret_address) {
	struct remembered *remembered = &ras->remembered;

	while (remembered->next < remembered->count) {
		*ret_address = remembered->addresses[remembered->next++];
		if (!join_is_seed_address(ras, ret_address) &&
		    !sock_addr_equal(ret_address, &ras_self(ras)->record->address))
			return true;
	}
	return false;
}

bool remembered_drop_refused(
	struct ras *ras, const struct sock_addr *address, enum ras_cause cause, uint64_t value
) {
	struct remembered *remembered = &ras->remembered;
	uint32_t n = address_find(remembered, address);
	struct sock_addr dropped = *address; // `address` may point into the array

	if (n == remembered->count || join_is_seed_address(ras, address))
		return false;
	address_drop(remembered, n);
	if (cause == RAS_CAUSE_CONFLICT)
		remembered->name_taken = true;
	ras_emit_for_address(ras, RAS_EVENT_JOIN_DROPPED, &dropped, cause, value);
	return true;
}

void remembered_try_address(struct ras *ras, uint32_t n) {
	struct remembered *remembered = &ras->remembered;
	const struct sock_addr *address = &remembered->addresses[n];

	for (uint32_t slot = 0; slot < ras->peers.entry_count; slot++) {
		const struct ras_record *record = ras_entry(ras, slot)->record;

		if (record != NULL && sock_addr_equal(&record->address, address)) {
			address_drop(remembered, n);
			return;
		}
	}
	join_connect(ras, address);
}
