// SPDX-License-Identifier: BSD-3-Clause
// Cost of the NCCL plugin: nanoseconds per operation, beside a plugin that does nothing, and the
// time to load and unload it. Then tocsin-bridges-mpi measures the same for MPI.
// Usage: tocsin-bridges-bench [--json] [PLUGIN]
//
// The host thread makes the calls that NCCL makes for a collective operation. At level `launches`
// these are the group, the call, the group of tasks and the operation, each with its stop.
#include <abi.h>
#include <dlfcn.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define OPERATIONS 200000u
#define ROUNDS 15u
#define LOADS 1000u

struct row {
	const char *name, *level;
	uint32_t channels; // kernel events per operation; 0: none
	bool calls;	   // with API and group events
};

static const struct row rows[] = {
	{"operation alone", "launches", 0, false},
	{"operation with its calls and groups", "launches", 0, true},
	{"operation, 1 kernel pair", "kernels-always", 1, false},
	{"operation, 8 kernel pairs", "kernels-always", 8, false},
};

static int start_nothing(void *context, void **handle, const struct nccl_descriptor *descriptor) {
	(void)context;
	*handle = descriptor->type == NCCL_COLL || descriptor->type == NCCL_KERNEL_CH ? (void *)1
										      : NULL;
	return 0;
}

static int stop_nothing(void *handle) {
	return handle == NULL;
}

static int state_nothing(void *handle, int state, const union nccl_state_arguments *arguments) {
	return handle == NULL || state == 0 || arguments == NULL;
}

static const struct nccl_profiler nothing = {
	.name = "nothing",
	.start = start_nothing,
	.stop = stop_nothing,
	.state = state_nothing,
};

static uint64_t now_ns(void) {
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void handle_start(
	const struct nccl_profiler *plugin,
	void *context,
	uint64_t type,
	void *parent,
	void **handle
) {
	struct nccl_descriptor descriptor = {.type = type, .parent = parent, .rank = 0};

	*handle = NULL;
	(void)plugin->start(context, handle, &descriptor);
}

static void handle_stop(const struct nccl_profiler *plugin, void *handle) {
	if (handle != NULL)
		(void)plugin->stop(handle);
}

static void kernel_events_play(
	const struct nccl_profiler *plugin, void *context, void *operation, uint32_t channels
) {
	struct nccl_descriptor descriptor = {.type = NCCL_KERNEL_CH, .parent = operation};
	const union nccl_state_arguments arguments = {.gpu_ns = 1};
	void *handles[64];

	for (uint32_t n = 0; n < channels; n++) {
		descriptor.kernel_ch.channel = (uint8_t)n;
		handles[n] = NULL;
		(void)plugin->start(context, &handles[n], &descriptor);
	}
	for (uint32_t n = 0; n < channels; n++)
		if (handles[n] != NULL) {
			(void)plugin->state(handles[n], NCCL_STATE_KERNEL_CH_STOP, &arguments);
			(void)plugin->stop(handles[n]);
		}
}

static void
operation_play(const struct nccl_profiler *plugin, void *context, const struct row *row) {
	struct nccl_descriptor descriptor = {.type = NCCL_COLL, .rank = 0};
	void *group_api = NULL, *coll_api = NULL, *group = NULL, *handle = NULL;

	if (row->calls) {
		handle_start(plugin, context, NCCL_GROUP_API, NULL, &group_api);
		handle_start(plugin, context, NCCL_COLL_API, group_api, &coll_api);
		handle_stop(plugin, coll_api);
	}
	handle_start(plugin, context, NCCL_GROUP, NULL, &group);
	descriptor.parent = coll_api;
	descriptor.coll_4.func = "AllReduce";
	descriptor.coll_4.datatype = "ncclFloat32";
	descriptor.coll_4.algorithm = "RING";
	descriptor.coll_4.protocol = "LL";
	descriptor.coll_4.count = 1024;
	descriptor.coll_4.channels = (uint8_t)(row->channels != 0 ? row->channels : 2);
	(void)plugin->start(context, &handle, &descriptor);
	if (row->channels != 0)
		kernel_events_play(plugin, context, handle, row->channels);
	handle_stop(plugin, handle);
	handle_stop(plugin, group);
	handle_stop(plugin, group_api);
}

// Return the time per operation of the quickest round: other load on the machine can only add time.
static double
operation_quickest_ns(const struct nccl_profiler *plugin, void *context, const struct row *row) {
	uint64_t best = UINT64_MAX;

	for (uint32_t round = 0; round < ROUNDS; round++) {
		uint64_t began = now_ns(), took;

		for (uint32_t n = 0; n < OPERATIONS; n++)
			operation_play(plugin, context, row);
		took = now_ns() - began;
		if (took < best)
			best = took;
	}
	return (double)best / OPERATIONS;
}

static const struct nccl_profiler *plugin_load(const char *path, void **ret_library) {
	*ret_library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	return *ret_library != NULL ? dlsym(*ret_library, "ncclProfiler_v6") : NULL;
}

static void *plugin_begin(const struct nccl_profiler *plugin, int *mask) {
	void *context = NULL;

	(void)plugin->init_5(&context, 0x1234, mask, "bench", 1, 2, 0, NULL);
	return context;
}

static int row_measure(const char *path, const struct row *row, bool json, bool last) {
	const struct nccl_profiler *plugin;
	void *library, *context;
	double bare, with;
	int mask;

	(void)setenv("TOCSIN_NCCL_LEVEL", row->level, 1); // NOLINT(concurrency-mt-unsafe)
	plugin = plugin_load(path, &library);
	if (plugin == NULL) {
		// NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
		fprintf(stderr, "tocsin-bridges-bench: %s\n", dlerror());
		return -1;
	}
	context = plugin_begin(plugin, &mask);
	bare = operation_quickest_ns(&nothing, NULL, row);
	with = operation_quickest_ns(plugin, context, row);
	(void)plugin->finalize(context);
	dlclose(library);
	if (json)
		printf("  {\"name\": \"%s\", \"level\": \"%s\", \"bare_ns\": %.1f, "
		       "\"plugin_ns\": %.1f}%s\n",
		       row->name, row->level, bare, with, last ? "" : ",");
	else
		printf("%-40s %-16s %8.1f %8.1f %8.1f\n", row->name, row->level, bare, with,
		       with - bare);
	return 0;
}

static double load_microseconds(const char *path) {
	uint64_t began = now_ns();

	for (uint32_t n = 0; n < LOADS; n++) {
		void *library, *context;
		const struct nccl_profiler *plugin = plugin_load(path, &library);
		int mask;

		if (plugin == NULL)
			return 0;
		context = plugin_begin(plugin, &mask);
		if (context != NULL)
			(void)plugin->finalize(context);
		dlclose(library);
	}
	return (double)(now_ns() - began) / LOADS / 1000;
}

// Return the path of another build result, relative to the directory of this program.
static void build_path(const char *place, char path[static 4096]) {
	size_t size = strlen(place) + 1;
	ssize_t length = readlink("/proc/self/exe", path, 4096 - size);
	char *slash;

	path[length > 0 ? length : 0] = '\0';
	slash = strrchr(path, '/');
	if (slash != NULL)
		memcpy(slash, place, size);
}

// Execute the MPI benchmark, which completes the output, including the JSON object.
static int run_mpi(bool json) {
	char program[4096], library[4096];

	build_path("/tocsin-bridges-mpi", program);
	build_path("/../lib/job/mpi/libtocsin-mpi.so", library);
	fflush(stdout);
	if (json)
		execl(program, program, "--json-rest", library, (char *)NULL);
	else
		execl(program, program, library, (char *)NULL);
	perror(program);
	return 1;
}

int main(int argc, char **argv) {
	bool json = argc > 1 && strcmp(argv[1], "--json") == 0;
	uint32_t count = sizeof(rows) / sizeof(rows[0]);
	char built[4096];
	const char *path = built;

	if (argc > 2 + json || (argc > 1 + json && argv[1 + json][0] == '-')) {
		fprintf(stderr, "usage: tocsin-bridges-bench [--json] [PLUGIN]\n");
		return 2;
	}
	if (argc == 2 + json)
		path = argv[1 + json];
	else
		build_path("/../lib/job/nccl/libnccl-profiler-tocsin.so", built);
	if (json)
		printf("{\"bridges\": [\n");
	else
		printf("%-40s %-16s %8s %8s %8s\n", "ns an operation", "level", "bare", "plugin",
		       "more");
	for (uint32_t n = 0; n < count; n++)
		if (row_measure(path, &rows[n], json, n + 1 == count) != 0)
			return 1;
	if (json)
		printf("], \"load_us\": %.1f, ", load_microseconds(path));
	else
		printf("load, one communicator, unload: %.1f us (mean of %u)\n",
		       load_microseconds(path), LOADS);
	return run_mpi(json);
}
