// SPDX-License-Identifier: BSD-3-Clause
// Connection to an agent: questions and answers.
#include "run/agent_ask.h"

#include "run/channel.h"

#include <lib/clock.h>
#include <lib/deadline.h>
#include <lib/error.h>
#include <lib/histogram.h>
#include <lib/stream.h>

#include <jansson.h>

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>
#include <unistd.h>

#define CONNECT_NS UINT64_C(3000000000)
#define ANSWER_S 60u	      // timeout of a question, without its reads
#define READS_PER_SECOND 300u // rate of a slow path that still works
// Default timeout in seconds of an answer of another node, besides its reads. A TIMEOUT line also
// lengthens the timeout of the first read, which is 5 s otherwise. So the line is sent only for
// many reads.
#define NODE_ANSWER_S 15u
#define FEW_READS_MAX 2000u
#define SECOND_NS UINT64_C(1000000000)
#define ANSWER_BYTES_MAX ((size_t)16 << 20)
#define QUESTION_BYTES 512
#define READ_BYTES ((size_t)65536)
#define RETRY_SUFFIX "try again"
#define RETRY_PAUSE_MS 100
#define RETRY_NS UINT64_C(30000000000)
#define OLD_SYNTAX "PROBE node [count [bytes [microseconds]]]"

// Find the path of the agent's socket. A path that does not fit is rejected: cut short, it would
// name another socket.
static int
agent_socket_find(const char *path, struct sockaddr_un *ret_address, struct lab_why *why) {
	// NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it
	const char *named = getenv("TOCSIN_SOCKET");
	// NOLINTNEXTLINE(concurrency-mt-unsafe): nobody sets it
	const char *runtime = geteuid() == 0 ? NULL : getenv("XDG_RUNTIME_DIR");
	char *place = ret_address->sun_path;

	*ret_address = (struct sockaddr_un){.sun_family = AF_UNIX};
	if (path == NULL)
		path = named;
	if (path == NULL && runtime != NULL) {
		snprintf(place, sizeof(ret_address->sun_path), "%s/tocsin/tocsind.sock", runtime);
		if (access(place, F_OK) == 0)
			return 0;
	}
	if (path == NULL)
		path = AGENT_SOCKET;
	if (path[0] == '\0' || strlen(path) >= sizeof(ret_address->sun_path))
		return lab_fail(
			why, -EINVAL,
			"$TOCSIN_SOCKET: the socket path %.40s must have 1 to %zu bytes", path,
			sizeof(ret_address->sun_path) - 1
		);
	snprintf(place, sizeof(ret_address->sun_path), "%s", path);
	return 0;
}

static int fail_connection_lost(struct lab_why *why, int err) {
	return lab_fail(
		why, err != 0 ? err : -ENODATA, "the agent ended the connection: %s",
		err != 0 ? strerrordesc_np(-err) : "the agent may have died"
	);
}

// Wait for bytes from the agent or for an interrupt.
static int await_answer(const struct agent *agent, struct deadline deadline, struct lab_why *why) {
	struct pollfd polled[2] = {
		{.fd = agent->fd, .events = POLLIN}, {.fd = agent->signal_fd, .events = POLLIN}};
	int count;

	do
		count = poll(polled, 2, deadline_poll_timeout_ms(deadline, clock_monotonic_ns()));
	while (count < 0 && errno == EINTR);
	if (polled[1].revents != 0)
		return lab_fail(why, -EINTR, "interrupted");
	if (count == 0)
		return lab_fail(
			why, -ETIMEDOUT, "the agent did not answer within %u s",
			agent->answer_timeout_s
		);
	return 0;
}

// Read one line and terminate it in place. Bytes behind the newline belong to no question and are
// dropped.
static int read_line(struct agent *agent, struct lab_why *why) {
	struct deadline deadline =
		deadline_after(clock_monotonic_ns(), agent->answer_timeout_s * SECOND_NS);
	char *end = NULL;
	int err = 0;

	agent->used = 0;
	while (err == 0 && end == NULL) {
		ssize_t size;

		if (agent->capacity - agent->used <= READ_BYTES) {
			size_t capacity = 2 * agent->capacity + 2 * READ_BYTES;
			char *grown;

			if (agent->capacity >= ANSWER_BYTES_MAX)
				return lab_fail(why, -EMSGSIZE, "the agent's answer is too long");
			grown = realloc(agent->data, capacity);
			if (grown == NULL)
				return lab_fail(why, -ENOMEM, "no memory for an answer");
			agent->data = grown;
			agent->capacity = capacity;
		}
		size = stream_receive(agent->fd, agent->data + agent->used, READ_BYTES);
		if (size == -EAGAIN)
			err = await_answer(agent, deadline, why);
		else if (size <= 0)
			err = fail_connection_lost(why, (int)size);
		if (size <= 0)
			continue;
		end = memchr(agent->data + agent->used, '\n', (size_t)size);
		agent->used += (size_t)size;
	}
	if (err == 0)
		*end = '\0';
	return err;
}

static int send_line(const struct agent *agent, const char *line, struct lab_why *why) {
	int err = stream_send_all(
		agent->fd, line, strlen(line), deadline_after(clock_monotonic_ns(), CONNECT_NS)
	);

	return err == 0 ? 0 : fail_connection_lost(why, err);
}

// Send a line and check that its answer begins with the expected text.
static int
send_setting(struct agent *agent, const char *line, const char *answer, struct lab_why *why) {
	int err = send_line(agent, line, why);

	if (err == 0)
		err = read_line(agent, why);
	if (err == 0 && strncmp(agent->data, answer, strlen(answer)) != 0)
		err = lab_fail(
			why, -EPROTO,
			"the program that listens on %s is not an agent: it answered %.80s",
			agent->path, agent->data
		);
	return err;
}

int agent_open(const char *path, int signal_fd, struct agent *ret_agent, struct lab_why *why) {
	// A server with another greeting is no agent.
	static const struct {
		const char *line, *answer;
	} greetings[] = {
		{"CLIENT PROTOCOL 2\n", "SERVER PROTOCOL "},
		{"SET FORMAT json\n", "OK"},
	};
	struct agent agent = {
		.fd = -1,
		.path = path,
		.signal_fd = signal_fd,
		.answer_timeout_s = ANSWER_S,
	};
	struct sockaddr_un address;
	int err = agent_socket_find(path, &address, why);

	if (err != 0)
		return err;
	if (path == NULL)
		agent.path = "the agent's socket";
	agent.fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (agent.fd < 0)
		return lab_fail(
			why, neg_errno(), "cannot open a socket: %s", strerrordesc_np(errno)
		);
	err = stream_connect_until(
		agent.fd, (const struct sockaddr *)&address, sizeof(address),
		deadline_after(clock_monotonic_ns(), CONNECT_NS)
	);
	if (err != 0)
		(void)lab_fail(
			why, err, "no agent answers on %s: %s%s", address.sun_path,
			strerrordesc_np(-err),
			err == -ENOENT || err == -ECONNREFUSED ? "; is tocsind running?" : ""
		);
	for (size_t n = 0; n < sizeof(greetings) / sizeof(greetings[0]) && err == 0; n++)
		err = send_setting(&agent, greetings[n].line, greetings[n].answer, why);
	if (err != 0) {
		agent_close(&agent);
		return err;
	}
	*ret_agent = agent;
	return 0;
}

void agent_close(struct agent *agent) {
	if (agent->fd >= 0)
		close(agent->fd);
	free(agent->data);
	agent->fd = -1;
	agent->data = NULL;
	agent->used = agent->capacity = 0;
}

int agent_ask(struct agent *agent, const char *question, json_t **ret_answer, struct lab_why *why) {
	const char *words;
	json_t *answer;
	int err = send_line(agent, question, why);

	if (err == 0)
		err = read_line(agent, why);
	if (err != 0)
		return err;
	answer = json_loads(agent->data, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(answer)) {
		json_decref(answer);
		// A remote agent's answer that breaks off arrives as half a line.
		return lab_fail(why, -EPROTO, "the agent's answer is incomplete or malformed");
	}
	words = json_string_value(json_object_get(answer, "error"));
	if (words != NULL) {
		err = lab_fail(why, -EREMOTEIO, "the agent says: %.300s", words);
		json_decref(answer);
		return err;
	}
	*ret_answer = answer;
	return 0;
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
			if (channel_pause(agent->signal_fd, RETRY_PAUSE_MS) == 0)
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
	agent->answer_timeout_s = ANSWER_S + reads->count / READS_PER_SECOND;
	if (reads->from != NULL && reads->count > FEW_READS_MAX) {
		snprintf(
			question, sizeof(question), "TIMEOUT %u\n",
			NODE_ANSWER_S + reads->count / READS_PER_SECOND
		);
		err = send_setting(agent, question, "OK", why);
	}
	if (err != 0)
		return err;
	snprintf(
		question, sizeof(question), "%s%s%sPROBE %s %u %" PRIu64 " 0 times\n",
		reads->from != NULL ? "NODE " : "", reads->from != NULL ? reads->from : "",
		reads->from != NULL ? " " : "", reads->to, reads->count, reads->bytes
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
