// SPDX-License-Identifier: BSD-3-Clause
// The HTTP server on its thread, which reads published snapshots only.
#include "report/http_listen.h"
#include "report/http_places.h"
#include "report/metrics_page.h"

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
	int stop; // eventfd
	pthread_t thread;
	bool runs;
	bool changed; // libmicrohttpd opened or closed a connection in this turn
};

// Places: the connections that may stay. To end one, its socket is shut down; the library closes
// it.

static void socket_shut_down(int fd) {
	// ENOTCONN: the client has already closed the connection.
	if (shutdown(fd, SHUT_RDWR) != 0)
		must(errno == ENOTCONN);
}

static struct http_place *connection_place(struct MHD_Connection *connection) {
	return MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT)
		->socket_context;
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

	(void)request_ctx;
	(void)why;
	http_place_answer_done(connection_place(connection), clock_now_ns(http->config.clock));
}

// Answers.

enum page {
	PAGE_METRICS,
	PAGE_HEALTH,
	PAGE_STATUS,
	PAGE_COUNT,
};

static const char *const paths[PAGE_COUNT] = {"/metrics", "/health", "/status.json"};

static const char text_type[] = "text/plain; version=0.0.4; charset=utf-8";
static const char open_type[] = "application/openmetrics-text; version=1.0.0; charset=utf-8";
static const char json_type[] = "application/json";

static enum MHD_Result send_text(
	struct MHD_Connection *connection,
	unsigned status,
	const char *type,
	char *text,
	size_t size
) {
	struct MHD_Response *response =
		MHD_create_response_from_buffer(size, text, MHD_RESPMEM_MUST_FREE);
	enum MHD_Result result;

	if (response == NULL) {
		free(text);
		return MHD_NO;
	}
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
	char *text = strdup(sentence);

	if (text == NULL)
		return MHD_NO;
	return send_text(connection, status, "text/plain; charset=utf-8", text, strlen(text));
}

// Write a page. The thread is an online RCU reader until the page is complete, so the snapshot
// stays valid.
static int
write_page(struct http *http, enum page page, bool open_metrics, FILE *out, unsigned *ret_status) {
	uint64_t now_ns = clock_now_ns(http->config.clock);
	struct page_facts facts = {
		.peers = http->config.peers,
		.version = http->config.version,
		.now_ns = now_ns,
	};
	int err = 0;

	rcu_thread_online(now_ns);
	facts.snapshot = snapshots_current(http->config.snapshots);
	// The snapshot may be newer than now_ns, which was read before.
	if (facts.snapshot->at_ns > facts.now_ns)
		facts.now_ns = facts.snapshot->at_ns;
	*ret_status = MHD_HTTP_OK;
	if (page == PAGE_METRICS)
		page_metrics(&facts, open_metrics, out);
	else if (page == PAGE_STATUS)
		err = page_status(&facts, out);
	else
		err = page_health(&facts, out);
	if (page == PAGE_HEALTH && page_is_down(&facts))
		*ret_status = MHD_HTTP_SERVICE_UNAVAILABLE;
	rcu_thread_offline();
	return err;
}

static enum MHD_Result
page_answer(struct http *http, struct MHD_Connection *connection, enum page page) {
	const char *accept =
		MHD_lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	bool open_metrics = page == PAGE_METRICS && accept != NULL &&
			    strstr(accept, "application/openmetrics-text") != NULL;
	const char *type = page != PAGE_METRICS ? json_type : open_metrics ? open_type : text_type;
	unsigned status;
	char *text = NULL;
	size_t size = 0;
	FILE *out = open_memstream(&text, &size);
	int err;

	if (out == NULL)
		return MHD_NO;
	err = write_page(http, page, open_metrics, out, &status);
	if (fclose(out) != 0 || err != 0) {
		free(text);
		return MHD_NO;
	}
	return send_text(connection, status, type, text, size);
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

	(void)version;
	(void)upload;
	(void)connection_ctx;
	http_place_request_done(connection_place(connection), clock_now_ns(http->config.clock));
	if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 && strcmp(method, MHD_HTTP_METHOD_HEAD) != 0) {
		*upload_size = 0;
		return send_sentence(
			connection, MHD_HTTP_METHOD_NOT_ALLOWED, "Only GET and HEAD are served.\n"
		);
	}
	for (int page = 0; page < PAGE_COUNT; page++) {
		if (strcmp(url, paths[page]) == 0)
			return page_answer(http, connection, (enum page)page);
	}
	return send_sentence(
		connection, MHD_HTTP_NOT_FOUND,
		"Not found. Pages: /metrics, /health, /status.json.\n"
	);
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
		if (http->changed)
			timeout_ms = 0;
		else if (MHD_get_timeout(http->daemon, &wanted) == MHD_YES && wanted < IDLE_MS)
			timeout_ms = (int)wanted;
		if (poll(fds, 2, timeout_ms) < 0)
			must(errno == EINTR);
		http->changed = false;
		MHD_run(http->daemon);
		now_ns = clock_now_ns(http->config.clock);
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
		MHD_USE_EPOLL, 0, accept_policy, http, handle_request, http,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT,
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
	if (http->daemon != NULL)
		MHD_stop_daemon(http->daemon);
	if (http->stop >= 0)
		close(http->stop);
	free(http->allow);
	free(http);
	return NULL;
}
