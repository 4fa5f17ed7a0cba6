// SPDX-License-Identifier: BSD-3-Clause
// Chooses what starts a program of the configuration: the spawn helper, or the root helper if this
// agent may not become the user.
#include "agent.h"
#include "root_helper.h"

#include <control/spawn.h>
#include <lib/capability.h>

#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

// The own user is looked up once, at the start: a directory service may hang later.
static void find_own_user(struct agent *agent) {
	const struct passwd *user;

	if (capability_is_effective(CAP_SETUID))
		return;
	// NOLINTNEXTLINE(concurrency-mt-unsafe): before other threads ask
	user = getpwuid(geteuid());
	snprintf(
		agent->user_name, sizeof(agent->user_name), "%s", user != NULL ? user->pw_name : "?"
	);
}

int programs_start(struct agent *agent) {
	int err;

	find_own_user(agent);
	err = spawn_create(agent->loop, &agent->spawn_helper, &agent->spawn);
	if (err != 0)
		return err;
	err = spawn_create_named(agent->loop, ROOT_HELPER_SOCKET, agent->spawn, &agent->root_spawn);
	if (err != 0)
		programs_stop(agent);
	return err;
}

void programs_stop(struct agent *agent) {
	agent->root_spawn = spawn_destroy(agent->root_spawn);
	agent->spawn = spawn_destroy(agent->spawn);
}

bool programs_need_root_helper(const struct agent *agent, const char *user) {
	return user[0] != '\0' && agent->user_name[0] != '\0' &&
	       strcmp(user, agent->user_name) != 0;
}
