// SPDX-License-Identifier: BSD-3-Clause
// NCCL's small commands, answered byte for byte like its RAS 2.30.7.
#include "client/answers.h"
#include "client/session.h"

#include <limits.h>
#include <string.h>
#include <strings.h>

void answer_client_protocol(struct session *session, const char *rest) {
	(void)rest; // the answer is the same for any version of the client
	text_print(&session->out, "SERVER PROTOCOL 2\n");
}

// Parse seconds like strtol() with base 10: leading blanks, a sign; an empty text is 0.
static bool read_seconds(const char *text, uint32_t *ret_seconds) {
	uint64_t seconds = 0;
	bool minus;

	text += strspn(text, " \t\v\f\r");
	minus = *text == '-';
	if (*text == '-' || *text == '+')
		text++;
	for (; *text >= '0' && *text <= '9'; text++) {
		seconds = 10 * seconds + (uint64_t)(*text - '0');
		if (seconds > INT_MAX)
			return false;
	}
	if (*text != '\0' || (minus && seconds > 0))
		return false;
	*ret_seconds = (uint32_t)seconds;
	return true;
}

void answer_timeout(struct session *session, const char *rest) {
	if (read_seconds(rest, &session->timeout_s))
		text_print(&session->out, "OK\n");
	else
		text_print(&session->out, "ERROR: Invalid timeout value %s\n", rest);
}

void answer_set_format(struct session *session, const char *rest) {
	if (strcasecmp(rest, "text") != 0 && strcasecmp(rest, "json") != 0) {
		text_print(&session->out, "ERROR: Invalid format %s\n", rest);
		return;
	}
	session->format = strcasecmp(rest, "json") == 0 ? SESSION_FORMAT_JSON : SESSION_FORMAT_TEXT;
	text_print(&session->out, "OK\n");
}
