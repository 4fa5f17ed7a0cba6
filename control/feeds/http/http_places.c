// SPDX-License-Identifier: BSD-3-Clause
// Chooses the HTTP connections that stay when all places are taken.
#include "feeds/http/http_places.h"

#include <lib/must.h>

#include <stddef.h>

void http_places_init(struct http_places *places) {
	for (uint32_t n = 0; n < HTTP_CONNECTIONS_MAX; n++)
		places->of[n] = (struct http_place){.fd = -1};
}

// Return whether connection `a` is ended before `b`: connections without a request first, then the
// oldest.
static bool is_evicted_before(const struct http_place *a, const struct http_place *b) {
	return a->answers != b->answers ? !a->answers : a->since_ns < b->since_ns;
}

struct http_place *
http_places_add(struct http_places *places, int fd, uint64_t now_ns, int *ret_cut) {
	struct http_place *first = NULL;
	uint32_t at = 0, held = 0;

	must(fd >= 0);
	while (at < HTTP_CONNECTIONS_MAX && places->of[at].fd >= 0)
		at++;
	must(at < HTTP_CONNECTIONS_MAX);
	places->of[at] = (struct http_place){.fd = fd, .since_ns = now_ns};
	for (uint32_t n = 0; n < HTTP_CONNECTIONS_MAX; n++) {
		struct http_place *place = &places->of[n];

		if (place->fd < 0 || place->ends)
			continue;
		held++;
		if (n != at && (first == NULL || is_evicted_before(place, first)))
			first = place;
	}
	*ret_cut = -1;
	if (held > HTTP_CONNECTIONS_MAX - PLACES_SPARE && first != NULL) {
		first->ends = true;
		*ret_cut = first->fd;
	}
	return &places->of[at];
}

void http_places_add_reader(struct http_places *places, struct http_place *place, int *ret_cut) {
	struct http_place *first = NULL;
	uint32_t readers = 0;

	place->reads = true;
	for (uint32_t n = 0; n < HTTP_CONNECTIONS_MAX; n++) {
		struct http_place *other = &places->of[n];

		if (other->fd < 0 || other->ends || !other->reads)
			continue;
		readers++;
		if (other != place && (first == NULL || other->since_ns < first->since_ns))
			first = other;
	}
	*ret_cut = -1;
	if (readers > PLACES_READERS_MAX && first != NULL) {
		first->ends = true;
		*ret_cut = first->fd;
	}
}

void http_place_request_done(struct http_place *place, uint64_t now_ns) {
	place->answers = true;
	place->since_ns = now_ns;
}

void http_place_answer_done(struct http_place *place, uint64_t now_ns) {
	place->answers = false;
	place->reads = false;
	place->since_ns = now_ns;
}

void http_places_remove(struct http_places *places, struct http_place *place) {
	must(place >= places->of && place < places->of + HTTP_CONNECTIONS_MAX && place->fd >= 0);
	*place = (struct http_place){.fd = -1};
}

int http_places_next_overdue(struct http_places *places, uint64_t now_ns) {
	for (uint32_t n = 0; n < HTTP_CONNECTIONS_MAX; n++) {
		struct http_place *place = &places->of[n];
		uint64_t limit_ns = place->answers ? PLACES_TAKE_NS : PLACES_ASK_NS;

		if (place->fd < 0 || place->ends || now_ns < place->since_ns + limit_ns)
			continue;
		place->ends = true;
		return place->fd;
	}
	return -1;
}
