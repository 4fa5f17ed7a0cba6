// SPDX-License-Identifier: BSD-3-Clause
// Describes what a process does that other ranks may wait for.
#include <lib/show.h>

#include <jobs/report.h>
#include <stdio.h>

#define NS_PER_MS UINT64_C(1000000)

const char *jobs_source_name(uint32_t source) {
	static const char *const names[JOBS_SOURCES] = {
		"stat", "schedstat", "status", "children", "block-io", "quota", "freezer"};

	return source < JOBS_SOURCES ? names[source] : "unknown";
}

// Append the sources that could not be read: with them the answer might be another one.
static void append_unread_sources(uint32_t unread, char *text, uint32_t used) {
	bool first = true;

	for (uint32_t n = 0; n < JOBS_SOURCES && used < JOBS_DOING_BYTES; n++) {
		if ((unread & 1u << n) == 0)
			continue;
		used += (uint32_t)snprintf(
			text + used, JOBS_DOING_BYTES - used, "%s%s",
			first ? " (not readable: " : ", ", jobs_source_name(n)
		);
		first = false;
	}
	if (!first && used < JOBS_DOING_BYTES)
		snprintf(text + used, JOBS_DOING_BYTES - used, ")");
}

static void
describe_call(const struct ras_comm_call *call, char ret_text[static JOBS_DOING_BYTES]) {
	const char *name = jobs_call_name(call->number);
	bool waits_for_peer = call->number >= JOBS_CALL_WAIT_SEND;
	bool sends = (call->number >= JOBS_CALL_SEND && call->number <= JOBS_CALL_RSEND) ||
		     call->number == JOBS_CALL_WAIT_SEND || call->number == JOBS_CALL_WAITALL_SEND;
	bool sends_too =
		call->number == JOBS_CALL_SENDRECV || call->number == JOBS_CALL_SENDRECV_REPLACE;
	int used = snprintf(
		ret_text, JOBS_DOING_BYTES, "it is in %s", name != NULL ? name : "a call of MPI"
	);

	if (name == NULL || (call->number > JOBS_CALL_PROBE && !waits_for_peer))
		return; // a call that waits for several requests names no peer
	// At the border of a domain MPI_Sendrecv receives from no rank, and waits to send.
	if (call->peer < 0 && !sends && !sends_too)
		used += snprintf(
			ret_text + used, JOBS_DOING_BYTES - (size_t)used, " from any rank"
		);
	else if (call->peer >= 0)
		used += snprintf(
			ret_text + used, JOBS_DOING_BYTES - (size_t)used, " %s rank %d",
			sends ? "to" : "from", call->peer
		);
	if (call->tag >= 0 && call->tag < JOBS_TAG_LARGE)
		used += snprintf(
			ret_text + used, JOBS_DOING_BYTES - (size_t)used, " (tag %d)", call->tag
		);
	if (call->is_elsewhere)
		snprintf(
			ret_text + used, JOBS_DOING_BYTES - (size_t)used, " of another communicator"
		);
}

void jobs_describe_doing(
	const struct ras_comm_doing *doing, char ret_text[static JOBS_DOING_BYTES]
) {
	char span[SHOW_BYTES];
	int used = 0;

	show_duration(doing->span_ms * NS_PER_MS, span);
	ret_text[0] = '\0';
	if (doing->busy_s != 0) {
		show_duration((uint64_t)doing->busy_s * 1000 * NS_PER_MS, span);
		snprintf(
			ret_text, JOBS_DOING_BYTES, "it is busy on purpose for at most %s%s%s",
			span, doing->busy_why[0] != '\0' ? ": " : "", doing->busy_why
		);
		return;
	}
	if (doing->call.number != 0) {
		describe_call(&doing->call, ret_text);
		return;
	}
	switch (doing->activity) {
	case JOBS_DOES_COMPUTE:
		snprintf(ret_text, JOBS_DOING_BYTES, "it computes");
		break;
	case JOBS_DOES_CHILD:
		if (doing->amount != 0)
			snprintf(
				ret_text, JOBS_DOING_BYTES, "its child %s (pid %u) computes",
				doing->name, doing->amount
			);
		else
			snprintf(ret_text, JOBS_DOING_BYTES, "its children compute");
		break;
	case JOBS_DOES_THROTTLE:
		snprintf(
			ret_text, JOBS_DOING_BYTES,
			"its cgroup's quota throttled it %u %% of the last %s", doing->amount, span
		);
		break;
	case JOBS_DOES_DISK:
		snprintf(
			ret_text, JOBS_DOING_BYTES,
			"it is in uninterruptible disk wait, %u %% of the last %s", doing->amount,
			span
		);
		break;
	case JOBS_DOES_PAGE:
		snprintf(
			ret_text, JOBS_DOING_BYTES,
			"it reads its memory from a disk, %u pages in the last %s", doing->amount,
			span
		);
		break;
	case JOBS_DOES_QUEUE:
		snprintf(
			ret_text, JOBS_DOING_BYTES,
			"it is ready to run and had no processor %u %% of the last %s",
			doing->amount, span
		);
		break;
	case JOBS_DOES_NOTHING:
		used = snprintf(
			ret_text, JOBS_DOING_BYTES,
			"it uses no processor time: it may wait for input, a pipe or a lock"
		);
		// Most kernels do not account for waits for block devices, and state D shows them.
		append_unread_sources(
			doing->unread & ~(uint32_t)JOBS_SOURCE_BLOCK_IO, ret_text, (uint32_t)used
		);
		break;
	default:
		break;
	}
}
