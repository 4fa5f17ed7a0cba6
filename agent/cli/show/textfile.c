// SPDX-License-Identifier: BSD-3-Clause
// Writes a file of metrics. The collector reads only *.prom, so the temporary file has another
// suffix. The collector rejects files with timestamps; the write time is therefore a metric.
#include "show/textfile.h"

#include "command.h"
#include "replace.h"

#include <lib/escape.h>
#include <lib/fact.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

// Index is the Nagios exit status.
static const char *const grades[] = {"ok", "warning", "critical", "unknown"};
#define GRADE_COUNT (sizeof(grades) / sizeof(grades[0]))

static void family_write(FILE *out, const char *name, const char *help) {
	fprintf(out, "# HELP %s %s\n# TYPE %s gauge\n", name, help, name);
}

static void label_write(FILE *out, const char *name, const json_t *row, char before) {
	const char *text = fact_word(row, name);

	fprintf(out, "%c%s=\"", before, name);
	for (; *text != '\0'; text++) {
		if (*text == '"' || *text == '\\')
			fputc('\\', out);
		if (*text == '\n')
			fputs("\\n", out);
		else
			fputc(*text, out);
	}
	fputc('"', out);
}

static void metrics_write(FILE *out, const void *what) {
	static const char *const states[] = {"alive", "suspect", "unreachable", "dead", "left"};
	const json_t *health = what, *findings = json_object_get(health, "findings"), *row;
	size_t number = 0, n;

	// An unknown grade gives `unknown`, the last.
	while (number + 1 < GRADE_COUNT && !fact_is(health, "grade", grades[number]))
		number++;
	family_write(out, "tocsin_health_answered", "whether an agent answered");
	fprintf(out, "tocsin_health_answered %d\n", health != NULL);
	family_write(out, "tocsin_health_grade", "0 ok, 1 warning, 2 critical, 3 unknown");
	fprintf(out, "tocsin_health_grade %zu\n", number);
	if (health != NULL) {
		family_write(
			out, "tocsin_health_verdict",
			"1 for each node that has a problem, or that was asked about"
		);
		json_array_foreach(findings, n, row) {
			bool maint = json_is_true(json_object_get(row, "maint"));

			fputs("tocsin_health_verdict", out);
			label_write(out, "node", row, '{');
			label_write(out, "verdict", row, ',');
			label_write(out, "reason", row, ',');
			label_write(out, "grade", row, ',');
			label_write(out, "advice", row, ',');
			fprintf(out, ",maint=\"%d\"} 1\n", maint);
		}
		family_write(out, "tocsin_health_agents", "agents of the cluster by state");
		for (n = 0; n < sizeof(states) / sizeof(states[0]); n++)
			fprintf(out, "tocsin_health_agents{state=\"%s\"} %lld\n", states[n],
				(long long)json_integer_value(json_object_get(health, states[n])));
	}
	family_write(
		out, "tocsin_textfile_last_run_timestamp_seconds", "when this file was written"
	);
	fprintf(out, "tocsin_textfile_last_run_timestamp_seconds %lld\n", (long long)time(NULL));
}

int textfile_write(const char *file, const json_t *health) {
	int err = replace_file(file, metrics_write, health);
	char quoted[256];

	if (err != 0) {
		escape_quote(file, strlen(file), quoted, sizeof(quoted));
		command_error(
			"health", "--textfile: %s cannot be written: %s", quoted,
			replace_error_text(err)
		);
	}
	return err;
}
