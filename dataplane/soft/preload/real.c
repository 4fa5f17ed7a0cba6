// SPDX-License-Identifier: BSD-3-Clause
// Finds the real libibverbs behind the preload, and is it for who opens it by dlopen().
#include "real.h"

#include "preload.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>

static struct real_calls calls;
static pthread_once_t once = PTHREAD_ONCE_INIT;

// Some names exist twice, the older one with other arguments: the version tells them apart.
static void *symbol_find(const char *name, const char *version) {
	return version == NULL ? dlsym(RTLD_NEXT, name) : dlvsym(RTLD_NEXT, name, version);
}

// A function's address leaves dlsym() as void *, which C does not convert: copied as bytes.
#define FIND(name, version)                                           \
	{                                                             \
		void *found = symbol_find(#name, version);            \
                                                                      \
		__builtin_memcpy(&calls.name, &found, sizeof(found)); \
	}

static void find_all(void) {
	REAL_CALLS(FIND)
}

const struct real_calls *real_calls(void) {
	pthread_once(&once, find_all);
	return &calls;
}

// Programs that take libibverbs by dlopen() and its names from the handle, as NCCL and PyTorch do:
// they get this library's handle. The loader looks for a name in the library of a handle and then
// in those that it needs, so what is not here is found in libibverbs behind.
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
