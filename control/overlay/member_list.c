// SPDX-License-Identifier: BSD-3-Clause
// The remembered members: which are kept, and their file format.
#include <control/member_list.h>

#include <jansson.h>
#include <xxhash.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define MEMBER_LIST_VERSION 1

// The list.

struct member *member_list_find(struct member_list *list, const char *name) {
	for (uint32_t n = 0; n < list->count; n++) {
		if (strcmp(list->members[n].name, name) == 0)
			return &list->members[n];
	}
	return NULL;
}

void member_list_remove_at(struct member_list *list, uint32_t n) {
	list->members[n] = list->members[--list->count];
}

static uint32_t members_on_host(const struct member_list *list, const char *host) {
	uint32_t count = 0;

	for (uint32_t n = 0; n < list->count; n++)
		count += strcmp(list->members[n].host, host) == 0;
	return count;
}

static uint64_t member_proven_s(const struct member *member, uint64_t now_s) {
	return member->proven_s <= now_s ? member->proven_s : 0;
}

// Return the member that makes room; the count if there is none. A time later than the newcomer's
// came from a wrong clock, and counts as long ago.
static uint32_t list_find_victim(const struct member_list *list, const struct member *member) {
	uint32_t oldest = list->count;
	uint64_t oldest_s = member->proven_s;

	if (members_on_host(list, member->host) > 0)
		return list->count;
	for (uint32_t n = 0; n < list->count; n++) {
		if (members_on_host(list, list->members[n].host) > 1)
			return n;
		if (member_proven_s(&list->members[n], member->proven_s) < oldest_s) {
			oldest_s = member_proven_s(&list->members[n], member->proven_s);
			oldest = n;
		}
	}
	return oldest;
}

bool member_list_put(struct member_list *list, const struct member *member) {
	uint32_t place;

	// Remove the member that had the name or the address before.
	for (uint32_t n = list->count; n-- > 0;) {
		if (strcmp(list->members[n].name, member->name) == 0 ||
		    sock_addr_equal(&list->members[n].address, &member->address))
			member_list_remove_at(list, n);
	}
	place = list->count;
	if (place == MEMBER_LIST_MAX)
		place = list_find_victim(list, member);
	if (place == MEMBER_LIST_MAX)
		return false;
	list->members[place] = *member;
	list->count += place == list->count;
	return true;
}

uint32_t member_list_expire(struct member_list *list, uint64_t now_s) {
	uint32_t before = list->count;

	for (uint32_t n = list->count; n-- > 0;) {
		uint64_t proven_s = list->members[n].proven_s;

		if (proven_s < now_s && now_s - proven_s > MEMBER_LIST_KEEP_S)
			member_list_remove_at(list, n);
	}
	return before - list->count;
}

bool member_list_is_full(const struct member_list *list, uint64_t now_s) {
	if (list->count < MEMBER_LIST_MAX)
		return false;
	for (uint32_t n = 0; n < list->count; n++) {
		if (list->members[n].proven_s != now_s ||
		    members_on_host(list, list->members[n].host) > 1)
			return false;
	}
	return true;
}

uint64_t member_list_digest(const struct member_list *list) {
	uint64_t digest = list->count;

	// The digest is a sum, because the order does not matter.
	for (uint32_t n = 0; n < list->count; n++) {
		const struct member *member = &list->members[n];

		digest += XXH3_64bits_withSeed(
			member->name, strlen(member->name),
			sock_addr_digest(&member->address) + member->left
		);
	}
	return digest;
}

// Writing.

char *member_list_format(const struct member_list *list, const char *cluster, const char *node) {
	json_t *members = json_array();
	json_t *object;
	char *text;

	for (uint32_t n = 0; n < list->count; n++) {
		const struct member *member = &list->members[n];
		char address[SOCK_ADDR_TEXT_BYTES];

		sock_addr_format(&member->address, address);
		object = json_pack(
			"{s:s,s:s,s:s,s:I,s:b}", "address", address, "node", member->name, "host",
			member->host, "proven", (json_int_t)member->proven_s, "left", member->left
		);
		json_array_append_new(members, object); // NULL: left out
	}
	object = json_pack(
		"{s:i,s:s,s:s,s:o}", "version", MEMBER_LIST_VERSION, "cluster", cluster, "node",
		node, "members", members
	);
	text = object != NULL ? json_dumps(object, JSON_COMPACT) : NULL;
	json_decref(object);
	return text;
}

// Reading.

static bool copy_member_name(const char *text, char name[static RAS_NAME_MAX + 1]) {
	size_t length = strlen(text);

	if (length == 0 || length > RAS_NAME_MAX)
		return false;
	memcpy(name, text, length + 1);
	return true;
}

static bool member_parse(json_t *object, struct member *ret_member) {
	const char *address, *name, *host;
	struct member member = {.left = false};
	json_int_t proven;
	int left;

	if (json_unpack(
		    object, "{s:s,s:s,s:s,s:I,s:b}", "address", &address, "node", &name, "host",
		    &host, "proven", &proven, "left", &left
	    ) != 0 ||
	    proven < 0 || !copy_member_name(name, member.name) ||
	    !copy_member_name(host, member.host) ||
	    sock_addr_parse(
		    address, strlen(address), SOCK_ADDR_PORT_NEEDED, NULL, &member.address
	    ) != 0 ||
	    member.address.port == 0 || sock_addr_is_any(&member.address))
		return false;
	member.proven_s = (uint64_t)proven;
	member.left = left != 0;
	*ret_member = member;
	return true;
}

static int object_parse(
	struct member_list *list,
	json_t *object,
	const char *cluster,
	const char *node,
	const char **ret_reason
) {
	const char *its_cluster, *its_node;
	json_t *members, *entry;
	int version;
	size_t n;

	*ret_reason = "the file is not a list of members";
	if (json_unpack(
		    object, "{s:i,s:s,s:s,s:o}", "version", &version, "cluster", &its_cluster,
		    "node", &its_node, "members", &members
	    ) != 0)
		return -EBADMSG;
	*ret_reason = "the file has an unsupported version";
	if (version != MEMBER_LIST_VERSION)
		return -EBADMSG;
	*ret_reason = "the file belongs to another cluster";
	if (strcmp(its_cluster, cluster) != 0)
		return -EXDEV;
	*ret_reason = "the file belongs to another node";
	if (strcmp(its_node, node) != 0)
		return -EXDEV;
	*ret_reason = "the file is not a list of members";
	if (!json_is_array(members))
		return -EBADMSG;
	*ret_reason = "the file has too many members";
	if (json_array_size(members) > MEMBER_LIST_MAX)
		return -EBADMSG;
	*ret_reason = "the file has an invalid member";
	json_array_foreach(members, n, entry) {
		struct member member;

		if (!member_parse(entry, &member) || !member_list_put(list, &member))
			return -EBADMSG;
	}
	return 0;
}

int member_list_parse(
	struct member_list *list,
	const char *text,
	const char *cluster,
	const char *node,
	const char **ret_reason
) {
	json_t *object = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	int err;

	list->count = 0;
	err = object_parse(list, object, cluster, node, ret_reason);
	json_decref(object);
	if (err != 0)
		list->count = 0;
	return err;
}
