// SPDX-License-Identifier: BSD-3-Clause
// Finds files that the user of tocsind.service may not use, when root checks the configuration. A
// process of that user tries each of them, because only the kernel knows all rules.
#include "check.h"
#include "settings.h"

#include <control/checks.h>
#include <lib/must.h>
#include <lib/seal_keys.h>

#include <errno.h>
#include <grp.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define KEY_PREFIX "note: tocsind.service runs as user %s, who cannot "

static void
check_access(const char *name, const char *section, const char *path, int mode, FILE *stream) {
	if (access(path, mode) != 0)
		fprintf(stream, KEY_PREFIX "%s %s (%s): %s\n", name, mode == X_OK ? "run" : "read",
			path, section, strerrordesc_np(errno));
}

static void
check_program(const char *name, const char *section, const char *command, FILE *stream) {
	char text[CHECKS_COMMAND_MAX + 1], *words[SPAWN_ARGUMENTS_MAX + 1];
	const char *why;

	snprintf(text, sizeof(text), "%s", command);
	must(check_command_split(text, words, &why) == 0);
	check_access(name, section, words[0], X_OK, stream);
}

static void check_key(const char *name, const char *path, bool is_given, FILE *stream) {
	char detail[SEAL_KEYS_DETAIL_BYTES];
	const struct seal_keys *keys;
	struct stat info;

	// The start of the unit makes the user the owner. Root has checked the rest of the file.
	if (path[0] == '\0' || (is_given && stat(path, &info) == 0))
		return;
	if (seal_keys_load(path, detail, &keys) != 0)
		fprintf(stream, KEY_PREFIX "use the key: %s; run chown %s %s\n", name, detail, name,
			path);
	else
		seal_keys_put(keys);
}

static void user_check_files(
	const struct agent_settings *settings,
	const char *path,
	const char *name,
	bool key_is_given,
	FILE *stream
) {
	char join[CONFIG_VALUE_BYTES_MAX + 1], *rest = join, *item;
	const struct check_section *check;

	if (path != NULL)
		check_access(name, "the configuration", path, R_OK, stream);
	check_key(name, settings->overlay.key, key_is_given, stream);
	snprintf(join, sizeof(join), "%s", settings->overlay.join);
	while ((item = strsep(&rest, ", ")) != NULL) {
		if (item[0] == '/')
			check_access(name, "[overlay] join", item, R_OK, stream);
	}
	if (settings->health.topology[0] != '\0')
		check_access(name, "[health] topology", settings->health.topology, R_OK, stream);
	for (size_t n = 0; (check = settings->checks[n]) != NULL; n++) {
		if (check->user[0] == '\0')
			check_program(name, check->section, check->command, stream);
	}
	if (settings->health.webhook[0] != '\0' && settings->health.webhook_user[0] == '\0')
		check_program(name, "[health] webhook", settings->health.webhook, stream);
}

void check_report_unit_user(
	const struct agent_settings *settings,
	const char *path,
	const char *name,
	bool key_is_given,
	FILE *stream
) {
	// NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread
	const struct passwd *user = getpwnam(name);
	pid_t pid;

	if (user == NULL) {
		fprintf(stream,
			"note: tocsind.service runs as user %s, who does not exist: run "
			"systemd-sysusers\n",
			name);
		return;
	}
	fflush(stream); // else both processes would print what is buffered
	pid = fork();
	if (pid == 0) {
		if (initgroups(user->pw_name, user->pw_gid) == 0 &&
		    setresgid(user->pw_gid, user->pw_gid, user->pw_gid) == 0 &&
		    setresuid(user->pw_uid, user->pw_uid, user->pw_uid) == 0)
			user_check_files(settings, path, name, key_is_given, stream);
		else
			fprintf(stream, "note: cannot become user %s: %s\n", name,
				strerrordesc_np(errno));
		fflush(stream);
		_exit(0);
	}
	if (pid > 0)
		waitpid(pid, NULL, 0);
}
