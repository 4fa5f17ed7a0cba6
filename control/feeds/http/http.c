// SPDX-License-Identifier: BSD-3-Clause
// The HTTP server on its thread, which reads published snapshots only.
//
// /health, /health/node and errors are answered at once. A client that asks for another page gets
// the fresh page of that form, or is suspended until the thread has written one, one part per turn.
// Its place holds a reference to the page from then until the request ends.
#include "feeds/http/http_listen.h"
#include "feeds/http/http_places.h"
#include "feeds/http/metrics_page.h"

#include <control/http.h>
#include <control/snapshot.h>
#include <lib/error.h>
#include <lib/log.h>
#include <lib/must.h>
#include <lib/rcu_thread.h>
#include <lib/thread.h>

#include <microhttpd.h>

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#define CONNECTION_BYTES 32768
#define IDLE_MS 1000

struct http {
	struct http_config config;
	struct cidr *allow;
	struct MHD_Daemon *daemon;
	struct http_places places;
	struct http_pages pages;
	int stop; // eventfd
	pthread_t thread;
	bool runs;
	bool changed; // libmicrohttpd opened or closed a connection in this turn
};

// Places: the connections that may stay. To end one, its socket is shut down; the library closes
// it.

static void socket_shut_down(int fd) {
	// Without lingering the kernel frees at once what the client has not read.
	const struct linger none = {.l_onoff = 1};

	must(setsockopt(fd, SOL_SOCKET, SO_LINGER, &none, sizeof(none)) == 0);
	// ENOTCONN: the client has already closed the connection.
	if (shutdown(fd, SHUT_RDWR) != 0)
		must(errno == ENOTCONN);
}

static struct http_place *connection_place(struct MHD_Connection *connection) {
	return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
		->socket_context;
}

// Count a client that loses its place to others.
static void reader_dropped(struct http *http) {
	if (http->config.counters != NULL)
		atomic_fetch_add_explicit(
			&http->config.counters->readers_dropped, 1, memory_order_relaxed
		);
}

static void place_put_page(struct http *http, struct http_place *place) {
	if (place->page != NULL)
		http_page_put(&http->pages, place->page);
	place->page = NULL;
}

static void connection_changed(
	void *ctx,
	struct MHD_Connection *connection,
	void **place,
	enum MHD_ConnectionNotificationCode what
) {
	struct http *http = ctx;
	const union MHD_ConnectionInfo *info;
	int cut = -1;

	http->changed = true;
	if (what == MHD_CONNECTION_NOTIFY_STARTED) {
		info = MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
		*place = http_places_add(
			&http->places, info->connect_fd, clock_now_ns(http->config.clock), &cut
		);
		if (cut >= 0)
			socket_shut_down(cut);
	} else {
		place_put_page(http, *place);
		http_places_remove(&http->places, *place);
	}
}

static void request_ended(
	void *ctx,
	struct MHD_Connection *connection,
	void **request_ctx,
	enum MHD_RequestTerminationCode why
) {
	struct http *http = ctx;
	struct http_place *place = connection_place(connection);

	(void)request_ctx;
	(void)why;
	place_put_page(http, place);
	http_place_answer_done(place, clock_now_ns(http->config.clock));
}

// Pages.

static const char text_type[] = "text/plain; version=0.0.4; charset=utf-8";
static const char open_type[] = "application/openmetrics-text; version=1.0.0; charset=utf-8";
static const char json_type[] = "application/json";

// Go online and return what pages are made from, until rcu_thread_offline().
static struct page_facts facts_begin(struct http *http) {
	struct page_facts facts = {
		.peers = http->config.peers,
		.version = http->config.version,
		.now_ns = clock_now_ns(http->config.clock),
	};

	rcu_thread_online(facts.now_ns);
	facts.snapshot = snapshots_current(http->config.snapshots);
	// The snapshot may be newer than now_ns, which was read before.
	if (facts.snapshot->at_ns > facts.now_ns)
		facts.now_ns = facts.snapshot->at_ns;
	return facts;
}

static int part_write(
	void *ctx,
	struct http_page_form form,
	struct page_cursor *cursor,
	FILE *out,
	uint64_t *ret_snapshot_ns
) {
	struct page_facts facts = facts_begin(ctx);
	int err = 0;

	*ret_snapshot_ns = facts.snapshot->at_ns;
	if (form.kind == HTTP_PAGE_STATUS)
		err = page_status_part(&facts, cursor, out);
	else
		page_metrics(&facts, form.parts, form.kind == HTTP_PAGE_OPEN_METRICS, out);
	rcu_thread_offline();
	return err;
}

static void readers_drop(void *ctx, const struct http_page *page) {
	struct http *http = ctx;
	uint32_t count = 0;

	for (uint32_t n = 0; n < HTTP_CONNECTIONS_MAX; n++) {
		struct http_place *place = &http->places.of[n];

		if (place->page != page || place->ends)
			continue;
		place->ends = true;
		socket_shut_down(place->fd);
		reader_dropped(http);
		count++;
	}
	log_event(
		LOG_LEVEL_WARN, "http_readers_dropped", log_u64("readers", count),
		log_u64("page_bytes", page->size_bytes),
		log_str("reason", "the clients do not read, and newer pages need the memory")
	);
}

static const struct http_pages_calls pages_calls = {
	.part_write = part_write,
	.readers_drop = readers_drop,
};

// Resume the clients that waited for a page which is written now, or that lost their places.
static void waiters_resume(struct http *http, const struct http_page_result *written) {
	for (uint32_t n = 0; n < HTTP_CONNECTIONS_MAX; n++) {
		struct http_place *place = &http->places.of[n];
		struct MHD_Connection *connection = place->waits;
		bool is_its_page =
			written != NULL && http_page_form_equal(place->form, written->form);

		if (connection == NULL || (!is_its_page && !place->ends))
			continue;
		if (is_its_page && written->page != NULL)
			place->page = http_page_get(written->page);
		place->waits = NULL;
		MHD_resume_connection(connection);
	}
}

// Write one part of a page that somebody waits for, and free pages that are not fresh any more.
static void pages_turn(struct http *http, uint64_t now_ns) {
	struct http_page_result written;
	bool ended = http_pages_step(&http->pages, now_ns, &written);

	if (ended && written.page != NULL && http->config.counters != NULL)
		atomic_fetch_add_explicit(
			&http->config.counters->pages_written, 1, memory_order_relaxed
		);
	waiters_resume(http, ended ? &written : NULL);
	http_pages_expire(&http->pages, now_ns);
}

// Answers.

// Send a response, and give up the caller's reference to it. NULL: there is no memory.
static enum MHD_Result response_send(
	struct MHD_Connection *connection,
	unsigned status,
	const char *type,
	struct MHD_Response *response
) {
	enum MHD_Result result;

	if (response == NULL)
		return MHD_NO;
	MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	MHD_add_response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		MHD_add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	result = MHD_queue_response(connection, status, response);
	MHD_destroy_response(response);
	return result;
}

static enum MHD_Result
send_sentence(struct MHD_Connection *connection, unsigned status, const char *sentence) {
	return response_send(
		connection, status, "text/plain; charset=utf-8",
		MHD_create_response_from_buffer(
			// NOLINTNEXTLINE(performance-no-int-to-ptr): it takes no const pointer
			strlen(sentence), (void *)(uintptr_t)sentence, MHD_RESPMEM_PERSISTENT
		)
	);
}

// Answer /health, or /health/node.
static enum MHD_Result
health_send(struct http *http, struct MHD_Connection *connection, bool of_node) {
	unsigned status = MHD_HTTP_OK;
	struct MHD_Response *response;
	struct page_facts facts;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	bool fails;
	int err = 0;

	if (out == NULL)
		return MHD_NO;
	facts = facts_begin(http);
	if (of_node) {
		fails = page_health_node(&facts, out);
	} else {
		err = page_health(&facts, out);
		fails = page_is_down(&facts);
	}
	if (fails)
		status = MHD_HTTP_SERVICE_UNAVAILABLE;
	rcu_thread_offline();
	if (fclose(out) != 0 || err != 0) {
		free(text);
		return MHD_NO;
	}
	response = MHD_create_response_from_buffer(size, text, MHD_RESPMEM_MUST_FREE);
	if (response == NULL)
		free(text);
	return response_send(
		connection, status, of_node ? "text/plain; charset=utf-8" : json_type, response
	);
}

static enum MHD_Result page_send(struct MHD_Connection *connection, const struct http_page *page) {
	static const char *const types[HTTP_PAGE_KIND_COUNT] = {text_type, open_type, json_type};
	struct MHD_Response *response = MHD_create_response_from_buffer(
		page->size_bytes, page->text, MHD_RESPMEM_PERSISTENT
	);

	if (response == NULL)
		return MHD_NO;
	MHD_add_response_header(response, MHD_HTTP_HEADER_VARY, "Accept, Accept-Encoding");
	if (page->form.gzip)
		MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_ENCODING, "gzip");
	return response_send(connection, MHD_HTTP_OK, types[page->form.kind], response);
}

#define PARTS_UNKNOWN (PAGE_PARTS_ALL + 1u) // the request names a part that does not exist

// Add the part that one argument of a request chooses to the parts in ctx.
static enum MHD_Result
parts_add(void *ctx, enum MHD_ValueKind kind, const char *name, const char *value) {
	uint8_t *parts = ctx, part;

	(void)kind;
	if (strcmp(name, "collect[]") != 0)
		return MHD_YES;
	part = value != NULL ? page_part_find(value) : 0;
	*parts |= part != 0 ? part : PARTS_UNKNOWN;
	return MHD_YES;
}

// Return the parts of the metrics that a request names, or all if it names none. The result has
// PARTS_UNKNOWN if a name is unknown.
static uint8_t parts_wanted(struct MHD_Connection *connection) {
	uint8_t parts = 0;

	(void)MHD_get_connection_values(connection, MHD_GET_ARGUMENT_KIND, parts_add, &parts);
	return parts != 0 ? parts : PAGE_PARTS_ALL;
}

static struct http_page_form form_wanted(struct MHD_Connection *connection, bool metrics) {
	const char *accept =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	struct http_page_form form = {
		.kind = metrics ? HTTP_PAGE_METRICS : HTTP_PAGE_STATUS,
		.parts = metrics ? parts_wanted(connection) : 0,
		.gzip = http_accepts_gzip(MHD_lookup_connection_value(
			connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT_ENCODING
		)),
	};

	if (metrics && accept != NULL && strstr(accept, "application/openmetrics-text") != NULL)
		form.kind = HTTP_PAGE_OPEN_METRICS;
	return form;
}

// Answer a complete request for a page. The library calls again after a client was resumed.
static enum MHD_Result
page_answer(struct http *http, struct MHD_Connection *connection, bool metrics) {
	struct http_place *place = connection_place(connection);
	uint64_t now_ns = clock_now_ns(http->config.clock), snapshot_ns;
	struct http_page *page;
	int cut;

	if (place->ends)
		return MHD_NO;
	if (place->page != NULL)
		return page_send(connection, place->page);
	if (place->reads)
		return send_sentence(
			connection, MHD_HTTP_SERVICE_UNAVAILABLE, "No memory for this page.\n"
		);
	http_places_add_reader(&http->places, place, &cut);
	if (cut >= 0) {
		socket_shut_down(cut);
		reader_dropped(http);
	}
	place->form = form_wanted(connection, metrics);
	snapshot_ns = facts_begin(http).snapshot->at_ns;
	rcu_thread_offline();
	page = http_pages_find(&http->pages, place->form, snapshot_ns, now_ns);
	if (page != NULL) {
		place->page = http_page_get(page);
		return page_send(connection, page);
	}
	http_pages_want(&http->pages, place->form);
	place->waits = connection;
	MHD_suspend_connection(connection);
	return MHD_YES;
}

static enum MHD_Result
// NOLINTNEXTLINE(readability-function-size): the library decides on the parameters
handle_request(
	void *ctx,
	struct MHD_Connection *connection,
	const char *url,
	const char *method,
	const char *version,
	const char *upload,
	size_t *upload_size,
	void **connection_ctx
) {
	struct http *http = ctx;
	bool metrics = strcmp(url, "/metrics") == 0;

	(void)version;
	(void)upload;
	if (*connection_ctx == NULL) { // the headers are complete
		http_place_request_done(
			connection_place(connection), clock_now_ns(http->config.clock)
		);
		if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
		    strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
			*upload_size = 0;
			return send_sentence(
				connection, MHD_HTTP_METHOD_NOT_ALLOWED,
				"Only GET and HEAD are served.\n"
			);
		}
		if (strcmp(url, "/health") == 0 || strcmp(url, "/health/node") == 0)
			return health_send(http, connection, url[strlen("/health")] != '\0');
		if (!metrics && strcmp(url, "/status.json") != 0)
			return send_sentence(
				connection, MHD_HTTP_NOT_FOUND,
				"Not found. Pages: /metrics, /health, /health/node, /status.json.\n"
			);
		if (metrics && (parts_wanted(connection) & PARTS_UNKNOWN) != 0)
			return send_sentence(
				connection, MHD_HTTP_BAD_REQUEST,
				"collect[] is self, verdicts, paths or jobs.\n"
			);
		// A connection can be suspended once the request is complete.
		*connection_ctx = http;
		return MHD_YES;
	}
	if (*upload_size > 0) { // a body, which has no meaning
		*upload_size = 0;
		return MHD_YES;
	}
	return page_answer(http, connection, metrics);
}

static enum MHD_Result accept_policy(void *ctx, const struct sockaddr *from, socklen_t length) {
	const struct http *http = ctx;
	struct sock_addr addr;

	if (sock_addr_from_sockaddr(from, length, &addr) != 0)
		return MHD_NO;
	for (size_t n = 0; n < http->config.allow_count; n++) {
		if (cidr_contains(&http->allow[n], &addr))
			return MHD_YES;
	}
	return http_address_is_local(&addr) ? MHD_YES : MHD_NO;
}

// The thread. It is not the library's own thread, because it must register with RCU and unregister
// at its end.

static void *http_main(void *argument) {
	struct http *http = argument;
	const union MHD_DaemonInfo *info =
		MHD_get_daemon_info(http->daemon, MHD_DAEMON_INFO_EPOLL_FD);
	struct pollfd fds[] = {
		{.fd = info->epoll_fd, .events = POLLIN},
		{.fd = http->stop, .events = POLLIN},
	};
	int err = rcu_thread_register("http", clock_now_ns(http->config.clock));

	if (err != 0) {
		log_event(LOG_LEVEL_ERROR, "http_failed", log_errno("error", err));
		return NULL;
	}
	rcu_thread_offline();
	while ((fds[1].revents & POLLIN) == 0) {
		MHD_UNSIGNED_LONG_LONG wanted; // milliseconds
		int timeout_ms = IDLE_MS, overdue;
		uint64_t now_ns;

		// The library checks at the start of a turn whether it can accept waiting clients.
		// A place that became free in this turn is used in the next, so do not wait.
		if (http->changed || http_pages_has_work(&http->pages))
			timeout_ms = 0;
		else if (MHD_get_timeout(http->daemon, &wanted) == MHD_YES && wanted < IDLE_MS)
			timeout_ms = (int)wanted;
		if (poll(fds, 2, timeout_ms) < 0)
			must(errno == EINTR);
		http->changed = false;
		MHD_run(http->daemon);
		now_ns = clock_now_ns(http->config.clock);
		pages_turn(http, now_ns);
		while ((overdue = http_places_next_overdue(&http->places, now_ns)) >= 0)
			socket_shut_down(overdue);
	}
	rcu_thread_unregister();
	return NULL;
}

// Starting.

// Start the daemon. It owns the socket once it has started.
static int daemon_start(struct http *http) {
	int fd;
	int err = http_listen(&http->config.listen, &fd);

	if (err != 0)
		return err;
	http->daemon = MHD_start_daemon(
		MHD_USE_EPOLL | MHD_ALLOW_SUSPEND_RESUME, 0, accept_policy, http, handle_request,
		http, MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
		(unsigned)HTTP_CONNECTIONS_MAX, MHD_OPTION_NOTIFY_CONNECTION, connection_changed,
		http, MHD_OPTION_NOTIFY_COMPLETED, request_ended, http,
		MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)CONNECTION_BYTES, MHD_OPTION_END
	);
	if (http->daemon == NULL) {
		close(fd);
		return -EIO;
	}
	return 0;
}

int http_start(
	const struct http_config *config,
	char ret_detail[static HTTP_DETAIL_BYTES],
	struct http **ret_http
) {
	struct http *http = calloc(1, sizeof(*http));
	char text[SOCK_ADDR_TEXT_BYTES];
	int err = 0;

	if (http == NULL) {
		err = -ENOMEM;
		goto fail;
	}
	http->config = *config;
	http_places_init(&http->places);
	http_pages_init(&http->pages, &pages_calls, http);
	http->stop = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (http->stop < 0)
		err = neg_errno();
	if (err == 0 && config->allow_count > 0) {
		http->allow = calloc(config->allow_count, sizeof(*http->allow));
		if (http->allow == NULL)
			err = -ENOMEM;
		else
			memcpy(http->allow, config->allow,
			       config->allow_count * sizeof(*http->allow));
	}
	if (err == 0)
		err = daemon_start(http);
	if (err == 0)
		err = thread_start_masked("tocsin-http", http_main, http, &http->thread);
	if (err != 0)
		goto fail;
	http->runs = true;
	*ret_http = http;
	return 0;
fail:
	sock_addr_format(&config->listen, text);
	snprintf(
		ret_detail, HTTP_DETAIL_BYTES, "cannot serve HTTP on %s: %s", text,
		strerrordesc_np(-err)
	);
	http_stop(http);
	return err;
}

struct http *http_stop(struct http *http) {
	uint64_t one = 1;

	if (http == NULL)
		return NULL;
	if (http->runs) {
		must(write(http->stop, &one, sizeof(one)) == sizeof(one));
		pthread_join(http->thread, NULL);
	}
	// The library does not stop while a connection is suspended.
	for (uint32_t n = 0; n < HTTP_CONNECTIONS_MAX; n++) {
		if (http->places.of[n].waits != NULL)
			MHD_resume_connection(http->places.of[n].waits);
	}
	if (http->daemon != NULL)
		MHD_stop_daemon(http->daemon);
	http_pages_fini(&http->pages);
	if (http->stop >= 0)
		close(http->stop);
	free(http->allow);
	free(http);
	return NULL;
}
