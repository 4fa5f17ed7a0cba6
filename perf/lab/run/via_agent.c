// SPDX-License-Identifier: BSD-3-Clause
// Ask an agent for bursts of reads, and make a run of the answers.
#include "run/via_agent.h"

#include "run/agent_ask.h"
#include "run/yardsticks.h"

#include <lib/clock.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define WARMUP_QUICK (VIA_AGENT_QUICK_DROPS - RESULT_LEAD)

struct asking {
	const struct via_agent *via;
	struct agent agent;
	struct lab_run *run;
	struct agent_reads reads; // latest burst
};

static int read_burst(struct asking *asking, uint64_t size, uint32_t count, struct lab_why *why) {
	free(asking->reads.times_ns);
	asking->reads = (struct agent_reads){
		.from = asking->via->from,
		.to = asking->via->node,
		.count = count,
		.bytes = size,
	};
	return agent_read(&asking->agent, &asking->reads, why);
}

// Warm up as in other runs: double the number of samples until the second half is like the samples
// before it.
static int warm_up(struct asking *asking, struct lab_result *result, struct lab_why *why) {
	int err = 0;

	for (uint32_t count = WARMUP_SAMPLES_MIN;
	     count <= WARMUP_SAMPLES_MAX && !result->warm_check.warm && err == 0; count *= 2) {
		uint32_t more = count - result->warm_count;

		err = read_burst(asking, result->size, more, why);
		if (err != 0)
			break;
		memcpy(result->warm + result->warm_count, asking->reads.times_ns,
		       more * sizeof(result->warm[0]));
		result->warm_count = count;
		result->warm_judged = true;
		err = warmup_check(result->warm, count, &result->warm_check);
	}
	return err;
}

// Store `iterations` samples of the latest burst, beginning with `first`. Their duration is that of
// the burst without the other samples.
static void store_samples(struct asking *asking, struct lab_result *result, uint32_t first) {
	const struct agent_reads *reads = &asking->reads;
	uint32_t end = first + (uint32_t)asking->via->plan.iterations;
	uint64_t others_ns = 0;

	for (uint32_t n = 0; n < reads->count; n++) {
		if (n >= first && n < end)
			run_record_add(result->times, reads->times_ns[n]);
		else
			others_ns += reads->times_ns[n];
	}
	result->took_ns = reads->took_ns > others_ns ? reads->took_ns - others_ns : 0;
	result->complete = true;
}

// Measure in one burst: warm-up, then the samples to store. Agents answer few questions per second.
static int
measure_in_one_burst(struct asking *asking, struct lab_result *result, struct lab_why *why) {
	uint32_t count = VIA_AGENT_QUICK_DROPS + (uint32_t)asking->via->plan.iterations;
	int err = read_burst(asking, result->size, count, why);

	for (uint32_t warm = WARMUP_SAMPLES_MIN;
	     warm <= WARMUP_QUICK && !result->warm_check.warm && err == 0; warm *= 2) {
		memcpy(result->warm, asking->reads.times_ns, warm * sizeof(result->warm[0]));
		result->warm_count = warm;
		result->warm_judged = true;
		err = warmup_check(result->warm, warm, &result->warm_check);
	}
	if (err == 0)
		store_samples(asking, result, result->warm_count + RESULT_LEAD);
	return err;
}

static int size_play(struct asking *asking, uint64_t size, struct lab_why *why) {
	struct lab_result *result = &asking->run->results[asking->run->count];
	int err = result_prepare(result, size, false);

	if (err != 0)
		err = lab_fail(why, err, "no memory for samples");
	if (err == 0 && asking->via->quick)
		err = measure_in_one_burst(asking, result, why);
	else if (err == 0)
		err = warm_up(asking, result, why);
	if (err == 0 && !asking->via->quick)
		err = read_burst(
			asking, size, (uint32_t)asking->via->plan.iterations + RESULT_LEAD, why
		);
	if (err == 0 && !asking->via->quick) {
		store_samples(asking, result, RESULT_LEAD);
		err = result_thin(result, asking->via->plan.size_count, asking->via->file_bytes);
	}
	if (err == 0)
		err = result_summarize(result);
	// A burst arrives completely or not at all.
	if (err == 0)
		asking->run->count++;
	else
		result_release(result);
	return err;
}

int via_agent_run(const struct via_agent *via, struct lab_run *run, struct lab_why *why) {
	struct asking asking = {.via = via, .run = run};
	struct lab_environment *ours = &run->environment[0], *theirs = &run->environment[1];
	struct lab_environment yardsticks = {.count = 0};
	struct timespec now;
	int err;

	clock_gettime(CLOCK_REALTIME, &now);
	run->started_ns = now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
	run->plan = via->plan;
	if (!via->quick)
		yardsticks_measure(&yardsticks);
	err = agent_open(&asking.agent, via->socket, via->signal_fd, why);
	for (uint32_t n = 0; n < via->plan.size_count && err == 0; n++)
		err = size_play(&asking, via->plan.sizes[n], why);
	environment_read_machine(ours);
	environment_add(ours, "device", "%s", asking.reads.device);
	environment_add(ours, "via", "its agent");
	*theirs = (struct lab_environment){.count = 0};
	environment_add(theirs, "host", "%s", via->node);
	environment_add(theirs, "device", "%s", asking.reads.peer_device);
	environment_add(theirs, "via", "its agent");
	environment_add(
		theirs, "answered_by", "%s",
		asking.reads.in_process ? "its process" : "hardware or kernel"
	);
	for (uint32_t n = 0; n < yardsticks.count; n++)
		environment_add(ours, yardsticks.items[n].key, "%s", yardsticks.items[n].value);
	memcpy(run->partial, why->text, sizeof(run->partial));
	agent_close(&asking.agent);
	free(asking.reads.times_ns);
	return err;
}
