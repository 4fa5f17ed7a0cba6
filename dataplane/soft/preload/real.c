// SPDX-License-Identifier: BSD-3-Clause
// Finds the real libibverbs behind the preload.
#include "real.h"

#include <dlfcn.h>
#include <pthread.h>

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
