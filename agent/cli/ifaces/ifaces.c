// SPDX-License-Identifier: BSD-3-Clause
// `tocsin ifaces`: shows which address the agent or NCCL would choose on this machine, and why.
#include "ifaces/ifaces.h"

#include "command.h"

#include <lib/escape.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define QUOTED_BYTES 80

enum {
	OPTION_RULES,
	OPTION_IFNAME,
	OPTION_FAMILY,
	OPTION_PEER,
	OPTION_EXPLAIN,
	OPTION_JSON,
	OPTION_WATCH,
	OPTION_FROM,
	OPTION_RECORD,
	OPTION_COUNT,
};

static const struct option_spec options[OPTION_COUNT] = {
	[OPTION_RULES] = {"rules", "RULES", "tocsin (the default), or nccl to choose as NCCL does"},
	[OPTION_IFNAME] = {"ifname", "LIST", "interfaces that may be chosen; see below"},
	[OPTION_FAMILY] =
		{"family", "FAMILY",
		 "any (the default), ipv4, ipv6, inet, inet6, AF_INET or\n"
		 "AF_INET6, in upper or lower case; with the rules nccl\n"
		 "only AF_INET and AF_INET6"},
	[OPTION_PEER] =
		{"peer", "ADDR",
		 "a node that must be reached, with an optional port; with\n"
		 "the rules nccl the value of NCCL_COMM_ID"},
	[OPTION_EXPLAIN] =
		{"explain", NULL,
		 "also print every candidate, its facts, and why it was\n"
		 "taken or dropped"},
	[OPTION_JSON] = {"json", NULL, "print one JSON object"},
	[OPTION_WATCH] = {"watch", NULL, "stay, and print a line for each change"},
	[OPTION_FROM] = {"from", "DIR", "choose for a recorded machine instead of this one"},
	[OPTION_RECORD] =
		{"record", "DIR",
		 "write the facts of this machine into a new directory,\n"
		 "for --from"},
};

static const char details[] =
	"LIST has the form of NCCL_SOCKET_IFNAME: names with commas between, each of\n"
	"which stands for all interfaces that begin with it. A leading ^ excludes what\n"
	"the list names; with a leading = names must match exactly. With the rules\n"
	"tocsin, single items may have these marks, and an item may also be\n"
	"  10.0.0.0/8, 10.1.2.3    interfaces with such an address\n"
	"  peer:ADDR               the route to ADDR\n"
	"  default-route           the default route\n"
	"An item may end in :PORT, the port of the listener. Earlier items are\n"
	"preferred. An item that is malformed or matches nothing is an error; the rules\n"
	"nccl ignore it, as NCCL does.\n"
	"\n"
	"The parts of the score, the most important first; the first part that differs\n"
	"decides:\n"
	"  selector     16 for the first item of LIST, 15 for the second ...\n"
	"  route        to the peer: 3 interface and source, 2 source, 1 interface\n"
	"  subnet       1 + the length of the prefix that the peer is in, else 0\n"
	"  reach        0 loopback and link-local, else 1\n"
	"  class        9 ethernet, IPoIB, bond, VLAN, bridge over these;\n"
	"               8 macvlan, 7 veth, 6 wireless, 5 USB, 4 tunnel, 3 dummy,\n"
	"               2 loopback, 1 bridge without hardware, 0 unknown\n"
	"  speed, mtu   Mb/s (0: unknown) and bytes\n"
	"  preference   sum of: 4 not temporary, 2 permanent, 1 IPv4\n"
	"If all parts are equal, the lower interface index wins, then the lower address.\n"
	"\n"
	"Environment variables, used if the option is not given:\n"
	"  rules tocsin: TOCSIN_SOCKET_IFNAME, TOCSIN_SOCKET_FAMILY\n"
	"  rules nccl:   NCCL_SOCKET_IFNAME, NCCL_SOCKET_FAMILY, NCCL_COMM_ID\n"
	"\n"
	"Exit status: 0 chosen, 1 no interface qualifies or an item matches nothing, 2 a\n"
	"mistake in an option or a setting.\n";

static struct netif_setting
setting_read(const char *value, const char *option_name, const char *environment_name) {
	struct netif_setting setting = {value, option_name};

	if (value == NULL && environment_name != NULL) {
		setting.value =
			getenv(environment_name); // NOLINT(concurrency-mt-unsafe): one thread
		setting.origin = environment_name;
	}
	return setting;
}

static int parse_settings(
	const struct arguments *arguments, struct ifaces *ifaces, struct netif_error *error
) {
	const char *const *values = arguments->values;
	struct netif_tocsin_settings tocsin;
	const struct netif_query query = {.recording = values[OPTION_FROM]};
	struct netif_selector selector;
	struct netif_table *table;
	int err;

	if (ifaces->is_nccl) {
		ifaces->nccl.ifname =
			setting_read(values[OPTION_IFNAME], "--ifname", "NCCL_SOCKET_IFNAME");
		ifaces->nccl.family =
			setting_read(values[OPTION_FAMILY], "--family", "NCCL_SOCKET_FAMILY");
		ifaces->nccl.comm_id = setting_read(values[OPTION_PEER], "--peer", "NCCL_COMM_ID");
		return 0;
	}
	tocsin.ifname = setting_read(values[OPTION_IFNAME], "--ifname", "TOCSIN_SOCKET_IFNAME");
	tocsin.family = setting_read(values[OPTION_FAMILY], "--family", "TOCSIN_SOCKET_FAMILY");
	tocsin.peer = setting_read(values[OPTION_PEER], "--peer", NULL);
	err = netif_policy_parse(&tocsin, &ifaces->policy, error);
	// The error lists the existing interfaces, for a user who misspelt the list.
	if (err != 0 && netif_selector_parse(&tocsin.ifname, &selector, NULL) != 0 &&
	    netif_gather(&query, &table) == 0) {
		netif_error_list(error, table);
		netif_table_destroy(table);
	}
	return err;
}

static int options_check_conflicts(const struct arguments *arguments) {
	static const int alone[] = {OPTION_EXPLAIN, OPTION_JSON, OPTION_FROM, OPTION_RECORD};

	if (arguments->values[OPTION_FROM] != NULL && arguments->values[OPTION_RECORD] != NULL) {
		command_error("ifaces", "--from and --record do not go together");
		return -EINVAL;
	}
	for (size_t n = 0; n < sizeof(alone) / sizeof(alone[0]); n++) {
		if (arguments->values[OPTION_WATCH] == NULL || arguments->values[alone[n]] == NULL)
			continue;
		command_error(
			"ifaces", "--watch and --%s do not go together", options[alone[n]].name
		);
		return -EINVAL;
	}
	return 0;
}

void ifaces_settings(
	const struct ifaces *ifaces, struct ifaces_setting settings[static IFACES_SETTINGS]
) {
	const struct netif_nccl_settings *nccl = &ifaces->nccl;
	const struct netif_tocsin_settings *tocsin = &ifaces->policy.settings;
	const struct netif_setting *given[IFACES_SETTINGS] = {
		ifaces->is_nccl ? &nccl->ifname : &tocsin->ifname,
		ifaces->is_nccl ? &nccl->family : &tocsin->family,
		ifaces->is_nccl ? &nccl->comm_id : &tocsin->peer,
	};

	for (size_t n = 0; n < IFACES_SETTINGS; n++) {
		settings[n].name = given[n]->origin;
		settings[n].value = given[n]->value;
		if (given[n]->value == NULL)
			settings[n].source = "default";
		else
			settings[n].source = given[n]->origin[0] == '-' ? "option" : "environment";
	}
}

int ifaces_choose(
	const struct ifaces *ifaces,
	struct netif_table **ret_table,
	struct netif_choice **ret_choice,
	struct netif_error *error
) {
	const char *recording = ifaces->query.recording;
	char place[QUOTED_BYTES] = "this machine";
	struct netif_table *table;
	int err = netif_gather(&ifaces->query, &table);

	if (err != 0) {
		if (recording != NULL)
			escape_quote(recording, strlen(recording), place, sizeof(place));
		snprintf(
			error->text, sizeof(error->text), "cannot read the interfaces of %s: %s",
			place, strerrordesc_np(-err)
		);
		return err;
	}
	if (ifaces->is_nccl) {
		err = netif_choose_nccl(table, &ifaces->nccl, ret_choice);
		if (err != 0)
			snprintf(error->text, sizeof(error->text), "out of memory");
	} else {
		err = netif_choose(table, &ifaces->policy, ret_choice, error);
	}
	if (err != 0) {
		netif_table_destroy(table);
		return err;
	}
	*ret_table = table;
	return 0;
}

const char *ifaces_alias(const struct netif_table *table, const struct netif_judgement *judgement) {
	const char *label;

	if (judgement->address < 0)
		return NULL;
	label = table->addresses[judgement->address].label;
	if (label[0] == '\0' || strcmp(label, table->links[judgement->link].name) == 0)
		return NULL;
	return label;
}

enum ifaces_verdict
ifaces_verdict(const struct ifaces *ifaces, const struct netif_choice *choice, size_t judgement) {
	if (choice->judgements[judgement].reason != NETIF_TAKEN)
		return IFACES_DROPPED;
	// NCCL uses every candidate that its rules accept; ours use the best one.
	if (ifaces->is_nccl || choice->chosen[0] == judgement)
		return IFACES_CHOSEN;
	return IFACES_QUALIFIED;
}

const char *ifaces_verdict_word(enum ifaces_verdict verdict) {
	switch (verdict) {
	case IFACES_CHOSEN:
		return "chosen";
	case IFACES_QUALIFIED:
		return "qualified";
	case IFACES_DROPPED:
		return "dropped";
	}
	return "unknown";
}

const char *
ifaces_reason(const struct ifaces *ifaces, const struct netif_choice *choice, size_t judgement) {
	const struct netif_judgement *judged = &choice->judgements[judgement];

	if (ifaces_verdict(ifaces, choice, judgement) != IFACES_QUALIFIED)
		return netif_reason_text(judged->reason);
	if (judged->score.value == choice->judgements[choice->chosen[0]].score.value)
		return "qualified, equal score but a higher index or address";
	return "qualified, lower score";
}

const char *ifaces_deciding_part(const struct ifaces *ifaces, const struct netif_choice *choice) {
	const struct netif_judgement *judgements = choice->judgements;
	const struct netif_score *best;
	const struct netif_score *next;

	if (ifaces->is_nccl || choice->chosen_count == 0)
		return NULL;
	if (choice->chosen_count == 1)
		return "being the only one that qualifies";
	best = &judgements[choice->chosen[0]].score;
	next = &judgements[choice->chosen[1]].score;

	const struct {
		const char *name;
		bool differs;
	} parts[] = {
		{"selector", best->selector != next->selector},
		{"route", best->route != next->route},
		{"subnet", best->subnet != next->subnet},
		{"reach", best->reach != next->reach},
		{"class", best->class != next->class},
		{"speed", best->speed != next->speed},
		{"mtu", best->mtu != next->mtu},
		{"preference", best->preference != next->preference},
	};

	for (size_t n = 0; n < sizeof(parts) / sizeof(parts[0]); n++) {
		if (parts[n].differs)
			return parts[n].name;
	}
	if (judgements[choice->chosen[0]].link == judgements[choice->chosen[1]].link)
		return "the lower address";
	return "the lower index";
}

const char *ifaces_rule(const struct ifaces *ifaces, const struct netif_judgement *judgement) {
	if (judgement->rule != NULL)
		return judgement->rule;
	if (judgement->item >= 0)
		return ifaces->policy.selector.items[judgement->item].text;
	return "any usable address";
}

size_t ifaces_answer_count(const struct ifaces *ifaces, const struct netif_choice *choice) {
	if (ifaces->is_nccl || choice->chosen_count == 0)
		return choice->chosen_count;
	return 1;
}

static int ifaces_answer(const struct ifaces *ifaces, const struct arguments *arguments) {
	bool explain = arguments->values[OPTION_EXPLAIN] != NULL;
	char candidate[NETIF_CANDIDATE_BYTES];
	struct netif_error error;
	struct netif_choice *choice;
	struct netif_table *table;
	int status = EXIT_DONE;

	if (ifaces_choose(ifaces, &table, &choice, &error) != 0) {
		command_error("ifaces", "%s", error.text);
		return EXIT_NEGATIVE;
	}
	if (arguments->values[OPTION_JSON] == NULL) {
		ifaces_print(ifaces, table, choice, explain);
	} else if (ifaces_print_json(ifaces, table, choice, explain) != 0) {
		command_error("ifaces", "out of memory");
		status = EXIT_NEGATIVE;
	}
	if (choice->chosen_count == 0) {
		fflush(stdout);
		command_error(
			"ifaces", "nothing qualifies%s",
			choice->count == 0 ? ": there is no interface" : ""
		);
		for (size_t n = 0; n < choice->count; n++) {
			netif_candidate_print(table, &choice->judgements[n], candidate);
			fprintf(stderr, "  %s: %s\n", candidate,
				netif_reason_text(choice->judgements[n].reason));
		}
		status = EXIT_NEGATIVE;
	}
	netif_choice_destroy(choice);
	netif_table_destroy(table);
	return status;
}

static int ifaces_run(const struct arguments *arguments) {
	const char *rules = arguments->values[OPTION_RULES];
	const char *directory = arguments->values[OPTION_RECORD];
	struct ifaces ifaces = {.is_nccl = rules != NULL && strcmp(rules, "nccl") == 0};
	struct netif_error error;
	char quoted[QUOTED_BYTES];
	int err;

	if (options_check_conflicts(arguments) != 0)
		return EXIT_USAGE;
	if (rules != NULL && !ifaces.is_nccl && strcmp(rules, "tocsin") != 0) {
		escape_quote(rules, strlen(rules), quoted, sizeof(quoted));
		command_error("ifaces", "--rules: %s is neither tocsin nor nccl", quoted);
		return EXIT_USAGE;
	}
	if (parse_settings(arguments, &ifaces, &error) != 0) {
		command_error("ifaces", "%s", error.text);
		return EXIT_USAGE;
	}
	netif_policy_query(&ifaces.policy, &ifaces.query);
	ifaces.query.recording = arguments->values[OPTION_FROM];
	if (directory != NULL) {
		err = netif_record(&ifaces.query, directory);
		if (err == 0)
			return EXIT_DONE;
		escape_quote(directory, strlen(directory), quoted, sizeof(quoted));
		command_error("ifaces", "cannot record into %s: %s", quoted, strerrordesc_np(-err));
		return EXIT_NEGATIVE;
	}
	if (arguments->values[OPTION_WATCH] != NULL)
		return ifaces_watch(&ifaces);
	return ifaces_answer(&ifaces, arguments);
}

const struct command ifaces_command = {
	.name = "ifaces",
	.summary = "Show the interface and address that an agent of this machine uses",
	.details = details,
	.options = options,
	.option_count = OPTION_COUNT,
	.run = ifaces_run,
};
