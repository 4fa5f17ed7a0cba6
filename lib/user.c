// SPDX-License-Identifier: BSD-3-Clause
// Looks up users. getpwnam_r() returns positive errnos, and 0 without an entry.
#include <lib/user.h>

#include <errno.h>
#include <pwd.h>
#include <stddef.h>
#include <stdlib.h>

#define STRINGS_BYTES_FIRST ((size_t)1 << 10)
#define STRINGS_BYTES_MAX ((size_t)1 << 20) // a directory service may return long entries

int user_find_id(const char *name, uid_t *ret_user) {
	int err = ERANGE;

	for (size_t size = STRINGS_BYTES_FIRST; err == ERANGE && size <= STRINGS_BYTES_MAX;
	     size *= 2) {
		char *strings = malloc(size);
		struct passwd user, *found = NULL;

		if (strings == NULL)
			return -ENOMEM;
		err = getpwnam_r(name, &user, strings, size, &found);
		if (err == 0 && found != NULL)
			*ret_user = found->pw_uid;
		else if (err == 0)
			err = ENOENT;
		free(strings);
	}
	return -err;
}
