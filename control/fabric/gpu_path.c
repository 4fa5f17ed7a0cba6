// SPDX-License-Identifier: BSD-3-Clause
// Judges reads of a page in GPU memory by comparison with reads of the pulse.
#include "fabric/gpu_path.h"

#include <ras/types.h>

#include <stdlib.h>
#include <string.h>

#define FAILED_READS_MIN 2  // consecutive failures until the page is bad
#define CORRECT_READS_MIN 3 // consecutive correct reads until it is good again
// A read that the GPU delays also delays the reads behind it until the pair is replaced. If the
// pulse is not read within this time either, the path is to blame.
#define DOUBT_NS (5 * RAS_NS_PER_SEC)
#define PAUSE_NS (5 * RAS_NS_PER_SEC)
#define PAUSE_MAX_NS (300 * RAS_NS_PER_SEC)
#define SLOW_RATIO 2 // multiple of the baseline, corrected by the slowdown of pulse reads
#define SLOW_WINDOWS 2
#define BASELINE_RISE_NS \
	(3600 * RAS_NS_PER_SEC) // the baseline rises by at most a tenth in this time
#define MEDIAN_PPM 500000
#define P99_PPM 990000

static void gpu_path_set_seen(struct gpu_path *gpu, uint64_t now_ns, enum fabric_gpu_seen seen) {
	if (gpu->seen == seen)
		return;
	gpu->seen = seen;
	gpu->since_ns = now_ns;
}

void gpu_path_set_page(struct gpu_path *gpu, uint64_t now_ns, uint32_t ordinal, uint64_t word) {
	if (gpu->word == word && gpu->ordinal == ordinal)
		return;
	if (gpu->word == 0 || gpu->ordinal != ordinal) {
		memset(gpu, 0, sizeof(*gpu));
		histogram_log2_init(&gpu->small);
	}
	gpu->ordinal = ordinal;
	gpu->word = word;
	gpu->doubted = false;
	gpu->fails = gpu->rights = 0;
	gpu->next_ns = now_ns;
	gpu->seen = FABRIC_GPU_UNSEEN;
	gpu->since_ns = now_ns;
}

static bool gpu_path_is_failing(const struct gpu_path *gpu) {
	return gpu->seen == FABRIC_GPU_SILENT || gpu->seen == FABRIC_GPU_REFUSED ||
	       gpu->seen == FABRIC_GPU_WRONG;
}

static void gpu_read_failed(struct gpu_path *gpu, uint64_t now_ns, enum gpu_read read) {
	static const enum fabric_gpu_seen seen[] = {
		[GPU_READ_WRONG] = FABRIC_GPU_WRONG,
		[GPU_READ_SILENT] = FABRIC_GPU_SILENT,
		[GPU_READ_REFUSED] = FABRIC_GPU_REFUSED,
	};
	uint64_t pause_ns = PAUSE_NS;

	gpu->doubted = false;
	gpu->rights = 0;
	gpu->fails++;
	gpu->silent += read == GPU_READ_SILENT;
	gpu->refused += read == GPU_READ_REFUSED;
	gpu->wrong += read == GPU_READ_WRONG;
	if (gpu->fails >= FAILED_READS_MIN)
		gpu_path_set_seen(gpu, now_ns, seen[read]);
	for (uint32_t n = 1; n < gpu->fails && pause_ns < PAUSE_MAX_NS; n++)
		pause_ns *= 2;
	gpu->next_ns = now_ns + (pause_ns < PAUSE_MAX_NS ? pause_ns : PAUSE_MAX_NS);
}

bool gpu_path_add_read(
	struct gpu_path *gpu, uint64_t now_ns, enum gpu_read read, bool small, uint64_t latency_ns
) {
	gpu->probes++;
	if (read == GPU_READ_WRONG) {
		gpu_read_failed(gpu, now_ns, read);
		return false;
	}
	if (read != GPU_READ_CORRECT) {
		// It is not known yet whether the GPU or the path is to blame.
		gpu->doubt = read;
		gpu->doubted = true;
		gpu->doubted_ns = now_ns;
		gpu->next_ns = UINT64_MAX;
		return false;
	}

	gpu->doubted = false;
	gpu->fails = 0;
	gpu->next_ns = now_ns;
	gpu->rights++;
	if (gpu->seen == FABRIC_GPU_UNSEEN ||
	    (gpu_path_is_failing(gpu) && gpu->rights >= CORRECT_READS_MIN))
		gpu_path_set_seen(gpu, now_ns, FABRIC_GPU_GOOD);
	if (!small)
		return false;
	histogram_log2_record(&gpu->small, latency_ns);
	if (gpu->held < GPU_PATH_WINDOW)
		gpu->window[gpu->held++] = latency_ns;
	return gpu->held == GPU_PATH_WINDOW;
}

void gpu_path_add_pulse_read(struct gpu_path *gpu, uint64_t now_ns, bool answered) {
	bool late = gpu->doubted && now_ns - gpu->doubted_ns > DOUBT_NS;

	if (!gpu->doubted || !(answered || late))
		return;
	if (!late) {
		gpu_read_failed(gpu, now_ns, gpu->doubt);
		return;
	}
	// The pulse was not read either, so the path is to blame.
	gpu->doubted = false;
	gpu->next_ns = now_ns + PAUSE_NS;
}

static int compare_latencies(const void *a, const void *b) {
	const uint64_t *left = a, *right = b;

	return (*left > *right) - (*left < *right);
}

static void gpu_baseline_learn(struct gpu_path *gpu, uint64_t now_ns, uint64_t median_ns) {
	uint64_t passed_ns = now_ns - gpu->usual_at_ns;

	if (passed_ns > BASELINE_RISE_NS)
		passed_ns = BASELINE_RISE_NS;
	if (gpu->usual_ns == 0 || median_ns < gpu->usual_ns)
		gpu->usual_ns = median_ns;
	else
		gpu->usual_ns += (uint64_t
		)((double)gpu->usual_ns / 10 * (double)passed_ns / (double)BASELINE_RISE_NS);
	if (gpu->usual_ns > median_ns)
		gpu->usual_ns = median_ns;
	gpu->usual_at_ns = now_ns;
}

void gpu_path_judge(struct gpu_path *gpu, uint64_t now_ns, uint64_t host_permille) {
	uint64_t least = host_permille > 1000 ? host_permille : 1000;
	bool slow;

	if (gpu->held < GPU_PATH_WINDOW)
		return;
	qsort(gpu->window, gpu->held, sizeof(gpu->window[0]), compare_latencies);
	gpu->median_ns = gpu->window[gpu->held / 2];
	gpu->held = 0;
	slow = gpu->usual_ns != 0 &&
	       (double)gpu->median_ns * 1000 > (double)gpu->usual_ns * SLOW_RATIO * (double)least;
	gpu->slow_windows = slow ? gpu->slow_windows + 1 : 0;
	if (!slow)
		gpu_baseline_learn(gpu, now_ns, gpu->median_ns);
	if (gpu_path_is_failing(gpu))
		return;
	if (gpu->slow_windows >= SLOW_WINDOWS)
		gpu_path_set_seen(gpu, now_ns, FABRIC_GPU_SLOW);
	else if (!slow)
		gpu_path_set_seen(gpu, now_ns, FABRIC_GPU_GOOD);
}

bool gpu_path_is_due(const struct gpu_path *gpu, uint64_t now_ns) {
	return now_ns >= gpu->next_ns;
}

void gpu_path_describe(const struct gpu_path *gpu, struct fabric_gpu_path *ret_look) {
	*ret_look = (struct fabric_gpu_path){
		.shown = true,
		.ordinal = gpu->ordinal,
		.seen = gpu->seen,
		.since_ns = gpu->since_ns,
		.probes = gpu->probes,
		.silent = gpu->silent,
		.refused = gpu->refused,
		.wrong = gpu->wrong,
		.median_ns = histogram_log2_percentile(&gpu->small, MEDIAN_PPM),
		.usual_ns = gpu->usual_ns,
		.p99_ns = histogram_log2_percentile(&gpu->small, P99_PPM),
	};
	if (gpu->median_ns != 0)
		ret_look->median_ns = gpu->median_ns;
}
