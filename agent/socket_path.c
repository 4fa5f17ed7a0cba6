// SPDX-License-Identifier: BSD-3-Clause
// Finds or makes the directory and path of the local client socket.
#include "socket_path.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SOCKET_NAME "tocsind.sock"

// Return the runtime directory made by the service manager, or NULL if it is unset or unusable.
static const char *service_runtime_directory(void) {
	const char *made = secure_getenv("RUNTIME_DIRECTORY");

	if (made == NULL || made[0] != '/' || strchr(made, ':') != NULL ||
	    strlen(made) + sizeof("/" SOCKET_NAME) > SOCKET_PATH_BYTES)
		return NULL;
	return made;
}

bool socket_path_is_made(const struct agent_settings *settings) {
	return settings->client.socket[0] == '\0' && service_runtime_directory() == NULL;
}

int socket_path_find(
	const struct agent_settings *settings,
	char ret_path[static SOCKET_PATH_BYTES],
	char ret_detail[static AGENT_DETAIL_BYTES]
) {
	const char *given = settings->client.socket;
	const char *made = service_runtime_directory();
	const char *base = geteuid() == 0 ? "/run" : secure_getenv("XDG_RUNTIME_DIR");

	if (base != NULL && strlen(base) + sizeof("/tocsin/" SOCKET_NAME) > SOCKET_PATH_BYTES)
		base = NULL;

	if (given[0] != '\0') {
		snprintf(ret_path, SOCKET_PATH_BYTES, "%s", given);
	} else if (made != NULL) {
		snprintf(ret_path, SOCKET_PATH_BYTES, "%s/" SOCKET_NAME, made);
	} else if (base != NULL) {
		snprintf(ret_path, SOCKET_PATH_BYTES, "%s/tocsin/" SOCKET_NAME, base);
	} else {
		snprintf(
			ret_detail, AGENT_DETAIL_BYTES,
			"XDG_RUNTIME_DIR is not set, or too long: give [client] socket"
		);
		return -ENOENT;
	}
	return 0;
}

int socket_path_make(
	const struct agent_settings *settings,
	char ret_path[static SOCKET_PATH_BYTES],
	char ret_detail[static AGENT_DETAIL_BYTES]
) {
	char directory[SOCKET_PATH_BYTES];
	int err = socket_path_find(settings, ret_path, ret_detail);

	if (err != 0 || !socket_path_is_made(settings))
		return err;
	snprintf(
		directory, sizeof(directory), "%.*s", (int)(strrchr(ret_path, '/') - ret_path),
		ret_path
	);
	if (mkdir(directory, 0755) == 0 || errno == EEXIST)
		return 0;
	err = -errno;
	snprintf(
		ret_detail, AGENT_DETAIL_BYTES, "cannot create %s: %s", directory,
		strerrordesc_np(-err)
	);
	return err;
}
