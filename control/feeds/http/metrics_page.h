// SPDX-License-Identifier: BSD-3-Clause
// The HTTP pages about this node, made from published data. The caller must be an RCU reader and
// online.
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

// How far a page of several parts is written; zero before the first part.
struct page_cursor {
	bool begun;
	bool has_rows;
	uint32_t slot; // of the peer table, where the next part begins
};

// Return whether this node itself fails: its control thread hangs, or it has not joined. Dead peers
// do not matter.
bool page_is_down(const struct page_facts *facts);

// Parts of the metrics, which a client can choose.
#define PAGE_PART_SELF 1u     // this agent, and the nodes by state
#define PAGE_PART_VERDICTS 2u // a series for each node with a problem
#define PAGE_PART_PATHS 4u    // RDMA paths and congestion
#define PAGE_PART_JOBS 8u
#define PAGE_PARTS_ALL 15u

// Return the part with this name, or 0 if there is none.
uint8_t page_part_find(const char *name);
// Write parts of the metrics in the Prometheus text format, or as OpenMetrics.
void page_metrics(const struct page_facts *facts, uint8_t parts, bool open_metrics, FILE *out);
// Write parts of the metrics: the head of a family, a label value, verdicts, paths, jobs,
// congestion.
void page_family(
	FILE *out, bool open_metrics, const char *name, const char *type, const char *help
);
void page_label(FILE *out, const char *text, size_t size);
void page_verdicts(const struct snapshot *snapshot, uint64_t now_ns, bool open_metrics, FILE *out);
// Write the process_* metrics that client libraries of Prometheus have.
void page_process(bool open_metrics, FILE *out);
void page_paths(const struct snapshot *snapshot, bool open_metrics, FILE *out);
void page_jobs(const struct snapshot *snapshot, FILE *out);
void page_congestion(const struct snapshot *snapshot, bool open_metrics, FILE *out);
// Write one JSON object and a newline. Returns 0 or -ENOMEM.
int page_health(const struct page_facts *facts, FILE *out);
// Write what is found of this node for checks without a program of Tocsin: a sentence, then a word
// and a number for each kind of check. Returns whether a drain is advised.
bool page_health_node(const struct page_facts *facts, FILE *out);
// Write the next part of one JSON object with a row for each peer. Parts may have different
// snapshots: each row is true of its moment. Returns 1 if more parts follow, 0 or -ENOMEM.
int page_status_part(const struct page_facts *facts, struct page_cursor *cursor, FILE *out);
