// SPDX-License-Identifier: BSD-3-Clause
// One connection to an agent, over which questions of the client protocol are put one by one.
//
// Everything has a deadline. Connecting: a refused one is tried four times within a second, since
// an agent may be starting; each try has three seconds. An answer: as the target says.
//
// What the functions below return beside 0:
//	-EREMOTEIO	the agent answered, and the answer is no
//	-EINTR		one of the watched descriptors can be read
//	else		no agent answered: not there, too late, broke off, or no agent at all
// and why is then in contact->why, one sentence fit for a terminal. After anything but -EREMOTEIO
// the connection is of no more use.
#pragma once

#include "target.h"

#include <jansson.h>

#define CONTACT_WHY_BYTES 640
#define CONTACT_WATCHED_MAX 2
#define CONTACT_ANSWER_BYTES_MAX ((size_t)64 << 20) // of one line, or of what ends with the stream

struct contact {
	const struct target *target;
	int fd;
	int watched[CONTACT_WATCHED_MAX]; // -1: none
	char *data;
	size_t begin, end, capacity;
	uint64_t answer_ns; // how long an answer may take; may be changed before a question
	uint64_t due_ns;
	uint32_t protocol; // the agent's
	bool whole;	   // tables in text are to be whole, not cut to a terminal's width
	bool silent;	   // nothing is said on stderr while it waits
	uint64_t hint_ns;  // when that it waits is to be said; UINT64_MAX: it was
	char place[256];
	char why[CONTACT_WHY_BYTES];
};

// The target outlives it.
void contact_init(struct contact *contact, const struct target *target);
void contact_fini(struct contact *contact);

// Connects (anew) and sets the format.
int contact_open(struct contact *contact, bool json);

// Puts a question, to the target's node if it has one.
int contact_ask(struct contact *contact, const char *question);
// All that comes until the agent ends the connection, as the reports of NCCL do.
int contact_rest(struct contact *contact, const char **ret_text);

// Asks, and reads the whole answer. The caller's to put.
int contact_json(struct contact *contact, const char *question, json_t **ret_answer);
