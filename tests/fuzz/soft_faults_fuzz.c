// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes fault descriptions. A text is rejected with a sentence, or parsed; a parsed one must
// survive formatting and parsing.
#include <dataplane/soft.h>
#include <lib/must.h>
#include <support/fuzz.h>

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PPM_MAX 1000000
#define DELAY_MAX_NS UINT64_C(1000000000)

static void check_error(int err, const struct parse_error *error) {
	must(err == -EINVAL);
	must(error->text[0] == '"' && memchr(error->text, '\0', PARSE_ERROR_BYTES) != NULL);
	for (const char *at = error->text; *at != '\0'; at++)
		must((unsigned char)*at >= 0x20 && *at != 0x7f);
}

static void check_faults(const struct soft_faults *faults) {
	must(faults->loss_ppm <= PPM_MAX && faults->reorder_ppm <= PPM_MAX);
	must(faults->duplicate_ppm <= PPM_MAX && faults->corrupt_ppm <= PPM_MAX);
	must(faults->large_ppm <= PPM_MAX);
	must(faults->delay_ns <= DELAY_MAX_NS && faults->jitter_ns <= faults->delay_ns);
	must(faults->any == (faults->loss_ppm > 0 || faults->reorder_ppm > 0 ||
			     faults->duplicate_ppm > 0 || faults->corrupt_ppm > 0 ||
			     faults->large_ppm > 0 || faults->delay_ns > 0));
}

static void check_again(const struct soft_faults *faults) {
	char ppm[5][PARSE_TEXT_BYTES];
	char ns[2][PARSE_TEXT_BYTES];
	struct soft_faults again;
	char text[SOFT_REASON_MAX * 2];

	format_percent_ppm(faults->loss_ppm, ppm[0]);
	format_percent_ppm(faults->reorder_ppm, ppm[1]);
	format_percent_ppm(faults->duplicate_ppm, ppm[2]);
	format_percent_ppm(faults->corrupt_ppm, ppm[3]);
	format_percent_ppm(faults->large_ppm, ppm[4]);
	format_duration_ns(faults->delay_ns, ns[0]);
	format_duration_ns(faults->jitter_ns, ns[1]);
	snprintf(
		text, sizeof(text),
		"seed=%" PRIu64 ",corrupt=%s,dup=%s,reorder=%s,delay=%s±%s,loss=%s,large=%s",
		faults->seed, ppm[3], ppm[2], ppm[1], ns[0], ns[1], ppm[0], ppm[4]
	);
	must(soft_faults_parse(text, strlen(text), NULL, &again) == 0);
	must(again.loss_ppm == faults->loss_ppm && again.reorder_ppm == faults->reorder_ppm);
	must(again.duplicate_ppm == faults->duplicate_ppm && again.large_ppm == faults->large_ppm);
	must(again.corrupt_ppm == faults->corrupt_ppm && again.seed == faults->seed);
	must(again.delay_ns == faults->delay_ns && again.jitter_ns == faults->jitter_ns);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct parse_error error;
	struct soft_faults faults;
	int err = soft_faults_parse((const char *)data, size, &error, &faults);

	if (err != 0) {
		check_error(err, &error);
		return 0;
	}
	check_faults(&faults);
	check_again(&faults);
	return 0;
}
