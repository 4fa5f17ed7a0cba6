// SPDX-License-Identifier: BSD-3-Clause
// Names of operations, outcomes and completion states.
#include <dataplane/op.h>
#include <lib/must.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const kind_names[OP_KIND_COUNT] = {
	[OP_WRITE] = "write",
	[OP_READ] = "read",
	[OP_SEND] = "send",
	[OP_RECEIVE] = "receive",
	[OP_WRITE_IMM] = "write with immediate",
	[OP_COMPARE_SWAP] = "compare-and-swap",
	[OP_FETCH_ADD] = "fetch-and-add",
};

static const char *const outcome_names[OP_OUTCOME_COUNT] = {
	[OP_OK] = "ok",
	[OP_INVALID] = "invalid",
	[OP_NOT_READY] = "not-ready",
	[OP_REFUSED] = "refused",
	[OP_FAILED] = "failed",
	[OP_FLUSHED] = "flushed",
	[OP_TIMED_OUT] = "timed-out",
	[OP_CANCELLED] = "cancelled",
};

// Names as in libibverbs, without the prefix.
static const char *const status_names[] = {
	[IBV_WC_SUCCESS] = "SUCCESS",
	[IBV_WC_LOC_LEN_ERR] = "LOC_LEN_ERR",
	[IBV_WC_LOC_QP_OP_ERR] = "LOC_QP_OP_ERR",
	[IBV_WC_LOC_EEC_OP_ERR] = "LOC_EEC_OP_ERR",
	[IBV_WC_LOC_PROT_ERR] = "LOC_PROT_ERR",
	[IBV_WC_WR_FLUSH_ERR] = "WR_FLUSH_ERR",
	[IBV_WC_MW_BIND_ERR] = "MW_BIND_ERR",
	[IBV_WC_BAD_RESP_ERR] = "BAD_RESP_ERR",
	[IBV_WC_LOC_ACCESS_ERR] = "LOC_ACCESS_ERR",
	[IBV_WC_REM_INV_REQ_ERR] = "REM_INV_REQ_ERR",
	[IBV_WC_REM_ACCESS_ERR] = "REM_ACCESS_ERR",
	[IBV_WC_REM_OP_ERR] = "REM_OP_ERR",
	[IBV_WC_RETRY_EXC_ERR] = "RETRY_EXC_ERR",
	[IBV_WC_RNR_RETRY_EXC_ERR] = "RNR_RETRY_EXC_ERR",
	[IBV_WC_LOC_RDD_VIOL_ERR] = "LOC_RDD_VIOL_ERR",
	[IBV_WC_REM_INV_RD_REQ_ERR] = "REM_INV_RD_REQ_ERR",
	[IBV_WC_REM_ABORT_ERR] = "REM_ABORT_ERR",
	[IBV_WC_INV_EECN_ERR] = "INV_EECN_ERR",
	[IBV_WC_INV_EEC_STATE_ERR] = "INV_EEC_STATE_ERR",
	[IBV_WC_FATAL_ERR] = "FATAL_ERR",
	[IBV_WC_RESP_TIMEOUT_ERR] = "RESP_TIMEOUT_ERR",
	[IBV_WC_GENERAL_ERR] = "GENERAL_ERR",
};

const char *op_kind_name(enum op_kind kind) {
	must(kind < OP_KIND_COUNT);
	return kind_names[kind];
}

const char *op_outcome_name(enum op_outcome outcome) {
	must(outcome < OP_OUTCOME_COUNT);
	return outcome_names[outcome];
}

// The device may return a status that this libibverbs does not know.
// Return "REM_ACCESS_ERR" and so on; "UNKNOWN" for an unknown status.
static const char *op_status_name(enum ibv_wc_status status) {
	size_t n = (size_t)status;

	if (n < sizeof(status_names) / sizeof(status_names[0]) && status_names[n] != NULL)
		return status_names[n];
	return "UNKNOWN";
}

void op_cause_format(const struct op_cause *cause, char *text, size_t size) {
	const char *name = cause->err != 0 ? strerrorname_np(-cause->err) : NULL;
	char reason[64];

	if (name != NULL)
		snprintf(reason, sizeof(reason), "%s", name);
	else if (cause->err != 0)
		snprintf(reason, sizeof(reason), "error %d", cause->err);
	else if (cause->vendor_error != 0)
		snprintf(
			reason, sizeof(reason), "%s (vendor 0x%" PRIx32 ")",
			op_status_name(cause->status), cause->vendor_error
		);
	else
		snprintf(reason, sizeof(reason), "%s", op_status_name(cause->status));
	// The cause has no operation: the pair was failed by request, or by its device.
	if (cause->local_key == 0 && cause->remote_key == 0 && cause->remote_address == 0 &&
	    cause->length == 0) {
		snprintf(text, size, "%s", reason);
		return;
	}
	must(cause->kind < OP_KIND_COUNT);
	if (cause->kind == OP_SEND || cause->kind == OP_RECEIVE)
		snprintf(
			text, size, "%s of a %s of %" PRIu64 " bytes, local key 0x%" PRIx32, reason,
			kind_names[cause->kind], cause->length, cause->local_key
		);
	else
		snprintf(
			text, size,
			"%s of a %s of %" PRIu64 " bytes at 0x%" PRIx64 ", key 0x%" PRIx32, reason,
			kind_names[cause->kind], cause->length, cause->remote_address,
			cause->remote_key
		);
}
