// SPDX-License-Identifier: BSD-3-Clause
// Programs that take libibverbs by dlopen() and its names from the handle, as NCCL and PyTorch do:
// they get this library's handle. The loader looks for a name in the library of a handle and then
// in those that it needs, so what is not here is found in libibverbs behind.
#include "preload.h"

#include <limits.h>
#include <string.h>

static bool is_libibverbs(const char *file) {
	const char *slash = file == NULL ? NULL : strrchr(file, '/');
	const char *name = slash == NULL ? file : slash + 1;

	return name != NULL &&
	       (strcmp(name, "libibverbs.so.1") == 0 || strcmp(name, "libibverbs.so") == 0);
}

// NULL: this library is not known by a path.
static void *own_handle(int flags) {
	Dl_info info;

	// NOLINTNEXTLINE(bugprone-multi-level-implicit-pointer-conversion): any address in here
	if (dladdr((const void *)real_calls(), &info) == 0 || info.dli_fname == NULL)
		return NULL;
	return REAL(dlopen)(info.dli_fname, flags);
}

// The loader takes the run paths of whoever calls it, which it knows by the return address: so this
// ends in a jump, which leaves that as it was; a test sees to it. Built without optimization it is
// a call, and programs with run paths of their own miss them.
void *dlopen(const char *file, int flags) {
	if (is_libibverbs(file)) {
		void *own = own_handle(flags);

		if (own != NULL)
			return own;
	}
	return REAL(dlopen)(file, flags);
}
