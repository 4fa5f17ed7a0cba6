// SPDX-License-Identifier: BSD-3-Clause
// Checks that a start would get its addresses, its client socket and its state directory. Each
// address is bound briefly but never listened on. So no client connects, and a starting agent is
// not disturbed. An address held by a running agent is no error, because a restart frees it.
#include "agent.h"
#include "check.h"
#include "socket_path.h"

#include <control/agent_key.h>
#include <control/state.h>
#include <lib/config.h>
#include <lib/error.h>
#include <lib/file_trust.h>
#include <lib/must.h>
#include <lib/port_holder.h>
#include <lib/scoped.h>

#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static int address_try_bind(const struct sock_addr *address) {
	struct sockaddr_storage storage;
	socklen_t length = sock_addr_to_sockaddr(address, &storage);
	const int on = 1;
	scoped_fd int fd = socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	// Listeners set this option too: lingering connections do not keep the port.
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) != 0)
		return neg_errno();
	if (storage.ss_family == AF_INET6 &&
	    setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof(on)) != 0)
		return neg_errno();
	return bind(fd, (const struct sockaddr *)&storage, length) == 0 ? 0 : neg_errno();
}

static bool holder_is_agent(const struct port_holder *holder) {
	return holder->kind == PORT_HOLDER_PROCESS && strcmp(holder->command, "tocsind") == 0;
}

// A holder that cannot be identified may be an agent that this user may not see, or it may have
// exited meanwhile.
bool check_holder_may_be_agent(const struct port_holder *holder) {
	return holder->kind == PORT_HOLDER_NONE || holder->kind == PORT_HOLDER_NOT_VISIBLE ||
	       holder_is_agent(holder);
}

void check_address(const struct sock_addr *address, const void *member, struct config_load *load) {
	int err = address->port != 0 ? address_try_bind(address) : 0;
	char text[SOCK_ADDR_TEXT_BYTES], words[PORT_HOLDER_TEXT_BYTES];
	struct port_holder holder = {.kind = PORT_HOLDER_KERNEL};

	if (err == 0)
		return;
	sock_addr_format(address, text);
	if (err != -EADDRINUSE) {
		config_reject_key(load, member, "%s: %s", text, strerrordesc_np(-err));
		return;
	}
	port_holder_find(PORT_TCP, address, &holder);
	if (check_holder_may_be_agent(&holder))
		return;
	port_holder_format(&holder, words);
	config_reject_key(load, member, "%s: %s listens there", text, words);
}

// Return the listen address. Returns false if the text is empty.
static bool parse_listen(const char *text, uint16_t port, struct sock_addr *ret_address) {
	if (text[0] == '\0')
		return false;
	must(sock_addr_parse(text, strlen(text), port, NULL, ret_address) == 0);
	return true;
}

static void check_listen(const char *const *member, uint16_t port, struct config_load *load) {
	struct sock_addr address;

	if (config_key_is_valid(load, member) && parse_listen(*member, port, &address))
		check_address(&address, member, load);
}

// Return why no file can be created in the directory, without its name. Returns NULL if files can
// be created.
static const char *directory_unusable_reason(const char *directory) {
	struct stat info;

	if (stat(directory, &info) != 0)
		return errno == ENOENT ? "there is no such directory" : strerrordesc_np(errno);
	if (!S_ISDIR(info.st_mode))
		return "it is not a directory";
	return access(directory, W_OK | X_OK) == 0 ? NULL : strerrordesc_np(errno);
}

// Return the parent directory of a path, ignoring trailing slashes. The caller frees it. Returns
// NULL if out of memory.
static char *path_parent(const char *path) {
	size_t length = strlen(path);

	while (length > 1 && path[length - 1] == '/')
		length--;
	while (length > 1 && path[length - 1] != '/')
		length--;
	return strndup(path, length > 1 ? length - 1 : 1);
}

// Check a directory that must exist. If is_made is true, the start can create it in its parent.
static void
check_directory(const char *directory, bool is_made, const void *member, struct config_load *load) {
	scoped_mem char *parent = path_parent(directory);
	const char *why = directory_unusable_reason(directory);
	struct stat info;

	if (why == NULL || parent == NULL)
		return;
	if (!is_made || stat(directory, &info) == 0 || errno != ENOENT) {
		config_reject_key(load, member, "cannot write to %s: %s", directory, why);
		return;
	}
	why = directory_unusable_reason(parent);
	if (why != NULL)
		config_reject_key(
			load, member, "cannot create %s in %s: %s", directory, parent, why
		);
}

// Check the key as the user of the agent, who may open other files than root's tools trust. This
// program has one thread.
static int
agent_key_check_as(uid_t user, const char *state, const struct seal_keys *keys, char *detail) {
	const uid_t own = geteuid();
	int err = seteuid(user) == 0 ? 0 : neg_errno();

	detail[0] = '\0';
	if (err == 0)
		err = agent_key_check(state, keys, detail);
	must(seteuid(own) == 0);
	if (err != 0 && detail[0] == '\0')
		snprintf(
			detail, AGENT_DETAIL_BYTES, "%s/agent.key: %s", state, strerrordesc_np(-err)
		);
	return err;
}

void check_places(
	const struct agent_settings *settings,
	const struct seal_keys *keys,
	struct config_load *load
) {
	const char *state = settings->node.state_directory;
	char path[SOCKET_PATH_BYTES], detail[AGENT_DETAIL_BYTES];
	const char *problem = NULL;
	struct stat info;

	check_listen(&settings->client.listen, CLIENT_PORT, load);
	check_listen(&settings->http.listen, HTTP_PORT, load);
	if (config_key_is_valid(load, &settings->client.socket)) {
		scoped_mem char *directory = NULL;

		if (socket_path_find(settings, path, detail) != 0)
			config_reject_key(load, &settings->client.socket, "%s", detail);
		else if (lstat(path, &info) == 0 && !S_ISSOCK(info.st_mode))
			config_reject_key(
				load, &settings->client.socket, "%s exists and is not a socket",
				path
			);
		else
			directory = path_parent(path);
		if (directory != NULL)
			check_directory(
				directory, socket_path_is_made(settings), &settings->client.socket,
				load
			);
	}
	if (state[0] == '\0' || !config_key_is_valid(load, &settings->node.state_directory))
		return;
	check_directory(state, true, &settings->node.state_directory, load);
	if (stat(state, &info) == 0 && S_ISDIR(info.st_mode)) {
		uid_t agent_user = geteuid();

		// Root checks the configuration of an agent that runs as this user.
		if (file_trust_is_agent(info.st_uid)) {
			agent_user = info.st_uid;
			info.st_uid = 0;
		}
		problem = state_directory_problem(&info);
		if (problem == NULL && keys != NULL &&
		    agent_key_check_as(agent_user, state, keys, detail) != 0)
			config_reject_key(load, &settings->node.state_directory, "%s", detail);
	}
	if (problem != NULL)
		config_reject_key(load, &settings->node.state_directory, "%s: %s", state, problem);
}

void check_report_running_agents(const struct agent_settings *settings, FILE *stream) {
	const struct {
		const char *section, *listen;
		uint16_t port;
	} places[] = {
		{"overlay", settings->overlay.listen, OVERLAY_PORT},
		{"client", settings->client.listen, CLIENT_PORT},
		{"http", settings->http.listen, HTTP_PORT}};
	char text[SOCK_ADDR_TEXT_BYTES], words[PORT_HOLDER_TEXT_BYTES];
	struct port_holder holder;
	struct sock_addr address;

	for (size_t n = 0; n < sizeof(places) / sizeof(places[0]); n++) {
		if (!parse_listen(places[n].listen, places[n].port, &address) ||
		    address.port == 0 || address_try_bind(&address) != -EADDRINUSE)
			continue;
		port_holder_find(PORT_TCP, &address, &holder);
		if (!holder_is_agent(&holder))
			continue;
		sock_addr_format(&address, text);
		port_holder_format(&holder, words);
		fprintf(stream, "note: [%s] listen: an agent already runs on %s: %s\n",
			places[n].section, text, words);
	}
}
