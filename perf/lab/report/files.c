// SPDX-License-Identifier: BSD-3-Clause
// Output files and errors, and output for other programs: CSV, HdrHistogram percentiles and
// perftest columns.
#include "report/output.h"
#include "run/exit_status.h"

#include <lib/error.h>
#include <lib/scoped.h>

#include <jansson.h>

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define HGRM_TICKS 5 // lines for each halving of 1 - quantile, as HdrHistogram has

int output_check(const char *path, struct lab_why *why) {
	const char *slash = path != NULL ? strrchr(path, '/') : NULL;
	scoped_mem char *directory = NULL;
	struct stat facts;
	int err = 0;

	if (path == NULL || strcmp(path, "-") == 0)
		return 0;
	if (stat(path, &facts) == 0) {
		if (S_ISDIR(facts.st_mode))
			err = -EISDIR;
		else if (access(path, W_OK) != 0)
			err = neg_errno();
	} else if (errno != ENOENT) {
		err = neg_errno();
	} else {
		directory = slash == NULL
				    ? strdup(".")
				    : strndup(path, slash > path ? (size_t)(slash - path) : 1);
		if (directory == NULL)
			return lab_fail(why, -ENOMEM, "no memory");
		if (slash != NULL && slash[1] == '\0')
			err = -EISDIR; // the directory does not exist
		else if (access(directory, W_OK | X_OK) != 0)
			err = neg_errno();
	}
	return err == 0 ? 0 : lab_fail(why, err, "%s: %s", path, strerrordesc_np(-err));
}

int output_open(const char *path, struct lab_why *why, FILE **ret_file) {
	FILE *file = strcmp(path, "-") == 0 ? stdout : fopen(path, "we");

	if (file == NULL)
		return lab_fail(why, neg_errno(), "%s: %s", path, strerrordesc_np(errno));
	*ret_file = file;
	return 0;
}

int output_close(const char *path, FILE *file, struct lab_why *why) {
	int err = ferror(file) != 0 || fflush(file) != 0 ? -EIO : 0;

	if (file != stdout && fclose(file) != 0)
		err = neg_errno();
	return err == 0 ? 0
			: lab_fail(
				  why, err, "%s cannot be written: %s", path, strerrordesc_np(-err)
			  );
}

int output_json_root(const json_t *root, const char *path, struct lab_why *why) {
	FILE *file;
	int err = output_open(path, why, &file), failed;

	if (err != 0)
		return err;
	failed = json_dumpf(root, file, JSON_COMPACT | JSON_REAL_PRECISION(17));
	fputc('\n', file);
	err = output_close(path, file, why);
	return err == 0 && failed != 0 ? lab_fail(why, -EIO, "%s cannot be written", path) : err;
}

int output_failure(const struct lab_why *why) {
	fprintf(stderr, "tocsin-perf: %s\n", why->text);
	return EXIT_FAILED;
}

int output_usage_error(const char *argument, const char *reason) {
	fprintf(stderr, "tocsin-perf: %s: %s\n", argument, reason);
	return EXIT_USAGE;
}

static void csv_summary(
	FILE *file,
	const struct lab_result *result,
	const char *what,
	const struct run_summary *summary
) {
	const struct histogram_summary *all = &summary->all;

	fprintf(file, "%" PRIu64 ",%s,count,%" PRIu64 ",,,\n", result->size, what, all->count);
	fprintf(file, "%" PRIu64 ",%s,min,%" PRIu64 ",,,\n", result->size, what, all->min);
	fprintf(file, "%" PRIu64 ",%s,max,%" PRIu64 ",,,\n", result->size, what, all->max);
	fprintf(file, "%" PRIu64 ",%s,mean,%.3f,,,\n", result->size, what, all->mean);
	for (uint32_t n = 0; n < summary->quantile_count; n++) {
		const struct quantile_summary *quantile = &summary->quantiles[n];
		char name[RESULT_QUANTILE_BYTES];

		result_quantile_name(quantile->per_million, name);
		fprintf(file, "%" PRIu64 ",%s,%s,", result->size, what, name);
		if (!quantile_has_interval(quantile))
			fprintf(file, "%" PRIu64 ",,,%.0f\n", quantile->value, quantile->effective);
		else
			fprintf(file, "%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%.0f\n", quantile->value,
				quantile->low, quantile->high, quantile->effective);
	}
}

static void csv_rate(FILE *file, const struct lab_result *result, const char *name, double rate) {
	fprintf(file, "%" PRIu64 ",rate,%s,%.3f,,,\n", result->size, name, rate);
}

static void csv_rates(FILE *file, const struct lab_result *result) {
	const struct run_summary *summary = &result->summary;

	csv_rate(file, result, "mean", result_rate_mean(result));
	csv_rate(file, result, "best", result_rate(result, summary->all.min));
	csv_rate(file, result, "worst", result_rate(result, summary->all.max));
	csv_rate(file, result, "server", result_rate_peer(result));
	for (uint32_t n = 0; n < summary->quantile_count; n++) {
		const struct quantile_summary *quantile = &summary->quantiles[n];
		char name[RESULT_QUANTILE_BYTES];

		result_quantile_name(quantile->per_million, name);
		if (!quantile_has_interval(quantile))
			fprintf(file, "%" PRIu64 ",rate,%s,%.3f,,,%.0f\n", result->size, name,
				result_rate(result, quantile->value), quantile->effective);
		else
			fprintf(file, "%" PRIu64 ",rate,%s,%.3f,%.3f,%.3f,%.0f\n", result->size,
				name, result_rate(result, quantile->value),
				result_rate(result, quantile->high),
				result_rate(result, quantile->low), quantile->effective);
	}
}

int output_csv(const struct lab_run *run, const char *path, struct lab_why *why) {
	FILE *file;
	int err = output_open(path, why, &file);

	if (err != 0)
		return err;
	fprintf(file, "size_bytes,what,figure,%s,worth_samples\n",
		run->plan.command == PLAN_BW ? "messages_per_s,low_per_s,high_per_s"
					     : "value_ns,low_ns,high_ns");
	for (uint32_t n = 0; n < run->count; n++) {
		const struct lab_result *result = &run->results[n];

		if (!result->summarized)
			continue;
		if (run->plan.command == PLAN_BW) {
			csv_rates(file, result);
			continue;
		}
		csv_summary(file, result, result->open ? "response" : "rtt", &result->summary);
		if (result->open)
			csv_summary(file, result, "service", &result->load.service_summary);
		if (result->device.stamps != PLAN_STAMPS_NONE) {
			csv_summary(file, result, "device", &result->device.device_summary);
			csv_summary(file, result, "host", &result->device.host_summary);
		}
	}
	return output_close(path, file, why);
}

// Print one percentile: the value of its bucket and the number of samples up to this bucket.
static void hgrm_line(FILE *file, const struct histogram *all, uint64_t count, double share) {
	struct histogram_span span;
	uint64_t rank = (uint64_t)(share * (double)count);

	rank = (double)rank < share * (double)count ? rank + 1 : rank;
	if (histogram_at_rank(all, rank > 0 ? rank : 1, &span) != 0)
		return;
	fprintf(file, "%12.3f %2.12f %10" PRIu64, (double)span.highest / 1e3, share,
		span.before + span.count);
	if (share < 1)
		fprintf(file, " %14.2f\n", 1 / (1 - share));
	else
		fprintf(file, "\n");
}

int output_hgrm(const struct lab_run *run, const char *path, struct lab_why *why) {
	FILE *file;
	int err = output_open(path, why, &file);

	if (err != 0)
		return err;
	for (uint32_t n = 0; n < run->count; n++) {
		const struct lab_result *result = &run->results[n];
		const struct histogram_summary *summary = &result->summary.all;
		const struct histogram *all;
		double share = 0, left = 1;

		if (!result->summarized)
			continue;
		all = run_record_all(result->times);
		if (run->count > 1)
			fprintf(file, "#[Size = %" PRIu64 "]\n", result->size);
		fprintf(file, "%12s %14s %10s %14s\n\n", "Value", "Percentile", "TotalCount",
			"1/(1-Percentile)");
		while (left * (double)summary->count >= 1) {
			for (int tick = 0; tick < HGRM_TICKS; tick++)
				hgrm_line(
					file, all, summary->count,
					share + left / 2 * tick / HGRM_TICKS
				);
			left /= 2;
			share = 1 - left;
		}
		hgrm_line(file, all, summary->count, 1);
		fprintf(file, "#[Mean    = %12.3f, StdDeviation   = %12.3f]\n", summary->mean / 1e3,
			summary->stdev / 1e3);
		fprintf(file, "#[Max     = %12.3f, Total count    = %12" PRIu64 "]\n",
			(double)summary->max / 1e3, summary->count);
		fprintf(file, "#[Buckets = %12d, SubBuckets     = %12d]\n", 39, 1024);
	}
	return output_close(path, file, why);
}

// Return microseconds as perftest prints them: half of a round trip if the peer's program answers.
// A response time of an open loop is no round trip and is not halved.
static double perftest_us(const struct lab_run *run, double value_ns) {
	bool has_half = plan_is_answered(&run->plan) && run->plan.arrivals == PLAN_CLOSED;

	return value_ns / 1e3 / (has_half ? 2 : 1);
}

static double
perftest_quantile_us(const struct lab_run *run, const struct lab_result *result, uint32_t place) {
	return perftest_us(run, (double)result->summary.quantiles[place].value);
}

// Print rates as perftest does: one MB is 2^20 bytes, and both directions are added.
static void perftest_rates(const struct lab_run *run) {
	printf(" #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]\n"
	);
	for (uint32_t n = 0; n < run->count; n++) {
		const struct lab_result *result = &run->results[n];
		double peer, mean, peak, bytes = (double)result->size / 0x100000;

		if (!result->summarized)
			continue;
		peer = result_rate_peer(result);
		mean = result_rate_mean(result) + peer;
		peak = result_rate(result, result->summary.all.min) + peer;
		printf(" %-7" PRIu64 "    %-10" PRIu64 "       %-7.2f            %-7.2f"
		       "\t\t   %-7.6f\n",
		       result->size, result->summary.all.count * result->window_messages,
		       peak * bytes, mean * bytes, mean / 1e6);
	}
}

void output_perftest(const struct lab_run *run) {
	if (run->plan.command == PLAN_BW) {
		perftest_rates(run);
		return;
	}
	printf(" #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    t_avg[usec]"
	       "    t_stdev[usec]   99%% percentile[usec]   99.9%% percentile[usec] \n");
	for (uint32_t n = 0; n < run->count; n++) {
		const struct lab_result *result = &run->results[n];
		const struct histogram_summary *all = &result->summary.all;

		if (!result->summarized)
			continue;
		printf(" %-7" PRIu64 " %-10" PRIu64 "     %-7.2f        %-7.2f      %-7.2f  "
		       "     %-7.2f     \t%-7.2f\t\t%-7.2f \t\t%-7.2f\n",
		       result->size, all->count, perftest_us(run, (double)all->min),
		       perftest_us(run, (double)all->max), perftest_quantile_us(run, result, 0),
		       perftest_us(run, all->mean), perftest_us(run, all->stdev),
		       perftest_quantile_us(run, result, 2), perftest_quantile_us(run, result, 3));
	}
}
