// SPDX-License-Identifier: BSD-3-Clause
// The members that an agent remembers over a restart: the file `members` of the state directory, as
// text. Pure functions.
//
// The file is one JSON object:
//
//	{"version": 1, "cluster": "c", "node": "n1", "members": [{"address": "10.0.0.2:28030",
//	 "node": "n2", "host": "h2", "proven": 1795274228, "left": false}, ...]}
//
// The file belongs to one node of one cluster. It is rejected if the directory was copied to
// another node, or if the node changed its cluster: such addresses may do harm.
#pragma once

#include <lib/sockaddr.h>
#include <ras/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEMBER_LIST_MAX RAS_REMEMBERED_MAX
#define MEMBER_LIST_BYTES 65536		    // size of the text; names may need escapes
#define MEMBER_LIST_KEEP_S UINT64_C(604800) // seven days since the member was last proven

struct member {
	struct sock_addr address;
	char name[RAS_NAME_MAX + 1];
	char host[RAS_NAME_MAX + 1];
	uint64_t proven_s; // UNIX time when it was last a member
	bool left;	   // said goodbye since
};

struct member_list {
	struct member members[MEMBER_LIST_MAX];
	uint32_t count;
};

// Insert a member. It replaces the entry with the same name or address, or takes a free place. In a
// full list, only a member of a new host gets a place. It replaces one of two members of the same
// host. If there are none, it replaces the member that was proven longest ago, if that one is
// older. A time later than the new member's comes from a wrong clock and counts as oldest. Returns
// whether the member is in the list.
bool member_list_put(struct member_list *list, const struct member *member);
// Return the member with this name, or NULL.
struct member *member_list_find(struct member_list *list, const char *name);
void member_list_remove_at(struct member_list *list, uint32_t n);
// Remove members that were proven more than MEMBER_LIST_KEEP_S ago. A member with a time in the
// future stays. Returns the number removed.
uint32_t member_list_expire(struct member_list *list, uint64_t now_s);
// Return whether no better member can be added: the list is full, all hosts differ, and all members
// were proven at this time.
bool member_list_is_full(const struct member_list *list, uint64_t now_s);
// Return a digest of names, addresses and departures, without the times.
uint64_t member_list_digest(const struct member_list *list);

// Return the text, which the caller must free; NULL without memory. A member whose name is not
// valid UTF-8 is left out.
char *member_list_format(const struct member_list *list, const char *cluster, const char *node);
// Parse the text. Returns 0, -EBADMSG (not a valid list), -EXDEV (other cluster or node) or
// -ENOMEM. On error the list is empty and *ret_reason explains why. One impossible member makes the
// whole text invalid.
int member_list_parse(
	struct member_list *list,
	const char *text,
	const char *cluster,
	const char *node,
	const char **ret_reason
);
