// SPDX-License-Identifier: BSD-3-Clause
// The client server: start, stop, and the forwarding of events to monitors.
#include "client/server.h"

#include "client/connection.h"
#include "client/listen.h"
#include "client/remote.h"
#include "jobs/look/comm_look.h"

#include <lib/container.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void client_config_init(struct client_config *config) {
	*config = (struct client_config){
		.socket_mode = 0666,
		.clients_max = 64,
		.idle_ns = 300 * RAS_NS_PER_SEC,
		.drain_ns = 10 * RAS_NS_PER_SEC,
		.asks_per_s = 5,
		.asks_burst = 10,
		.read_bytes_per_s = 8u << 20,
		.read_bytes_burst = 64u << 20,
		.version = "",
		.cluster = "",
	};
}

// Called from inside the core, so it only schedules a job.
static void on_event(struct overlay_listener *listener, const struct ras_event *event) {
	struct client_server *server =
		container_of(listener, struct client_server, monitors.listener);

	(void)event;
	loop_defer(server->loop, &server->monitors.job);
}

static void notify_monitors(struct loop_job *job) {
	struct client_server *server = container_of(job, struct client_server, monitors.job);
	struct connection *connection = server->connections;

	for (; connection != NULL; connection = connection->next)
		connection_notify_events(connection);
}

static int copy_text(const char *text, char **ret_copy) {
	*ret_copy = text != NULL ? strdup(text) : NULL;
	return text != NULL && *ret_copy == NULL ? -ENOMEM : 0;
}

int client_server_create(
	struct loop *loop,
	const struct client_config *config,
	struct overlay *overlay,
	char ret_detail[static CLIENT_DETAIL_BYTES],
	struct client_server **ret_server
) {
	struct client_server *server = calloc(1, sizeof(*server));
	int err = 0;

	ret_detail[0] = '\0';
	if (server == NULL)
		return -ENOMEM;
	server->loop = loop;
	server->overlay = overlay;
	server->config = *config;
	server->tcp.source.fd = -1;
	server->local.source.fd = -1;
	server->owner_fd = -1;
	server->comm_book = comm_wait_history_create();
	server->monitors.listener.event = on_event;
	server->monitors.job.run = notify_monitors;
	rate_init(&server->asks, config->asks_per_s, config->asks_burst);
	rate_init(&server->reads, config->read_bytes_per_s, config->read_bytes_burst);
	overlay_listen(overlay, &server->monitors.listener);
	overlay_set_call_server(overlay, client_serve_call, server);
	if (copy_text(config->socket_path, &server->socket_path) < 0 ||
	    copy_text(config->version, &server->version) < 0 ||
	    copy_text(config->cluster, &server->cluster) < 0)
		err = -ENOMEM;
	server->config.socket_path = server->socket_path;
	server->config.version = server->version;
	server->config.cluster = server->cluster;
	if (err == 0 && config->listen.family != SOCK_ADDR_NONE)
		err = listen_tcp(server, ret_detail);
	if (err >= 0 && server->socket_path != NULL)
		err = listen_local(server, ret_detail);
	if (err < 0) {
		if (ret_detail[0] == '\0')
			snprintf(ret_detail, CLIENT_DETAIL_BYTES, "%s", strerrordesc_np(-err));
		client_server_destroy(server);
		return err;
	}
	*ret_server = server;
	return 0;
}

struct client_server *client_server_destroy(struct client_server *server) {
	if (server == NULL)
		return NULL;
	overlay_set_call_server(server->overlay, NULL, NULL);
	overlay_unlisten(server->overlay, &server->monitors.listener);
	loop_undefer(server->loop, &server->monitors.job);
	remote_stop(server);
	while (server->connections != NULL)
		connection_close(server->connections);
	listen_stop(server);
	jobs_wait_history_destroy(server->comm_book);
	free(server->socket_path);
	free(server->version);
	free(server->cluster);
	free(server);
	return NULL;
}

struct sock_addr client_server_address(const struct client_server *server) {
	struct sockaddr_storage storage;
	socklen_t length = sizeof(storage);
	struct sock_addr address = {0};

	if (server->tcp.source.fd >= 0 &&
	    getsockname(server->tcp.source.fd, (struct sockaddr *)&storage, &length) == 0)
		(void)sock_addr_from_sockaddr((struct sockaddr *)&storage, length, &address);
	return address;
}

const struct client_counters *client_counters(const struct client_server *server) {
	return &server->counters;
}

void client_server_use_checks(struct client_server *server, const struct checks *checks) {
	server->checks = checks;
}

void client_server_use_fabric(
	struct client_server *server, const struct fabric_calls *calls, struct fabric *fabric
) {
	server->fabric_calls = calls;
	server->fabric = fabric;
}
