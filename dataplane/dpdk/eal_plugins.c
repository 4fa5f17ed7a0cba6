// SPDX-License-Identifier: BSD-3-Clause
// Keeps a shared EAL from loading driver plugins that the process does not need.
//
// A shared EAL opens every object of its plugin directory when it starts; no option prevents that.
// Debian has 128 drivers; with all of them installed this costs each agent 55 ms of processor time
// and 19 MiB. An agent without a dpdk wire needs no driver.
//
// EAL loads plugins only if dlopen(librte_eal.so.*, RTLD_NOLOAD) succeeds. This file interposes
// dlopen(). While plugins are hidden on the calling thread, that one call returns NULL; all other
// calls are forwarded. libtocsin-wire-dpdk.so does not interpose dlopen(): a process that loads
// that module needs the drivers.
#include "dpdk/eal_plugins.h"

#include <dlfcn.h>
#include <stddef.h>
#include <string.h>

#define EAL_LIBRARY "librte_eal.so"

static _Thread_local bool plugins_hidden;

void eal_plugins_set_hidden(bool hidden) {
	plugins_hidden = hidden;
}

__attribute__((visibility("default"))) void *dlopen(const char *file, int mode) {
	void *(*next)(const char *, int);

	if (plugins_hidden && file != NULL && (mode & RTLD_NOLOAD) != 0 &&
	    strncmp(file, EAL_LIBRARY, strlen(EAL_LIBRARY)) == 0)
		return NULL;
	// glibc takes the search path from the return address. This tail call keeps the return
	// address of our caller.
	next = (void *(*)(const char *, int))dlsym(RTLD_NEXT, "dlopen");
	return next(file, mode);
}
