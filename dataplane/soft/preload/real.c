// SPDX-License-Identifier: BSD-3-Clause
// Resolves the real libibverbs, and substitutes this library for programs that dlopen() libibverbs.
#include "real.h"

#include "preload.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <string.h>

static struct real_calls calls;
static pthread_once_t once = PTHREAD_ONCE_INIT;

// Some names exist in two versions with different arguments, so the version must be given.
static void *symbol_find(const char *name, const char *version) {
	return version == NULL ? dlsym(RTLD_NEXT, name) : dlvsym(RTLD_NEXT, name, version);
}

// dlsym() returns function addresses as void *, which ISO C cannot convert, so the bytes are
// copied.
#define FIND(name, version)                                           \
	{                                                             \
		void *found = symbol_find(#name, version);            \
                                                                      \
		__builtin_memcpy(&calls.name, &found, sizeof(found)); \
	}

static void real_find_calls(void) {
	REAL_CALLS(FIND)
}

const struct real_calls *real_calls(void) {
	pthread_once(&once, real_find_calls);
	return &calls;
}

// Programs such as NCCL and PyTorch dlopen() libibverbs and look up names in the handle. They get
// the handle of this library instead. The loader searches that library and its dependencies, so
// names not defined here are found in libibverbs.
static bool is_libibverbs(const char *file) {
	const char *slash = file == NULL ? NULL : strrchr(file, '/');
	const char *name = slash == NULL ? file : slash + 1;

	return name != NULL &&
	       (strcmp(name, "libibverbs.so.1") == 0 || strcmp(name, "libibverbs.so") == 0);
}

// Return a handle of this library; NULL if its path is unknown.
static void *own_library_handle(int flags) {
	Dl_info info;

	// NOLINTNEXTLINE(bugprone-multi-level-implicit-pointer-conversion): any address in here
	if (dladdr((const void *)real_calls(), &info) == 0 || info.dli_fname == NULL)
		return NULL;
	return REAL(dlopen)(info.dli_fname, flags);
}

// The loader uses the run paths of its caller, which it finds by the return address. The last call
// must therefore be a tail jump, which keeps that address; a test checks this. Without optimisation
// it is a call, and the run paths of programs are ignored.
void *dlopen(const char *file, int flags) {
	if (is_libibverbs(file)) {
		void *own = own_library_handle(flags);

		if (own != NULL)
			return own;
	}
	return REAL(dlopen)(file, flags);
}
