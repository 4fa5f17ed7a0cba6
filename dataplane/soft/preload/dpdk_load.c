// SPDX-License-Identifier: BSD-3-Clause
// The DPDK wire of libtocsin-verbs.so. It is a module beside the library, opened for the first such
// wire. It stays loaded until the process ends, because EAL cannot start twice.
#include "dpdk_module.h"

#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; // protects `module`
static const struct dpdk_module *module;

// Format the reason, truncated if too long. The loader's text may already begin with the path.
static int module_format_reason(
	char ret_reason[static SOFT_REASON_MAX + 1], const char *path, const char *what
) {
	char text[2 * PATH_MAX];
	bool has_path = strncmp(what, path, strlen(path)) == 0;

	snprintf(
		text, sizeof(text), "%s%s%.1000s", has_path ? "" : path, has_path ? "" : ": ", what
	);
	memcpy(ret_reason, text, SOFT_REASON_MAX);
	ret_reason[SOFT_REASON_MAX] = '\0';
	return -ENOENT;
}

static int
module_open(char ret_reason[static SOFT_REASON_MAX + 1], const struct dpdk_module **ret_module) {
	const struct dpdk_module *found;
	const char *own = "", *slash;
	char path[PATH_MAX];
	Dl_info info;
	void *handle;
	int size;

	// The module lies beside this library.
	if (dladdr(&module, &info) != 0 && info.dli_fname != NULL)
		own = info.dli_fname;
	slash = strrchr(own, '/');
	size = snprintf(
		path, sizeof(path), "%.*s%s", slash == NULL ? 0 : (int)(slash - own + 1), own,
		DPDK_MODULE_FILE
	);
	if (size < 0 || size >= (int)sizeof(path))
		return -ENAMETOOLONG;
	handle = dlopen(path, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	if (handle == NULL)
		// NOLINTNEXTLINE(concurrency-mt-unsafe): glibc keeps this text per thread
		return module_format_reason(ret_reason, path, dlerror());
	found = dlsym(handle, DPDK_MODULE_SYMBOL);
	if (found == NULL || strcmp(found->version, TOCSIN_VERSION) != 0 ||
	    found->wire_bytes != sizeof(struct soft_wire)) {
		dlclose(handle);
		return module_format_reason(
			ret_reason, path, "has another version than libtocsin-verbs.so"
		);
	}
	*ret_module = found;
	return 0;
}

static int
module_get(char ret_reason[static SOFT_REASON_MAX + 1], const struct dpdk_module **ret_module) {
	int err = 0;

	pthread_mutex_lock(&lock);
	if (module == NULL)
		err = module_open(ret_reason, &module);
	*ret_module = module;
	pthread_mutex_unlock(&lock);
	return err;
}

int wire_dpdk_create(
	const struct wire_config *config,
	char ret_reason[static SOFT_REASON_MAX + 1],
	struct soft_wire **ret_wire
) {
	const struct dpdk_module *found;
	int err = module_get(ret_reason, &found);

	return err != 0 ? err : found->create(config, ret_reason, ret_wire);
}

int wire_dpdk_check(const struct wire_config *config, char ret_reason[static SOFT_REASON_MAX + 1]) {
	const struct dpdk_module *found;
	int err = module_get(ret_reason, &found);

	return err != 0 ? err : found->check(config, ret_reason);
}
