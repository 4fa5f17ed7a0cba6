// SPDX-License-Identifier: BSD-3-Clause
// Client connection to an agent: connects, greets, sends requests, and reads answers before a
// deadline.
#include <lib/clock.h>
#include <lib/contact.h>
#include <lib/escape.h>
#include <lib/parse.h>
#include <lib/show.h>
#include <lib/stream.h>

#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_SEC UINT64_C(1000000000)
#define NS_PER_MS UINT64_C(1000000)
#define CONNECT_NS (3 * NS_PER_SEC)
#define ANSWER_NS (20 * NS_PER_SEC)
// Extra time for the queried agent, beyond the timeout given to other nodes.
#define AGENT_EXTRA_NS (2 * NS_PER_SEC)
#define WAIT_REPORT_NS \
	(3 * NS_PER_SEC / 2) // delay before a message on stderr says that the client waits
#define QUESTION_BYTES 1024
#define READ_BYTES 65536UL
#define ERROR_PREFIX "ERROR: "
#define PROTOCOL_PREFIX "SERVER PROTOCOL "

// Pauses before each retry.
static const uint64_t pauses_ns[] = {100 * NS_PER_MS, 300 * NS_PER_MS, 600 * NS_PER_MS};
#define PAUSE_COUNT (sizeof(pauses_ns) / sizeof(pauses_ns[0]))

void contact_init(struct contact *contact, const struct contact_target *target) {
	*contact = (struct contact){.target = target, .fd = -1, .watched = {-1, -1}};
	contact->whole = isatty(STDOUT_FILENO) == 0;
	contact->answer_ns =
		target->timeout_ns > 0 ? target->timeout_ns + AGENT_EXTRA_NS : ANSWER_NS;
}

static void contact_close(struct contact *contact) {
	if (contact->fd >= 0)
		close(contact->fd);
	contact->fd = -1;
	contact->begin = 0;
	contact->end = 0;
}

void contact_fini(struct contact *contact) {
	contact_close(contact);
	free(contact->data);
	contact->data = NULL;
	contact->capacity = 0;
}

// Set contact->why, escaped for a terminal. Always returns err.
__attribute__((format(printf, 3, 4))) static int
contact_fail(struct contact *contact, int err, const char *format, ...) {
	char raw[CONTACT_WHY_BYTES];
	struct escape_unit unit;
	size_t used = 0, size;
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(raw, sizeof(raw), format, arguments);
	va_end(arguments);
	size = strlen(raw);
	for (size_t at = 0; at < size; at += unit.taken_bytes) {
		escape_next(raw + at, size - at, &unit);
		if (raw[at] == '"' || raw[at] == '\\')
			unit.text[0] = raw[at], unit.text_size = 1;
		if (used + unit.text_size >= sizeof(contact->why))
			break;
		memcpy(contact->why + used, unit.text, unit.text_size);
		used += unit.text_size;
	}
	contact->why[used] = '\0';
	return err;
}

// The static analyser does not see that contact_fail() returns err. Without this macro it takes
// every failure for a success.
#ifdef __clang_analyzer__
#define contact_fail(contact, err, ...) ((void)contact_fail(contact, err, __VA_ARGS__), (err))
#endif

// Wait for events on the connection (0: only for the time). Returns 0, -ETIMEDOUT, or -EINTR if a
// watched descriptor is readable.
static int contact_await(struct contact *contact, short events, uint64_t due_ns) {
	struct pollfd polled[1 + CONTACT_WATCHED_MAX] = {
		{.fd = events != 0 ? contact->fd : -1, .events = events},
		{.fd = contact->watched[0], .events = POLLIN},
		{.fd = contact->watched[1], .events = POLLIN},
	};
	int count;

	do
		count = poll(
			polled, 1 + CONTACT_WATCHED_MAX,
			deadline_poll_timeout_ms((struct deadline){due_ns}, clock_monotonic_ns())
		);
	while (count < 0 && errno == EINTR);
	if (polled[1].revents != 0 || polled[2].revents != 0)
		return contact_fail(contact, -EINTR, "interrupted");
	return count > 0 ? 0 : -ETIMEDOUT;
}

// Connecting.

#define LOOPBACK "127.0.0.1"

// Current location of the agent; the default depends on which sockets exist.
struct endpoint {
	union {
		struct sockaddr generic;
		struct sockaddr_un local;
		struct sockaddr_storage any;
	} address;
	socklen_t length;
	char text[256];	  // address as text
	char absent[256]; // default socket that was not found; "": none
};

static void endpoint_set_local(struct endpoint *endpoint, const char *path) {
	struct sockaddr_un *local = &endpoint->address.local;

	memset(local, 0, sizeof(*local));
	local->sun_family = AF_UNIX;
	snprintf(local->sun_path, sizeof(local->sun_path), "%s", path);
	endpoint->length = sizeof(*local);
	escape_quote(path, strlen(path), endpoint->text, sizeof(endpoint->text));
}

static void endpoint_set_tcp(struct endpoint *endpoint, const struct sock_addr *address) {
	char text[SOCK_ADDR_TEXT_BYTES];

	sock_addr_format(address, text);
	endpoint->length = sock_addr_to_sockaddr(address, &endpoint->address.any);
	snprintf(endpoint->text, sizeof(endpoint->text), "%s", text);
}

static void endpoint_find(const struct contact_target *target, struct endpoint *ret_endpoint) {
	// NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
	const char *runtime = geteuid() == 0 ? NULL : getenv("XDG_RUNTIME_DIR");
	char own[sizeof(ret_endpoint->address.local.sun_path)] = "";
	const char *usual = CONTACT_SYSTEM_SOCKET;
	struct sock_addr loopback;

	memset(ret_endpoint, 0, sizeof(*ret_endpoint));
	if (target->path != NULL) {
		endpoint_set_local(ret_endpoint, target->path);
		return;
	}
	if (target->address.family != SOCK_ADDR_NONE) {
		endpoint_set_tcp(ret_endpoint, &target->address);
		return;
	}

	// The default is the socket of the user's agent, then that of the system's agent.
	// Commands that only read finally use TCP.
	if (runtime != NULL && strlen(runtime) < sizeof(own) - sizeof("/tocsin/tocsind.sock"))
		snprintf(own, sizeof(own), "%s/tocsin/tocsind.sock", runtime);
	if (own[0] != '\0')
		usual = own;
	if (own[0] != '\0' && access(own, F_OK) == 0) {
		endpoint_set_local(ret_endpoint, own);
	} else if (access(CONTACT_SYSTEM_SOCKET, F_OK) == 0) {
		endpoint_set_local(ret_endpoint, CONTACT_SYSTEM_SOCKET);
	} else if (target->local) {
		endpoint_set_local(ret_endpoint, usual);
	} else {
		if (sock_addr_parse(LOOPBACK, strlen(LOOPBACK), CONTACT_PORT, NULL, &loopback) == 0)
			endpoint_set_tcp(ret_endpoint, &loopback);
		snprintf(ret_endpoint->absent, sizeof(ret_endpoint->absent), "%s", usual);
	}
}

static const char *connect_error_hint(int err) {
	switch (err) {
	case -ENOENT:
	case -ECONNREFUSED:
		return "; is tocsind running?";
	case -EACCES:
		return "; you have no permission to connect";
	case -EAGAIN:
		return "; too many clients wait there already";
	case -ETIMEDOUT:
		return "; is that host up?";
	default:
		return "";
	}
}

static int contact_connect(struct contact *contact) {
	struct endpoint endpoint;
	uint64_t due_ns;
	int err;

	for (size_t tried = 0;; tried++) {
		endpoint_find(contact->target, &endpoint);
		snprintf(contact->place, sizeof(contact->place), "%s", endpoint.text);
		due_ns = clock_monotonic_ns() + CONNECT_NS;
		contact_close(contact);
		contact->fd =
			socket(endpoint.address.generic.sa_family,
			       SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
		err = contact->fd < 0
			      ? -errno
			      : stream_connect_start(
					contact->fd, &endpoint.address.generic, endpoint.length
				);
		while (err == -EINPROGRESS) {
			err = contact_await(contact, POLLOUT, due_ns);
			if (err == 0)
				err = stream_connect_finish(contact->fd);
		}
		if ((err != -ECONNREFUSED && err != -EAGAIN) || tried == PAUSE_COUNT)
			break;
		err = contact_await(contact, 0, clock_monotonic_ns() + pauses_ns[tried]);
		if (err == -EINTR)
			break;
	}
	if (err == 0 || err == -EINTR)
		return err;
	if (endpoint.absent[0] != '\0')
		return contact_fail(
			contact, err,
			"there is no socket %s, and no agent can be reached on %s: %s%s",
			endpoint.absent, endpoint.text, strerrordesc_np(-err),
			connect_error_hint(err)
		);
	return contact_fail(
		contact, err, "cannot reach the agent on %s: %s%s", endpoint.text,
		strerrordesc_np(-err), connect_error_hint(err)
	);
}

// Receiving.

static int contact_fail_late(struct contact *contact) {
	char waited[SHOW_BYTES];

	show_duration(contact->answer_ns, waited);
	return contact_fail(
		contact, -ETIMEDOUT,
		"the agent on %s accepted the connection, but did not answer within %s; is it "
		"stopped or overloaded?%s",
		contact->place, waited,
		contact->target->command_name != NULL ? " see --timeout" : ""
	);
}

// Wait for an answer, and report the wait once on stderr.
static int contact_await_answer(struct contact *contact) {
	uint64_t wait_report_ns = contact->wait_report_ns, left_ns;
	char until[SHOW_BYTES], left[SHOW_BYTES];
	struct timespec now;
	int err;

	if (contact->silent || wait_report_ns >= contact->due_ns)
		return contact_await(contact, POLLIN, contact->due_ns);
	err = contact_await(contact, POLLIN, wait_report_ns);
	if (err != -ETIMEDOUT)
		return err;
	contact->wait_report_ns = UINT64_MAX;
	left_ns = contact->due_ns - clock_monotonic_ns();
	clock_gettime(CLOCK_REALTIME, &now);
	show_local_time(
		(int64_t)(now.tv_sec * (int64_t)NS_PER_SEC + now.tv_nsec) + (int64_t)left_ns, until
	);
	show_duration(left_ns, left);
	fprintf(stderr, "tocsin %s: the agent on %s %s; waiting until %s (%s more)\n",
		contact->target->command_name, contact->place,
		contact->protocol == 0 ? "accepted the connection but has not answered"
				       : "has not answered yet",
		until, left);
	return contact_await(contact, POLLIN, contact->due_ns);
}

// Receive more bytes into the buffer. Returns -ENODATA at the end of the stream, without setting
// contact->why.
static int contact_receive(struct contact *contact) {
	size_t kept = contact->end - contact->begin;
	size_t capacity = contact->capacity;
	ssize_t size;
	char *grown;
	int err = 0;

	if (contact->begin > 0)
		memmove(contact->data, contact->data + contact->begin, kept);
	contact->begin = 0;
	contact->end = kept;
	if (kept >= CONTACT_ANSWER_BYTES_MAX)
		return contact_fail(
			contact, -EMSGSIZE, "the answer of %s exceeds 64 MiB: is it tocsind?",
			contact->place
		);
	if (capacity - kept <= READ_BYTES) {
		capacity = 2 * capacity + 2 * READ_BYTES;
		grown = realloc(contact->data, capacity);
		if (grown == NULL)
			return contact_fail(contact, -ENOMEM, "out of memory");
		contact->data = grown;
		contact->capacity = capacity;
	}
	while (err == 0) {
		size = stream_receive(
			contact->fd, contact->data + contact->end,
			contact->capacity - contact->end - 1
		);
		if (size == 0)
			return -ENODATA;
		if (size > 0) {
			contact->end += (size_t)size;
			return 0;
		}
		if (size != -EAGAIN)
			return contact_fail(
				contact, (int)size, "the connection to %s broke: %s",
				contact->place, strerrordesc_np((int)-size)
			);
		err = contact_await_answer(contact);
		if (err == -ETIMEDOUT)
			return contact_fail_late(contact);
	}
	return err;
}

static int contact_fail_protocol(struct contact *contact, const char *line) {
	char quoted[80];

	escape_quote(line, strlen(line), quoted, sizeof(quoted));
	return contact_fail(
		contact, -EPROTO, "the program on %s is not tocsind: it answered %s",
		contact->place, quoted
	);
}

// Read one line and terminate it in place.
static int contact_read_line(struct contact *contact, char **ret_line) {
	size_t looked = 0;
	char *line, *end;
	int err = 0;

	while (err == 0) {
		line = contact->data + contact->begin;
		end = NULL;
		if (contact->end - contact->begin > looked)
			end = memchr(line + looked, '\n', contact->end - contact->begin - looked);
		if (end != NULL)
			break;
		looked = contact->end - contact->begin;
		err = contact_receive(contact);
	}
	if (err == -ENODATA)
		return contact_fail(
			contact, -ENODATA,
			"the agent on %s ended the connection before its answer was complete",
			contact->place
		);
	if (err != 0)
		return err;
	*end = '\0';
	contact->begin += (size_t)(end - line) + 1;
	if (strlen(line) != (size_t)(end - line))
		return contact_fail_protocol(contact, line);
	*ret_line = line;
	return 0;
}

static bool line_is_error(const char *line) {
	return strncmp(line, ERROR_PREFIX, strlen(ERROR_PREFIX)) == 0;
}

// Asking.

static int contact_send(struct contact *contact, const char *text) {
	size_t size = strlen(text);
	int err = 0;

	contact->due_ns = clock_monotonic_ns() + contact->answer_ns;
	if (contact->wait_report_ns != UINT64_MAX)
		contact->wait_report_ns = clock_monotonic_ns() + WAIT_REPORT_NS;
	for (size_t sent = 0; sent < size && err == 0;) {
		ssize_t taken = stream_send(contact->fd, text + sent, size - sent);

		if (taken >= 0)
			sent += (size_t)taken;
		else if (taken == -EAGAIN)
			err = contact_await(contact, POLLOUT, contact->due_ns);
		else
			err = (int)taken;
	}
	if (err == 0 || err == -EINTR)
		return err;
	// The agent may have sent an error before it closed; the next read returns that error.
	if (err == -EPIPE || err == -ECONNRESET)
		return 0;
	return err == -ETIMEDOUT ? contact_fail_late(contact)
				 : contact_fail(
					   contact, err, "cannot send the request to %s: %s",
					   contact->place, strerrordesc_np(-err)
				   );
}

static int contact_expect_ok(struct contact *contact) {
	char *line;
	int err = contact_read_line(contact, &line);

	if (err != 0)
		return err;
	return strcmp(line, "OK") == 0 ? 0 : contact_fail_protocol(contact, line);
}

int contact_set_timeout(struct contact *contact, uint64_t seconds) {
	char line[48];
	int err;

	snprintf(line, sizeof(line), "TIMEOUT %" PRIu64 "\n", seconds);
	err = contact_send(contact, line);
	return err == 0 ? contact_expect_ok(contact) : err;
}

int contact_open(struct contact *contact, bool json) {
	uint64_t timeout_s = (contact->target->timeout_ns + NS_PER_SEC - 1) / NS_PER_SEC;
	char timeout[48] = "";
	char text[128];
	uint64_t protocol;
	char *line;
	int err = contact_connect(contact);

	if (err != 0)
		return err;
	if (timeout_s > 0)
		snprintf(timeout, sizeof(timeout), "TIMEOUT %" PRIu64 "\n", timeout_s);
	snprintf(
		text, sizeof(text), "CLIENT PROTOCOL 2\n%sSET FORMAT %s\n", timeout,
		json ? "json" : "text"
	);
	err = contact_send(contact, text);
	if (err == 0)
		err = contact_read_line(contact, &line);
	if (err != 0)
		return err;
	// The agent refuses all clients; this error is the answer to any request.
	if (line_is_error(line))
		return contact_fail(contact, -EBUSY, "%s", line + strlen(ERROR_PREFIX));
	if (strncmp(line, PROTOCOL_PREFIX, strlen(PROTOCOL_PREFIX)) != 0)
		return contact_fail_protocol(contact, line);
	line += strlen(PROTOCOL_PREFIX);
	if (parse_u64(line, strlen(line), 1, UINT32_MAX, NULL, &protocol) != 0)
		return contact_fail_protocol(contact, line);
	contact->protocol = (uint32_t)protocol;
	if (timeout_s > 0)
		err = contact_expect_ok(contact);
	return err == 0 ? contact_expect_ok(contact) : err;
}

int contact_ask(struct contact *contact, const char *question) {
	const char *node = contact->target->node;
	char line[QUESTION_BYTES];

	if (node != NULL)
		snprintf(line, sizeof(line), "NODE %s %s\n", node, question);
	else
		snprintf(line, sizeof(line), "%s\n", question);
	return contact_send(contact, line);
}

int contact_read_to_end(struct contact *contact, const char **ret_text) {
	int err;

	// This is the last request, so an error in the answer also ends the connection.
	shutdown(contact->fd, SHUT_WR);
	do
		err = contact_receive(contact);
	while (err == 0);
	if (err != -ENODATA)
		return err;
	if (contact->begin == contact->end)
		return contact_fail(
			contact, -ENODATA, "the agent on %s ended the connection without an answer",
			contact->place
		);
	contact->data[contact->end] = '\0';
	*ret_text = contact->data + contact->begin;
	contact->begin = contact->end;
	return 0;
}

int contact_json(struct contact *contact, const char *question, json_t **ret_answer) {
	json_t *answer = NULL;
	const char *words;
	char *line;
	int err;

	// Drop bytes that follow an earlier answer: they belong to no question.
	contact->begin = contact->end;
	err = contact_ask(contact, question);
	// If a relayed answer breaks off, its line is incomplete, and the next line gives the
	// reason.
	for (int lines = contact->target->node != NULL ? 2 : 1; err == 0 && lines > 0; lines--) {
		err = contact_read_line(contact, &line);
		if (err == 0)
			answer = json_loads(line, 0, NULL);
		if (answer != NULL)
			break;
	}
	if (err != 0)
		return err;
	if (!json_is_object(answer)) {
		json_decref(answer);
		// An agent that does not know the command answers in text.
		return line_is_error(line)
			       ? contact_fail(
					 contact, -EREMOTEIO, "%s", line + strlen(ERROR_PREFIX)
				 )
			       : contact_fail_protocol(contact, line);
	}
	words = json_string_value(json_object_get(answer, "error"));
	if (words == NULL) {
		*ret_answer = answer;
		return 0;
	}
	err = contact_fail(contact, -EREMOTEIO, "%s", words);
	json_decref(answer);
	return err;
}
