// SPDX-License-Identifier: BSD-3-Clause
// Keeps a shared EAL from loading drivers that nobody asked for.
//
// A shared EAL opens every object of its plugin directory when it starts, and has no option against
// that. With all of Debian's drivers installed these are 189 objects: 55 ms of processor time and
// 19 MiB for each agent. An agent without a dpdk wire needs none of them.
//
// EAL looks for plugins only if dlopen(librte_eal.so.*, RTLD_NOLOAD) finds its own library. The
// dlopen() below is this program's, so EAL calls it too. It says no to that one question, on a
// thread that hides plugins, and passes on every other call. In libtocsin-wire-dpdk.so the symbol
// is local and EAL calls the C library's: a process that opens that module wants the drivers.
#include "dpdk/eal_plugins.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#define EAL_LIBRARY "librte_eal.so"

static _Thread_local bool plugins_hidden;

void eal_plugins_hide(bool hide) {
	plugins_hidden = hide;
}

__attribute__((visibility("default"))) void *dlopen(const char *file, int mode) {
	void *(*next)(const char *, int);

	if (plugins_hidden && file != NULL && (mode & RTLD_NOLOAD) != 0 &&
	    strncmp(file, EAL_LIBRARY, strlen(EAL_LIBRARY)) == 0)
		return NULL;
	// A tail call when optimized: the C library then searches on behalf of the caller of this.
	next = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
	return next(file, mode);
}
