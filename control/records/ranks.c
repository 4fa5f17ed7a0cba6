// SPDX-License-Identifier: BSD-3-Clause
// The fields of a rank in the answer of WHY.
#include <lib/fact.h>
#include <records/ranks.h>

#include <inttypes.h>
#include <string.h>

// Return whether the rank reports a kind of facts. Older agents do not list the kinds.
static bool rank_reports(const json_t *row, const char *kind) {
	const json_t *told = json_object_get(row, "told"), *word;
	size_t n;

	json_array_foreach(told, n, word) {
		if (json_is_string(word) && strcmp(json_string_value(word), kind) == 0)
			return true;
	}
	return told == NULL;
}

static const char *number_or_unreported(
	const json_t *row, const char *key, const char *kind, char text[static SHOW_BYTES]
) {
	if (!rank_reports(row, kind))
		return "?";
	if (!json_is_integer(json_object_get(row, key)))
		return "-";
	snprintf(text, SHOW_BYTES, "%" PRIu64, fact_number(row, key));
	return text;
}

static const char *show_started(const json_t *row, char text[static SHOW_BYTES]) {
	return number_or_unreported(row, "started", "started", text);
}

static const char *show_completed(const json_t *row, char text[static SHOW_BYTES]) {
	return number_or_unreported(row, "completed", "completed", text);
}

static const char *show_launched(const json_t *row, char text[static SHOW_BYTES]) {
	snprintf(text, SHOW_BYTES, "%" PRIu64, fact_number(row, "launched"));
	return text;
}

static const char *show_worked(const json_t *row, char text[static SHOW_BYTES]) {
	if (!rank_reports(row, "process"))
		return "?";
	fact_duration(row, "worked_ns", text);
	return text;
}

#define MEMBER(...) RECORD_MEMBER(struct rank_row, __VA_ARGS__)
#define COLUMN(...) RECORD_COLUMN(struct rank_row, __VA_ARGS__)

// clang-format off
static const struct record_field fields[] = {
	COLUMN(rank, UNIT_COUNT, "number of the rank", "RANK", 7, 0, NULL),
	COLUMN(node, UNIT_NONE, "node that it runs on", "NODE", 14, 0, NULL),
	COLUMN(pid, UNIT_NONE, "process of the rank on its node", "PID", 7, 2, NULL),
	COLUMN(launched, UNIT_COUNT, "operations launched", "LAUNCHED", 8, 0, show_launched),
	COLUMN(started, UNIT_COUNT, "operations started", "STARTED", 7, 3, show_started),
	COLUMN(completed, UNIT_COUNT, "operations completed", "COMPLETED", 9, 0, show_completed),
	COLUMN(still_ns, UNIT_NANOSECONDS, "time since any of these numbers changed",
		"STILL", 8, 0, NULL),
	COLUMN(worked_ns, UNIT_NANOSECONDS, "processor time of the process in the last ten seconds",
		"WORKED", 8, 1, show_worked),
	COLUMN(process, UNIT_NONE, "state of the process", "PROCESS", 10, 0, NULL),
	MEMBER(told, UNIT_NONE,
		"facts that the rank reports: started, completed, signatures, process"),
	MEMBER(doing, UNIT_NONE,
		"what its process was seen to do while others may wait for the rank, or null"),
	MEMBER(unread, UNIT_NONE, "sources of that knowledge which could not be read"),
	MEMBER(cuda_dev, UNIT_NONE, "number of its GPU in CUDA, or null"),
	MEMBER(nvml_dev, UNIT_NONE, "number of its GPU in NVML, or null"),
	MEMBER(gpu_from, UNIT_NONE, "source of the GPU numbers: nccl-ras, job or null"),
};
// clang-format on

const struct record rank_record = RECORD("ranks", fields);
