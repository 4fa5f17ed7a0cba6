// SPDX-License-Identifier: BSD-3-Clause
// tocsin version: prints the versions of the client and of the agent.
#include "ask/ask.h"
#include "show/paint.h"

#include <errno.h>

#define CLIENT_PROTOCOL 2

static const char details[] = "The client's version is printed even if no agent answers.\n"
			      "\n" ASK_EXIT_STATUS;

// Print one JSON object; its "agent" is null if no agent answers.
static int version_print_json(const struct contact *contact, const json_t *answer, int err) {
	json_t *agent = json_null();
	json_t *object;
	int status;

	if (err == 0)
		agent = json_pack(
			"{s:s,s:i,s:s,s:s}", "version", fact_name(answer, "version"), "protocol",
			(int)contact->protocol, "node", fact_name(answer, "node"), "cluster",
			fact_name(answer, "cluster")
		);
	object = json_pack(
		"{s:{s:s,s:i},s:o}", "client", "version", TOCSIN_VERSION, "protocol",
		CLIENT_PROTOCOL, "agent", agent
	);
	if (err != 0)
		json_object_set_new(object, "error", json_string(contact->why));
	status = ask_print_json(target_of(contact), object);
	json_decref(object);
	return status;
}

static int version_run(const struct arguments *arguments) {
	char line[512], escaped[1024];
	json_t *answer = NULL;
	struct contact contact;
	struct target target;
	int status = target_init(&target, &version_command, arguments);
	int err;

	if (status != 0)
		return status;
	if (!target.json)
		printf("tocsin %s, client protocol %d\n", TOCSIN_VERSION, CLIENT_PROTOCOL);
	contact_init(&contact, &target.agent);
	err = contact_open(&contact, true);
	if (err == 0)
		err = contact_json(&contact, "HEALTH", &answer);
	if (target.json) {
		status = version_print_json(&contact, answer, err);
	} else if (err == 0) {
		snprintf(
			line, sizeof(line),
			"tocsind %s, client protocol %u; node %s of cluster %s, on %s",
			fact_name(answer, "version"), contact.protocol, fact_name(answer, "node"),
			fact_name(answer, "cluster"), contact.place
		);
		paint_escape(line, sizeof(line), escaped, sizeof(escaped));
		puts(escaped);
	}
	json_decref(answer);
	if (err != 0) {
		fflush(stdout);
		command_error("version", "%s", contact.why);
		status = err == -EREMOTEIO ? EXIT_NEGATIVE : EXIT_UNREACHED;
	}
	contact_fini(&contact);
	return status;
}

const struct command version_command = {
	.name = "version",
	.summary = "Print the versions of client and agent, and of their protocol",
	.details = details,
	.target = TARGET_READ,
	.run = version_run,
};
