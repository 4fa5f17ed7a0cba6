// SPDX-License-Identifier: BSD-3-Clause
// PROBE node [count [bytes [microseconds between [times]]]]: timed RDMA reads of another node's
// page. With "times", the answer includes the time of each read, in order.
#include "client/answers.h"
#include "client/names.h"
#include "client/peer_list.h"
#include "client/server.h"

#include <dataplane/pulse.h>
#include <lib/histogram.h>
#include <lib/parse.h>
#include <lib/show.h>

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_TIMEOUT_NS (5 * RAS_NS_PER_SEC) // for the pair and the first read
#define READ_TIMEOUT_NS (2 * RAS_NS_PER_SEC)
#define DEFAULT_COUNT 100
#define DEFAULT_BYTES 8
#define INTERVAL_MAX_US 1000000
#define NUMBER_BYTES 24
#define FRAMES_BYTES 256 // overhead of a read in the byte limit
#define CAUSE_BYTES 192
#define TIMES_WORD "times"
#define TIMES_A_STEP 1024 // of up to 65,536 in total; about 8 KB and 100 us per step
#define SYNTAX "PROBE node [count [bytes [microseconds [" TIMES_WORD "]]]]"

static const uint32_t asked_percentiles[] = {500000, 900000, 990000, 999000};
#define PERCENTILES (sizeof(asked_percentiles) / sizeof(asked_percentiles[0]))

struct probe {
	struct fabric_ping *ping; // NULL: ended
	// a copy, because the server may have lost its fabric by the end
	const struct fabric_calls *calls;
	struct session *session;
	uint64_t peer;
	uint32_t bytes;
	// its latency and device are invalid after the callback; copies are below
	struct fabric_ping_result result;
	char device[DEVICE_NAME_MAX + 1];
	struct histogram_summary summary;
	uint64_t percentiles[PERCENTILES];
	uint32_t *times_ns; // time of each read; NULL: not requested
	uint32_t told;	    // entries of times_ns written so far
};

static void probe_drop(void *work) {
	struct probe *probe = work;

	if (probe->ping != NULL)
		probe->calls->ping_cancel(probe->ping);
	free(probe->times_ns);
	free(probe);
}

// Report the failure of the probe. Returns false if the probe succeeded.
static bool probe_failed(struct session *session, const struct probe *probe) {
	const struct fabric_ping_result *result = &probe->result;
	bool first = result->sent == 1 && result->outcome == OP_TIMED_OUT;
	char name[NAMES_TEXT_BYTES], text[PAIRING_TEXT_MAX + 1];
	char cause[CAUSE_BYTES], took[SHOW_BYTES];

	names_format_id(session_ras(session), probe->peer, name);
	names_sanitize_text(result->failure.text, strlen(result->failure.text), text, sizeof(text));
	if (result->err == -ENODEV) {
		session_fail(session, "%s offers no page to read", name);
	} else if (result->err != 0) {
		session_fail(
			session, "no pair with %s: %s%s%s", name,
			pairing_reason_name(result->failure.reason), text[0] != '\0' ? ": " : "",
			text
		);
	} else if (result->end == PROBE_NO_PATH) {
		session_fail(
			session, "the pair with %s was lost after %u of %u reads", name,
			result->answered, result->sent
		);
	} else if (result->end == PROBE_FAILED) {
		// The first read only had the time left after making the pair, so the message
		// includes the pair's time.
		op_cause_format(&result->cause, cause, sizeof(cause));
		show_duration(result->paired_ns, took);
		session_fail(
			session, "%s did not answer read %u: %s, %s%s%s", name, result->sent,
			op_outcome_name(result->outcome), cause,
			first ? "; making the pair took " : "", first ? took : ""
		);
	} else {
		return false;
	}
	return true;
}

static json_t *probe_json(const struct probe *probe, const char *name, const char *theirs) {
	const struct fabric_ping_result *result = &probe->result;
	return json_pack(
		"{s:o,s:s,s:s,s:b,s:i,s:i,s:i,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "node",
		safe_string_json(name), "device", probe->device, "peer_device", theirs,
		"in_process", result->in_process, "bytes", (int)probe->bytes, "sent",
		(int)result->sent, "answered", (int)result->answered, "paired_ns",
		(json_int_t)result->paired_ns, "min_ns", (json_int_t)probe->summary.min, "p50_ns",
		(json_int_t)probe->percentiles[0], "p90_ns", (json_int_t)probe->percentiles[1],
		"p99_ns", (json_int_t)probe->percentiles[2], "p999_ns",
		(json_int_t)probe->percentiles[3], "max_ns", (json_int_t)probe->summary.max,
		"mean_ns", (json_int_t)llround(probe->summary.mean), "took_ns",
		(json_int_t)result->took_ns
	);
}

// Write the next part of the times. A part takes one turn of the loop, after the client received
// the previous part.
static bool times_step(struct session *session) {
	struct probe *probe = session->work;
	uint32_t left = probe->result.answered - probe->told;
	uint32_t end = probe->told + (left < TIMES_A_STEP ? left : TIMES_A_STEP);

	for (; probe->told < end; probe->told++)
		text_print(
			&session->out, "%s%" PRIu32, probe->told > 0 ? "," : "",
			probe->times_ns[probe->told]
		);
	if (probe->told < probe->result.answered)
		return false;
	text_print(&session->out, "]}\n");
	return true;
}

static bool probe_step(struct session *session) {
	const struct probe *probe = session->work;
	const struct fabric_ping_result *result = &probe->result;
	char name[NAMES_TEXT_BYTES], theirs[DEVICE_NAME_MAX + 1];
	json_t *object;
	char *text;

	if (probe_failed(session, probe))
		return true;
	names_format_id(session_ras(session), probe->peer, name);
	names_sanitize_text(
		result->key.peer_device, strlen(result->key.peer_device), theirs, sizeof(theirs)
	);
	object = probe_json(probe, name, theirs);
	if (probe->times_ns == NULL) {
		session_json(session, object);
		return true;
	}

	// Write the object without its closing brace, and begin its last member.
	text = json_dumps(object, JSON_COMPACT);
	json_decref(object);
	if (text == NULL) {
		session_fail(session, "out of memory");
		return true;
	}
	text_print(&session->out, "%.*s,\"times_ns\":[", (int)strlen(text) - 1, text);
	free(text);
	session->step = times_step;
	return false;
}

static void on_end(void *ctx, const struct fabric_ping_result *result) {
	struct probe *probe = ctx;
	size_t size = result->answered * sizeof(*result->times_ns);

	probe->ping = NULL;
	probe->result = *result;
	snprintf(probe->device, sizeof(probe->device), "%s", result->device);
	if (result->latency != NULL) {
		histogram_summarize(result->latency, &probe->summary);
		histogram_percentiles(
			result->latency, asked_percentiles, PERCENTILES, probe->percentiles
		);
	}
	// The times are freed with the ping. Without memory for a copy, the answer omits the times.
	if (result->times_ns != NULL && result->err == 0 && result->end == PROBE_COMPLETE) {
		probe->times_ns = malloc(size);
		if (probe->times_ns != NULL)
			memcpy(probe->times_ns, result->times_ns, size);
	}
	session_continue(probe->session, probe_step);
}

// Parse the next word, if any, as a number. Returns false after an error message.
static bool parse_next_number(
	struct session *session,
	const char **rest,
	const char *what,
	uint64_t max,
	uint64_t *ret_number
) {
	char word[NUMBER_BYTES];
	struct parse_error error;

	if (**rest == '\0')
		return true;
	if (!command_word(rest, word, sizeof(word))) {
		session_fail(session, "%s must be a number of at most %" PRIu64, what, max);
		return false;
	}
	if (parse_u64(word, strlen(word), 0, max, &error, ret_number) == 0)
		return true;
	session_fail(session, "%s: %s", what, error.text);
	return false;
}

static bool
read_request(struct session *session, const char *rest, struct fabric_ping_request *ret_request) {
	uint64_t count = DEFAULT_COUNT, bytes = DEFAULT_BYTES, interval_us = 0;
	struct fabric_ping_request request = {.timeout_ns = READ_TIMEOUT_NS};
	char word[NUMBER_BYTES];
	struct ras_peer peer;

	if (!names_parse_next(session, &rest, &peer) ||
	    !parse_next_number(session, &rest, "count", FABRIC_PING_COUNT_MAX, &count) ||
	    !parse_next_number(session, &rest, "bytes", PULSE_BYTES, &bytes) ||
	    !parse_next_number(session, &rest, "microseconds", INTERVAL_MAX_US, &interval_us))
		return false;
	request.keeps_times = *rest != '\0';
	if (request.keeps_times && (!command_word(&rest, word, sizeof(word)) ||
				    strcmp(word, TIMES_WORD) != 0 || *rest != '\0')) {
		session_fail(session, "usage: " SYNTAX);
		return false;
	}
	if (request.keeps_times && count > FABRIC_PING_TIMES_MAX) {
		session_fail(
			session, TIMES_WORD " can be listed for at most %u reads",
			FABRIC_PING_TIMES_MAX
		);
		return false;
	}
	request.peer = peer.record->id;
	request.count = (uint32_t)count;
	request.bytes = (uint32_t)bytes;
	request.interval_ns = interval_us * 1000;
	request.deadline_ns = overlay_now_ns(session->server->overlay) +
			      session_timeout_ns(session, FIRST_TIMEOUT_NS);
	*ret_request = request;
	return true;
}

void answer_probe(struct session *session, const char *rest) {
	const struct client_server *server = session->server;
	struct fabric_ping_request request;
	char name[NAMES_TEXT_BYTES];
	struct probe *probe;
	int err = -ENODEV;

	if (!read_request(session, rest, &request) || !session_charge_question(session) ||
	    !session_charge_read(session, request.count * (uint64_t)(request.bytes + FRAMES_BYTES)))
		return;
	probe = calloc(1, sizeof(*probe));
	if (!session_begin(session, NULL, probe_drop, probe))
		return;
	probe->calls = server->fabric_calls;
	probe->session = session;
	probe->peer = request.peer;
	probe->bytes = request.bytes;
	if (server->fabric != NULL)
		err = server->fabric_calls->ping_start(
			server->fabric, &request, on_end, probe, &probe->ping
		);
	if (err == 0)
		return;
	probe->ping = NULL;
	session_end(session);
	names_format_id(session_ras(session), request.peer, name);
	if (err == -EHOSTDOWN)
		session_fail(
			session, "%s is dead or has left, `tocsin why %s` tells more", name, name
		);
	else if (err == -ENODEV)
		session_fail(
			session, "no pair with %s: this node or %s has no RDMA device", name, name
		);
	else if (err == -EINVAL)
		session_fail(session, "count and bytes must be at least 1");
	else if (err == -EAGAIN)
		session_fail(session, "too many probes are under way, try again");
	else
		session_fail(session, "%s: %s", name, strerrordesc_np(-err));
}
