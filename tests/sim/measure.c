// SPDX-License-Identifier: BSD-3-Clause
#include "measure.h"

#include "world.h"

#include <lib/must.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

int measure_init(struct measure *measure, const struct world *world) {
	measure->nodes = calloc(world->options.nodes, sizeof(*measure->nodes));
	return measure->nodes != NULL ? 0 : -ENOMEM;
}

void measure_fini(struct measure *measure) {
	free(measure->nodes);
	free(measure->deaths);
	free(measure->returns);
}

// Return the new incident's index plus one, so that 0 means none.
static uint32_t
incident_add(struct incident **list, uint32_t *count, uint32_t *capacity, struct incident made) {
	if (*count == *capacity) {
		*capacity = *capacity > 0 ? 2 * *capacity : 64;
		*list = realloc(*list, *capacity * sizeof(**list));
		must(*list != NULL);
	}
	(*list)[(*count)++] = made;
	return *count;
}

static void incident_seen(struct incident *incident, uint64_t now_ns, struct stats *delays) {
	uint64_t after_ns = now_ns - incident->at_ns;

	if (incident->seen++ == 0)
		incident->first_ns = after_ns;
	incident->last_ns = after_ns;
	stats_add(delays, after_ns);
}

void measure_started(struct world *world, struct node *node) {
	struct measure_node *own = &world->measure.nodes[node->index];
	const struct net_node *wire = &world->net.nodes[node->index];

	if (own->started_bytes == 0 && world->measure.window_ns != 0) {
		own->started_bytes = wire->sent_bytes;
		own->started_frames = wire->sent_frames;
	}
	if (own->death != 0)
		measure_expect_return(world, node->index);
}

void measure_expect_death(struct world *world, uint32_t node, bool alive) {
	struct measure *measure = &world->measure;
	struct incident made = {.node = node, .at_ns = world_now(world)};

	// If another fault affects the node as well, peers may declare it dead because of that
	// one.
	measure->nodes[node].expected = alive || world->nodes[node].ailing > 0;
	measure->nodes[node].ret = 0;
	measure->nodes[node].death = incident_add(
		&measure->deaths, &measure->death_count, &measure->death_capacity, made
	);
}

void measure_expect_return(struct world *world, uint32_t node) {
	struct measure *measure = &world->measure;
	struct incident made = {.node = node, .at_ns = world_now(world)};

	measure->nodes[node].death = 0;
	measure->nodes[node].ret = incident_add(
		&measure->returns, &measure->return_count, &measure->return_capacity, made
	);
}

void measure_expect_life(struct world *world, uint32_t node) {
	world->measure.nodes[node].expected = false;
}

// Record the delay for an observer that ran at the time. Later starters find the state in the
// table they receive at join.
static void
incident_note(struct incident *incident, const struct node *observer, struct stats *delays) {
	if (observer->started_ns < incident->at_ns)
		incident_seen(incident, world_now(observer->world), delays);
}

#define OLD_NEWS_NS (5 * WORLD_SEC)
#define BACK_NS (10 * WORLD_SEC) // maximum delay of news of a death

// Return whether the death may be old news: this node did not declare it (the first observer is
// the declarer), and has a fault or just had one.
static bool reads_old_news(const struct node *node, const struct ras_event *event) {
	return (event->observer_count == 0 || event->observers[0] != node->record->id) &&
	       (node->ailing > 0 || world_now(node->world) < node->healthy_ns + OLD_NEWS_NS);
}

// Return whether a node without a fault now or just before can hear the subject. Nodes that lose
// packets, or that read old input after a pause, miss the subject in any case.
static bool is_heard(const struct world *world, uint32_t subject) {
	for (uint32_t n = 0; n < world->options.nodes; n++) {
		const struct node *other = &world->nodes[n];

		if (n != subject && other->state == NODE_UP && other->ailing == 0 &&
		    (other->ailed_ns == 0 || world_now(world) >= other->ailed_ns + BACK_NS) &&
		    net_reaches(&world->net, n, subject) && net_reaches(&world->net, subject, n))
			return true;
	}
	return false;
}

static void measure_death(
	struct world *world,
	const struct node *node,
	const struct ras_event *event,
	uint32_t subject
) {
	struct measure *measure = &world->measure;
	struct measure_node *own = &measure->nodes[subject];
	struct ras_peer peer;

	if (own->death != 0)
		incident_note(&measure->deaths[own->death - 1], node, &measure->death_delay);
	if (event->kind != RAS_EVENT_DEAD || own->expected ||
	    world->nodes[subject].state == NODE_OFF || own->false_seen == event->incarnation + 1)
		return;
	// News of a death before the subject's restart, or of one that it refuted, is no false
	// alarm.
	if (ras_incarnation_start(event->incarnation) < world->nodes[subject].start ||
	    event->incarnation < ras_self_incarnation(world->nodes[subject].ras))
		return;
	// The subject is or was just cut off from all nodes, or this node has just thawed and
	// reads old news.
	if (!is_heard(node->world, subject) || reads_old_news(node, event) ||
	    world_now(node->world) < node->world->nodes[subject].healthy_ns + BACK_NS)
		return;
	// In a view of two, a correct death by one observer is marked sole.
	if (ras_peer_find(node->ras, event->peer, &peer) == 0 && peer.sole)
		return;
	own->false_seen = event->incarnation + 1;
	measure->false_dead++;
	measure->false_node = subject;
}

static void measure_suspicion(struct world *world, uint32_t subject) {
	const struct node *node = &world->nodes[subject];

	world->measure.suspicions++;
	if (node->state == NODE_UP && !world->measure.nodes[subject].expected)
		world->measure.false_suspect++;
}

static void measure_return(struct world *world, const struct node *node, uint32_t subject) {
	struct measure *measure = &world->measure;
	uint32_t ret = measure->nodes[subject].ret;

	if (ret != 0)
		incident_note(&measure->returns[ret - 1], node, &measure->return_delay);
}

void measure_event(struct world *world, const struct node *node, const struct ras_event *event) {
	struct measure *measure = &world->measure;
	uint32_t subject = event->peer != 0 ? world_node_of_id(world, event->peer) : NET_NOBODY;
	bool other = subject != NET_NOBODY && subject != node->index;

	switch (event->kind) {
	case RAS_EVENT_JOINED:
	case RAS_EVENT_REJOINED:
		if (other)
			measure_return(world, node, subject);
		break;
	case RAS_EVENT_DEAD:
	case RAS_EVENT_LEFT:
		if (other)
			measure_death(world, node, event, subject);
		break;
	case RAS_EVENT_SUSPECT:
		if (other)
			measure_suspicion(world, subject);
		break;
	case RAS_EVENT_REFUTED:
		measure->refutations++;
		break;
	case RAS_EVENT_LINK_UP:
		measure->link_ends_up++;
		break;
	case RAS_EVENT_BRAKE_ON:
		measure->brakes_on++;
		break;
	case RAS_EVENT_PAUSED:
		measure->own_pauses++;
		break;
	case RAS_EVENT_CONFLICT:
		measure->conflicts++;
		break;
	case RAS_EVENT_DECLARED_DEAD:
		measure->declared_dead++;
		break;
	case RAS_EVENT_DIVERGED:
		measure->diverged++;
		break;
	case RAS_EVENT_JOIN_REFUSED:
		measure->refused_joins++;
		break;
	default:
		break;
	}
	if (event->hops > measure->flood_hops_max)
		measure->flood_hops_max = event->hops;
}

void measure_window(struct world *world) {
	world->measure.window_ns = world_now(world);
	for (uint32_t n = 0; n < world->options.nodes; n++) {
		world->measure.nodes[n].started_bytes = world->net.nodes[n].sent_bytes;
		world->measure.nodes[n].started_frames = world->net.nodes[n].sent_frames;
	}
	world->measure.flood_hops_max = 0;
}

void measure_traffic(const struct world *world, struct measure_traffic *ret_traffic) {
	struct stats *bytes = calloc(1, sizeof(*bytes));
	struct stats *frames = calloc(1, sizeof(*frames));
	double seconds = (double)(world_now(world) - world->measure.window_ns) / 1e9;

	must(bytes != NULL && frames != NULL);
	// Counted in thousandths, so that quantiles of a few messages per second keep their
	// precision.
	for (uint32_t n = 0; n < world->options.nodes && seconds > 0; n++) {
		const struct measure_node *own = &world->measure.nodes[n];
		double sent = (double)(world->net.nodes[n].sent_bytes - own->started_bytes);
		double count = (double)(world->net.nodes[n].sent_frames - own->started_frames);

		if (world->nodes[n].state == NODE_OFF)
			continue;
		stats_add(bytes, (uint64_t)(sent / seconds * 1000));
		stats_add(frames, (uint64_t)(count / seconds * 1000));
	}
	ret_traffic->bytes_mean = stats_mean(bytes) / 1000;
	ret_traffic->bytes_p99 = stats_quantile(bytes, 0.99) / 1000;
	ret_traffic->frames_mean = stats_mean(frames) / 1000;
	ret_traffic->frames_p99 = stats_quantile(frames, 0.99) / 1000;
	free(bytes);
	free(frames);
}

double measure_links_up(const struct measure *measure) {
	return (double)measure->link_ends_up / 2;
}

uint64_t measure_instance_bytes(const struct world *world) {
	uint64_t most = 0;

	for (uint32_t n = 0; n < world->options.nodes; n++) {
		uint64_t used = 0;

		if (world->nodes[n].state != NODE_OFF)
			used = ras_memory_used(world->nodes[n].ras);
		most = used > most ? used : most;
	}
	return most;
}

static double incidents_worst(const struct incident *incidents, uint32_t count, bool first) {
	double worst = NAN;

	for (uint32_t n = 0; n < count; n++) {
		uint64_t after_ns = first ? incidents[n].first_ns : incidents[n].last_ns;

		if (incidents[n].seen > 0 && !(worst >= (double)after_ns / 1e9))
			worst = (double)after_ns / 1e9;
	}
	return worst;
}

double measure_first_death_s(const struct measure *measure) {
	return incidents_worst(measure->deaths, measure->death_count, true);
}

double measure_last_death_s(const struct measure *measure) {
	return incidents_worst(measure->deaths, measure->death_count, false);
}

double measure_last_return_s(const struct measure *measure) {
	return incidents_worst(measure->returns, measure->return_count, false);
}
