// SPDX-License-Identifier: BSD-3-Clause
// The users of this node's jobs: counts for quotas, and the time that a user may still take in a
// turn of the loop. Subordinate users share the record of the user who owns their range.
#include "jobs/host/inside.h"

#include <lib/container.h>

#include <stdlib.h>

struct host_user *user_get(struct jobhost *host, uid_t uid) {
	const uid_t owner = subuid_owner(host->subuids, uid);
	const uint64_t hash = table_hash(host->secret, &owner, sizeof(owner));
	struct table_entry *entry = table_first(&host->users_by_uid, hash);
	struct host_user *user;

	for (; entry != NULL; entry = table_next(&host->users_by_uid, entry)) {
		user = container_of(entry, struct host_user, by_uid);
		if (user->uid == owner)
			return user_hold(user);
	}
	user = calloc(1, sizeof(*user));
	if (user == NULL)
		return NULL;
	user->host = host;
	user->uid = owner;
	TAILQ_INIT(&user->comms);
	TAILQ_INIT(&user->ended);
	TAILQ_INIT(&user->left);
	TAILQ_INIT(&user->unsent);
	table_add(&host->users_by_uid, &user->by_uid, hash);
	LIST_INSERT_HEAD(&host->users, user, all);
	return user_hold(user);
}

struct host_user *user_hold(struct host_user *user) {
	user->references++;
	return user;
}

void user_put(struct host_user *user) {
	if (user == NULL || --user->references > 0)
		return;
	if (user->is_queued)
		TAILQ_REMOVE(&user->host->unsent_users, user, queue);
	LIST_REMOVE(user, all);
	table_remove(&user->host->users_by_uid, &user->by_uid);
	free(user);
}

bool user_has_time(struct host_user *user) {
	const uint64_t turn_ns = loop_now_ns(user->host->loop);

	if (user->turn_ns != turn_ns) {
		user->turn_ns = turn_ns;
		user->spent_ns = 0;
	}
	return user->spent_ns < USER_TURN_NS;
}

uint64_t user_charge(struct host_user *user, uint64_t began_ns) {
	const uint64_t now_ns = loop_clock_ns(user->host->loop);

	user->spent_ns += now_ns - began_ns;
	return now_ns;
}

bool jobs_have_time(struct jobhost *host, uint64_t *began_ns) {
	const uint64_t now_ns = loop_clock_ns(host->loop), turn_ns = loop_now_ns(host->loop);

	if (host->turn_ns != turn_ns)
		host->spent_ns = 0;
	host->turn_ns = turn_ns;
	host->spent_ns += now_ns - *began_ns;
	*began_ns = now_ns;
	return host->spent_ns < JOBS_TURN_NS;
}
