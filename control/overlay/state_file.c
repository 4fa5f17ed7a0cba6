// SPDX-License-Identifier: BSD-3-Clause
// Replaces and reads single files of the state directory, and converts the lines of the journal.
#include "overlay/state_file.h"

#include <lib/error.h>
#include <lib/moment.h>
#include <lib/must.h>
#include <lib/parse.h>
#include <lib/scoped.h>
#include <lib/show.h>
#include <lib/stream.h>
#include <verdict/verdict.h>

#include <jansson.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int state_file_replace(int directory, const char *name, const char *text) {
	size_t left = strlen(text);
	char fresh[64];
	int err = 0;

	must((size_t)snprintf(fresh, sizeof(fresh), "%s.new", name) < sizeof(fresh));
	{
		scoped_fd int fd =
			openat(directory, fresh,
			       O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);

		if (fd < 0)
			return neg_errno();
		while (err == 0 && left > 0) {
			ssize_t written = write(fd, text, left);

			if (written < 0 && errno != EINTR)
				err = neg_errno();
			text += written > 0 ? written : 0;
			left -= written > 0 ? (size_t)written : 0;
		}
		// The new file must be on the disk before it replaces the old one. Otherwise a
		// crash may lose both.
		if (err == 0 && fsync(fd) != 0)
			err = neg_errno();
	}
	if (err == 0 && renameat(directory, fresh, directory, name) != 0)
		err = neg_errno();
	if (err != 0)
		unlinkat(directory, fresh, 0);
	return err;
}

int state_file_read(int directory, const char *name, char *text, size_t size) {
	scoped_fd int fd = openat(directory, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
	size_t used = 0;
	ssize_t got;

	if (fd < 0)
		return neg_errno();
	while (used < size && (got = read(fd, text + used, size - used)) != 0) {
		if (got < 0 && errno != EINTR)
			return neg_errno();
		used += got > 0 ? (size_t)got : 0;
	}
	if (used == size)
		return -EMSGSIZE;
	text[used] = '\0';
	return 0;
}

int state_line_format(const struct state_event *event, char *line, size_t size) {
	const struct ras_event *what = &event->event;
	json_t *observers = json_array();
	char peer[17], id[17], when[SHOW_BYTES];
	json_t *object;
	size_t used;

	// Ids are hexadecimal text, because JSON readers keep only 53 bits of a number.
	for (uint32_t n = 0; n < what->observer_count; n++) {
		snprintf(id, sizeof(id), "%016" PRIx64, what->observers[n]);
		json_array_append_new(observers, json_string(id));
	}
	snprintf(peer, sizeof(peer), "%016" PRIx64, what->peer);
	show_time(event->realtime_ns, when);
	object = json_pack(
		"{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:o}", "time", when, "event",
		ras_event_name(what->kind), "node", what->name, "node_id", peer, "cause",
		ras_cause_name(what->cause), "start",
		(json_int_t)ras_incarnation_start(what->incarnation), "refutations",
		(json_int_t)(what->incarnation & RAS_REFUTATIONS_MAX), "value",
		(json_int_t)what->value, "hops", (json_int_t)what->hops, "observer_ids", observers
	);
	if (object == NULL)
		return -EMSGSIZE;
	if (event->text[0] != '\0')
		json_object_set_new(object, "text", json_string(event->text));
	used = json_dumpb(object, line, size, JSON_COMPACT);
	json_decref(object);
	if (used == 0 || used >= size)
		return -EMSGSIZE;
	line[used] = '\n';
	return (int)used + 1;
}

static bool kind_find(const char *name, enum ras_event_kind *ret_kind) {
	for (int n = 0; n < RAS_EVENT_KIND_COUNT; n++) {
		if (strcmp(ras_event_name((enum ras_event_kind)n), name) == 0) {
			*ret_kind = (enum ras_event_kind)n;
			return true;
		}
	}
	return false;
}

static bool id_parse(const char *text, uint64_t *ret_id) {
	char number[2 + 16 + 1];

	if (text == NULL || strlen(text) != 16 || strspn(text, "0123456789abcdef") != 16)
		return false;
	snprintf(number, sizeof(number), "0x%s", text);
	return parse_u64(number, strlen(number), 0, UINT64_MAX, NULL, ret_id) == 0;
}

static bool observers_parse(const json_t *array, struct ras_event *event) {
	size_t count = json_array_size(array);

	if (count > RAS_OBSERVERS_MAX)
		return false;
	event->observer_count = (uint32_t)count;
	for (size_t n = 0; n < count; n++) {
		if (!id_parse(json_string_value(json_array_get(array, n)), &event->observers[n]))
			return false;
	}
	return true;
}

// The members of a line, as text and numbers that are not checked yet.
struct line {
	const char *kind, *cause, *node_id, *node, *text;
	json_int_t time_ns, incarnation, value, hops;
	json_t *observers;
};

static bool line_unpack(json_t *object, struct line *line) {
	json_int_t start, refutations;
	int64_t time_ns;
	const char *when;

	line->text = "";
	if (json_unpack(
		    object, "{s:s, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:I, s:o, s?s}", "time",
		    &when, "event", &line->kind, "node", &line->node, "node_id", &line->node_id,
		    "cause", &line->cause, "start", &start, "refutations", &refutations, "value",
		    &line->value, "hops", &line->hops, "observer_ids", &line->observers, "text",
		    &line->text
	    ) != 0 ||
	    start < 0 || refutations < 0 || (uint64_t)refutations > RAS_REFUTATIONS_MAX ||
	    memchr(when, 'T', strlen(when)) == NULL ||
	    moment_parse(when, strlen(when), 0, NULL, &time_ns) != 0)
		return false;
	line->time_ns = time_ns;
	line->incarnation = (json_int_t)ras_incarnation((uint64_t)start, (uint64_t)refutations);
	return true;
}

// Earlier versions wrote other member names, and lower numbers of verdicts, since node-busy did not
// exist. Their journal is still there after an upgrade.
static bool line_unpack_old(json_t *object, struct line *line) {
	line->text = "";
	if (json_unpack(
		    object, "{s:I, s:s, s:s, s:s, s:s, s:I, s:I, s:I, s:o, s?s}", "time_ns",
		    &line->time_ns, "event", &line->kind, "cause", &line->cause, "peer",
		    &line->node_id, "name", &line->node, "incarnation", &line->incarnation, "value",
		    &line->value, "hops", &line->hops, "observers", &line->observers, "text",
		    &line->text
	    ) != 0)
		return false;
	if (strcmp(line->kind, ras_event_name(RAS_EVENT_VERDICT)) == 0 &&
	    line->value >= VERDICT_NODE_BUSY && line->value < VERDICT_COUNT)
		line->value++;
	return true;
}

int state_line_parse(const char *text, size_t size, struct state_event *ret_event) {
	json_t *object = json_loadb(text, size, JSON_REJECT_DUPLICATES, NULL);
	struct state_event event = {0};
	struct line line;
	int number = 0;
	bool sound;

	sound = object != NULL && (line_unpack(object, &line) || line_unpack_old(object, &line)) &&
		kind_find(line.kind, &event.event.kind) &&
		id_parse(line.node_id, &event.event.peer) && strlen(line.node) <= RAS_NAME_MAX &&
		strlen(line.text) < STATE_TEXT_BYTES &&
		observers_parse(line.observers, &event.event);
	if (sound) {
		// RAS_CAUSE_COUNT, named "unknown", is a cause that only a newer version knows.
		while (number < RAS_CAUSE_COUNT &&
		       strcmp(ras_cause_name((enum ras_cause)number), line.cause) != 0)
			number++;
		event.event.cause = (enum ras_cause)number;
		event.realtime_ns = line.time_ns;
		event.event.incarnation = (uint64_t)line.incarnation;
		event.event.value = (uint64_t)line.value;
		event.event.hops = (uint32_t)line.hops;
		memcpy(event.event.name, line.node, strlen(line.node));
		memcpy(event.text, line.text, strlen(line.text));
		*ret_event = event;
	}
	json_decref(object);
	return sound ? 0 : -EBADMSG;
}
