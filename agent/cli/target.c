// SPDX-License-Identifier: BSD-3-Clause
// Selects the agent that a command queries: a Unix socket, an address, or a relayed node.
#include "target.h"

#include <lib/escape.h>
#include <lib/parse.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/un.h>

#define QUOTED_BYTES 200
#define TIMEOUT_MIN_NS UINT64_C(1000000)
#define NS_PER_SEC UINT64_C(1000000000)
#define TIMEOUT_MAX_NS (3600 * NS_PER_SEC)
#define LOOPBACK "127.0.0.1"

enum {
	OPTION_JSON,
	OPTION_TIMEOUT,
	OPTION_SOCKET,
	OPTION_NODE, // options from here on belong to TARGET_READ only
	OPTION_HOST,
	OPTION_PORT,
	OPTION_COUNT,
};

const struct option_spec target_options[OPTION_COUNT] = {
	[OPTION_JSON] = {"json", NULL, "print the answer as one line of JSON"},
	[OPTION_TIMEOUT] =
		{"timeout", "TIME",
		 "time that other nodes may take: 5s, 5 or 500ms; the\n"
		 "agent that is asked has 2 s more. Default: 20 s in all"},
	[OPTION_SOCKET] = {"socket", "PATH", "the agent's Unix socket; also set by $TOCSIN_SOCKET"},
	[OPTION_NODE] = {"node", "NAME", "let the agent of node NAME answer, through the overlay"},
	[OPTION_HOST] = {"host", "HOST", "ask over TCP; 127.0.0.1 if only --port is given"},
	[OPTION_PORT] = {"port", "PORT", "28029 if only --host is given"},
};

size_t target_option_count(enum command_target target) {
	switch (target) {
	case TARGET_NONE:
		return 0;
	case TARGET_READ:
		return OPTION_COUNT;
	case TARGET_ORDER:
		return OPTION_NODE;
	}
	return 0;
}

bool target_is_name(const char *word) {
	size_t length = 0;

	for (; word[length] != '\0'; length++) {
		if ((unsigned char)word[length] <= ' ' || word[length] == '\x7f')
			return false;
	}
	return length > 0 && length <= TARGET_NAME_BYTES_MAX;
}

static int target_reject_option(const struct target *target, const char *option, const char *what) {
	command_error(target->agent.command_name, "--%s: %s", option, what);
	return EXIT_USAGE;
}

static int check_path(struct target *target, const char *path, const char *origin) {
	const struct sockaddr_un *local = NULL;
	char quoted[QUOTED_BYTES];

	target->agent.path = path;
	if (path[0] != '\0' && strlen(path) < sizeof(local->sun_path))
		return 0;
	escape_quote(path, strlen(path), quoted, sizeof(quoted));
	command_error(
		target->agent.command_name, "%s: %s is not a valid socket path: 1 to %zu bytes",
		origin, quoted, sizeof(local->sun_path) - 1
	);
	return EXIT_USAGE;
}

static int read_address(struct target *target, const char *host, const char *port) {
	struct parse_error error;
	uint64_t number = CONTACT_PORT;
	int err = 0;

	if (port != NULL)
		err = parse_u64(port, strlen(port), 1, UINT16_MAX, &error, &number);
	if (err != 0)
		return target_reject_option(target, "port", error.text);
	if (host == NULL)
		host = LOOPBACK;
	err = sock_addr_resolve(
		host, strlen(host), (int32_t)number, SOCK_ADDR_NONE, &error, &target->agent.address
	);
	if (err == 0)
		return 0;
	target_reject_option(target, "host", error.text);
	return err == -EINVAL || err == -ERANGE || err == -ENODEV ? EXIT_USAGE : EXIT_UNREACHED;
}

bool target_wants_json(const struct arguments *arguments) {
	return arguments->shared[OPTION_JSON] != NULL;
}

// Parse --timeout. A bare number means seconds, as for ping and timeout.
static int read_timeout(const char *text, struct parse_error *error, uint64_t *ret_ns) {
	size_t length = strlen(text);
	char seconds[32];

	if (length > 0 && length + 2 <= sizeof(seconds) && strspn(text, "0123456789") == length) {
		snprintf(seconds, sizeof(seconds), "%ss", text);
		text = seconds;
		length++;
	}
	return parse_duration_ns(text, length, TIMEOUT_MIN_NS, TIMEOUT_MAX_NS, error, ret_ns);
}

int target_init(
	struct target *target, const struct command *command, const struct arguments *arguments
) {
	const char *const *given = arguments->shared;
	const char *timeout = given[OPTION_TIMEOUT], *socket = given[OPTION_SOCKET];
	const char *host = given[OPTION_HOST], *port = given[OPTION_PORT];
	struct parse_error error;
	char quoted[QUOTED_BYTES];

	*target = (struct target){
		.agent.command_name = command->name,
		.agent.node = given[OPTION_NODE],
		.agent.local = command->target == TARGET_ORDER,
		.json = given[OPTION_JSON] != NULL,
	};
	if (timeout != NULL && read_timeout(timeout, &error, &target->agent.timeout_ns) != 0)
		return target_reject_option(target, "timeout", error.text);
	if (command->whole_seconds && target->agent.timeout_ns % NS_PER_SEC != 0)
		return target_reject_option(
			target, "timeout", "1s to 3600s are allowed here, in whole seconds"
		);
	if (target->agent.node != NULL && !target_is_name(target->agent.node)) {
		escape_quote(
			target->agent.node, strlen(target->agent.node), quoted, sizeof(quoted)
		);
		command_error(
			command->name,
			"--node: %s is not a valid name: 1 to %d bytes without blanks", quoted,
			TARGET_NAME_BYTES_MAX
		);
		return EXIT_USAGE;
	}
	if (socket != NULL && (host != NULL || port != NULL)) {
		command_error(
			command->name, "--socket and --%s do not go together",
			host != NULL ? "host" : "port"
		);
		return EXIT_USAGE;
	}
	if (socket != NULL)
		return check_path(target, socket, "--socket");
	if (host != NULL || port != NULL)
		return read_address(target, host, port);
	socket = getenv("TOCSIN_SOCKET"); // NOLINT(concurrency-mt-unsafe): one thread
	return socket == NULL ? 0 : check_path(target, socket, "TOCSIN_SOCKET");
}
