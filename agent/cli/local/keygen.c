// SPDX-License-Identifier: BSD-3-Clause
// tocsin keygen: creates the cluster's key file, and replaces a key step by step.
#include "command.h"

#include <lib/escape.h>
#include <lib/seal_keys.h>

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define DEFAULT_DIRECTORY "/etc/tocsin"
#define DEFAULT_PATH DEFAULT_DIRECTORY "/tocsin.key"
#define QUOTED_BYTES 200

enum {
	OPTION_OUTPUT,
	OPTION_ROTATE,
	OPTION_SHOW,
	OPTION_COUNT,
};

static const struct option_spec options[OPTION_COUNT] = {
	[OPTION_OUTPUT] =
		{"output", "PATH",
		 "the key file, " DEFAULT_PATH " by default; -\n"
		 "writes a new key to standard output, unless that is a\n"
		 "terminal"},
	[OPTION_ROTATE] =
		{"rotate", "STEP", "add, swap or drop: change the keys of an existing file"},
	[OPTION_SHOW] =
		{"show", NULL,
		 "check the file as tocsind does, and print the ids of its\n"
		 "keys, but not the keys"},
};

static const char details[] =
	"Everybody who can read the key can join the cluster. An existing file is never\n"
	"overwritten. Without --output, /etc/tocsin is made if it is missing. A key file\n"
	"must be a regular file of mode 0600 or 0400. Root or the user who runs this\n"
	"command must own the file and all directories above it. Nobody else may write\n"
	"into these directories, unless they are sticky. --rotate drops the comments of\n"
	"the file.\n"
	"\n"
	"To replace the key of a running cluster without losing a member:\n"
	"  1. tocsin keygen --rotate add    a second key, accepted, not used\n"
	"  2. tocsin keygen --rotate swap   new connections use it\n"
	"  3. tocsin keygen --rotate drop   the old key ends; its links reconnect\n"
	"After each step, before the next: copy the file to every node, reload every\n"
	"tocsind, and check with --show that the ids are the same everywhere. A drop\n"
	"instead of the swap removes the new key again.\n"
	"\n"
	"Exit status: 0 done, 1 the file is refused or cannot be read or written, 2 a\n"
	"mistake in an option.\n";

static const char copy_it[] =
	"Next: copy the file to the same path on every node, over a connection that\n"
	"nobody else can read, with mode 0600, owned by root or by the user of tocsind.";

static int keygen_error(const char *detail, const char *hint) {
	command_error("keygen", "%s%s", detail, hint);
	return EXIT_NEGATIVE;
}

static void print_keys(const struct seal_keys *keys, const char *path) {
	char quoted[QUOTED_BYTES];
	char id[SEAL_KEY_ID_TEXT_BYTES];

	escape_quote(path, strlen(path), quoted, sizeof(quoted));
	printf("Keys of %s, by id:\n", quoted);
	for (uint32_t n = 0; n < seal_keys_count(keys); n++) {
		seal_keys_id(keys, n, id);
		printf("  %s  %s\n", id, n == 0 ? "starts connections" : "is accepted");
	}
}

static int key_create(const char *path) {
	char text[SEAL_KEYS_TEXT_BYTES], detail[SEAL_KEYS_DETAIL_BYTES];
	const struct seal_keys *keys;
	int status = EXIT_DONE;
	int err;

	if (seal_keys_create_random(&keys) != 0)
		return keygen_error("out of memory", "");
	if (strcmp(path, "-") == 0 && isatty(STDOUT_FILENO)) {
		command_error(
			"keygen", "--output -: standard output is a terminal, which keeps what it "
				  "shows; give a file or a pipe"
		);
		status = EXIT_USAGE;
	} else if (strcmp(path, "-") == 0) {
		seal_keys_format(keys, text);
		fputs(text, stdout);
		explicit_bzero(text, sizeof(text));
	} else {
		err = seal_keys_write_new(path, keys, detail);
		if (err == 0) {
			print_keys(keys, path);
			printf("%s\nThen start tocsind on these nodes, or reload it.\n", copy_it);
		} else if (err == -EEXIST) {
			status = keygen_error(
				detail,
				"; an existing file is never overwritten: see --rotate and --show"
			);
		} else {
			status = keygen_error(
				detail,
				err == -ENOENT ? ": create the directory first, with mode 0755" : ""
			);
		}
	}
	seal_keys_put(keys);
	return status;
}

static int key_show(const char *path) {
	char detail[SEAL_KEYS_DETAIL_BYTES];
	const struct seal_keys *keys;

	if (seal_keys_load(path, detail, &keys) != 0)
		return keygen_error(detail, "");
	print_keys(keys, path);
	seal_keys_put(keys);
	return EXIT_DONE;
}

struct step {
	const char *name;
	enum seal_keys_step step;
	const char *impossible_text; // error text if the step is impossible
	const char *next;
};

static const struct step steps[] = {
	{"add", SEAL_KEYS_ADD, "there are two keys already; --rotate swap or drop comes next",
	 "Then reload every tocsind; when all have done so, run --rotate swap."},
	{"swap", SEAL_KEYS_SWAP, "there is one key; --rotate add comes first",
	 "Then reload every tocsind; when all have done so, run --rotate drop."},
	{"drop", SEAL_KEYS_DROP, "there is one key; the last one is never dropped",
	 "Then reload every tocsind; this is the last step."},
};

static const struct step *find_step(const char *name) {
	char quoted[QUOTED_BYTES];

	for (size_t n = 0; n < sizeof(steps) / sizeof(steps[0]); n++) {
		if (strcmp(steps[n].name, name) == 0)
			return &steps[n];
	}
	escape_quote(name, strlen(name), quoted, sizeof(quoted));
	command_error("keygen", "--rotate: %s is neither add, swap nor drop", quoted);
	return NULL;
}

static int key_rotate(const char *path, const struct step *step) {
	char detail[SEAL_KEYS_DETAIL_BYTES];
	char quoted[QUOTED_BYTES];
	const struct seal_keys *keys;
	const struct seal_keys *next = NULL;
	int status = EXIT_DONE;
	int err;

	if (seal_keys_load(path, detail, &keys) != 0)
		return keygen_error(detail, "");
	err = seal_keys_create_step(keys, step->step, &next);
	if (err == 0 && seal_keys_rewrite(path, next, detail) != 0) {
		status = keygen_error(detail, "");
	} else if (err == 0) {
		print_keys(next, path);
		printf("%s\n%s\n", copy_it, step->next);
	} else {
		escape_quote(path, strlen(path), quoted, sizeof(quoted));
		command_error(
			"keygen", "%s: %s", quoted,
			err == -ENOMEM ? "out of memory" : step->impossible_text
		);
		status = EXIT_NEGATIVE;
	}
	seal_keys_put(next);
	seal_keys_put(keys);
	return status;
}

static int keygen_run(const struct arguments *arguments) {
	const char *path = arguments->values[OPTION_OUTPUT];
	const char *rotated = arguments->values[OPTION_ROTATE];
	bool is_shown = arguments->values[OPTION_SHOW] != NULL;
	const struct step *step;

	if (path == NULL) {
		path = DEFAULT_PATH;
		// A failure is reported later, when the file is written. The user's umask may have
		// removed permissions that tocsind's user needs.
		if (rotated == NULL && !is_shown && mkdir(DEFAULT_DIRECTORY, 0755) == 0 &&
		    chmod(DEFAULT_DIRECTORY, 0755) == 0)
			printf("Made the directory " DEFAULT_DIRECTORY ", mode 0755.\n");
	}
	if (rotated != NULL && is_shown) {
		command_error("keygen", "--rotate and --show do not go together");
		return EXIT_USAGE;
	}
	if (strcmp(path, "-") == 0 && (rotated != NULL || is_shown)) {
		command_error(
			"keygen", "--output - does not go with --%s, which needs a file",
			is_shown ? "show" : "rotate"
		);
		return EXIT_USAGE;
	}
	if (is_shown)
		return key_show(path);
	if (rotated == NULL)
		return key_create(path);
	step = find_step(rotated);
	return step == NULL ? EXIT_USAGE : key_rotate(path, step);
}

const struct command keygen_command = {
	.name = "keygen",
	.summary = "Make the cluster's key file, or replace a key step by step",
	.details = details,
	.options = options,
	.option_count = OPTION_COUNT,
	.run = keygen_run,
};
