// SPDX-License-Identifier: BSD-3-Clause
// Places of HTTP connections: which clients may stay connected, and for how long. Slow clients must
// not block other clients. Otherwise a liveness probe of /health could fail and restart a healthy
// agent.
//
// Pure functions for one thread. The caller closes the connections that are returned to it.
#pragma once

#include "feeds/http/http_pages.h"

#include <control/http.h>

#include <stdbool.h>
#include <stdint.h>

// Deadline for a complete request, counted from the connection or from the previous answer.
// Received bytes do not extend it: an idle timeout would never end a client that sends one byte a
// second.
#define PLACES_ASK_NS (10 * UINT64_C(1000000000))
// Deadline for the client to receive an answer, counted from the complete request.
#define PLACES_TAKE_NS (30 * UINT64_C(1000000000))
// Places kept free. While fewer are free, each new connection ends the one that waits longest.
#define PLACES_SPARE 8
// Places of clients that wait for a page or receive one. The other places are for clients that have
// not asked yet, and for /health: a client that asks has a place, however many do not read.
#define PLACES_READERS_MAX 40

struct MHD_Connection;

struct http_place {
	int fd; // -1: free
	bool answers;
	bool ends; // the caller was told to close the connection
	uint64_t since_ns;
	// Fields of the caller, for a client that asked for a page.
	bool reads;
	struct http_page_form form;
	struct MHD_Connection *waits; // suspended until its page is written; NULL: not suspended
	struct http_page *page;	      // the page that the client receives, one reference; or NULL
};

struct http_places {
	struct http_place of[HTTP_CONNECTIONS_MAX];
};

void http_places_init(struct http_places *places);
// Add a connection, of at most HTTP_CONNECTIONS_MAX, and return its place. *ret_cut is the
// descriptor to close for it; -1: none.
struct http_place *http_places_add(struct http_places *, int fd, uint64_t now_ns, int *ret_cut);
// Note that a client asked for a page. *ret_cut is the descriptor to close for it, of the client
// that reads longest; -1: none.
void http_places_add_reader(struct http_places *, struct http_place *, int *ret_cut);
void http_place_request_done(struct http_place *, uint64_t now_ns);
void http_place_answer_done(struct http_place *, uint64_t now_ns);
void http_places_remove(struct http_places *, struct http_place *);
// Return the next connection past its deadline, each only once; -1: none.
int http_places_next_overdue(struct http_places *, uint64_t now_ns);
