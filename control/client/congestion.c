// SPDX-License-Identifier: BSD-3-Clause
// Writes what a port counted of congestion as JSON and text for clients.
#include "client/congestion.h"

#include "client/event_text.h"
#include "client/names.h"
#include "client/server.h"

#include <control/congestion.h>

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define RATE_SHOWN_MAX 1e12

static json_t *count_json(const struct congestion_port *port, uint32_t kind) {
	uint64_t total = port->totals[kind], rate = port->milli_per_s[kind];

	return json_pack(
		"{s:I,s:o}", "total", (json_int_t)(total < INT64_MAX ? total : INT64_MAX), "per_s",
		rate != CONGESTION_UNKNOWN ? json_real((double)rate / 1000) : json_null()
	);
}

static json_t *share_json(uint32_t permille) {
	return permille != UINT32_MAX ? json_real(permille / 1000.0) : json_null();
}

static json_t *port_json(const struct congestion_port *port) {
	json_t *counts = json_object();

	for (uint32_t kind = 0; kind < CONGESTION_KIND_COUNT; kind++) {
		if (port->totals[kind] != CONGESTION_UNKNOWN)
			json_object_set_new(
				counts, congestion_name((enum congestion_kind)kind),
				count_json(port, kind)
			);
	}
	return json_pack(
		"{s:s,s:i,s:o,s:o,s:o}", "device", port->device, "port", (int)port->number,
		"counts", counts, "paused_sent", share_json(port->sent_permille), "paused_received",
		share_json(port->received_permille)
	);
}

json_t *congestion_json(const struct session *session, const char *device) {
	const struct checks *checks = session->server->checks;
	const struct congestion_port *ports = NULL;
	uint32_t count = checks != NULL ? checks_congestion(checks, &ports) : 0;
	json_t *array = json_array();

	for (uint32_t n = 0; n < count; n++) {
		if (device == NULL || congestion_is_of(&ports[n], device))
			json_array_append_new(array, port_json(&ports[n]));
	}
	return array;
}

static enum congestion_level level_of(const struct session *session, const char *device) {
	const struct checks *checks = session->server->checks;
	const struct congestion_port *ports = NULL;
	uint32_t count = checks != NULL ? checks_congestion(checks, &ports) : 0;

	for (uint32_t n = 0; n < count; n++) {
		if (congestion_is_of(&ports[n], device))
			return congestion_level(&ports[n]);
	}
	return CONGESTION_NOT_COUNTED;
}

const char congestion_legend[] =
	"^ the device here counts congestion now, ! it sends pauses most of the time: tocsin why\n";

const char *congestion_mark(const struct session *session, const char *device) {
	static const char *const marks[CONGESTION_LEVEL_COUNT] = {
		[CONGESTION_NOT_COUNTED] = "",
		[CONGESTION_QUIET] = "",
		[CONGESTION_MOVES] = "^",
		[CONGESTION_STORM] = "!",
	};

	return marks[level_of(session, device)];
}

const char *congestion_word(const struct session *session, const char *device) {
	return congestion_level_name(level_of(session, device));
}

// 0 for what is missing, of another type, or no number that can be.
static double number_of(const json_t *object, const char *key) {
	const json_t *value = json_object_get(object, key);
	double number = json_is_number(value) ? json_number_value(value) : 0;

	return isfinite(number) && number > 0 && number <= RATE_SHOWN_MAX ? number : 0;
}

__attribute__((format(printf, 2, 3))) static void
add(char words[static CONGESTION_WORDS_BYTES], const char *format, ...) {
	size_t used = strlen(words);
	va_list arguments;

	used += (size_t
	)snprintf(words + used, CONGESTION_WORDS_BYTES - used, "%s", used > 0 ? ", " : "");
	if (used >= CONGESTION_WORDS_BYTES)
		return;
	va_start(arguments, format);
	vsnprintf(words + used, CONGESTION_WORDS_BYTES - used, format, arguments);
	va_end(arguments);
}

void congestion_words(const json_t *port, char words[static CONGESTION_WORDS_BYTES]) {
	const json_t *counts = json_object_get(port, "counts");
	double sent = number_of(port, "paused_sent"), received = number_of(port, "paused_received");

	words[0] = '\0';
	for (uint32_t kind = 0; kind < CONGESTION_KIND_COUNT; kind++) {
		const char *name = congestion_name((enum congestion_kind)kind);
		double rate = number_of(json_object_get(counts, name), "per_s");

		if (rate > 0)
			add(words, "%s %.1f/s", name, rate);
	}
	if (received > 0 && received <= 1)
		add(words, "paused by its switch %.1f %% of the time", received * 100);
	if (sent > 0 && sent <= 1)
		add(words, "pauses its switch %.1f %% of the time", sent * 100);
	if (words[0] == '\0')
		add(words, "none counted of late");
}

void why_say_congestion(struct session *session) {
	json_t *ports = congestion_json(session, NULL);
	char words[CONGESTION_WORDS_BYTES], line[CONGESTION_WORDS_BYTES + CHECKS_NAME_MAX + 16];
	const json_t *port;
	size_t n;

	if (json_array_size(ports) > 0)
		text_print(&session->out, "\nCongestion at the ports of the node you ask\n");
	json_array_foreach(ports, n, port) {
		congestion_words(port, words);
		snprintf(
			line, sizeof(line), "%s port %d: %s",
			json_string_value(json_object_get(port, "device")),
			(int)json_integer_value(json_object_get(port, "port")), words
		);
		event_text_wrap(session, 2, 4, line);
	}
	json_decref(ports);
}

void why_put_congestion(const struct session *session, json_t *object) {
	json_object_set_new(object, "congestion", congestion_json(session, NULL));
}
