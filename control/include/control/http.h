// SPDX-License-Identifier: BSD-3-Clause
// HTTP for monitoring: /metrics, /health, /status.json. Reading only, GET and HEAD only.
//
// A thread of its own, which reads what the control thread has published and asks it nothing: a
// flood of requests costs the overlay no more than the processor it takes. It is an RCU reader,
// online only while it writes an answer.
#pragma once

#include <lib/cidr.h>
#include <lib/clock.h>
#include <lib/sockaddr.h>

#include <stddef.h>

struct http;
struct peer_table;
struct snapshots;

#define HTTP_DETAIL_BYTES 256
#define HTTP_CONNECTIONS_MAX 64
#define HTTP_STALE_NS UINT64_C(5000000000) // what is older says that the control thread hangs

struct http_config {
	struct sock_addr listen;  // port 0: any
	const struct cidr *allow; // copied. This machine may without being named, by any address
	size_t allow_count;
	const struct clock *clock; // these outlive it
	const struct snapshots *snapshots;
	const struct peer_table *peers;
	const char *version;
};

// -errno, and what failed in words.
int http_start(
	const struct http_config *config,
	char ret_detail[static HTTP_DETAIL_BYTES],
	struct http **ret_http
);
struct http *http_stop(struct http *http);
