// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes records. An interned record keeps its bytes and is found again. Its info makes a record of
// the same identity. Two records compare like their texts.
#include <lib/must.h>
#include <ras/memory.h>
#include <ras/record.h>
#include <support/fuzz.h>
#include <support/heap.h>

#include <string.h>

static void record_check(struct ras_interner *interner, struct ras_record *record) {
	struct ras_record *again;
	struct ras_peer_info info;

	must(record->name_length > 0 && record->name_length <= RAS_NAME_MAX);
	must(record->host_length > 0 && record->host_length <= RAS_NAME_MAX);
	must(ras_record_compare(record, record) == 0);
	must(ras_record_intern(interner, record->encoding, record->size, &again) == 0);
	must(again == record);
	ras_record_put(interner, again);
	ras_record_info(record, &info);
	must(memcmp(info.name, record->name, record->name_length) == 0);
	// A start or layer of a newer version may exceed what this version writes.
	if (ras_record_from_info(interner, &info, &again) != 0)
		return;
	must(again->id == record->id && again->start == record->start);
	must(ras_record_compare(again, record) == 0);
	ras_record_put(interner, again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct heap heap = {0};
	struct ras_memory memory = HEAP_MEMORY(&heap);
	struct ras_interner *interner;
	struct ras_record *first = NULL;
	struct ras_record *second = NULL;
	size_t split = size > 0 ? data[0] * (size - 1) / 255 : 0;

	if (size == 0)
		return 0;
	must(ras_interner_create(&memory, &interner) == 0);
	if (ras_record_intern(interner, data + 1, split, &first) == 0)
		record_check(interner, first);
	if (ras_record_intern(interner, data + 1 + split, size - 1 - split, &second) == 0)
		record_check(interner, second);
	if (first != NULL && second != NULL) {
		int order = ras_record_compare(first, second);
		int back = ras_record_compare(second, first);

		must((order < 0) == (back > 0) && (order == 0) == (back == 0));
	}
	ras_record_put(interner, first);
	ras_record_put(interner, second);
	must(ras_interner_count(interner) == 0);
	ras_interner_destroy(interner);
	must(heap.used_bytes == 0);
	return 0;
}
