// SPDX-License-Identifier: BSD-3-Clause
// Verdict names, grades and advice.
#include <verdict/verdict.h>

#include <string.h>

// One row per verdict, with its most severe advice.
static const struct verdict_row {
	const char *name;
	enum verdict_grade grade;
	enum verdict_advice advice;
} rows[VERDICT_COUNT] = {
	[VERDICT_NONE] = {"none", VERDICT_GRADE_OK, VERDICT_ADVICE_NOTHING},
	[VERDICT_HEALTHY] = {"healthy", VERDICT_GRADE_OK, VERDICT_ADVICE_NOTHING},
	[VERDICT_NODE_BUSY] = {"node-busy", VERDICT_GRADE_WARNING, VERDICT_ADVICE_WARN},
	[VERDICT_CHECK_WARNING] = {"check-warning", VERDICT_GRADE_WARNING, VERDICT_ADVICE_WARN},
	[VERDICT_PATH_DEGRADED] = {"path-degraded", VERDICT_GRADE_WARNING, VERDICT_ADVICE_WARN},
	[VERDICT_PATH_LOSSY] = {"path-lossy", VERDICT_GRADE_WARNING, VERDICT_ADVICE_WARN},
	[VERDICT_UNSTABLE] = {"unstable", VERDICT_GRADE_WARNING, VERDICT_ADVICE_WARN},
	[VERDICT_UNKNOWN] = {"unknown", VERDICT_GRADE_UNKNOWN, VERDICT_ADVICE_SHOW},
	[VERDICT_MGMT_NET_DOWN] =
		{"mgmt-net-down", VERDICT_GRADE_CRITICAL, VERDICT_ADVICE_DRAIN_LATER},
	[VERDICT_AGENT_DOWN] = {"agent-down", VERDICT_GRADE_WARNING, VERDICT_ADVICE_RESTART},
	[VERDICT_AGENT_FROZEN] =
		{"agent-frozen", VERDICT_GRADE_CRITICAL, VERDICT_ADVICE_DRAIN_LATER},
	[VERDICT_CHECK_FAILED] =
		{"check-failed", VERDICT_GRADE_CRITICAL, VERDICT_ADVICE_DRAIN_LATER},
	[VERDICT_DEVICE_STUCK] =
		{"device-stuck", VERDICT_GRADE_CRITICAL, VERDICT_ADVICE_DRAIN_LATER},
	[VERDICT_FABRIC_DOWN] = {"fabric-down", VERDICT_GRADE_CRITICAL, VERDICT_ADVICE_DRAIN},
	[VERDICT_NODE_DOWN] = {"node-down", VERDICT_GRADE_CRITICAL, VERDICT_ADVICE_DRAIN},
};

static const char *const advice_names[] = {
	[VERDICT_ADVICE_NOTHING] = "nothing",
	[VERDICT_ADVICE_SHOW] = "show",
	[VERDICT_ADVICE_WARN] = "warn",
	[VERDICT_ADVICE_RESTART] = "restart",
	[VERDICT_ADVICE_DRAIN_LATER] = "drain-later",
	[VERDICT_ADVICE_DRAIN] = "drain",
};

const char *verdict_name(enum verdict verdict) {
	return (unsigned)verdict < VERDICT_COUNT ? rows[verdict].name : "?";
}

const char *verdict_advice_name(enum verdict_advice advice) {
	return (unsigned)advice <= VERDICT_ADVICE_DRAIN ? advice_names[advice] : "?";
}

enum verdict_grade verdict_grade_of(enum verdict verdict) {
	return (unsigned)verdict < VERDICT_COUNT ? rows[verdict].grade : VERDICT_GRADE_UNKNOWN;
}

enum verdict_advice verdict_advice_of(enum verdict verdict) {
	return (unsigned)verdict < VERDICT_COUNT ? rows[verdict].advice : VERDICT_ADVICE_SHOW;
}
