// SPDX-License-Identifier: BSD-3-Clause
// Judges reads of links. Pure.
//
// Errors of the last hour are a leaky bucket: each error adds to it, and per hour it loses as many
// errors as are allowed. Rare errors never add up, and past errors are forgotten. Errors counted
// before the first read of a boot are ignored.
#include "checks/links.h"

#include <lib/must.h>

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ACTIVE 4
#define ACTIVE_DEFER 5
#define HOUR_S 3600
#define NS_PER_S UINT64_C(1000000000)
#define MILLI_MAX (UINT64_C(1000000) * 1000) // upper bound of a bucket

void link_finding_add(
	struct link_finding *finding, enum check_level level, const char *format, ...
) {
	size_t used = strlen(finding->evidence);
	char text[VERDICT_EVIDENCE_MAX + 1];
	const char *between = used > 0 ? "; " : "";
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	if (level > finding->level)
		finding->level = level;
	// Leave room for the number of further faults.
	if (used > 0 && used + strlen(text) + 20 > VERDICT_EVIDENCE_MAX)
		finding->more++;
	else
		snprintf(
			finding->evidence + used, sizeof(finding->evidence) - used, "%s%s", between,
			text
		);
}

void link_finding_add_more(struct link_finding *finding) {
	size_t used = strlen(finding->evidence);

	if (finding->more > 0)
		snprintf(
			finding->evidence + used, sizeof(finding->evidence) - used, "; %u more",
			finding->more
		);
}

static const struct checks_device *
configured_device_find(const struct checks_builtin_settings *settings, const char *device) {
	for (uint32_t n = 0; n < settings->device_count; n++) {
		if (strcmp(settings->devices[n].name, device) == 0)
			return &settings->devices[n];
	}
	return NULL;
}

static bool port_is_up(const struct link_port *port) {
	return port->state == ACTIVE || port->state == ACTIVE_DEFER;
}

static void link_history_reset(struct link_past *past, const struct link_port *port) {
	*past = (struct link_past){.number = port->number, .guid = port->guid};
	snprintf(past->device, sizeof(past->device), "%s", port->device);
	memset(past->counters, 0xff, sizeof(past->counters));
}

// Return the history of a port, created if needed; NULL: the book is full.
static struct link_past *link_history_get(struct link_book *book, const struct link_port *port) {
	struct link_past *past = link_book_find(book, port->device, port->number);

	if (past != NULL) {
		if (past->guid != port->guid) // different hardware under the same name
			link_history_reset(past, port);
		return past;
	}
	if (book->count == LINK_PORTS_MAX)
		return NULL;
	past = &book->ports[book->count++];
	link_history_reset(past, port);
	return past;
}

static void count_errors(
	struct link_book *book,
	struct link_past *past,
	const struct link_port *port,
	uint64_t now_ns
) {
	uint64_t gone_ns = now_ns > past->looked_ns ? now_ns - past->looked_ns : 0;
	bool hour_is_over = gone_ns / NS_PER_S >= HOUR_S;

	for (uint32_t n = 0; n < link_counter_count; n++) {
		uint64_t before = past->counters[n], now = port->counters[n];
		uint64_t leak = hour_is_over
					? UINT64_MAX
					: gone_ns / 1000000 * link_counters[n].per_hour / HOUR_S;
		uint64_t milli = past->milli[n] > leak ? past->milli[n] - leak : 0;

		// A counter below its previous value was reset, and its value may be old.
		if (before != UINT64_MAX && now != UINT64_MAX && now > before)
			milli +=
				now - before > MILLI_MAX / 1000 ? MILLI_MAX : (now - before) * 1000;
		past->milli[n] = milli < MILLI_MAX ? milli : MILLI_MAX;
		book->changed = book->changed || (now != UINT64_MAX && now != before);
		if (now != UINT64_MAX)
			past->counters[n] = now;
	}
	past->looked_ns = now_ns;
}

static void judge_port_errors(const struct link_past *past, struct link_finding *finding) {
	uint64_t sum = 0, worst = 0;
	uint32_t which = 0;

	for (uint32_t n = 0; n < link_counter_count; n++) {
		uint64_t share =
			past->milli[n] * link_counters[n].weight / 1000 / link_counters[n].per_hour;

		sum += share;
		if (share > worst) {
			worst = share;
			which = n;
		}
	}
	if (sum > 1000)
		link_finding_add(
			finding, CHECK_WARNING,
			"%.32s port %u counted %" PRIu64 " %s in the last hour", past->device,
			past->number, (past->milli[which] + 999) / 1000, link_counters[which].name
		);
	// Mention counters that do not speak against the port itself but may explain a bad path.
	for (uint32_t n = 0; n < link_counter_count; n++) {
		uint64_t counted = (past->milli[n] + 999) / 1000;

		if (link_counters[n].weight == 0 && counted > link_counters[n].per_hour)
			link_finding_add(
				finding, CHECK_OK,
				"%.32s port %u counted %" PRIu64 " %s caused by peers",
				past->device, past->number, counted, link_counters[n].name
			);
	}
}

static void judge_port_rate(
	const struct link_past *past,
	const struct link_port *port,
	const struct checks_device *device,
	struct link_finding *finding
) {
	uint32_t expected = device != NULL ? device->expect_mbps : 0;

	if (port->rate_mbps == 0)
		return;
	if (expected > 0 && port->rate_mbps < expected)
		link_finding_add(
			finding, CHECK_CRITICAL, "%.32s port %u runs at %.1f Gb/s instead of %.1f",
			port->device, port->number, port->rate_mbps / 1000.0, expected / 1000.0
		);
	else if (expected == 0 && port->rate_mbps < past->best_mbps)
		link_finding_add(
			finding, CHECK_WARNING,
			"%.32s port %u runs at %.1f Gb/s, and ran at %.1f before", port->device,
			port->number, port->rate_mbps / 1000.0, past->best_mbps / 1000.0
		);
}

// Return whether this agent measures with the port, or the configuration names it.
static bool port_is_configured(const struct checks_device *device, uint8_t number) {
	return device != NULL && (device->port == 0 || device->port == number);
}

// Judge a port that is down. An unplugged port is no fault unless it is meant to be up.
static void judge_port_down(
	const struct link_past *past,
	const struct link_port *ports,
	uint32_t count,
	const struct link_port *port,
	const struct checks_device *device,
	struct link_finding *finding
) {
	bool meant = port_is_configured(device, port->number);
	bool known = past->was_up || (device != NULL && device->expect_mbps > 0);

	// If any port of the device will do, one that is up suffices.
	for (uint32_t n = 0; meant && device->port == 0 && n < count; n++)
		meant = !port_is_up(&ports[n]) || strcmp(ports[n].device, port->device) != 0;
	if (meant && known)
		link_finding_add(
			finding, CHECK_CRITICAL, "%.32s port %u is %s (%s)", port->device,
			port->number, port->state_name, port->phys_name
		);
	else if (past->up || meant)
		link_finding_add(
			finding, CHECK_WARNING, "%.32s port %u is %s (%s)%s", port->device,
			port->number, port->state_name, port->phys_name,
			past->up ? ", and was up before" : ", and was never seen up"
		);
}

// Report ports that are missing, and devices with an expected rate that were never seen. A port
// counts only if this agent measures with it, or the configuration names it. Other devices may have
// moved to a container.
static void judge_missing_ports(
	struct link_book *book,
	const struct checks_builtin_settings *settings,
	struct link_finding *finding
) {
	uint32_t kept = 0;

	for (uint32_t n = 0; n < book->count; n++) {
		const struct link_past *past = &book->ports[n];
		bool meant = port_is_configured(
			configured_device_find(settings, past->device), past->number
		);

		if (!past->seen && meant && past->was_up)
			link_finding_add(
				finding, CHECK_CRITICAL, "%.32s port %u has disappeared",
				past->device, past->number
			);
		if (past->seen || meant)
			book->ports[kept++] = *past;
	}
	book->count = kept;
	for (uint32_t n = 0; n < settings->device_count; n++) {
		const struct checks_device *device = &settings->devices[n];
		bool known = false;

		for (uint32_t k = 0; k < book->count && !known; k++)
			known = strcmp(book->ports[k].device, device->name) == 0;
		if (device->expect_mbps > 0 && !known)
			link_finding_add(
				finding, CHECK_CRITICAL, "device %.32s does not exist", device->name
			);
	}
}

// Complete a finding. Without a fault, the number of ports that are up precedes the other text.
static void finding_finish(struct link_finding *finding, uint32_t up, uint32_t count) {
	if (finding->level == CHECK_OK) {
		struct link_finding counted = {.more = finding->more};

		link_finding_add(
			&counted, CHECK_OK, "%u of %u ports of RDMA devices are up", up, count
		);
		if (finding->evidence[0] != '\0')
			link_finding_add(&counted, CHECK_OK, "%s", finding->evidence);
		*finding = counted;
	}
	link_finding_add_more(finding);
}

void link_judge(
	struct link_book *book,
	const struct link_port *ports,
	uint32_t count,
	const struct checks_builtin_settings *settings,
	uint64_t now_ns,
	struct link_finding ret_findings[static LINK_FINDING_COUNT]
) {
	struct link_finding findings[LINK_FINDING_COUNT] = {0};
	uint32_t up = 0;

	for (uint32_t n = 0; n < book->count; n++)
		book->ports[n].seen = false;
	for (uint32_t n = 0; n < count; n++) {
		const struct checks_device *device =
			configured_device_find(settings, ports[n].device);
		struct link_past *past = link_history_get(book, &ports[n]);

		if (past == NULL)
			continue;
		past->seen = true;
		count_errors(book, past, &ports[n], now_ns);
		judge_port_errors(past, &findings[LINK_ERRORS]);
		if (!port_is_up(&ports[n])) {
			judge_port_down(
				past, ports, count, &ports[n], device, &findings[LINK_STATE]
			);
			continue;
		}
		up++;
		book->changed = book->changed || !past->up || ports[n].rate_mbps > past->best_mbps;
		past->up = past->was_up = true;
		judge_port_rate(past, &ports[n], device, &findings[LINK_RATE]);
		if (ports[n].rate_mbps > past->best_mbps)
			past->best_mbps = ports[n].rate_mbps;
	}
	judge_missing_ports(book, settings, &findings[LINK_STATE]);
	for (uint32_t n = 0; n < LINK_FINDING_COUNT; n++)
		finding_finish(&findings[n], up, count);
	memcpy(ret_findings, findings, sizeof(findings));
}
