// SPDX-License-Identifier: BSD-3-Clause
// Keeps the join addresses up to date: names may resolve differently later, and files change. An
// agent with a join list reports itself as alone until the first address is found. It must not
// create a second cluster because a resolver is slow.
#include "agent.h"

#include <control/join_list.h>
#include <control/overlay.h>
#include <lib/container.h>
#include <lib/log.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define REFRESH_ALONE_NS (5 * RAS_NS_PER_SEC)
#define REFRESH_JOINED_NS (60 * RAS_NS_PER_SEC)
#define REPORT_INTERVAL_NS (600 * RAS_NS_PER_SEC)

static void on_join_refresh_timer(struct loop_timer *timer, uint64_t now_ns) {
	struct agent *agent = container_of(timer, struct agent, join_refresh_timer);

	(void)now_ns;
	join_list_refresh(agent->join);
}

// Warn about join addresses of another address family. The node uses one address, so it cannot
// reach them.
static void
join_check_families(struct agent *agent, const struct sock_addr *seeds, uint32_t count) {
	struct sock_addr own = overlay_address(agent->overlay);
	char own_text[SOCK_ADDR_TEXT_BYTES], text[SOCK_ADDR_TEXT_BYTES];
	uint32_t others = 0;

	for (uint32_t n = 0; n < count; n++) {
		if (seeds[n].family == own.family)
			continue;
		if (others++ == 0)
			sock_addr_format(&seeds[n], text);
	}
	if (others == 0)
		return;
	sock_addr_format(&own, own_text);
	log_event(
		LOG_LEVEL_WARN, "join_addresses_of_another_family", log_u64("count", others),
		log_str("first", text), log_str("own", own_text),
		log_str("effect", "this node cannot reach these addresses")
	);
}

// Return the log level for a resolver result. A changed result is a warning, and an unchanged one
// again after ten minutes. While no address is usable, names are retried every few seconds.
static enum log_level
join_report_level(struct agent *agent, uint32_t count, uint32_t failures, const char *error) {
	struct agent_join_report *told = &agent->join_last_report;
	uint64_t now_ns = loop_now_ns(agent->loop);

	if (error == NULL)
		error = "";
	if (told->at_ns != 0 && now_ns - told->at_ns < REPORT_INTERVAL_NS && told->count == count &&
	    told->failures == failures && strncmp(told->error, error, sizeof(told->error) - 1) == 0)
		return LOG_LEVEL_DEBUG;
	*told = (struct agent_join_report){.at_ns = now_ns, .count = count, .failures = failures};
	snprintf(told->error, sizeof(told->error), "%s", error);
	return LOG_LEVEL_WARN;
}

static void on_join_resolved(
	void *ctx,
	const struct sock_addr *seeds,
	uint32_t count,
	uint32_t failures,
	const char *error
) {
	struct agent *agent = ctx;
	enum log_level level;
	struct ras_view view;

	ras_view(overlay_ras(agent->overlay), &view);
	level = join_report_level(agent, count, failures, error);
	if (failures > 0)
		log_event(
			level, "join_addresses_unusable", log_u64("failures", failures),
			log_u64("usable", count), log_str("first", error)
		);
	overlay_set_join_names_error(agent->overlay, count == 0 && failures > 0 ? error : "");
	if (!view.joined)
		join_check_families(agent, seeds, count);
	if (count > 0) {
		agent->joining = true;
		overlay_join(agent->overlay, seeds, count);
	} else if (!agent->joining) {
		log_event(level, "alone", log_str("reason", "no address to join through"));
	}
	if (loop_timer_set(
		    agent->loop, &agent->join_refresh_timer,
		    loop_now_ns(agent->loop) + (view.joined ? REFRESH_JOINED_NS : REFRESH_ALONE_NS)
	    ) != 0)
		log_event(LOG_LEVEL_WARN, "join_not_refreshed", log_errno("error", ENOMEM));
}

int joining_start(struct agent *agent) {
	const struct join_list_ops ops = {.resolved = on_join_resolved, .ctx = agent};
	const char *join = agent->settings->overlay.join;

	agent->join_refresh_timer.expired = on_join_refresh_timer;
	if (join[0] == '\0') {
		agent->joining = true;
		overlay_join(agent->overlay, NULL, 0);
		return 0;
	}
	// Join through remembered members at once, without waiting for a slow or dead resolver.
	if (overlay_remembered_count(agent->overlay) > 0) {
		agent->joining = true;
		overlay_join_remembered(agent->overlay);
	}
	return join_list_create(
		agent->loop, join, OVERLAY_PORT,
		(enum sock_addr_family)overlay_address(agent->overlay).family, &ops, &agent->join
	);
}

void joining_stop(struct agent *agent) {
	loop_timer_cancel(agent->loop, &agent->join_refresh_timer);
	agent->join = join_list_destroy(agent->join);
}

int joining_restart(struct agent *agent) {
	joining_stop(agent);
	return joining_start(agent);
}
