// SPDX-License-Identifier: BSD-3-Clause
// What the agent says of the whole (HEALTH, LINKS, EVENTS in JSON), in lines that stay few however
// many nodes there are: what is wrong first, the rest counted.
#pragma once

#include "contact.h"
#include "show/frame.h"

// What was asked; NULL where an answer is missing. Owned.
struct summary {
	json_t *health;
	json_t *left; // PEERS left, if there are any
	json_t *links;
	json_t *events;
};

// Asks. As contact_json(); what came before a failure is kept.
int summary_gather(struct contact *contact, struct summary *summary);
void summary_fini(struct summary *summary);

// "critical: 4 of 5 agents answer; cluster tocsin, as n1 sees it"
void summary_headline(const json_t *health, char text[static FRAME_LINE_BYTES]);

// A line for each state that somebody is in and should not go unseen, with names.
void summary_states(const struct summary *summary, struct frame *frame);
// A row for each node there is something to say of, at most rows_max and a line that counts others.
void summary_findings(const json_t *health, size_t rows_max, struct frame *frame);
// View, and links in short.
void summary_view(const json_t *health, struct frame *frame);
void summary_links(const json_t *links, struct frame *frame);
// The last that matter, at most rows_max.
void summary_events(const json_t *events, size_t rows_max, struct frame *frame);

// A member that is a number or a text; 0 and "" if it is not there.
int64_t summary_number(const json_t *object, const char *key);
const char *summary_text(const json_t *object, const char *key);
