// SPDX-License-Identifier: BSD-3-Clause
// Parses a recording.
#include "replay.h"

#include <errno.h>
#include <fields.h>
#include <stdlib.h>
#include <string.h>

#define CALLS_FIRST 1024u

struct reader {
	struct replay *replay;
	struct parse_error *error;
	size_t room; // capacity of replay->calls
	bool begun;  // the first line was read
};

struct word {
	char *name, *value; // text after '=', or NULL
};

// Return the next word of a line, NUL-terminated; false at the end of the line.
static bool word_next(char **at, struct word *ret_word) {
	char *word = *at + strspn(*at, " \t");
	size_t length = strcspn(word, " \t");

	if (length == 0)
		return false;
	*at = word + length;
	if (**at != '\0')
		*(*at)++ = '\0';
	ret_word->name = word;
	ret_word->value = strchr(word, '=');
	if (ret_word->value != NULL)
		*ret_word->value++ = '\0';
	return true;
}

static int read_u64(struct reader *reader, const char *text, uint64_t max, uint64_t *ret_value) {
	return parse_u64(text, strlen(text), 0, max, reader->error, ret_value);
}

static int read_i32(struct reader *reader, const char *text, int32_t *ret_value) {
	int64_t value;
	int err = parse_i64(text, strlen(text), INT32_MIN, INT32_MAX, reader->error, &value);

	if (err == 0)
		*ret_value = (int32_t)value;
	return err;
}

static int line_fail(struct reader *reader, const char *text, const char *why) {
	return parse_fail(reader->error, -EINVAL, text, strlen(text), "%s", why);
}

// Parse a number with a letter, such as "e12" or "c3".
static int read_number(
	struct reader *reader, const char *text, char letter, uint64_t max, uint64_t *ret_number
) {
	if (text[0] != letter)
		return line_fail(
			reader, text,
			letter == 'e' ? "is no event: e1, e2, ..."
				      : "is no communicator: c0, c1, ..."
		);
	return read_u64(reader, text + 1, max, ret_number);
}

static int read_handle(struct reader *reader, const char *text, struct replay_handle *ret_handle) {
	struct replay_handle handle = {0};
	int err;

	if (text[0] == 'e')
		err = read_number(reader, text, 'e', REPLAY_EVENTS_MAX, &handle.event);
	else
		err = read_u64(reader, text, UINT64_MAX, &handle.raw);
	if (err == 0)
		*ret_handle = handle;
	return err;
}

static int hex_digit(char digit) {
	if (digit >= '0' && digit <= '9')
		return digit - '0';
	return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

// Replace each \xHH by its byte, in place.
static int text_unescape(struct reader *reader, char *text) {
	char *to = text;

	for (const char *from = text; *from != '\0';) {
		int high, low;

		if (*from != '\\') {
			*to++ = *from++;
			continue;
		}
		high = from[1] == 'x' ? hex_digit(from[2]) : -1;
		low = high >= 0 ? hex_digit(from[3]) : -1;
		if (low < 0 || (high == 0 && low == 0))
			return line_fail(
				reader, text, "has a backslash that is not \\x01 to \\xff"
			);
		*to++ = (char)(high << 4 | low);
		from += 4;
	}
	*to = '\0';
	return 0;
}

static int read_field(
	struct reader *reader,
	const struct nccl_field *field,
	char *text,
	struct nccl_descriptor *descriptor
) {
	static const uint64_t maxima[] = {
		[NCCL_U8] = UINT8_MAX,	 [NCCL_BOOL] = 1,	  [NCCL_U32] = UINT32_MAX,
		[NCCL_U64] = UINT64_MAX, [NCCL_HEX] = UINT64_MAX,
	};
	char *at = (char *)descriptor + field->offset;
	uint64_t value = 0;
	int32_t signed_32 = 0;
	int err;

	if (field->form == NCCL_TEXT) {
		err = text_unescape(reader, text);
		memcpy(at, &text, sizeof(text));
		return err;
	}
	if (field->form == NCCL_I32) {
		err = read_i32(reader, text, &signed_32);
		memcpy(at, &signed_32, sizeof(signed_32));
		return err;
	}
	err = read_u64(reader, text, maxima[field->form], &value);
	// Copies the low bytes, because all machines with NCCL are little endian.
	memcpy(at, &value,
	       field->form == NCCL_U8 || field->form == NCCL_BOOL ? 1
	       : field->form == NCCL_U32			  ? 4
								  : 8);
	return err;
}

static const struct nccl_field *field_find(uint32_t type, int version, const char *name) {
	for (uint32_t n = 0; n < nccl_field_count; n++)
		if (nccl_fields[n].type == type && nccl_fields[n].first <= version &&
		    nccl_fields[n].last >= version && strcmp(nccl_fields[n].name, name) == 0)
			return &nccl_fields[n];
	return NULL;
}

static int read_type(struct reader *reader, const char *text, struct replay_call *call) {
	const char *name = nccl_type_name(1);
	uint32_t type = 1;
	uint64_t number;
	int err = 0;

	while (name != NULL && strcmp(name, text) != 0) {
		type <<= 1;
		name = nccl_type_name(type);
	}
	if (name != NULL)
		call->descriptor.type = type;
	else if (text[0] >= '0' && text[0] <= '9') // an unknown type
		err = read_u64(reader, text, UINT64_MAX, &call->descriptor.type);
	else
		err = line_fail(
			reader, text, "is no type of event: Group, Coll, P2p, KernelCh, ..."
		);
	number = call->descriptor.type;
	// Before version 5, NCCL sets only the lowest byte. Fill the other bytes, so that a plugin
	// which reads them fails.
	if (reader->replay->version < 5)
		call->descriptor.type = (number & 0xff) | UINT64_C(0xa5c3e1f00f1e3c00);
	return err;
}

static int
read_start_word(struct reader *reader, const struct word *word, struct replay_call *call) {
	const struct nccl_field *field;
	uint32_t type = (uint32_t)call->descriptor.type;

	if (reader->replay->version < 5)
		type &= 0xff;
	if (strcmp(word->name, "event") == 0)
		return read_number(reader, word->value, 'e', REPLAY_EVENTS_MAX, &call->event);
	if (strcmp(word->name, "type") == 0)
		return read_type(reader, word->value, call);
	if (strcmp(word->name, "parent") == 0)
		return read_handle(reader, word->value, &call->parent);
	if (strcmp(word->name, "group") == 0)
		return read_handle(reader, word->value, &call->group);
	if (strcmp(word->name, "rank") == 0)
		return read_i32(reader, word->value, &call->descriptor.rank);
	field = field_find(type, reader->replay->version, word->name);
	if (field == NULL)
		return line_fail(
			reader, word->name,
			"is no field of this type in this interface; the "
			"type comes before its fields"
		);
	return read_field(reader, field, word->value, &call->descriptor);
}

static int
read_init_word(struct reader *reader, const struct word *word, struct replay_call *call) {
	uint64_t mask;

	// event mask that the plugin requested during the recording; unused
	if (strcmp(word->name, "mask") == 0)
		return read_u64(reader, word->value, UINT32_MAX, &mask);
	if (strcmp(word->name, "hash") == 0)
		return read_u64(reader, word->value, UINT64_MAX, &call->hash);
	if (strcmp(word->name, "nodes") == 0)
		return read_i32(reader, word->value, &call->nodes);
	if (strcmp(word->name, "ranks") == 0)
		return read_i32(reader, word->value, &call->ranks);
	if (strcmp(word->name, "rank") == 0)
		return read_i32(reader, word->value, &call->rank);
	if (strcmp(word->name, "name") == 0) {
		call->name = word->value;
		return text_unescape(reader, word->value);
	}
	return line_fail(reader, word->name, "is no word of init");
}

static int
read_event_word(struct reader *reader, const struct word *word, struct replay_call *call) {
	if (strcmp(word->name, "event") == 0)
		return read_handle(reader, word->value, &call->handle);
	if (call->kind == REPLAY_STATE && strcmp(word->name, "state") == 0)
		return read_i32(reader, word->value, &call->state);
	if (call->kind == REPLAY_STATE && strcmp(word->name, "value") == 0) {
		call->has_value = true;
		return read_u64(reader, word->value, UINT64_MAX, &call->value);
	}
	return line_fail(reader, word->name, "is no word of stop or state");
}

static int read_comm(struct reader *reader, const struct word *word, struct replay_call *call) {
	uint64_t comm;
	int err = read_number(reader, word->value, 'c', REPLAY_COMMS_MAX - 1, &comm);

	if (err == 0)
		call->comm = (int64_t)comm;
	return err;
}

static int read_words(struct reader *reader, char *at, struct replay_call *call) {
	struct word word;
	int err = 0;

	while (err == 0 && word_next(&at, &word)) {
		if (word.value == NULL)
			err = line_fail(reader, word.name, "has no value: name=value");
		else if (strcmp(word.name, "comm") == 0)
			err = read_comm(reader, &word, call);
		else if (call->kind == REPLAY_START)
			err = read_start_word(reader, &word, call);
		else if (call->kind == REPLAY_INIT)
			err = read_init_word(reader, &word, call);
		else if (call->kind == REPLAY_FINALIZE)
			err = line_fail(reader, word.name, "is no word of finalize");
		else
			err = read_event_word(reader, &word, call);
	}
	return err;
}

static int parse_call_kind(const char *name, enum replay_call_kind *ret_kind) {
	static const char *const names[] = {"init", "start", "stop", "state", "finalize"};

	for (uint32_t n = 0; n < sizeof(names) / sizeof(names[0]); n++)
		if (strcmp(name, names[n]) == 0) {
			*ret_kind = (enum replay_call_kind)n;
			return 0;
		}
	return -EINVAL;
}

static int call_check(struct reader *reader, const struct replay_call *call) {
	bool needs_comm = call->kind == REPLAY_INIT || call->kind == REPLAY_FINALIZE;

	if (needs_comm && call->comm < 0)
		return line_fail(reader, "comm", "is missing");
	if (call->kind == REPLAY_START && (call->event == 0 || call->descriptor.type == 0))
		return line_fail(reader, call->event == 0 ? "event" : "type", "is missing");
	return 0;
}

static struct replay_call *call_add(struct reader *reader) {
	struct replay *replay = reader->replay;

	if (replay->count == reader->room) {
		size_t room = reader->room == 0 ? CALLS_FIRST : reader->room * 2;
		struct replay_call *calls = realloc(replay->calls, room * sizeof(*calls));

		if (calls == NULL)
			return NULL;
		replay->calls = calls;
		reader->room = room;
	}
	replay->calls[replay->count] = (struct replay_call){.comm = -1, .rank = -1};
	return &replay->calls[replay->count];
}

// Parse a line TIME THREAD CALL NAME=VALUE...
static int read_call(struct reader *reader, const char *time, char *at, uint32_t line) {
	struct replay_call *call = call_add(reader);
	struct word thread, kind;
	int err;

	if (call == NULL)
		return -ENOMEM;
	call->line = line;
	err = read_u64(reader, time, UINT64_MAX, &call->time_ns);
	if (err != 0)
		return err;
	if (!word_next(&at, &thread) || thread.name[0] != 't' || !word_next(&at, &kind) ||
	    parse_call_kind(kind.name, &call->kind) != 0)
		return line_fail(
			reader, time,
			"is no callback: TIME THREAD init, start, stop, state or "
			"finalize"
		);
	err = read_words(reader, at, call);
	if (err == 0)
		err = call_check(reader, call);
	if (err != 0)
		return err;
	if (call->event > reader->replay->event_max)
		reader->replay->event_max = call->event;
	if (call->comm >= (int64_t)reader->replay->comm_max)
		reader->replay->comm_max = (uint32_t)call->comm + 1;
	reader->replay->count++;
	return 0;
}

static int read_head(struct reader *reader, const char *name, char *at) {
	struct word word;
	int32_t value = 0;
	int err;

	if (!word_next(&at, &word))
		return line_fail(reader, name, "has no value");
	err = read_i32(reader, word.name, &value);
	if (err != 0)
		return err;
	if (strcmp(name, "interface") == 0) {
		if (value < NCCL_VERSION_FIRST || value > NCCL_VERSION_LAST)
			return line_fail(
				reader, word.name, "is no interface: 1 to 7 can be played"
			);
		reader->replay->version = value;
	} else if (strcmp(name, "pid") == 0) {
		reader->replay->pid = value;
	} else if (strcmp(name, "nccl") == 0) {
		reader->replay->nccl = value;
	} else {
		return line_fail(reader, name, "is neither a callback nor interface, pid or nccl");
	}
	return 0;
}

static int read_line(struct reader *reader, char *line, uint32_t number) {
	char *at = line;
	struct word word;

	if (!reader->begun) {
		reader->begun = true;
		if (strcmp(line, "tocsin-nccl-recording 1") != 0)
			return line_fail(reader, line, "is not \"tocsin-nccl-recording 1\"");
		return 0;
	}
	if (line[0] == '#' || !word_next(&at, &word))
		return 0;
	if (word.name[0] < '0' || word.name[0] > '9')
		return read_head(reader, word.name, at);
	if (reader->replay->version == 0)
		return line_fail(
			reader, word.name, "is a callback, and no line says which interface"
		);
	return read_call(reader, word.name, at, number);
}

int replay_parse(
	struct replay *replay,
	char *text,
	size_t size,
	struct parse_error *error,
	uint32_t *ret_line
) {
	struct reader reader = {.replay = replay, .error = error};
	char *end = text + size;
	int err = 0;

	memset(replay, 0, sizeof(*replay));
	replay->text = text;
	*ret_line = 0;
	while (err == 0 && text < end) {
		char *newline = memchr(text, '\n', (size_t)(end - text));

		if (newline == NULL)
			break;
		*newline = '\0';
		++*ret_line;
		if (memchr(text, '\0', (size_t)(newline - text)) != NULL)
			err = line_fail(&reader, text, "is followed by a byte 0");
		else
			err = read_line(&reader, text, *ret_line);
		text = newline + 1;
	}
	if (err == 0 && !reader.begun)
		err = line_fail(&reader, "", "is no recording: nothing is in it");
	return err;
}

void replay_fini(struct replay *replay) {
	free(replay->calls);
	free(replay->text);
	memset(replay, 0, sizeof(*replay));
}
