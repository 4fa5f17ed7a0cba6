// SPDX-License-Identifier: BSD-3-Clause
// What is said about this node, from what has been published. The caller is an RCU reader, online.
#pragma once

#include <control/finding.h>

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

// Whether this node itself does not do its part: it hangs, or is no member. Not that another died.
bool page_is_down(const struct page_facts *facts);

// The Prometheus text format, or OpenMetrics.
void page_metrics(const struct page_facts *facts, bool open_metrics, FILE *out);
// Its parts, for those that write some of it: the head of a family, the value of a label, verdicts,
// paths.
void page_family(
	FILE *out, bool open_metrics, const char *name, const char *type, const char *help
);
void page_label(FILE *out, const char *text, size_t size);
void page_verdicts(const struct snapshot *snapshot, uint64_t now_ns, bool open_metrics, FILE *out);
void page_paths(const struct snapshot *snapshot, bool open_metrics, FILE *out);
void page_jobs(const struct snapshot *snapshot, FILE *out);
void page_congestion(const struct snapshot *snapshot, bool open_metrics, FILE *out);
// One JSON object and a newline. -ENOMEM.
int page_health(const struct page_facts *facts, FILE *out);
int page_status(const struct page_facts *facts, FILE *out);
