// SPDX-License-Identifier: BSD-3-Clause
#include "invariant.h"

#include "world.h"

#include <lib/must.h>

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define INVARIANT_STEP_NODES 64
#define INVARIANT_STEP_PEERS 16
#define INVARIANT_QUEUE_BYTES_MAX (4u << 20)
// Memory limit of one instance: a fixed part, a part for each peer, and the queued frames.
#define INVARIANT_BASE_BYTES (2u << 20)
#define INVARIANT_PEER_BYTES 256

// Last state of a subject that an observer reported; 0 if it reported none. The upper bits are
// the low bits of the incarnation. Ten bits for refutations are needed, since dozens are missed
// during a partition of minutes.
#define TOLD_BITS 3
#define TOLD_START_MASK 7u
#define TOLD_REFUTATION_BITS 10
#define TOLD_MASK ((1u << TOLD_BITS) - 1)

enum told {
	TOLD_NOTHING,
	TOLD_ALIVE,
	TOLD_SUSPECT,
	TOLD_UNREACHABLE,
	TOLD_DEAD,
	TOLD_LEFT,
	TOLD_FORGOTTEN,
	TOLD_COUNT,
};

#define BIT(told) (1u << (told))
#define TOLD_ANY ((1u << TOLD_COUNT) - 1)

// The reported states that may precede an event, and the state that follows it.
struct transition {
	uint32_t from;
	enum told to;
};

static const struct transition transitions[RAS_EVENT_KIND_COUNT] = {
	[RAS_EVENT_JOINED] = {TOLD_ANY, TOLD_ALIVE},
	[RAS_EVENT_ALIVE] = {BIT(TOLD_SUSPECT) | BIT(TOLD_UNREACHABLE), TOLD_ALIVE},
	[RAS_EVENT_SUSPECT] = {BIT(TOLD_ALIVE) | BIT(TOLD_UNREACHABLE), TOLD_SUSPECT},
	[RAS_EVENT_REFUTED] =
		{BIT(TOLD_ALIVE) | BIT(TOLD_SUSPECT) | BIT(TOLD_UNREACHABLE) | BIT(TOLD_DEAD),
		 TOLD_ALIVE},
	[RAS_EVENT_UNREACHABLE] = {BIT(TOLD_ALIVE) | BIT(TOLD_SUSPECT), TOLD_UNREACHABLE},
	[RAS_EVENT_DEAD] =
		{BIT(TOLD_ALIVE) | BIT(TOLD_SUSPECT) | BIT(TOLD_UNREACHABLE) | BIT(TOLD_FORGOTTEN),
		 TOLD_DEAD},
	[RAS_EVENT_LEFT] = {TOLD_ANY & ~BIT(TOLD_LEFT), TOLD_LEFT},
	[RAS_EVENT_REJOINED] = {BIT(TOLD_DEAD) | BIT(TOLD_LEFT), TOLD_ALIVE},
	[RAS_EVENT_FORGOTTEN] =
		{BIT(TOLD_UNREACHABLE) | BIT(TOLD_DEAD) | BIT(TOLD_LEFT), TOLD_FORGOTTEN},
};

static const char *const told_names[TOLD_COUNT] = {
	"nothing", "alive", "suspect", "unreachable", "dead", "left", "forgotten",
};

int invariants_init(struct invariants *invariants, const struct world *world) {
	size_t nodes = world->options.nodes;

	if (!world->options.check)
		return 0;
	invariants->told = calloc(nodes * nodes, sizeof(*invariants->told));
	invariants->preloaded = calloc(nodes, sizeof(*invariants->preloaded));
	invariants->declared = calloc(nodes, sizeof(*invariants->declared));
	invariants->weights = calloc(nodes, sizeof(*invariants->weights));
	if (invariants->weights == NULL || invariants->told == NULL ||
	    invariants->preloaded == NULL || invariants->declared == NULL)
		return -ENOMEM;
	return 0;
}

void invariants_fini(struct invariants *invariants) {
	free(invariants->told);
	free(invariants->preloaded);
	free(invariants->declared);
	free(invariants->weights);
}

void invariants_break(struct world *world, uint32_t node, uint32_t other, const char *format, ...) {
	struct invariants *invariants = &world->invariants;
	va_list arguments;

	if (invariants->broken || !world->options.check)
		return;
	invariants->broken = true;
	invariants->at_ns = world_now(world);
	invariants->nodes[invariants->node_count++] = node;
	if (other != NET_NOBODY)
		invariants->nodes[invariants->node_count++] = other;
	va_start(arguments, format);
	vsnprintf(invariants->text, sizeof(invariants->text), format, arguments);
	va_end(arguments);
}

void invariants_started(struct world *world, const struct node *node, bool preloaded) {
	struct invariants *invariants = &world->invariants;
	size_t nodes = world->options.nodes;

	invariants->preloaded[node->index] = preloaded;
	invariants->declared[node->index] = 0;
	// A restarted process does not know which deaths it declared before.
	for (size_t n = 0; n < nodes; n++) {
		if (invariants->weights[n].declarer == node->index)
			invariants->weights[n].refuted_ns = 0;
	}
	if (node->start > 1)
		memset(&invariants->told[node->index * nodes], 0,
		       nodes * sizeof(*invariants->told));
}

static uint16_t *invariants_told(struct world *world, const struct node *node, uint32_t subject) {
	struct invariants *invariants = &world->invariants;
	uint16_t *told = &invariants->told[(size_t)node->index * world->options.nodes + subject];

	if (*told == TOLD_NOTHING && invariants->preloaded[node->index])
		*told = TOLD_ALIVE;
	return told;
}

// C: events follow the allowed transitions. A table received at join produces no events, so every
// event may follow TOLD_NOTHING.
static void invariants_transition(
	struct world *world,
	const struct node *node,
	const struct ras_event *event,
	uint32_t subject
) {
	const struct transition *transition = &transitions[event->kind];
	uint16_t *told = invariants_told(world, node, subject);
	// The low bits of start and refutations suffice to distinguish consecutive deaths.
	uint64_t death = (ras_incarnation_start(event->incarnation) & TOLD_START_MASK)
				 << TOLD_REFUTATION_BITS |
			 (event->incarnation & ((1u << TOLD_REFUTATION_BITS) - 1));
	uint16_t now_told = (uint16_t)(transition->to | death << TOLD_BITS);
	uint32_t from = *told & TOLD_MASK;

	if (transition->from == 0)
		return;
	// An observer that missed the return of a node may report its next death or leave without
	// one.
	if (from != TOLD_NOTHING && (transition->from & BIT(from)) == 0 &&
	    !((event->kind == RAS_EVENT_DEAD || event->kind == RAS_EVENT_LEFT) &&
	      (from == TOLD_DEAD || from == TOLD_LEFT) &&
	      *told >> TOLD_BITS != now_told >> TOLD_BITS))
		invariants_break(
			world, node->index, subject, "C: event %s after it was told %s",
			ras_event_name(event->kind), told_names[from]
		);
	*told = now_told;
}

// Return whether the node has had no fault for longer than it takes to be declared dead.
static bool invariants_healthy(const struct world *world, const struct node *node) {
	uint64_t patience_ns = world->options.profile->dead_ns + 5 * WORLD_SEC;

	return node->state == NODE_UP && node->ailing == 0 && !node->leaving &&
	       world_now(world) > node->healthy_ns + patience_ns;
}

// Return whether the node knows the other one as a member. A node that left and came back may
// still wait for its seeds, or have founded a ring; nodes that do not know of its return cannot
// ask it.
static bool invariants_knows(const struct node *node, const struct node *other) {
	struct ras_peer peer;

	return ras_peer_find(node->ras, other->record->id, &peer) == 0 && peer.state >= RAS_ALIVE &&
	       peer.state <= RAS_UNREACHABLE;
}

// Count other nodes, up to two, that the observer could have asked about the subject.
static uint32_t invariants_able(const struct world *world, uint32_t observer, uint32_t subject) {
	uint32_t able = 0;

	for (uint32_t n = 0; n < world->options.nodes && able < 2; n++) {
		if (n != observer && n != subject && invariants_healthy(world, &world->nodes[n]) &&
		    invariants_knows(&world->nodes[observer], &world->nodes[n]))
			able += net_reaches(&world->net, observer, n) &&
				net_reaches(&world->net, n, observer);
	}
	return able;
}

// Return whether this core declared the death itself, as opposed to hearing of it.
static bool invariants_declares(struct world *world, const struct node *node) {
	uint64_t *seen = &world->invariants.declared[node->index];
	uint64_t declared = ras_counters(node->ras)->deaths_declared;
	bool declares = declared != *seen;

	*seen = declared;
	return declares;
}

// Return the number of observers that a death needs, the declaring one included: the profile's
// number, or all living members if they are fewer. Members that the node cannot hear are among
// them.
static uint32_t invariants_needed(const struct world *world, const struct node *node) {
	uint32_t observers = world->options.profile->observers;
	struct ras_view view;

	ras_view(node->ras, &view);
	return view.alive < observers ? view.alive : observers;
}

// Maximum time from a census to a death that it permits.
#define INVARIANTS_COUNT_NS (3 * WORLD_SEC)

static bool island_of(const struct world *world, uint32_t node) {
	const struct net_host *host = &world->net.hosts[world->net.nodes[node].host];

	return host->island != 0 || host->fence != 0;
}

struct sides {
	uint64_t members, across;
	// Members with a vote. On the own side: all that may have one; across: those that
	// certainly have one.
	uint64_t voters, opponents;
};

// Return whether the node certainly has a vote. A node that was declared dead or restarted gets
// its vote after a time without partition. Members notice that time at different moments.
static bool counts_for_certain(const struct world *world, const struct node *node) {
	uint64_t whole_ns = 2 * world->options.profile->brake_hold_ns;
	const struct gaps *gaps = &world->faults.gaps;

	if (node->declared_ns != 0 && !gaps_whole_since(gaps, node->declared_ns, whole_ns))
		return false;
	return node->start == 1 || gaps_whole_since(gaps, node->started_ns, whole_ns);
}

// Count the members in the node's view, including itself and the subject, and those across the
// partition.
static struct sides
invariants_sides(const struct world *world, const struct node *node, uint32_t subject) {
	bool island = island_of(world, node->index);
	struct sides sides = {0};

	for (uint32_t n = 0; n < world->options.nodes; n++) {
		const struct node *other = &world->nodes[n];
		struct ras_peer peer = {.state = RAS_ALIVE};
		bool across = island_of(world, n) != island;
		bool member;

		if (n != node->index && n != subject &&
		    ras_peer_find(node->ras, other->record->id, &peer) != 0)
			continue;
		// A member that left this side may have been in the census, and declares nobody
		// dead. A member that left the other side may still be a member in this view
		// only.
		member = (peer.state >= RAS_ALIVE && peer.state <= RAS_UNREACHABLE) ||
			 (peer.state == RAS_LEFT && !across &&
			  node_now(node) - peer.since_ns < INVARIANTS_COUNT_NS);
		if (!member || (across && other->left))
			continue;
		sides.members++;
		sides.across += across;
		sides.voters += !across;
		sides.opponents += across && counts_for_certain(world, other);
	}
	return sides;
}

// Return how long the two nodes have been partitioned. If the other one was deaf, mute or stopped
// when the partition began, that time counts as well.
static uint64_t apart_ns(const struct world *world, uint32_t node, uint32_t other) {
	const struct net_node *nodes = world->net.nodes;
	const struct node *subject = &world->nodes[other];
	uint64_t now_ns = world_now(world);
	uint64_t since_ns =
		gaps_apart_since(&world->faults.gaps, nodes[node].host, nodes[other].host, now_ns);

	if (subject->dark_ns < since_ns && subject->dark_until_ns >= since_ns)
		since_ns = subject->dark_ns;
	return now_ns - since_ns;
}

// Return whether the death may rest on evidence from before the partition began.
static bool is_of_before(const struct world *world, const struct ras_event *event) {
	const struct gaps *gaps = &world->faults.gaps;
	uint64_t age_ns = world_now(world) - gaps_now(gaps).at_ns;

	if (event->cause == RAS_CAUSE_SILENT)
		return age_ns < world->options.profile->dead_ns;
	return age_ns < INVARIANTS_COUNT_NS && gaps_changed_before(gaps, INVARIANTS_COUNT_NS);
}

// Return whether the two nodes ever had the same view. Two rings that met just as a partition
// began were never one: neither knows the members of the other, so each goes on alone.
static bool had_one_view(const struct node *one, const struct node *other) {
	for (uint32_t n = 0; n < one->view_count && n < one->view_capacity; n++) {
		for (uint32_t k = 0; k < other->view_count && k < other->view_capacity; k++) {
			if (one->views[n] == other->views[k])
				return true;
		}
	}
	return false;
}

// K: only one side of a partition declares deaths, and only with a majority. Only the first death
// of a moment is judged; the others follow from it.
static void invariants_across(
	struct world *world,
	const struct node *node,
	const struct ras_event *event,
	uint32_t subject
) {
	const struct ras_profile *profile = world->options.profile;
	uint64_t age_ns = apart_ns(world, node->index, subject);
	bool island = island_of(world, node->index);
	bool too_much = false;
	struct sides sides;
	struct ras_view view;

	// A process that ended may have been gone before the partition; so was its previous run.
	if (world->faults.splits != 1 || world->nodes[subject].state == NODE_OFF ||
	    ras_incarnation_start(event->incarnation) <
		    ras_incarnation_start(ras_self_incarnation(world->nodes[subject].ras)) ||
	    is_of_before(world, event) || island_of(world, subject) == island ||
	    !had_one_view(node, &world->nodes[subject]) || profile->brake_peers == UINT32_MAX)
		return;
	// In a view of two members each may declare the other one dead; such a death is marked
	// sole.
	ras_view(node->ras, &view);
	if (view.alive < 2)
		return;
	sides = invariants_sides(world, node, subject);
	if (age_ns < profile->brake_hold_ns)
		too_much = sides.across > profile->brake_peers &&
			   sides.across * 100 > sides.members * (profile->brake_percent + 1);
	if (world->faults.declaring != 0 && world->faults.declaring != 1u + island)
		invariants_break(
			world, node->index, subject, "K: two parts declare each other dead"
		);
	world->faults.declaring = 1u + island;
	if (too_much || sides.opponents >= sides.voters)
		invariants_break(
			world, node->index, subject,
			"K: declared dead across a gap with %" PRIu64 " of %" PRIu64
			" members behind it",
			sides.across, sides.members
		);
}

static bool invariants_one_host(const struct world *world, const struct ras_event *event) {
	uint32_t first = world_node_of_id(world, event->observers[0]);
	uint32_t second = world_node_of_id(world, event->observers[1]);

	return first != NET_NOBODY && second != NET_NOBODY &&
	       world->net.nodes[first].host == world->net.nodes[second].host;
}

// Return whether a healthy, linked node on another host could have observed the subject.
static bool invariants_elsewhere(const struct world *world, uint32_t observer, uint32_t subject) {
	uint32_t host = world->net.nodes[observer].host;
	struct ras_link_info link;

	for (uint32_t n = 0; ras_link_at(world->nodes[observer].ras, n, &link) == 0; n++) {
		uint32_t other = world_node_of_id(world, link.peer);

		if (other != NET_NOBODY && other != subject &&
		    world->net.nodes[other].host != host && link.ready && !link.delayed &&
		    invariants_healthy(world, &world->nodes[other]) &&
		    net_reaches(&world->net, observer, other) &&
		    net_reaches(&world->net, other, observer))
			return true;
	}
	return false;
}

// A, on the receiving node: a death declared by a single observer must be marked sole.
static void invariants_weight(
	struct world *world,
	const struct node *node,
	const struct ras_event *event,
	uint32_t subject,
	bool declared_here
) {
	struct invariants_weight *weight = &world->invariants.weights[subject];
	struct ras_peer peer;

	if (event->incarnation > weight->incarnation) {
		weight->incarnation = event->incarnation;
		weight->weight = 0;
	}
	if (event->incarnation != weight->incarnation)
		return;
	if (declared_here && event->observer_count > weight->weight)
		weight->weight = event->observer_count;
	if (event->cause == RAS_CAUSE_EXITED)
		weight->weight = RAS_OBSERVERS_MAX;
	if (weight->weight == 1 && world->options.profile->observers > 1 &&
	    ras_peer_find(node->ras, event->peer, &peer) == 0 && !peer.sole)
		invariants_break(
			world, node->index, subject,
			"A: the death that one alone declared is shown as one by more"
		);
}

// N: the node that declared a death does not repeat it soon after its refutation.
static void invariants_again(
	struct world *world,
	const struct node *node,
	const struct ras_event *event,
	uint32_t subject
) {
	struct invariants_weight *last = &world->invariants.weights[subject];
	uint64_t start = ras_incarnation_start(event->incarnation);

	if (last->refuted_ns != 0 && last->declarer == node->index && last->start == start &&
	    last->cause == event->cause && last->declarer_start == node->start &&
	    world_now(world) - last->refuted_ns < world->options.profile->again_ns)
		invariants_break(
			world, node->index, subject,
			"N: declared dead (%s) again by the same one, %" PRIu64
			" ms after it was refuted",
			ras_cause_name(event->cause),
			(world_now(world) - last->refuted_ns) / WORLD_MS
		);
	last->start = start;
	last->declarer = node->index;
	last->declarer_start = node->start;
	last->cause = event->cause;
	last->refuted_ns = 0;
}

static void invariants_refuted(struct world *world, const struct node *node, uint32_t subject) {
	struct invariants_weight *last = &world->invariants.weights[subject];

	if (last->declarer == node->index)
		last->refuted_ns = world_now(world);
}

// Return whether the observer knows another run of the victim. A node that came back with an old
// start is treated like that run, which has ended.
static bool is_of_earlier_run(const struct node *node, const struct node *victim) {
	struct ras_peer held, own;

	return ras_peer_find(node->ras, victim->record->id, &held) == 0 &&
	       ras_peer_find(victim->ras, victim->record->id, &own) == 0 &&
	       held.record->run != own.record->run;
}

// A: a death has enough observers. B: no healthy node is declared dead.
static void invariants_death(
	struct world *world,
	const struct node *node,
	const struct ras_event *event,
	uint32_t subject
) {
	const struct node *victim = &world->nodes[subject];
	const struct ras_profile *profile = world->options.profile;
	bool declared_here = invariants_declares(world, node);
	bool told;
	uint32_t able;

	for (uint32_t n = 0; n < event->observer_count; n++) {
		uint32_t observer = world_node_of_id(world, event->observers[n]);

		if (observer == NET_NOBODY || observer == subject ||
		    (n > 0 && event->observers[n] == event->observers[0]))
			invariants_break(
				world, node->index, subject,
				"A: observer %u of a death is nobody else, or named twice", n
			);
	}
	able = invariants_able(world, node->index, subject);
	if (declared_here && event->cause == RAS_CAUSE_EXITED &&
	    world->net.nodes[node->index].host != world->net.nodes[subject].host)
		invariants_break(
			world, node->index, subject,
			"A: declared dead (exited) by one of another host"
		);
	if (declared_here && event->observer_count > 1 && invariants_one_host(world, event) &&
	    invariants_elsewhere(world, node->index, subject))
		invariants_break(
			world, node->index, subject,
			"A: declared dead (%s) by two of one host, though others can look",
			ras_cause_name(event->cause)
		);
	// An exit reported by the node's own host needs no second observer.
	if (declared_here && event->cause != RAS_CAUSE_EXITED &&
	    (event->observer_count < invariants_needed(world, node) ||
	     (event->observer_count < profile->observers && able > 0)))
		invariants_break(
			world, node->index, subject,
			"A: declared dead (%s) by %u of %u observers, though others can look",
			ras_cause_name(event->cause), event->observer_count, profile->observers
		);
	if (declared_here) {
		invariants_across(world, node, event, subject);
		invariants_again(world, node, event, subject);
	}
	world->nodes[subject].declared_ns = world_now(world);
	invariants_weight(world, node, event, subject, declared_here);
	// Ignore deaths that only reached this node as news, in two cases. A death by one
	// observer may come from an isolated node, or from a table received at join. A node that
	// just thawed reads old news.
	told = !declared_here && (event->observer_count == 1 || !invariants_healthy(world, node));
	if (profile->observers > 1 && !told && able > 0 && invariants_healthy(world, victim) &&
	    world_is_reached(world, subject) && world->net.config.stall_ppm == 0 &&
	    !world->measure.nodes[subject].expected &&
	    event->incarnation >= ras_self_incarnation(victim->ras) &&
	    !is_of_earlier_run(node, victim))
		invariants_break(
			world, node->index, subject, "B: a healthy node was declared dead (%s)",
			ras_cause_name(event->cause)
		);
}

void invariants_event(struct world *world, const struct node *node, const struct ras_event *event) {
	uint32_t subject = event->peer != 0 ? world_node_of_id(world, event->peer) : NET_NOBODY;

	if (subject == NET_NOBODY || subject == node->index)
		return;
	if (event->kind == RAS_EVENT_DEAD)
		invariants_death(world, node, event, subject);
	else if (event->kind == RAS_EVENT_REJOINED) {
		world->nodes[subject].declared_ns = world_now(world);
		invariants_refuted(world, node, subject);
	}
	invariants_transition(world, node, event, subject);
}

// D: the last event about a peer matches its state in the table.
static void invariants_peer(struct world *world, const struct node *node, uint32_t subject) {
	static const uint8_t told_of[RAS_LEFT + 1] = {
		[RAS_ALIVE] = TOLD_ALIVE,
		[RAS_SUSPECT] = TOLD_SUSPECT,
		[RAS_UNREACHABLE] = TOLD_UNREACHABLE,
		[RAS_DEAD] = TOLD_DEAD,
		[RAS_LEFT] = TOLD_LEFT,
	};
	uint16_t *told = invariants_told(world, node, subject);
	struct ras_peer peer;

	if (ras_peer_find(node->ras, world->nodes[subject].record->id, &peer) != 0)
		return;
	if (*told == TOLD_NOTHING)
		*told = told_of[peer.state];
	if (peer.state != RAS_UNKNOWN && (*told & TOLD_MASK) != told_of[peer.state])
		invariants_break(
			world, node->index, subject, "D: it holds the peer %s, but told %s",
			ras_state_name(peer.state), told_names[*told & TOLD_MASK]
		);
}

// E: memory, queues and links stay within their bounds.
static void invariants_bounds(struct world *world, const struct node *node) {
	size_t used = ras_memory_used(node->ras);
	size_t allowed = INVARIANT_BASE_BYTES + (size_t)INVARIANT_PEER_BYTES * world->options.nodes;
	struct ras_link_info link;

	for (uint32_t n = 0; ras_link_at(node->ras, n, &link) == 0; n++) {
		if (link.queued_bytes > INVARIANT_QUEUE_BYTES_MAX)
			invariants_break(
				world, node->index, world_node_of_id(world, link.peer),
				"E: %u bytes in a link's queue", link.queued_bytes
			);
		allowed += link.queued_bytes * 2;
	}
	if (used > allowed)
		invariants_break(
			world, node->index, NET_NOBODY, "E: %zu bytes held, %zu allowed", used,
			allowed
		);
}

void invariants_step(struct world *world) {
	struct invariants *invariants = &world->invariants;
	uint32_t count = world->options.nodes;
	uint32_t looked = count < INVARIANT_STEP_NODES ? count : INVARIANT_STEP_NODES;

	must(count > 0);
	invariants->next_ns = world_now(world) + WORLD_SEC;
	if (!world->options.check)
		return;
	for (uint32_t n = 0; n < looked; n++) {
		uint32_t index = (invariants->cursor + n) % count;
		const struct node *node = &world->nodes[index];

		if (node->state == NODE_OFF)
			continue;
		invariants_bounds(world, node);
		for (uint32_t m = 0; m < INVARIANT_STEP_PEERS; m++) {
			uint32_t subject = (index + invariants->cursor + m * 61) % count;

			if (subject != index)
				invariants_peer(world, node, subject);
		}
	}
	invariants->cursor = (invariants->cursor + looked) % count;
	load_check(world);
}
