// SPDX-License-Identifier: BSD-3-Clause
// HTTP for monitoring: /metrics, /health and /status.json. It is read-only and accepts GET and HEAD
// only.
//
// HTTP has its own thread, which reads the snapshots that the control thread publishes and asks the
// control thread nothing. A flood of requests costs the overlay only processor time. The thread is
// an RCU reader, online only while it writes an answer or a part of one.
//
// All readers of a page share it, and all pages together are bounded: see feeds/http/http_pages.h.
#pragma once

#include <lib/cidr.h>
#include <lib/clock.h>
#include <lib/sockaddr.h>

#include <stddef.h>
#include <stdint.h>

struct http;
struct http_counters;
struct peer_table;
struct snapshots;

#define HTTP_DETAIL_BYTES 256
#define HTTP_CONNECTIONS_MAX 64
#define HTTP_STALE_NS UINT64_C(5000000000) // an older snapshot means that the control thread hangs

struct http_config {
	struct sock_addr listen; // port 0: any free port
	// clients to accept; copied. This host is always accepted, from any of its addresses
	const struct cidr *allow;
	size_t allow_count;
	const struct clock *clock; // clock, snapshots and peers must outlive the server
	const struct snapshots *snapshots;
	const struct peer_table *peers;
	const char *version;
	struct http_counters *counters; // must outlive the server; NULL: not counted
};

// Start the HTTP thread. Returns 0, or -errno with an explanation in ret_detail.
int http_start(
	const struct http_config *config,
	char ret_detail[static HTTP_DETAIL_BYTES],
	struct http **ret_http
);
struct http *http_stop(struct http *http);
