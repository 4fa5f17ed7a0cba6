// SPDX-License-Identifier: BSD-3-Clause
// Names of states, causes and events; meaning of errno values.
#include <ras/event.h>
#include <ras/ras.h>
#include <ras/types.h>

#include <errno.h>

static const char *const state_names[] = {
	[RAS_UNKNOWN] = "unknown",	   [RAS_ALIVE] = "alive", [RAS_SUSPECT] = "suspect",
	[RAS_UNREACHABLE] = "unreachable", [RAS_DEAD] = "dead",	  [RAS_LEFT] = "left",
};

static const char *const cause_names[RAS_CAUSE_COUNT] = {
	[RAS_CAUSE_NONE] = "none",	     [RAS_CAUSE_SILENT] = "silent",
	[RAS_CAUSE_GONE] = "gone",	     [RAS_CAUSE_RESET] = "reset",
	[RAS_CAUSE_REFUSED] = "refused",     [RAS_CAUSE_UNREACHABLE] = "unreachable",
	[RAS_CAUSE_TIMEOUT] = "timeout",     [RAS_CAUSE_STUCK] = "stuck",
	[RAS_CAUSE_PROOF] = "proof",	     [RAS_CAUSE_VERSION] = "version",
	[RAS_CAUSE_CLUSTER] = "cluster",     [RAS_CAUSE_CONFLICT] = "conflict",
	[RAS_CAUSE_DUPLICATE] = "duplicate", [RAS_CAUSE_DEGREE] = "degree",
	[RAS_CAUSE_IDLE] = "idle",	     [RAS_CAUSE_LEAVE] = "leave",
	[RAS_CAUSE_DEATH] = "death",	     [RAS_CAUSE_REPORT] = "report",
	[RAS_CAUSE_OWN_FAULT] = "own-fault", [RAS_CAUSE_PROTOCOL] = "protocol",
	[RAS_CAUSE_RESTART] = "restart",     [RAS_CAUSE_REFUTED] = "refuted",
	[RAS_CAUSE_BUSY] = "busy",	     [RAS_CAUSE_EXITED] = "exited",
};

static const char *const cause_sentences[RAS_CAUSE_COUNT] = {
	[RAS_CAUSE_NONE] = "no fault is known",
	[RAS_CAUSE_SILENT] = "its agent fell silent",
	[RAS_CAUSE_GONE] = "its host answers, its agent's process is gone",
	[RAS_CAUSE_RESET] = "its connection broke without a goodbye",
	[RAS_CAUSE_REFUSED] = "its host refused a connection: no agent listens there",
	[RAS_CAUSE_UNREACHABLE] = "the network has no route to it",
	[RAS_CAUSE_TIMEOUT] = "it did not accept a connection in time",
	[RAS_CAUSE_STUCK] = "it does not receive the data that is sent to it",
	[RAS_CAUSE_PROOF] = "it could not prove that it has the cluster's key",
	[RAS_CAUSE_VERSION] = "it has no protocol version in common with this agent",
	[RAS_CAUSE_CLUSTER] = "it belongs to another cluster",
	[RAS_CAUSE_CONFLICT] = "another live agent holds its name",
	[RAS_CAUSE_DUPLICATE] = "the connection was a duplicate, and the other one was kept",
	[RAS_CAUSE_DEGREE] = "it has all the links it wants",
	[RAS_CAUSE_IDLE] = "the link was no longer needed",
	[RAS_CAUSE_LEAVE] = "it left the cluster",
	[RAS_CAUSE_DEATH] = "it was declared dead",
	[RAS_CAUSE_REPORT] = "an operator, a job or its data plane reported it",
	[RAS_CAUSE_OWN_FAULT] = "this agent itself could not connect",
	[RAS_CAUSE_PROTOCOL] = "it sent an invalid message",
	[RAS_CAUSE_RESTART] = "its agent restarted",
	[RAS_CAUSE_REFUTED] = "it or another agent proved it alive",
	[RAS_CAUSE_BUSY] = "it was busy with other joins",
	[RAS_CAUSE_EXITED] = "its agent's process has exited, as another agent on its host reports",
};

static const char *const event_names[RAS_EVENT_KIND_COUNT] = {
	[RAS_EVENT_JOINED] = "JOINED",
	[RAS_EVENT_ALIVE] = "ALIVE",
	[RAS_EVENT_SUSPECT] = "SUSPECT",
	[RAS_EVENT_REFUTED] = "REFUTED",
	[RAS_EVENT_UNREACHABLE] = "UNREACHABLE",
	[RAS_EVENT_DEAD] = "DEAD",
	[RAS_EVENT_LEFT] = "LEFT",
	[RAS_EVENT_REJOINED] = "REJOINED",
	[RAS_EVENT_FORGOTTEN] = "FORGOTTEN",
	[RAS_EVENT_CONFLICT] = "CONFLICT",
	[RAS_EVENT_MAINT] = "MAINT",
	[RAS_EVENT_LINK_UP] = "LINK_UP",
	[RAS_EVENT_LINK_RECOVERED] = "LINK_RECOVERED",
	[RAS_EVENT_LINK_DELAYED] = "LINK_DELAYED",
	[RAS_EVENT_LINK_DOWN] = "LINK_DOWN",
	[RAS_EVENT_LINK_FALLBACK] = "LINK_FALLBACK",
	[RAS_EVENT_LINK_STUCK] = "LINK_STUCK",
	[RAS_EVENT_BRAKE_ON] = "BRAKE_ON",
	[RAS_EVENT_BRAKE_OFF] = "BRAKE_OFF",
	[RAS_EVENT_PAUSED] = "PAUSED",
	[RAS_EVENT_JOIN_WAITING] = "JOIN_WAITING",
	[RAS_EVENT_JOIN_DONE] = "JOIN_DONE",
	[RAS_EVENT_JOIN_REFUSED] = "JOIN_REFUSED",
	[RAS_EVENT_JOIN_DROPPED] = "JOIN_DROPPED",
	[RAS_EVENT_DECLARED_DEAD] = "DECLARED_DEAD",
	[RAS_EVENT_DIVERGED] = "DIVERGED",
	[RAS_EVENT_CLOCK_OFFSET] = "CLOCK_OFFSET",
	[RAS_EVENT_CLOCK_AGREES] = "CLOCK_AGREES",
	[RAS_EVENT_OTHER_VERSION] = "OTHER_VERSION",
	[RAS_EVENT_FLAPPING] = "FLAPPING",
	[RAS_EVENT_ADDRESS_OTHER] = "ADDRESS_OTHER",
	[RAS_EVENT_ADDRESS_CHANGED] = "ADDRESS_CHANGED",
	[RAS_EVENT_KEY_CHANGED] = "KEY_CHANGED",
	[RAS_EVENT_KEY_REFUSED] = "KEY_REFUSED",
	[RAS_EVENT_FORGED] = "FORGED",
	[RAS_EVENT_REPORTED] = "REPORTED",
	[RAS_EVENT_ADDRESS_UNPROVEN] = "ADDRESS_UNPROVEN",
	[RAS_EVENT_ADDRESS_PROVEN] = "ADDRESS_PROVEN",
	[RAS_EVENT_HOST_SHARED] = "HOST_SHARED",
	[RAS_EVENT_KEY_SHARED] = "KEY_SHARED",
	[RAS_EVENT_ADDRESS_SHARED] = "ADDRESS_SHARED",
	[RAS_EVENT_RAILS_CHANGED] = "RAILS_CHANGED",
	[RAS_EVENT_VERDICT] = "VERDICT",
};

const char *ras_state_name(enum ras_state state) {
	return (unsigned)state <= RAS_LEFT ? state_names[state] : "invalid";
}

const char *ras_cause_name(enum ras_cause cause) {
	return (unsigned)cause < RAS_CAUSE_COUNT ? cause_names[cause] : "unknown";
}

const char *ras_cause_text(enum ras_cause cause) {
	return (unsigned int)cause < RAS_CAUSE_COUNT ? cause_sentences[cause] : "unknown";
}

const char *ras_event_name(enum ras_event_kind kind) {
	return (unsigned)kind < RAS_EVENT_KIND_COUNT ? event_names[kind] : "INVALID";
}

// Refused and reset are evidence about the process. Unreachable and timed out are evidence about
// the route. A local failure is no evidence.
static const struct {
	int error;
	enum ras_cause cause;
} errno_causes[] = {
	{ECONNREFUSED, RAS_CAUSE_REFUSED},
	{ECONNRESET, RAS_CAUSE_RESET},
	{EPIPE, RAS_CAUSE_RESET},
	{ECONNABORTED, RAS_CAUSE_RESET},
	{ETIMEDOUT, RAS_CAUSE_TIMEOUT},
	{EHOSTUNREACH, RAS_CAUSE_UNREACHABLE},
	{ENETUNREACH, RAS_CAUSE_UNREACHABLE},
	{EHOSTDOWN, RAS_CAUSE_UNREACHABLE},
	{EPROTO, RAS_CAUSE_PROTOCOL},
	{EBADMSG, RAS_CAUSE_PROTOCOL},
	{EKEYREJECTED, RAS_CAUSE_PROOF},
	{EACCES, RAS_CAUSE_OWN_FAULT},
	{EPERM, RAS_CAUSE_OWN_FAULT},
	{EMFILE, RAS_CAUSE_OWN_FAULT},
	{ENFILE, RAS_CAUSE_OWN_FAULT},
	{ENOBUFS, RAS_CAUSE_OWN_FAULT},
	{ENOMEM, RAS_CAUSE_OWN_FAULT},
	{EADDRNOTAVAIL, RAS_CAUSE_OWN_FAULT},
	{ENETDOWN, RAS_CAUSE_OWN_FAULT},
};

enum ras_cause ras_cause_of_errno(int error) {
	if (error < 0)
		error = -error;
	for (size_t n = 0; n < sizeof(errno_causes) / sizeof(errno_causes[0]); n++) {
		if (errno_causes[n].error == error)
			return errno_causes[n].cause;
	}
	return error == 0 ? RAS_CAUSE_RESET : RAS_CAUSE_OWN_FAULT; // 0: end of stream without LEAVE
}
