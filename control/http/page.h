// SPDX-License-Identifier: BSD-3-Clause
// What is said about this node, from what has been published. The caller is an RCU reader, online.
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct peer_table;
struct snapshot;

struct page_facts {
	const struct snapshot *snapshot;
	const struct peer_table *peers;
	const char *version;
	uint64_t now_ns;
};

enum page_grade {
	PAGE_OK,
	PAGE_WARNING,  // something is wrong with a node, not with this one
	PAGE_UNKNOWN,  // a node of the roster was not heard of
	PAGE_CRITICAL, // this node is no member, or nobody turns the control loop
};

enum page_grade page_grade(const struct page_facts *facts, const char **ret_reason);
const char *page_grade_name(enum page_grade grade);

// The Prometheus text format, or OpenMetrics.
void page_metrics(const struct page_facts *facts, bool open_metrics, FILE *out);
// One JSON object and a newline. -ENOMEM.
int page_health(const struct page_facts *facts, FILE *out);
int page_status(const struct page_facts *facts, FILE *out);
