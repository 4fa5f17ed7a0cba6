// SPDX-License-Identifier: BSD-3-Clause
// The members that an agent remembers over a restart: the file `members` of the state directory, as
// a text. Pure.
//
// One JSON object:
//
//	{"version": 1, "cluster": "c", "node": "n1", "members": [{"address": "10.0.0.2:28030",
//	 "node": "n2", "host": "h2", "proven": 1795274228, "left": false}, ...]}
//
// It is of one node of one cluster: a directory that was copied to another node, or of a node that
// belongs to another cluster by now, is of no use, and may do harm.
#pragma once

#include <lib/sockaddr.h>
#include <ras/types.h>

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MEMBER_LIST_MAX RAS_REMEMBERED_MAX
#define MEMBER_LIST_BYTES 65536		    // of the text; names may have to be escaped
#define MEMBER_LIST_KEEP_S UINT64_C(604800) // seven days, without being proven

struct member {
	struct sock_addr address;
	char name[RAS_NAME_MAX + 1];
	char host[RAS_NAME_MAX + 1];
	uint64_t proven_s; // UNIX time at which it was a member last
	bool left;	   // it said goodbye since
};

struct member_list {
	struct member members[MEMBER_LIST_MAX];
	uint32_t count;
};

// In place of the one of that name or address, or if there is room. If there is none, one of a host
// that is not in it yet takes the place of one whose host is there twice, or else of the one that
// was proven longest ago, if that is longer ago; a later time than its own counts as long ago.
// False: it is not in the list now.
bool member_list_put(struct member_list *list, const struct member *member);
// NULL: it is not in it.
struct member *member_list_find(struct member_list *list, const char *name);
void member_list_drop(struct member_list *list, uint32_t n);
// Those that were proven longer ago than is kept; a time later than now is none of that. How many
// these were.
uint32_t member_list_expire(struct member_list *list, uint64_t now_s);
// Full of members of different hosts, all proven at that time: nobody could be better.
bool member_list_is_full(const struct member_list *list, uint64_t now_s);
// Of names and addresses, without the times.
uint64_t member_list_digest(const struct member_list *list);

// A text of malloc(), NULL if there is no memory. A name that is no text leaves its member out.
char *member_list_format(const struct member_list *list, const char *cluster, const char *node);
// -EBADMSG: it is no such text, -EXDEV: it is of another cluster or node, -ENOMEM; the list is then
// empty, and *ret_reason says why. One member that cannot be is reason enough.
int member_list_parse(
	struct member_list *list,
	const char *text,
	const char *cluster,
	const char *node,
	const char **ret_reason
);
