// SPDX-License-Identifier: BSD-3-Clause
// The parts of `tocsin ifaces`.
#pragma once

#include <lib/netif/choice.h>
#include <lib/netif/nccl.h>
#include <lib/netif/source.h>
#include <lib/netif/tocsin.h>

#include <stdbool.h>

#define IFACES_SETTINGS 3

// The question: which rules, with which settings.
struct ifaces {
	bool is_nccl;
	struct netif_nccl_settings nccl;
	struct netif_policy policy;
	struct netif_query query; // borrows from policy
};

// One setting as it is shown.
struct ifaces_setting {
	const char *name;
	const char *value;  // NULL: not set
	const char *source; // "option", "environment" or "default"
};

void ifaces_settings(
	const struct ifaces *ifaces, struct ifaces_setting settings[static IFACES_SETTINGS]
);

// Gathers and chooses. 0; -ENOENT with a sentence when a setting names nothing that exists; or
// another -errno with a sentence.
int ifaces_decide(
	const struct ifaces *ifaces,
	struct netif_table **ret_table,
	struct netif_choice **ret_choice,
	struct netif_error *error
);

// The label of a candidate's address, if it is not its link's name (eth0:1), else NULL. NCCL takes
// it for the interface.
const char *ifaces_alias(const struct netif_table *table, const struct netif_judgement *judgement);

enum ifaces_verdict {
	IFACES_CHOSEN,
	IFACES_QUALIFIED, // would have done, but others came before it
	IFACES_DROPPED,
};
enum ifaces_verdict
ifaces_verdict(const struct ifaces *ifaces, const struct netif_choice *choice, size_t judgement);
const char *ifaces_verdict_word(enum ifaces_verdict verdict);

// Why it has its verdict, half a sentence.
const char *
ifaces_reason(const struct ifaces *ifaces, const struct netif_choice *choice, size_t judgement);

// What sets the chosen one before the next best: the heaviest part of the score in which they
// differ. NULL with the rules nccl, which have no score, and when nothing is chosen.
const char *ifaces_decider(const struct ifaces *ifaces, const struct netif_choice *choice);

// Which item or step took it, or what stands for "no list was given"; escaped already.
const char *ifaces_rule(const struct ifaces *ifaces, const struct netif_judgement *judgement);

// How many of choice->chosen are the answer: with the rules tocsin one.
size_t ifaces_answer_count(const struct ifaces *ifaces, const struct netif_choice *choice);

void ifaces_print(
	const struct ifaces *ifaces,
	const struct netif_table *table,
	const struct netif_choice *choice,
	bool explain
);
// Returns 0 or -ENOMEM.
int ifaces_print_json(
	const struct ifaces *ifaces,
	const struct netif_table *table,
	const struct netif_choice *choice,
	bool explain
);

// Prints a line for each change until killed. Returns the exit status.
int ifaces_watch(const struct ifaces *ifaces);
