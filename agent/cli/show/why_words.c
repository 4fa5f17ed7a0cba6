// SPDX-License-Identifier: BSD-3-Clause
// Explains the state of a node and what follows, for an operator on call.
#include "show/why_words.h"

#include <string.h>

struct explanation_text {
	const char *word; // name of a state or verdict
	const char *means, *follows;
};

static const struct explanation_text state_explanations[] = {
	{"alive",
	 "Its agent answers on the overlay. That alone says nothing of its fabric; its verdict does.",
	 "Nothing, as long as it answers."},
	{"suspect",
	 "There is evidence that it is dead, and other agents check. Any message from it ends "
	 "this.",
	 "Within seconds it refutes the suspicion, or a second agent confirms its death."},
	{"unreachable",
	 "Too many fell silent at the same time: this side may be the one that is cut off, so none "
	 "of them is declared dead by silence.",
	 "It is alive again at its first message, or it is judged when the brake is released."},
	{"dead",
	 "Whether the host died, the agent froze or only this network failed cannot be told from the "
	 "overlay alone.",
	 "Other agents keep trying to reach it, and it rejoins when it answers. Look at the host "
	 "by another way: console, power, switch port."},
	{"left", "Its agent was stopped in good order. This raises no alarm.",
	 "It joins again when it is started; its entry expires by itself."},
	{"missing",
	 "[overlay] expect names it, but the peer table does not: it never joined, or was "
	 "forgotten.",
	 "Start tocsind on it, or remove it from [overlay] expect."},
};

#define AGENT_GONE                                                                 \
	"Its agent is gone while its host still answers. That alone says nothing " \
	"bad of the host, its fabric or its jobs."
#define AGENT_START "Start tocsind on it again (its log says why it ended); it rejoins by itself."
#define CHECK_FOLLOWS \
	"Do what the check asks for; `tocsin checks`, with --node and its name, lists them all."

// Verdicts that say more than the state.
static const struct explanation_text verdict_explanations[] = {
	{"path-degraded",
	 "It works, but its fabric is slower than before and than that of similar nodes.",
	 "Jobs on it run at the speed of the slow path. Look at cables, ports and congestion."},
	{"path-lossy",
	 "Small messages pass, large ones are lost: MTU, a bad cable, or a full queue on the way.",
	 "Jobs stall on it. Compare MTUs along the path; look at the error counters of its ports."},
	{"unstable",
	 "Its state changes too fast to act on: a loose cable, a service that restarts again and "
	 "again, or a packet size that passes only now and then.",
	 "`tocsin why` with its name lists the observations. Schedulers neither drain nor undrain "
	 "it for this."},
	{"mgmt-net-down",
	 "Its agent and its fabric work, but the network of the overlay does not reach it.",
	 "Jobs on it can continue. Look at its management port and switch."},
	{"agent-down", AGENT_GONE, AGENT_START},
	{"agent-frozen",
	 "Its host is alive: its kernel or network card answers. The agent itself does nothing.",
	 "Look at the host: is it out of memory, in a stuck driver, or is the process stopped?"},
	{"device-stuck",
	 "A call into a driver hangs on it. Programs that use this device will hang, too.",
	 "Look at its kernel's log; as a rule only a restart of the host ends this."},
	{"fabric-down", "Its agent answers, its fabric does not: jobs on it cannot communicate.",
	 "Look at its port, cable and switch port."},
	{"node-down",
	 "Its agent and its fabric answer no other node: the host is down, or cut off.",
	 "Look at the host by another way: console, power."},
	{"node-busy",
	 "Its agent waits for a processor, so its measurements are late. Nothing else is wrong.",
	 "Give the agent a processor of its own ([worker] cores), or a higher priority."},
	{"check-warning", "A local check of that node warns.", CHECK_FOLLOWS},
	{"check-failed", "A local check of that node is critical.", CHECK_FOLLOWS},
};

static const struct explanation_text unknown_explanation = {
	"", "This tocsin does not know that state: it may be older than the agent.",
	"Use the tocsin of the agent's version."};

static const struct explanation_text *
explanation_find(const struct explanation_text *stories, size_t count, const char *word) {
	for (size_t n = 0; n < count; n++) {
		if (strcmp(stories[n].word, word) == 0)
			return &stories[n];
	}
	return NULL;
}

// Return true if only the agent is gone: its process ended, or its host refuses connections, so the
// host answers.
static bool agent_alone_is_gone(const json_t *why) {
	if (fact_known(why, "agent_only"))
		return fact_holds(why, "agent_only");
	return fact_is(why, "cause", "gone") || fact_is(why, "cause", "refused");
}

static struct explanation_text node_explanation(const json_t *why) {
	bool dead = fact_is(why, "state", "dead");
	const struct explanation_text *found = NULL;
	struct explanation_text explanation;

	if (why_has_verdict(why))
		found = explanation_find(
			verdict_explanations,
			sizeof(verdict_explanations) / sizeof(verdict_explanations[0]),
			fact_word(why, "verdict")
		);
	if (found != NULL)
		return *found;
	found = explanation_find(
		state_explanations, sizeof(state_explanations) / sizeof(state_explanations[0]),
		fact_word(why, "state")
	);
	explanation = found != NULL ? *found : unknown_explanation;

	// The cause refines the explanation of a state.
	if (fact_is(why, "state", "unreachable") && agent_alone_is_gone(why))
		explanation.means =
			"Too many hosts refuse connections at the same time, so none of their "
			"agents is declared dead: a firewall between may refuse for them. If there "
			"is none, the agent of this node has ended.";
	if (dead && agent_alone_is_gone(why)) {
		explanation.means = AGENT_GONE;
		explanation.follows = AGENT_START;
	}
	if (dead && fact_holds(why, "sole"))
		explanation.means = "Only one agent could observe this, so no action is advised.";
	return explanation;
}

bool why_has_verdict(const json_t *why) {
	return json_is_array(why_observations(why));
}

const json_t *why_observations(const json_t *why) {
	const json_t *observations = json_object_get(why, "observations");

	// Older agents use this name.
	return observations != NULL ? observations : json_object_get(why, "sights");
}

void why_print_meaning(struct page *page, const json_t *why) {
	page_print(page, "\nWhat it means\n");
	page_wrap(page, 2, 2, node_explanation(why).means);
}

void why_print_future(struct page *page, const json_t *why) {
	const char *node = fact_name(why, "node");
	char line[1024];

	page_print(page, "\nWhat follows\n");
	if (fact_holds(why, "maint")) {
		snprintf(
			line, sizeof(line),
			"While it is in maintenance it raises no alarm, and schedulers neither "
			"drain nor undrain it. To end maintenance: `tocsin maint %s off`.",
			node
		);
		page_wrap(page, 2, 2, line);
		return;
	}
	page_wrap(page, 2, 2, node_explanation(why).follows);
	if (fact_is(why, "state", "dead"))
		page_print(page, "  If it is gone for good: `tocsin forget %s`.\n", node);
	else if (fact_is(why, "state", "unreachable"))
		page_print(
			page, "  If all nodes that this side cannot reach are gone for good: "
			      "`tocsin forget --unreachable`.\n"
		);
}
