// SPDX-License-Identifier: BSD-3-Clause
// Names of the values in <tocsin/job.h>, and checks that its constants match page and socket.
#include <tocsin/job.h>
#include <tocsin/job_page.h>
#include <tocsin/job_socket.h>

_Static_assert(JOB_KINDS == TOCSIN_KIND_COUNT, "a row has a place for each kind");
_Static_assert(TOCSIN_KIND_COUNT <= TOCSIN_KIND_ROOM, "counts have a place for each kind");
_Static_assert(
	JOB_REASON_BYTES == TOCSIN_EVENT_TEXT_BYTES, "an event holds the whole text of the agent"
);

uint32_t tocsin_job_version(void) {
	return TOCSIN_JOB_VERSION;
}

const char *tocsin_kind_name(enum tocsin_kind kind) {
	static const char *const names[TOCSIN_KIND_COUNT] = {
		[TOCSIN_BROADCAST] = "broadcast",   [TOCSIN_REDUCE] = "reduce",
		[TOCSIN_ALL_GATHER] = "all_gather", [TOCSIN_REDUCE_SCATTER] = "reduce_scatter",
		[TOCSIN_ALL_REDUCE] = "all_reduce", [TOCSIN_SEND] = "send",
		[TOCSIN_RECEIVE] = "receive",	    [TOCSIN_ALL_TO_ALL] = "all_to_all",
		[TOCSIN_GATHER] = "gather",	    [TOCSIN_SCATTER] = "scatter",
		[TOCSIN_BARRIER] = "barrier",	    [TOCSIN_SCAN] = "scan",
		[TOCSIN_ONE_SIDED] = "one_sided",   [TOCSIN_OTHER] = "other",
	};

	return (unsigned int)kind < TOCSIN_KIND_COUNT ? names[kind] : "?";
}

const char *tocsin_event_name(enum tocsin_event_kind kind) {
	static const char *const names[] = {
		[TOCSIN_PEER_SUSPECT] = "peer_suspect",
		[TOCSIN_PEER_UNREACHABLE] = "peer_unreachable",
		[TOCSIN_PEER_GONE] = "peer_gone",
		[TOCSIN_PEER_BACK] = "peer_back",
		[TOCSIN_COMM_WAITING] = "comm_waiting",
		[TOCSIN_COMM_STUCK] = "comm_stuck",
		[TOCSIN_COMM_SHOULD_ABORT] = "comm_should_abort",
	};

	return (unsigned int)kind < sizeof(names) / sizeof(names[0]) ? names[kind] : "?";
}
