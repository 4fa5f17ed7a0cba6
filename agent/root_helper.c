// SPDX-License-Identifier: BSD-3-Clause
// tocsin-root: starts programs of tocsin.conf as the users that the file names, for an agent that
// is not root. tocsin-root.socket starts it when the agent connects:
//
//	tocsin-root USER CONFIGURATION
//
// The kernel must report USER as the other end, and the configuration must belong to root. The
// agent sends the name of a program, such as "check scratch", and the data of a webhook. Words and
// user of the program come from the configuration, which is read for each order. A program without
// `user` is never run here.
//
// The process serves one connection and ends with it. systemd then waits for the next connection.
#include "root_helper.h"

#include <control/checks.h>
#include <control/spawn.h>
#include <lib/config.h>
#include <lib/error.h>
#include <lib/file_trust.h>
#include <lib/log.h>
#include <lib/must.h>
#include <lib/parse.h>
#include <lib/scoped.h>
#include <lib/standard_streams.h>
#include <lib/user.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define LISTENER_FD 3 // the first descriptor from systemd, LISTEN_FDS

struct root_check {
	const char *section; // "check disk"
	const char *command, *user;
};

struct root_settings {
	const char *webhook, *webhook_user;
	const struct root_check *checks[CONFIG_SECTIONS_MAX + 1];
};

static int check_command(const char *text, size_t length, struct parse_error *error) {
	return length == 0 ? 0 : check_command_validate(text, length, error);
}

#define TEXT(section, name, type, member, size_max, check)                                      \
	{                                                                                       \
		section, name, CONFIG_AT(STRING, type, member), true, 0, size_max, NULL, check, \
			"", "", ""                                                              \
	}

// The keys of these programs. tocsind has all other keys, and reports mistakes in them.
static const struct config_key keys[] = {
	TEXT("check NAME", "command", struct root_check, command, CHECKS_COMMAND_MAX, check_command
	),
	TEXT("check NAME", "user", struct root_check, user, SPAWN_USER_BYTES_MAX - 1, NULL),
	TEXT("health", "webhook", struct root_settings, webhook, CHECKS_COMMAND_MAX, check_command),
	TEXT("health",
	     "webhook_user",
	     struct root_settings,
	     webhook_user,
	     SPAWN_USER_BYTES_MAX - 1,
	     NULL),
};

static const struct config_named named_sections[] = {
	{"check NAME", sizeof(struct root_check), offsetof(struct root_settings, checks)},
	{NULL, 0, 0},
};

static const struct config_schema schema = {
	.keys = keys,
	.key_count = sizeof(keys) / sizeof(keys[0]),
	.named = named_sections,
	.settings_size = sizeof(struct root_settings),
	.partial = true,
};

static void config_report(void *context, const char *message) {
	(void)context;
	log_event(LOG_LEVEL_ERROR, "configuration_refused", log_str("reason", message));
}

// Open the configuration if only root can have written it.
static FILE *config_open(const char *path) {
	scoped_mem char *resolved = realpath(path, NULL);
	char detail[FILE_TRUST_DETAIL_BYTES] = "";
	scoped_fd int fd = -1;
	FILE *stream = NULL;
	const struct file_trust trust = {.root_only = true};
	struct stat status;

	if (resolved != NULL && file_trust_check_directories(resolved, &trust, detail) == 0)
		fd = open(resolved, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
	if (fd >= 0 && fstat(fd, &status) == 0) {
		if (file_trust_check_owner(resolved, &status, &trust, detail) == 0 &&
		    !file_trust_is_writable_by_others(&status, &trust))
			stream = fdopen(scoped_release_fd(&fd), "r");
		else if (detail[0] == '\0')
			snprintf(detail, sizeof(detail), "users other than root can write to it");
	}
	if (stream == NULL)
		log_event(
			LOG_LEVEL_ERROR, "configuration_refused", log_str("path", path),
			log_str("reason", detail[0] != '\0' ? detail : strerrordesc_np(errno))
		);
	return stream;
}

// Find command and user of a program. "" stays where the configuration has none.
static void program_find(
	const struct root_settings *settings,
	const char *name,
	const char **ret_command,
	const char **ret_user
) {
	*ret_command = *ret_user = "";
	if (strcmp(name, ROOT_HELPER_WEBHOOK) == 0) {
		*ret_command = settings->webhook;
		*ret_user = settings->webhook_user;
		return;
	}
	for (size_t n = 0; settings->checks[n] != NULL; n++) {
		if (strcmp(settings->checks[n]->section, name) == 0) {
			*ret_command = settings->checks[n]->command;
			*ret_user = settings->checks[n]->user;
		}
	}
}

static int catalog_find(void *ctx, const char *name, struct spawn_named *ret_named) {
	const struct config_reporter reporter = {.report = config_report};
	struct config_input input = {.path = ctx};
	scoped_file FILE *stream = config_open(ctx);
	const char *command, *user, *why;
	struct config *config;

	input.stream = stream;
	if (stream == NULL || config_load(&schema, &input, &reporter, &config) != 0)
		return SPAWN_BAD_CONFIG;
	program_find(config_settings(config), name, &command, &user);
	snprintf(ret_named->text, sizeof(ret_named->text), "%s", command);
	snprintf(ret_named->user, sizeof(ret_named->user), "%s", user);
	config_destroy(config);
	ret_named->takes_input = strcmp(name, ROOT_HELPER_WEBHOOK) == 0;
	if (ret_named->text[0] == '\0' || ret_named->user[0] == '\0') {
		log_event(LOG_LEVEL_WARN, "program_refused", log_str("name", name));
		return SPAWN_NOT_LISTED;
	}
	must(check_command_split(ret_named->text, ret_named->argv, &why) == 0);
	return 0;
}

// Return a connection whose other end is a process of the user.
static int connection_accept(uid_t user) {
	for (;;) {
		int fd = accept4(LISTENER_FD, NULL, NULL, SOCK_CLOEXEC);
		socklen_t size = sizeof(struct ucred);
		struct ucred peer = {.uid = (uid_t)-1};

		if (fd < 0 && (errno == EINTR || errno == ECONNABORTED))
			continue;
		if (fd < 0)
			return neg_errno();
		if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 && peer.uid == user)
			return fd;
		log_event(LOG_LEVEL_WARN, "connection_refused", log_u64("user", peer.uid));
		close(fd);
	}
}

int main(int argc, char **argv) {
	const char *given = getenv("LISTEN_FDS"); // NOLINT(concurrency-mt-unsafe): one thread
	uid_t user;
	int fd, err;

	standard_streams_open();
	log_init();
	if (argc != 3 || given == NULL || strcmp(given, "1") != 0) {
		fprintf(stderr, "usage: tocsin-root USER CONFIGURATION, started by "
				"tocsin-root.socket\n");
		return 2;
	}
	err = user_find_id(argv[1], &user);
	if (err != 0) {
		fprintf(stderr, "tocsin-root: cannot find user %s: %s\n", argv[1],
			err == -ENOENT ? "there is no such user" : strerrordesc_np(-err));
		return 1;
	}
	fd = connection_accept(user);
	if (fd < 0) {
		fprintf(stderr, "tocsin-root: cannot accept: %s\n", strerrordesc_np(-fd));
		return 1;
	}
	spawn_serve_named(fd, catalog_find, argv[2]);
}
