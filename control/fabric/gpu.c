// SPDX-License-Identifier: BSD-3-Clause
// Pages in GPU memory that devices expose to peers. Each GPU has a keeper of its own, which may
// hang without harm to others. A page is freed when no device exposes it any more.
#include "fabric/inside.h"

#include <lib/container.h>
#include <lib/log.h>
#include <lib/must.h>
#include <lib/splitmix.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// A driver may be loaded later, and other users may release GPU memory.
#define RETRY_NS (30 * RAS_NS_PER_SEC)
// The call may have to wake up a GPU and read libcuda from a cold disk.
#define MAKE_STUCK_NS (30 * RAS_NS_PER_SEC)

struct gpu_work {
	struct gpu_page_config config;
	struct gpu_page *page; // created, or to be destroyed; NULL: owned by others
	char reason[CUDA_REASON_MAX + 1];
};

static int gpu_work_create(void *arg) {
	struct gpu_work *work = arg;

	return gpu_page_create(&work->config, work->reason, &work->page);
}

static int gpu_work_destroy(void *arg) {
	struct gpu_work *work = arg;

	work->page = gpu_page_destroy(work->page);
	return 0;
}

// Free the work on a keeper that was left behind, and a page that nobody took over.
static void gpu_work_drop(void *arg) {
	struct gpu_work *work = arg;

	gpu_page_destroy(work->page);
	free(work);
}

static int gpu_keeper_call(
	const struct gpu_show *show,
	int (*call)(void *),
	struct keeper_request *request,
	const struct gpu_work *with
) {
	struct keeper_call job = {.call = call, .drop = gpu_work_drop, .limit_ns = MAKE_STUCK_NS};
	struct gpu_work *work = malloc(sizeof(*work));
	int err;

	if (work == NULL)
		return -ENOMEM;
	*work = *with;
	job.arg = work;
	err = keeper_run(show->keeper, &job, request);
	if (err != 0)
		free(work);
	return err;
}

// Try again later: the page could not be created, or a device could not register it.
static void gpu_show_retry_later(struct gpu_show *show) {
	struct loop *loop = show->fabric->loop;

	must(loop_timer_set(loop, &show->retry, loop_now_ns(loop) + RETRY_NS) == 0);
}

static void page_offer_to_nics(const struct gpu_show *show) {
	struct fabric *fabric = show->fabric;

	for (uint32_t n = 0; n < fabric->nic_count; n++) {
		if (fabric->nics[n].gpu == show)
			nic_register_gpu_page(&fabric->nics[n]);
	}
}

static void on_gpu_page_created(struct keeper_request *request, void *arg, int result) {
	struct gpu_show *show = container_of(request, struct gpu_show, making);
	struct gpu_work *work = arg;

	if (result == 0) {
		show->page = work->page;
		work->page = NULL;
		show->reason[0] = '\0';
	}
	if (show->fabric->stopping) {
		fabric_check_stopped(show->fabric); // the keeper frees the page, too
		return;
	}
	if (result == 0) {
		page_offer_to_nics(show);
		return;
	}
	if (strcmp(show->reason, work->reason) != 0)
		log_event(
			LOG_LEVEL_WARN, "gpu_memory_missing", log_u64("gpu", show->ordinal),
			log_str("reason", work->reason),
			log_str("effect",
				"peers read only this node's pulse; the agent tries again in 30 s")
		);
	memcpy(show->reason, work->reason, sizeof(show->reason));
	gpu_show_retry_later(show);
}

static void page_request_creation(struct gpu_show *show) {
	uint64_t seed = show->fabric->config.random_seed + show->ordinal;
	uint64_t word = splitmix_next(&seed);
	struct gpu_work work = {
		.config = {.library = show->fabric->config.cuda, .ordinal = show->ordinal},
	};

	// No other memory holds this word by chance. All ones is excluded: a GPU that fell
	// off its bus reads as ones.
	work.config.word = word != 0 && word != UINT64_MAX ? word : 1;
	show->making.ended = on_gpu_page_created;
	if (gpu_keeper_call(show, gpu_work_create, &show->making, &work) != 0)
		gpu_show_retry_later(show);
}

static void on_page_retry(struct loop_timer *timer, uint64_t now_ns) {
	struct gpu_show *show = container_of(timer, struct gpu_show, retry);

	(void)now_ns;
	if (show->fabric->stopping)
		return;
	if (show->page != NULL)
		page_offer_to_nics(show);
	else if (show->making.job == NULL)
		page_request_creation(show);
}

static void on_gpu_stuck(void *ctx, struct keeper *keeper) {
	const struct gpu_show *show = ctx;

	(void)keeper;
	log_event(
		LOG_LEVEL_ERROR, "gpu_stuck", log_u64("gpu", show->ordinal),
		log_str("effect", "a call into libcuda does not return")
	);
}

struct gpu_show *gpu_show_get(struct fabric *fabric, uint32_t ordinal, int *ret_err) {
	struct gpu_show *show = &fabric->gpus[fabric->gpu_count];
	struct keeper_ops ops = {
		.stuck = on_gpu_stuck, .totals = fabric->config.driver_calls, .ctx = show};
	char name[KEEPER_NAME_BYTES];
	int err;

	for (uint32_t n = 0; n < fabric->gpu_count; n++) {
		if (fabric->gpus[n].ordinal == ordinal)
			return &fabric->gpus[n];
	}
	if (fabric->gpu_count == FABRIC_GPUS_MAX) {
		*ret_err = -ENOSPC;
		return NULL;
	}
	*show = (struct gpu_show
	){.fabric = fabric, .ordinal = ordinal, .retry = {.expired = on_page_retry}};
	snprintf(name, sizeof(name), "gpu-%u", ordinal);
	err = keeper_create(fabric->loop, name, &ops, &show->keeper);
	if (err != 0) {
		*ret_err = err;
		return NULL;
	}
	fabric->gpu_count++;
	page_request_creation(show);
	return show;
}

struct pairing_gpu nic_gpu_announced(const struct nic *nic) {
	const struct gpu_page_facts *facts;

	if (!nic->open || nic->parts.gpu.region == NULL)
		return (struct pairing_gpu){.length = 0};
	facts = gpu_page_facts(nic->gpu->page);
	return (struct pairing_gpu){
		.address = nic->parts.gpu.wire_address,
		.word = facts->word,
		.key = nic->parts.gpu.remote_key,
		.length = GPU_PAGE_BYTES,
		.ordinal = (uint16_t)facts->ordinal,
	};
}

// Devices, which register the page when both exist.

static void log_gpu_state(const struct nic *nic) {
	struct fabric_gpu_view view = gpu_view(nic);

	log_event(
		view.state == FABRIC_GPU_SHOWN ? LOG_LEVEL_INFO : LOG_LEVEL_WARN, "rdma_device_gpu",
		log_str("device", nic->config.name), log_u64("gpu", view.ordinal),
		log_str("state", fabric_gpu_state_name(view.state)), log_str("reason", view.reason)
	);
}

static void on_gpu_page_registered(struct keeper_request *request, void *arg, int result) {
	struct nic *nic = container_of(request, struct nic, offering);
	const struct nic_work *work = arg;
	const char *reason =
		work->gpu_reason[0] != '\0' ? work->gpu_reason : strerrordesc_np(-result);
	bool is_new;

	if (result == 0)
		nic->parts.gpu = work->parts.gpu;
	if (nic->lost || nic->fabric->stopping) {
		nic_close(nic);
		return;
	}
	if (result != 0) {
		is_new = strcmp(nic->gpu_reason, reason) != 0;
		snprintf(nic->gpu_reason, sizeof(nic->gpu_reason), "%s", reason);
		if (is_new)
			log_gpu_state(nic);
		gpu_show_retry_later(nic->gpu);
		return;
	}
	nic->gpu_reason[0] = '\0';
	log_gpu_state(nic);
	nic_update_pairing(nic);
	// Peers learn of the page only from a handshake.
	pairing_device_renew(nic->fabric->pairing, loop_clock_ns(nic->fabric->loop), nic->number);
}

void nic_register_gpu_page(struct nic *nic) {
	if (nic->gpu == NULL || nic->gpu->page == NULL || !nic->attached || nic->lost ||
	    nic->fabric->stopping || nic->parts.gpu.region != NULL || nic->offering.job != NULL)
		return;
	nic->offering.ended = on_gpu_page_registered;
	if (nic_run_on_keeper(nic, nic_work_register_gpu, &nic->offering, &nic->parts) != 0)
		gpu_show_retry_later(nic->gpu);
}

// Stopping and destroying.

static void on_gpu_page_destroyed(struct keeper_request *request, void *arg, int result) {
	const struct gpu_show *show = container_of(request, struct gpu_show, dropping);

	(void)arg;
	(void)result;
	fabric_check_stopped(show->fabric);
}

bool gpus_stop(struct fabric *fabric) {
	bool gone = true;

	for (uint32_t n = 0; n < fabric->gpu_count; n++) {
		struct gpu_show *show = &fabric->gpus[n];
		struct gpu_work work = {.page = show->page};

		loop_timer_cancel(fabric->loop, &show->retry);
		if (show->page == NULL) {
			gone = gone && show->making.job == NULL && show->dropping.job == NULL;
			continue;
		}
		gone = false;
		show->dropping.ended = on_gpu_page_destroyed;
		if (gpu_keeper_call(show, gpu_work_destroy, &show->dropping, &work) == 0)
			show->page = NULL; // owned by the call
	}
	return gone;
}

bool gpus_fini(struct fabric *fabric) {
	bool gone = true;

	for (uint32_t n = 0; n < fabric->gpu_count; n++) {
		struct gpu_show *show = &fabric->gpus[n];

		loop_timer_cancel(fabric->loop, &show->retry);
		keeper_cancel(&show->making);
		keeper_cancel(&show->dropping);
		show->keeper = keeper_destroy(show->keeper);
		gone = gone && show->page == NULL;
	}
	return gone;
}

// Views.

struct fabric_gpu_view gpu_view(const struct nic *nic) {
	const struct gpu_show *show = nic->gpu;
	struct fabric_gpu_view view = {.pci = "", .reason = ""};

	if (show == NULL)
		return view;
	view.ordinal = show->ordinal;
	view.state = FABRIC_GPU_AWAITED;
	if (show->page != NULL)
		view.pci = gpu_page_facts(show->page)->pci;
	if (nic->parts.gpu.region != NULL) {
		view.state = FABRIC_GPU_SHOWN;
	} else if (keeper_is_stuck(show->keeper)) {
		view.state = FABRIC_GPU_STUCK;
		view.reason = "a call into libcuda does not return";
	} else if (show->page == NULL ? show->reason[0] != '\0' : nic->gpu_reason[0] != '\0') {
		view.state = FABRIC_GPU_MISSING;
		view.reason = show->page == NULL ? show->reason : nic->gpu_reason;
	}
	return view;
}
