// SPDX-License-Identifier: BSD-3-Clause
// Questions to an agent.
#include "run/agent_ask.h"

#include "run/channel.h"

#include <lib/clock.h>
#include <lib/deadline.h>
#include <lib/histogram.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#define ANSWER_S 60u	      // timeout of a question, without its reads
#define READS_PER_SECOND 300u // rate of a slow path that still works
// Default timeout in seconds of an answer of another node, besides its reads. A TIMEOUT line also
// lengthens the timeout of the first read, which is 5 s otherwise. So the line is sent only for
// many reads.
#define NODE_ANSWER_S 15u
#define FEW_READS_MAX 2000u
#define SECOND_NS UINT64_C(1000000000)
#define QUESTION_BYTES 512
#define RETRY_SUFFIX "try again"
#define RETRY_PAUSE_MS 100
#define RETRY_NS UINT64_C(30000000000)
#define OLD_SYNTAX "PROBE node [count [bytes [microseconds]]]"

// Copy the reason of a failed question.
static int fail_asking(const struct agent *agent, int err, struct lab_why *why) {
	if (err == -EREMOTEIO)
		return lab_fail(why, err, "the agent says: %s", agent->contact.why);
	return err == 0 ? 0 : lab_fail(why, err, "%s", agent->contact.why);
}

int agent_open(struct agent *agent, const char *path, int signal_fd, struct lab_why *why) {
	struct sockaddr_un *local = NULL;

	if (path == NULL)
		path = getenv("TOCSIN_SOCKET"); // NOLINT(concurrency-mt-unsafe): nobody sets it
	agent->target = (struct contact_target){.path = path, .local = true};
	contact_init(&agent->contact, &agent->target);
	// A path that is cut short would name another socket.
	if (path != NULL && (path[0] == '\0' || strlen(path) >= sizeof(local->sun_path)))
		return lab_fail(
			why, -EINVAL,
			"$TOCSIN_SOCKET: the socket path %.40s must have 1 to %zu bytes", path,
			sizeof(local->sun_path) - 1
		);
	agent->contact.watched[0] = signal_fd;
	agent->contact.silent = true;
	agent->contact.answer_ns = ANSWER_S * SECOND_NS;
	return fail_asking(agent, contact_open(&agent->contact, true), why);
}

void agent_close(struct agent *agent) {
	contact_fini(&agent->contact);
}

int agent_ask(struct agent *agent, const char *question, json_t **ret_answer, struct lab_why *why) {
	return fail_asking(agent, contact_json(&agent->contact, question, ret_answer), why);
}

bool agent_name_is_word(const char *name) {
	size_t length = 0;

	for (; name[length] != '\0'; length++) {
		if ((unsigned char)name[length] <= ' ' || name[length] == '\x7f')
			return false;
	}
	return length > 0 && length < AGENT_NAME_BYTES;
}

static void
answer_read_text(const json_t *answer, const char *key, char text[static AGENT_NAME_BYTES]) {
	const char *value = json_string_value(json_object_get(answer, key));

	snprintf(text, AGENT_NAME_BYTES, "%s", value != NULL ? value : "");
	lab_sanitize(text);
}

static bool json_read_ns(const json_t *value, uint64_t *ret_ns) {
	json_int_t ns = json_integer_value(value);

	if (!json_is_integer(value) || ns < 0 || (uint64_t)ns > HISTOGRAM_VALUE_MAX)
		return false;
	*ret_ns = (uint64_t)ns;
	return true;
}

// Reject an entry that is no valid time: it was not measured, and must not count as a fast read.
static int answer_read_times(const json_t *answer, struct agent_reads *reads, struct lab_why *why) {
	const json_t *times = json_object_get(answer, "times_ns");

	if (json_array_size(times) != reads->count)
		return lab_fail(
			why, -EPROTO, "the agent returned %zu times for %u reads",
			json_array_size(times), reads->count
		);
	reads->times_ns = calloc(reads->count, sizeof(*reads->times_ns));
	if (reads->times_ns == NULL)
		return lab_fail(why, -ENOMEM, "no memory for samples");
	for (uint32_t n = 0; n < reads->count; n++) {
		if (!json_read_ns(json_array_get(times, n), &reads->times_ns[n]))
			return lab_fail(
				why, -EPROTO, "the agent's times_ns[%u] is not a valid time", n
			);
	}
	if (!json_read_ns(json_object_get(answer, "took_ns"), &reads->took_ns))
		return lab_fail(why, -EPROTO, "the agent's took_ns is not a valid time");
	return 0;
}

// Return true if the agent refuses only for now: it limits questions per second and concurrent
// runs.
static bool error_is_temporary(const struct lab_why *said) {
	size_t length = strlen(said->text), words = strlen(RETRY_SUFFIX);

	return length >= words && strcmp(said->text + length - words, RETRY_SUFFIX) == 0;
}

static int ask_with_retries(
	struct agent *agent, const char *question, json_t **ret_answer, struct lab_why *why
) {
	struct deadline deadline = deadline_after(clock_monotonic_ns(), RETRY_NS);

	for (;;) {
		struct lab_why said = {.text = ""};
		int err = agent_ask(agent, question, ret_answer, &said);

		if (err == -EREMOTEIO && error_is_temporary(&said) &&
		    !deadline_expired(deadline, clock_monotonic_ns())) {
			if (channel_pause(agent->contact.watched[0], RETRY_PAUSE_MS) == 0)
				continue;
			return lab_fail(why, -EINTR, "interrupted");
		}
		return err == 0 ? 0 : lab_fail(why, err, "%s", said.text);
	}
}

int agent_read(struct agent *agent, struct agent_reads *reads, struct lab_why *why) {
	struct lab_why said = {.text = ""};
	char question[QUESTION_BYTES];
	json_t *answer = NULL;
	int err = 0;

	// Set the timeouts to the time that this number of reads may take.
	agent->contact.answer_ns = (ANSWER_S + reads->count / READS_PER_SECOND) * SECOND_NS;
	agent->target.node = reads->from;
	if (reads->from != NULL && reads->count > FEW_READS_MAX)
		err = contact_set_timeout(
			&agent->contact, NODE_ANSWER_S + reads->count / READS_PER_SECOND
		);
	if (err != 0)
		return fail_asking(agent, err, why);
	snprintf(
		question, sizeof(question), "PROBE %s %u %" PRIu64 " 0 times", reads->to,
		reads->count, reads->bytes
	);
	err = ask_with_retries(agent, question, &answer, &said);
	if (err == -EREMOTEIO && strstr(said.text, OLD_SYNTAX) != NULL)
		return lab_fail(
			why, -EPROTO,
			"%s: its agent is of an older version, which does not report the time of "
			"each read: upgrade the agent",
			reads->from != NULL ? reads->from : "this node"
		);
	if (err != 0)
		return lab_fail(why, err, "%s", said.text);
	answer_read_text(answer, "device", reads->device);
	answer_read_text(answer, "peer_device", reads->peer_device);
	reads->in_process = json_is_true(json_object_get(answer, "in_process"));
	err = answer_read_times(answer, reads, why);
	json_decref(answer);
	return err;
}
