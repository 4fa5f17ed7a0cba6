// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes rail announcements. A decoded list must be within all bounds and survive encoding and
// decoding. Matched with itself, each rail matches itself; matched with another list, results stay
// within the lists.
#include "fabric/rail_message.h"

#include <lib/must.h>
#include <support/fuzz.h>

#include <string.h>

static void check_matches(const struct rail_list *own, const struct rail_list *theirs) {
	uint32_t places[RAILS_MAX];

	rail_match(own, theirs, places);
	for (uint32_t n = 0; n < RAILS_MAX; n++) {
		must(places[n] == RAIL_NONE || (n < own->count && places[n] < theirs->count));
		must(places[n] == RAIL_NONE || own->rails[n].link == theirs->rails[places[n]].link);
		must(n >= own->count || rail_other_in_subnet(own, theirs, n, 0) == RAIL_NONE ||
		     rail_other_in_subnet(own, theirs, n, 0) < theirs->count);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	uint8_t bytes[RAIL_MESSAGE_BYTES_MAX];
	struct rail_list list, copy, half;
	uint32_t places[RAILS_MAX];
	bool asks, asks_too;
	size_t used;

	if (rail_message_decode(data, size, &list, &asks) != 0)
		return 0;
	must(list.count <= RAILS_MAX);
	used = rail_message_encode(&list, asks, bytes);
	must(rail_message_decode(bytes, used, &copy, &asks_too) == 0);
	must(asks == asks_too && rail_list_same(&list, &copy));
	rail_match(&list, &copy, places);
	for (uint32_t n = 0; n < list.count; n++)
		must(places[n] == n);
	half = list;
	half.count /= 2;
	check_matches(&list, &half);
	check_matches(&half, &list);
	return 0;
}
