// SPDX-License-Identifier: BSD-3-Clause
// Shows the answers of COMMS and of WHY for a job or communicator: a table of communicators, and
// communicators with their ranks.
#include "show/answers.h"

#include <records/communicators.h>
#include <records/ranks.h>

#include <inttypes.h>
#include <string.h>

#define KEY_BYTES 256

// Return whether the finding names a cause or a mismatch, not only a state.
static bool is_told(const json_t *finding) {
	const char *cause = fact_word(finding, "cause");

	return (cause[0] != '\0' && strcmp(cause, "none") != 0) || fact_known(finding, "mismatch");
}

// Answer of COMMS.

static void print_finding(struct page *page, const json_t *comm) {
	const json_t *finding = json_object_get(comm, "finding");

	if (is_told(finding))
		page_wrap(page, 2, 4, fact_word(finding, "sentence"));
}

static void print_comms(struct page *page, const json_t *answer, const json_t *rows) {
	const json_t *comms = json_object_get(answer, "communicators");
	size_t count = json_array_size(comms);

	page_print(
		page, "%zu communicator%s, from %" PRIu64 " of %" PRIu64 " agents in %.3f s\n",
		count, count == 1 ? "" : "s", fact_number(answer, "answered"),
		fact_number(answer, "members"), page_answer_seconds(answer)
	);
	if (fact_number(answer, "left_out") > 0)
		page_print(
			page, "%" PRIu64 " rows could not be read and are left out\n",
			fact_number(answer, "left_out")
		);
	if (count == 0)
		return;
	page_print(page, "\n");
	page_table(page, &communicator_record, rows, print_finding);
}

// Write the job of an ended communicator. Without a job, write the process that ended first.
static void job_key(const json_t *comm, char key[static KEY_BYTES]) {
	const json_t *late =
		json_array_get(json_object_get(json_object_get(comm, "finding"), "late"), 0);
	const char *job = fact_word(comm, "job");

	if (job[0] != '\0' || late == NULL)
		snprintf(key, KEY_BYTES, "%s", job);
	else
		snprintf(
			key, KEY_BYTES, "%s %" PRIu64, fact_word(late, "node"),
			fact_number(late, "pid")
		);
}

// Return the communicators without those that have ended, except the first of each job. The caller
// owns the array.
static json_t *summarize_ended(const json_t *comms) {
	json_t *shown = json_array(), *jobs = json_object(), *comm;
	char key[KEY_BYTES];
	size_t n;

	json_array_foreach(comms, n, comm) {
		if (strcmp(fact_word(json_object_get(comm, "finding"), "state"), "ended") == 0) {
			job_key(comm, key);
			if (json_object_get(jobs, key) != NULL)
				continue;
			json_object_set_new(jobs, key, json_true());
		}
		json_array_append(shown, comm);
	}
	json_decref(jobs);
	return shown;
}

void show_comms(struct page *page, const json_t *answer) {
	const json_t *comms = json_object_get(answer, "communicators");
	json_t *shown = summarize_ended(comms);
	size_t hidden = json_array_size(comms) - json_array_size(shown);

	print_comms(page, answer, shown);
	if (hidden > 0)
		page_print(
			page, "\n%zu more %s ended (--all lists them)\n", hidden,
			hidden == 1 ? "has" : "have"
		);
	json_decref(shown);
}

void show_all_comms(struct page *page, const json_t *answer) {
	print_comms(page, answer, json_object_get(answer, "communicators"));
}

// Answer of WHY.

static void print_comm_story(struct page *page, const json_t *comm) {
	const json_t *finding = json_object_get(comm, "finding"),
		     *ranks = json_object_get(comm, "ranks");
	const char *job = fact_word(comm, "job"), *cause = fact_word(finding, "cause");
	bool caused = cause[0] != '\0' && strcmp(cause, "none") != 0;
	uint64_t count = fact_number(comm, "ranks_count");
	size_t shown = json_array_size(ranks);
	char hash[SHOW_BYTES];

	show_communicator_hash(comm, hash);
	page_print(
		page, "\nCommunicator %s%s%s, %" PRIu64 " of %" PRIu64 " ranks: %s%s%s%s\n", hash,
		job[0] != '\0' ? " of job " : "", job, count, fact_number(comm, "size"),
		fact_name(finding, "state"), caused ? " (" : "", caused ? cause : "",
		caused ? ")" : ""
	);
	page_wrap(page, 2, 4, fact_word(finding, "sentence"));
	page_print(page, "\n");
	page_table(page, &rank_record, ranks, NULL);
	if (shown < count)
		page_print(
			page, "and %" PRIu64 " more ranks that are equally far or further\n",
			count - shown
		);
}

// Print communicators with their ranks. A communicator of a job is left out if its finding names no
// cause and no mismatch, unless it is the only one.
void show_why_comms(struct page *page, const json_t *answer) {
	const json_t *comms = json_object_get(answer, "communicators"), *comm;
	uint64_t count =
		fact_known(answer, "count") ? fact_number(answer, "count") : json_array_size(comms);
	uint64_t told = 0;
	size_t n;

	page_print(page, "%" PRIu64 " communicator%s", count, count == 1 ? "" : "s");
	if (fact_known(answer, "members"))
		page_print(
			page, ", from %" PRIu64 " of %" PRIu64 " agents",
			fact_number(answer, "answered"), fact_number(answer, "members")
		);
	page_print(page, "\n");
	json_array_foreach(comms, n, comm) {
		if (count > 1 && !is_told(json_object_get(comm, "finding")) &&
		    fact_word(comm, "job")[0] != '\0')
			continue;
		told++;
		print_comm_story(page, comm);
	}
	if (told == 0)
		page_print(page, "\nNo communicator waits.\n");
	else if (told < count)
		page_print(page, "\n%" PRIu64 " more are in `tocsin comms`.\n", count - told);
}
