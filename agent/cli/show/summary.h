// SPDX-License-Identifier: BSD-3-Clause
// Overview of the cluster from HEALTH, LINKS and EVENTS, in few lines for any number of nodes.
// Problems come first, the rest is counted.
#pragma once

#include "show/frame.h"
#include "target.h"

// Answers of the agent, owned; NULL if an answer is missing.
struct summary {
	json_t *health;
	json_t *left; // answer of PEERS left, if any node left
	json_t *links;
	json_t *events;
};

// Request all answers. Returns the value of contact_json(); answers received before an error are
// kept.
int summary_gather(struct contact *contact, struct summary *summary);
void summary_fini(struct summary *summary);

// Format the headline: "critical: 4 of 5 agents answer; cluster tocsin, as n1 sees it".
void summary_headline(const json_t *health, char text[static FRAME_LINE_BYTES]);

// Add one line with names for each state that needs attention.
void summary_states(const struct summary *summary, struct frame *frame);
// Add one row per finding, at most rows_max, and a line that counts the rest.
void summary_findings(const json_t *health, size_t rows_max, struct frame *frame);
// Add one line about the view, and one about the links.
void summary_view(const json_t *health, struct frame *frame);
void summary_links(const json_t *links, struct frame *frame);
// Add the latest important events, at most rows_max.
void summary_events(const json_t *events, size_t rows_max, struct frame *frame);

// Return a member that is a number; 0 if it is missing.
int64_t summary_number(const json_t *object, const char *key);
