// SPDX-License-Identifier: BSD-3-Clause
// Scans the JSON report byte by byte: strings, words (numbers, true, null), brackets, colons.
#include "jobs/host/nccl_report.h"

#include <errno.h>
#include <string.h>

// Depths of the fields: {"communicators": [ {"hash", "size", "ranks": [ {"rank", "pid", ...} ]} ]}.
#define COMM_DEPTH 3u
#define RANK_DEPTH 5u

#define SEEN_HASH 1u
#define SEEN_SIZE 2u
#define SEEN_RANK 4u
#define SEEN_PID 8u
#define SEEN_ALL 15u

void nccl_report_begin(
	struct nccl_report *report,
	void (*on_rank)(void *ctx, const struct nccl_rank *rank),
	void *ctx
) {
	*report = (struct nccl_report){.on_rank = on_rank, .ctx = ctx};
}

bool nccl_report_is_complete(const struct nccl_report *report) {
	return report->is_over;
}

// Parse a whole number, hexadecimal after "0x". Returns false if the text is no number or exceeds
// max.
static bool parse_number(const char *text, uint64_t max, uint64_t *ret_number) {
	uint64_t base = 10, number = 0;

	if (strncmp(text, "0x", 2) == 0) {
		base = 16;
		text += 2;
	}
	if (*text == '\0')
		return false;
	for (; *text != '\0'; text++) {
		uint64_t digit = base;

		if (*text >= '0' && *text <= '9')
			digit = (uint64_t)(*text - '0');
		else if (*text >= 'a' && *text <= 'f')
			digit = (uint64_t)(*text - 'a') + 10;
		if (digit >= base || number > (max - digit) / base)
			return false;
		number = number * base + digit;
	}
	*ret_number = number;
	return true;
}

static int16_t parse_device(const char *text) {
	uint64_t number;

	return parse_number(text, INT16_MAX, &number) ? (int16_t)number : -1;
}

// A string or word has ended: it is the value of the preceding key, if there is one.
static void store_value(struct nccl_report *report) {
	bool fits = report->length < sizeof(report->text);
	const char *key = report->key, *text = report->text;
	uint64_t number;

	if (key[0] == '\0')
		return;
	if (fits && report->depth == COMM_DEPTH) {
		if (strcmp(key, "hash") == 0 && parse_number(text, UINT64_MAX, &number)) {
			report->now.comm_hash = number;
			report->seen |= SEEN_HASH;
		}
		if (strcmp(key, "size") == 0 && parse_number(text, UINT32_MAX, &number)) {
			report->now.size = (uint32_t)number;
			report->seen |= SEEN_SIZE;
		}
	}
	if (fits && report->depth == RANK_DEPTH && report->in_ranks) {
		if (strcmp(key, "rank") == 0 && parse_number(text, UINT32_MAX, &number)) {
			report->now.rank = (uint32_t)number;
			report->seen |= SEEN_RANK;
		}
		if (strcmp(key, "pid") == 0 && parse_number(text, INT32_MAX, &number)) {
			report->now.pid = (int32_t)number;
			report->seen |= SEEN_PID;
		}
		if (strcmp(key, "cuda_dev") == 0)
			report->now.cuda_device = parse_device(text);
		if (strcmp(key, "nvml_dev") == 0)
			report->now.nvml_device = parse_device(text);
	}
	report->key[0] = '\0';
}

static int open_bracket(struct nccl_report *report, bool is_square) {
	if (report->is_over || report->depth == NCCL_REPORT_DEPTH_MAX ||
	    (report->depth == 0 && is_square))
		return -EBADMSG;
	report->depth++;
	report->squares &= ~(1u << report->depth);
	report->squares |= (uint32_t)is_square << report->depth;
	if (!is_square && report->depth == COMM_DEPTH)
		report->seen = 0;
	if (is_square && report->depth == RANK_DEPTH - 1)
		report->in_ranks = strcmp(report->key, "ranks") == 0;
	if (!is_square && report->depth == RANK_DEPTH) {
		report->seen &= SEEN_HASH | SEEN_SIZE;
		report->now.cuda_device = report->now.nvml_device = -1;
	}
	report->key[0] = '\0';
	return 0;
}

static int close_bracket(struct nccl_report *report, bool is_square) {
	if (report->depth == 0 || (report->squares >> report->depth & 1u) != is_square)
		return -EBADMSG;
	if (!is_square && report->depth == RANK_DEPTH && report->in_ranks &&
	    report->seen == SEEN_ALL && report->now.rank < report->now.size)
		report->on_rank(report->ctx, &report->now);
	report->depth--;
	report->is_over = report->depth == 0;
	report->key[0] = '\0';
	return 0;
}

static void append_text_byte(struct nccl_report *report, char byte) {
	if (report->length < sizeof(report->text) - 1)
		report->text[report->length] = byte;
	if (report->length < sizeof(report->text))
		report->length++;
}

static void terminate_text(struct nccl_report *report) {
	size_t last = sizeof(report->text) - 1;

	report->text[report->length < last ? report->length : last] = '\0';
}

static int scan_punctuation(struct nccl_report *report, char byte) {
	switch (byte) {
	case ' ':
	case '\t':
	case '\r':
	case '\n':
		return 0;
	case ',':
		return report->depth > 0 ? 0 : -EBADMSG;
	case ':': // the string that ended last was a key
		if (report->depth == 0)
			return -EBADMSG;
		report->key[0] = '\0';
		if (report->length < sizeof(report->key))
			memcpy(report->key, report->text, sizeof(report->key));
		return 0;
	case '{':
	case '[':
		return open_bracket(report, byte == '[');
	case '}':
	case ']':
		return close_bracket(report, byte == ']');
	default:
		return -EBADMSG;
	}
}

static int scan_byte(struct nccl_report *report, char byte) {
	bool is_word = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
		       (byte >= 'A' && byte <= 'Z') || byte == '-' || byte == '+' || byte == '.';

	if (report->in_string) {
		if (report->escaped || (byte != '"' && byte != '\\')) {
			append_text_byte(report, byte);
			report->escaped = false;
		} else if (byte == '\\') {
			report->escaped = true;
		} else {
			report->in_string = false;
			terminate_text(report);
			store_value(report);
		}
		return 0;
	}
	if (is_word) {
		if (report->depth == 0)
			return -EBADMSG;
		if (!report->in_word)
			report->length = 0;
		report->in_word = true;
		append_text_byte(report, byte);
		return 0;
	}
	if (report->in_word) {
		report->in_word = false;
		terminate_text(report);
		store_value(report);
	}
	if (byte != '"')
		return scan_punctuation(report, byte);
	report->length = 0;
	report->in_string = true;
	return report->depth > 0 ? 0 : -EBADMSG;
}

int nccl_report_feed(struct nccl_report *report, const char *bytes, size_t size) {
	int err = 0;

	for (size_t n = 0; n < size && err == 0; n++)
		err = scan_byte(report, bytes[n]);
	return err;
}
