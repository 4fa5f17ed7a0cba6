// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes the file of remembered members. The accepted members are bounded, and survive formatting
// and parsing.
#include <control/member_list.h>
#include <lib/must.h>
#include <support/fuzz.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define CLUSTER "c"
#define NODE "n1"

static struct member_list list, again;

static void check(const struct member *member) {
	must(strlen(member->name) > 0 && strlen(member->name) <= RAS_NAME_MAX);
	must(strlen(member->host) > 0 && strlen(member->host) <= RAS_NAME_MAX);
	must(member->address.port != 0 && !sock_addr_is_any(&member->address));
	must(member_list_find(&list, member->name) == member);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	const char *reason = NULL;
	char *text;
	int err;

	if (size >= MEMBER_LIST_BYTES)
		return 0;
	text = malloc(size + 1);
	must(text != NULL);
	memcpy(text, data, size);
	text[size] = '\0';
	err = member_list_parse(&list, text, CLUSTER, NODE, &reason);
	free(text);
	if (err != 0) {
		must((err == -EBADMSG || err == -EXDEV) && list.count == 0 && reason != NULL);
		return 0;
	}
	must(list.count <= MEMBER_LIST_MAX);
	for (uint32_t n = 0; n < list.count; n++)
		check(&list.members[n]);
	text = member_list_format(&list, CLUSTER, NODE);
	must(text != NULL && strlen(text) < MEMBER_LIST_BYTES);
	must(member_list_parse(&again, text, CLUSTER, NODE, &reason) == 0);
	free(text);
	must(again.count == list.count);
	must(member_list_digest(&again) == member_list_digest(&list));
	member_list_expire(&list, 7 + MEMBER_LIST_KEEP_S);
	must(list.count <= again.count);
	return 0;
}
