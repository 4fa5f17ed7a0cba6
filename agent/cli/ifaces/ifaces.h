// SPDX-License-Identifier: BSD-3-Clause
// Parts of `tocsin ifaces`.
#pragma once

#include <lib/netif/choice.h>
#include <lib/netif/nccl.h>
#include <lib/netif/source.h>
#include <lib/netif/tocsin.h>

#include <stdbool.h>

#define IFACES_SETTINGS 3

// Rules and settings of one query.
struct ifaces {
	bool is_nccl;
	struct netif_nccl_settings nccl;
	struct netif_policy policy;
	struct netif_query query; // borrows strings from `policy`
};

// One setting for display.
struct ifaces_setting {
	const char *name;
	const char *value;  // NULL: not set
	const char *source; // "option", "environment" or "default"
};

void ifaces_settings(
	const struct ifaces *ifaces, struct ifaces_setting settings[static IFACES_SETTINGS]
);

// Gather the interfaces and choose. Returns 0, -ENOENT if a setting names something that does not
// exist, or another -errno. An error sets one sentence in `error`.
int ifaces_choose(
	const struct ifaces *ifaces,
	struct netif_table **ret_table,
	struct netif_choice **ret_choice,
	struct netif_error *error
);

// Return the label of a candidate's address if it differs from the link's name, such as eth0:1, or
// NULL. NCCL uses the label as the interface name.
const char *ifaces_alias(const struct netif_table *table, const struct netif_judgement *judgement);

enum ifaces_verdict {
	IFACES_CHOSEN,
	IFACES_QUALIFIED, // acceptable, but another candidate is better
	IFACES_DROPPED,
};
enum ifaces_verdict
ifaces_verdict(const struct ifaces *ifaces, const struct netif_choice *choice, size_t judgement);
const char *ifaces_verdict_word(enum ifaces_verdict verdict);

// Return the reason of a candidate's verdict as half a sentence.
const char *
ifaces_reason(const struct ifaces *ifaces, const struct netif_choice *choice, size_t judgement);

// Return the heaviest part of the score in which the chosen candidate beats the next best. Returns
// NULL with the rules nccl, which have no score, or if nothing is chosen.
const char *ifaces_deciding_part(const struct ifaces *ifaces, const struct netif_choice *choice);

// Return the list item or step that selected a candidate, or the text for a missing list; already
// escaped.
const char *ifaces_rule(const struct ifaces *ifaces, const struct netif_judgement *judgement);

// Return how many entries of choice->chosen are the answer: one with the rules tocsin.
size_t ifaces_answer_count(const struct ifaces *ifaces, const struct netif_choice *choice);

void ifaces_print(
	const struct ifaces *ifaces,
	const struct netif_table *table,
	const struct netif_choice *choice,
	bool explain
);
// Print the answer as JSON. Returns 0 or -ENOMEM.
int ifaces_print_json(
	const struct ifaces *ifaces,
	const struct netif_table *table,
	const struct netif_choice *choice,
	bool explain
);

// Print a line for each change until killed. Returns the exit status.
int ifaces_watch(const struct ifaces *ifaces);
