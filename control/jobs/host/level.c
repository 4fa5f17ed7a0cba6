// SPDX-License-Identifier: BSD-3-Clause
// Orders that raise the level of detail of jobs' reports for a time. Users give them at this agent
// or at another one. The level is written into a word of each page, which the job's library reads.
#include "jobs/host/inside.h"

#include <lib/log.h>
#include <lib/must.h>

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <unistd.h>

static const char *const names[TOCSIN_LEVEL_COUNT] = {
	[TOCSIN_LEVEL_DEFAULT] = "default", [TOCSIN_LEVEL_LAUNCHES] = "launches",
	[TOCSIN_LEVEL_NETWORK] = "network", [TOCSIN_LEVEL_SAMPLED] = "sampled",
	[TOCSIN_LEVEL_KERNELS] = "kernels", [TOCSIN_LEVEL_KERNELS_ALWAYS] = "kernels-always",
};

// Match the id "slurm:1234.0" by "slurm:1234" (all steps of the job), and both also without
// "slurm:".
static bool job_id_matches(const char *id, const char *word) {
	const char *number = strchr(id, ':');
	size_t length = strlen(word);

	if (word[0] == '\0')
		return true;
	if (strncmp(id, word, length) == 0 && (id[length] == '\0' || id[length] == '.'))
		return true;
	return number != NULL && strncmp(number + 1, word, length) == 0 &&
	       (number[1 + length] == '\0' || number[1 + length] == '.');
}

// The page is the job's own memory, and is written through the descriptor that the job handed over.
// If that descriptor is not writable, the agent cannot write either, and logs this once.
void level_write_to_page(struct host_process *process, uint64_t now_ns) {
	const off_t at = offsetof(struct job_page, head.wanted);
	const struct jobhost *host = process->host;
	uint64_t wanted = 0;

	// The newest order for the process counts.
	for (uint32_t n = host->order_count; n-- > 0;) {
		const struct level_order *order = &host->orders[n];

		if (order->until_ns > now_ns && job_id_matches(process->job_id, order->job)) {
			wanted = job_wanted_pack(order->level, order->until_ns);
			break;
		}
	}
	if (process->page_fd < 0 || process->page_is_unwritable || wanted == process->wanted)
		return;
	process->wanted = wanted;
	if (pwrite(process->page_fd, &wanted, sizeof(wanted), at) == (ssize_t)sizeof(wanted))
		return;
	process->page_is_unwritable = true;
	log_event(
		LOG_LEVEL_WARN, "job_level_not_told", log_u64("pid", (uint64_t)process->pid),
		log_str("job", process->job_id)
	);
}

// Add an order; it replaces an older one for the same job. Returns -ENOSPC if LEVEL_ORDERS_MAX
// orders hold.
static int add_level_order(struct jobhost *host, const struct level_order *order) {
	uint64_t now_ns = loop_now_ns(host->loop);
	uint32_t at = 0, kept = 0;

	for (uint32_t n = 0; n < host->order_count; n++)
		if (host->orders[n].until_ns > now_ns)
			host->orders[kept++] = host->orders[n];
	host->order_count = kept;
	while (at < host->order_count && strcmp(host->orders[at].job, order->job) != 0)
		at++;
	// An order for all jobs is newer than all orders for single jobs, so it replaces them.
	if (order->job[0] == '\0')
		at = host->order_count = 0;
	if (at == LEVEL_ORDERS_MAX)
		return -ENOSPC;
	if (at < host->order_count)
		memmove(&host->orders[at], &host->orders[at + 1],
			(--host->order_count - at) * sizeof(*order));
	host->orders[host->order_count++] = *order;
	for (struct host_process *process = host->processes; process != NULL;
	     process = process->next)
		level_write_to_page(process, now_ns);
	return 0;
}

int jobhost_request_level(
	struct jobhost *host, const char *level, uint64_t for_ns, const char *job
) {
	struct level_order order = {.level = 0};
	int err;

	must(for_ns <= JOBHOST_LEVEL_MAX_NS);
	while (order.level < TOCSIN_LEVEL_COUNT && strcmp(names[order.level], level) != 0)
		order.level++;
	if (order.level == TOCSIN_LEVEL_COUNT)
		return -EINVAL;
	if (strlen(job) >= sizeof(order.job))
		return -ENAMETOOLONG;
	memcpy(order.job, job, strlen(job));
	order.until_ns = loop_now_ns(host->loop) + for_ns;
	err = add_level_order(host, &order);
	if (err == 0)
		notice_send_level(host, &order);
	return err;
}

void level_apply_notice(struct jobhost *host, uint8_t level, uint64_t for_ns, const char *job) {
	struct level_order order = {
		.level = level,
		.until_ns = loop_now_ns(host->loop) +
			    (for_ns < JOBHOST_LEVEL_MAX_NS ? for_ns : JOBHOST_LEVEL_MAX_NS),
	};

	if (level >= TOCSIN_LEVEL_COUNT || strlen(job) >= sizeof(order.job))
		return; // from a newer agent
	memcpy(order.job, job, strlen(job));
	if (add_level_order(host, &order) == 0)
		log_event(
			LOG_LEVEL_INFO, "job_level", log_str("level", names[level]),
			log_str("job", job)
		);
}
