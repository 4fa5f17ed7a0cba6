// SPDX-License-Identifier: BSD-3-Clause
// Selects how `tocsin slurm` accesses Slurm, by scontrol or slurmrestd, and where its record is
// stored.
#include "slurm/slurm_way.h"

#include "command.h"

#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define ANSWER_NS (10 * UINT64_C(1000000000)) // timeout of Slurm's answers
#define ADDRESS_MAX 500
#define RECORDS "/var/lib/tocsin"

// Return true for a plain URL. A URL with "user:password@" is rejected, because messages contain
// the URL.
static bool url_is_plain(const char *text) {
	static const char *const beginnings[] = {"http://", "https://", "unix:/"};

	for (size_t n = 0; n < sizeof(beginnings) / sizeof(beginnings[0]); n++) {
		size_t length = strlen(beginnings[n]);

		if (strncmp(text, beginnings[n], length) == 0 && text[length] != '\0' &&
		    text[strlen(text) - 1] != '/')
			return beginnings[n][0] == 'u' || strpbrk(text, "@?#") == NULL;
	}
	return false;
}

static int option_refuse(const char *command, const char *option, const char *why) {
	command_error(command, "--%s: %s", option, why);
	return EXIT_USAGE;
}

// Return true if the word may be part of a URL or header.
static bool word_is_plain(const char *text) {
	return text == NULL || (strlen(text) <= SLURM_NODE_MAX && slurm_name_is_plain(text));
}

static int
way_use_rest(const char *command, const struct slurm_way_options *words, struct slurm_way *way) {
	if (!url_is_plain(words->rest) || strlen(words->rest) > ADDRESS_MAX)
		return option_refuse(
			command, "rest", "allowed: http://HOST:PORT, https://HOST or unix:/PATH"
		);
	if (words->scontrol != NULL)
		return option_refuse(command, "rest", "give either --rest or --scontrol");
	if (!word_is_plain(words->rest_api))
		return option_refuse(
			command, "rest-api", "a version is needed, such as " SLURM_REST_API
		);
	if (!word_is_plain(words->rest_user))
		return option_refuse(command, "rest-user", "the name of a user is needed");
	way->ops = &slurm_rest_ops;
	way->place = words->rest;
	way->api = words->rest_api != NULL ? words->rest_api : SLURM_REST_API;
	way->token_file = words->rest_token;
	way->user = words->rest_user;
	return 0;
}

int slurm_way_select(
	const char *command, const struct slurm_way_options *words, struct slurm_way *ret_way
) {
	const struct {
		const char *name, *value;
	} of_rest[] = {
		{"rest-api", words->rest_api},
		{"rest-token", words->rest_token},
		{"rest-user", words->rest_user},
	};

	*ret_way = (struct slurm_way){&slurm_scontrol_ops, "scontrol", ANSWER_NS, NULL, NULL, NULL};
	// These variables change how Slurm prints the times of reasons.
	// NOLINTBEGIN(concurrency-mt-unsafe): one thread
	unsetenv("SLURM_TIME_FORMAT");
	setenv("TZ", "UTC0", 1);
	// NOLINTEND(concurrency-mt-unsafe)
	if (words->rest != NULL)
		return way_use_rest(command, words, ret_way);
	for (size_t n = 0; n < sizeof(of_rest) / sizeof(of_rest[0]); n++) {
		if (of_rest[n].value != NULL)
			return option_refuse(command, of_rest[n].name, "needs --rest");
	}
	if (words->scontrol != NULL)
		ret_way->place = words->scontrol;
	return 0;
}

const char *slurm_record_default(const char *mode) {
	// An agent usually created the directory, but a controller may have none. A failure is
	// reported when the file is written.
	(void)mkdir(RECORDS, 0755);
	return strcmp(mode, "check") == 0 ? RECORDS "/slurm-check.json"
					  : RECORDS "/slurm-sync.json";
}
