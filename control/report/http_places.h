// SPDX-License-Identifier: BSD-3-Clause
// Who may keep a connection, and for how long: slow clients keep nobody from an answer, so that a
// liveness probe of /health does not restart an agent that is well.
//
// Pure: the caller closes whom it is told to. One thread.
#pragma once

#include <control/http.h>

#include <stdbool.h>
#include <stdint.h>

// A request has to be whole so long after the connection, or the answer before it. However many
// bytes come until then: a timeout of idleness would never end who sends one a second.
#define PLACES_ASK_NS (10 * UINT64_C(1000000000))
// An answer has to be taken so long after its request was whole.
#define PLACES_TAKE_NS (30 * UINT64_C(1000000000))
// So many stay free: while fewer are, each newcomer ends the one that waits longest.
#define PLACES_SPARE 8

struct http_place {
	int fd; // -1: free
	bool answers;
	bool ends; // the caller was told to close it
	uint64_t since_ns;
};

struct http_places {
	struct http_place of[HTTP_CONNECTIONS_MAX];
};

void places_init(struct http_places *places);
// One more, of at most HTTP_CONNECTIONS_MAX. *ret_cut: who is to be closed for it, -1: nobody.
struct http_place *places_begin(struct http_places *, int fd, uint64_t now_ns, int *ret_cut);
void places_asked(struct http_place *, uint64_t now_ns);
void places_answered(struct http_place *, uint64_t now_ns);
void places_end(struct http_places *, struct http_place *);
// The next one that is out of time, each once; -1: none is.
int places_overdue(struct http_places *, uint64_t now_ns);
