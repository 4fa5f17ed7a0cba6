// SPDX-License-Identifier: BSD-3-Clause
// Plays a recording into a plugin, as NCCL calls one.
#include "replay.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct player {
	const struct replay *replay;
	const struct replay_options *options;
	struct replay_result *result;
	const struct nccl_profiler *table;
	int mask;	 // events that the plugin requests; one mask per process, as in NCCL
	void **handles;	 // indexed by event
	int *masks;	 // indexed by event: copy of `mask` at the start of the event
	void **contexts; // indexed by communicator
	uint32_t open;	 // open communicators
};

static void log_nothing(
	int level, unsigned long subsystem, const char *file, int line, const char *format, ...
) {
	(void)level;
	(void)subsystem;
	(void)file;
	(void)line;
	(void)format;
}

static uint64_t now_ns(void) {
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

static void *handle_resolve(const struct player *player, const struct replay_handle *handle) {
	if (handle->event != 0 && handle->event <= player->replay->event_max)
		return player->handles[handle->event];
	return (void *)(uintptr_t)handle->raw; // NOLINT(performance-no-int-to-ptr): as recorded
}

// Return the mask bits that make NCCL report events of a type; any one of them suffices.
static int type_event_mask(uint32_t type) {
	const int below = NCCL_PROXY_OP | NCCL_PROXY_STEP | NCCL_KERNEL_CH | NCCL_NET_PLUGIN;
	const int copies = NCCL_CE_COLL | NCCL_CE_SYNC | NCCL_CE_BATCH;

	switch (type) {
	case NCCL_COLL:
		return NCCL_COLL | below;
	case NCCL_P2P:
		return NCCL_P2P | below;
	case NCCL_GROUP:
		return NCCL_GROUP | NCCL_COLL | NCCL_P2P | below;
	case NCCL_PROXY_OP:
		return NCCL_PROXY_OP | NCCL_PROXY_STEP | NCCL_NET_PLUGIN;
	case NCCL_PROXY_STEP:
		return NCCL_PROXY_STEP | NCCL_NET_PLUGIN;
	case NCCL_COLL_API:
		return NCCL_COLL_API | NCCL_COLL | below | copies;
	case NCCL_P2P_API:
		return NCCL_P2P_API | NCCL_P2P | below;
	case NCCL_GROUP_API:
		return NCCL_GROUP_API | NCCL_COLL_API | NCCL_P2P_API | NCCL_KERNEL_LAUNCH |
		       NCCL_GROUP | NCCL_COLL | NCCL_P2P | below | copies;
	case NCCL_CE_COLL:
		return copies;
	case NCCL_KERNEL_PHASE:
		return NCCL_KERNEL_CH;
	default:
		return (int)type;
	}
}

// Return whether the plugin requests events of this type. The plugin may change its mask at any
// time. Proxy operations and kernel events obey the mask from the start of their parent event.
static bool
event_is_requested(const struct player *player, const struct replay_call *call, uint32_t type) {
	int mask = __atomic_load_n(&player->mask, __ATOMIC_RELAXED);

	if (player->options->all)
		return true;
	if (call->parent.event != 0 && call->parent.event <= player->replay->event_max &&
	    (type == NCCL_PROXY_OP || type == NCCL_KERNEL_CH))
		mask = player->masks[call->parent.event];
	return (mask & type_event_mask(type)) != 0;
}

static int play_init(struct player *player, const struct replay_call *call) {
	void **context = &player->contexts[call->comm];
	int version = player->replay->version;
	int err;

	*context = NULL;
	if (version <= 3)
		err = player->table->init_1(context, &player->mask);
	else if (version == 4)
		err = player->table->init_4(
			context, &player->mask, call->name, call->hash, call->nodes, call->ranks,
			call->rank, log_nothing
		);
	else
		err = player->table->init_5(
			context, call->hash, &player->mask, call->name, call->nodes, call->ranks,
			call->rank, log_nothing
		);
	player->open += *context != NULL;
	return err;
}

static int play_start(struct player *player, const struct replay_call *call) {
	struct nccl_descriptor descriptor = call->descriptor;
	uint32_t type = (uint32_t)descriptor.type;
	void *context = call->comm >= 0 ? player->contexts[call->comm] : NULL;

	if (player->replay->version < 5)
		type &= 0xff;
	player->handles[call->event] = NULL;
	player->masks[call->event] = __atomic_load_n(&player->mask, __ATOMIC_RELAXED);
	if (!event_is_requested(player, call, type)) {
		player->result->left_out++;
		return 0;
	}
	descriptor.parent = handle_resolve(player, &call->parent);
	if (player->replay->version >= 5 && type == NCCL_COLL)
		descriptor.coll_4.parent_group = handle_resolve(player, &call->group);
	if (player->replay->version >= 5 && type == NCCL_P2P)
		descriptor.p2p_4.parent_group = handle_resolve(player, &call->group);
	if (type == NCCL_PROXY_OP && descriptor.proxy_op.pid == player->replay->pid)
		descriptor.proxy_op.pid = (int32_t)getpid();
	return player->table->start(context, &player->handles[call->event], &descriptor);
}

static int play_state(struct player *player, const struct replay_call *call) {
	union nccl_state_arguments arguments = {.gpu_ns = call->value};
	void *handle = handle_resolve(player, &call->handle);

	if (handle == NULL)
		return 0;
	return player->table->state(handle, call->state, call->has_value ? &arguments : NULL);
}

static int play_finalize(struct player *player, const struct replay_call *call) {
	void *context = player->contexts[call->comm];

	if (context == NULL)
		return 0; // NCCL does not call finalize() without a context
	player->open -= player->open > 0;
	return player->table->finalize(context);
}

static int play_call(struct player *player, const struct replay_call *call) {
	void *handle;

	switch (call->kind) {
	case REPLAY_INIT:
		return play_init(player, call);
	case REPLAY_START:
		return play_start(player, call);
	case REPLAY_STOP:
		handle = handle_resolve(player, &call->handle);
		return handle != NULL ? player->table->stop(handle) : 0;
	case REPLAY_STATE:
		return play_state(player, call);
	default:
		return play_finalize(player, call);
	}
}

static void sleep_until(uint64_t at_ns) {
	struct timespec at = {
		.tv_sec = (time_t)(at_ns / UINT64_C(1000000000)),
		.tv_nsec = (long)(at_ns % UINT64_C(1000000000)),
	};

	while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &at, NULL) == EINTR)
		;
}

static void play_all(struct player *player) {
	const struct replay *replay = player->replay;
	uint64_t began_ns = now_ns();

	for (size_t n = 0; n < replay->count; n++) {
		if (player->options->in_real_time)
			sleep_until(began_ns + replay->calls[n].time_ns);
		if (play_call(player, &replay->calls[n]) != 0)
			player->result->failed++;
	}
	player->result->elapsed_ns = now_ns() - began_ns;
	player->result->played = replay->count - player->result->left_out;
}

int replay_play(
	const struct replay *replay,
	const struct replay_options *options,
	struct replay_result *ret_result
) {
	struct player player = {.replay = replay, .options = options, .result = ret_result};
	void *library = dlopen(options->library, RTLD_NOW | RTLD_LOCAL);
	char name[32];
	int err = -ENOMEM;

	memset(ret_result, 0, sizeof(*ret_result));
	if (library == NULL) {
		// NOLINTNEXTLINE(concurrency-mt-unsafe): one thread
		const char *why = dlerror();

		snprintf(
			ret_result->why, sizeof(ret_result->why),
			"%.180s; --library names another plugin", why
		);
		return -ENOENT;
	}
	snprintf(name, sizeof(name), "ncclProfiler_v%d", replay->version);
	player.table = dlsym(library, name);
	player.handles = calloc(replay->event_max + 1, sizeof(void *));
	player.masks = calloc(replay->event_max + 1, sizeof(int));
	player.contexts = calloc(replay->comm_max + 1, sizeof(void *));
	if (player.table == NULL) {
		snprintf(
			ret_result->why, sizeof(ret_result->why), "%s has no %s", options->library,
			name
		);
		err = -ENOENT;
	} else if (player.handles != NULL && player.masks != NULL && player.contexts != NULL) {
		play_all(&player);
		err = 0;
	}
	free(player.handles);
	free(player.masks);
	free(player.contexts);
	if (err != 0 || player.open == 0)
		dlclose(library);
	return err;
}
