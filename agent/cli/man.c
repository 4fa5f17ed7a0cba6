// SPDX-License-Identifier: BSD-3-Clause
// Prints the manual page of `tocsin` from the tables of its commands.
#include "man.h"

#include "command.h"

#include <lib/record.h>

#include <string.h>

// Print text with roff's special characters escaped. These are backslash, hyphen, caret and tilde,
// and a dot or quote at the start of a line.
static void roff_put_text(const char *text, size_t size, FILE *out) {
	if (size > 0 && (text[0] == '.' || text[0] == '\''))
		fputs("\\&", out);
	for (size_t n = 0; n < size; n++) {
		if (text[n] == '\\')
			fputs("\\e", out);
		else if (text[n] == '-')
			fputs("\\-", out);
		else if (text[n] == '^')
			fputs("\\(ha", out);
		else if (text[n] == '~')
			fputs("\\(ti", out);
		else
			fputc(text[n], out);
	}
}

static void roff_put_lines(const char *text, FILE *out) {
	while (*text != '\0') {
		size_t size = strcspn(text, "\n");

		if (size > 0)
			roff_put_text(text, size, out);
		fputc('\n', out);
		text += size + (text[size] == '\n');
	}
}

// Print paragraphs filled, and indented lines, which are tables and lists, as they are.
static void roff_put_details(const char *text, FILE *out) {
	bool as_is = false;

	fputs(".PP\n", out);
	while (*text != '\0') {
		size_t size = strcspn(text, "\n");
		bool indented = text[0] == ' ';

		if (indented != as_is)
			fputs(indented ? ".EX\n" : ".EE\n", out);
		as_is = indented;
		if (size == 0)
			fputs(".PP", out);
		roff_put_text(text, size, out);
		fputc('\n', out);
		text += size + (text[size] == '\n');
	}
	if (as_is)
		fputs(".EE\n", out);
}

static void roff_put_tag(const char *bold, const char *italic, FILE *out) {
	fputs(".TP\n\\fB", out);
	roff_put_text(bold, strlen(bold), out);
	fputs("\\fR", out);
	if (italic != NULL) {
		fputs(" \\fI", out);
		roff_put_text(italic, strlen(italic), out);
		fputs("\\fR", out);
	}
	fputc('\n', out);
}

static void roff_put_option(const struct option_spec *option, FILE *out) {
	char name[64];

	snprintf(name, sizeof(name), "--%s", option->name);
	roff_put_tag(name, option->argument, out);
	roff_put_lines(option->help, out);
}

static void roff_put_command(const struct command *command, FILE *out) {
	char shape[COMMAND_SHAPE_BYTES];

	command_usage_text(command, shape);
	fputs(".SS \"tocsin ", out);
	roff_put_text(command->name, strlen(command->name), out);
	fputc(' ', out);
	roff_put_text(shape, strlen(shape), out);
	fputs("\"\n", out);
	roff_put_lines(command->summary, out);
	for (size_t n = 0; n < command->word_count; n++) {
		roff_put_tag(command->words[n].name, NULL, out);
		roff_put_lines(command->words[n].help, out);
	}
	for (size_t n = 0; n < command->option_count; n++)
		roff_put_option(&command->options[n], out);
	roff_put_details(command->details, out);
	// The JSON members of the rows of an answer.
	for (size_t n = 0; command->records != NULL && command->records[n] != NULL; n++) {
		const struct record *record = command->records[n];

		fputs(".PP\nWith \\fB\\-\\-json\\fR, an object of \\fI", out);
		roff_put_text(record->name, strlen(record->name), out);
		fputs("\\fR has\n.RS\n", out);
		for (size_t k = 0; k < record->count; k++) {
			const struct record_field *field = &record->fields[k];

			if (field->type == RECORD_NONE)
				continue;
			roff_put_tag(field->key, record_type_name(field), out);
			roff_put_lines(field->help, out);
		}
		fputs(".RE\n", out);
	}
}

static const char head[] =
	".SH NAME\n"
	"tocsin \\- ask an agent of a Tocsin cluster, and give it orders\n"
	".SH SYNOPSIS\n"
	".B tocsin\n"
	".I COMMAND\n"
	"[\\fIOPTION\\fR]...\n"
	"[\\fIARGUMENT\\fR]...\n"
	".SH DESCRIPTION\n"
	"Most commands ask the agent\n"
	".BR tocsind (8)\n"
	"of this machine and print what it says: as text for people, with colour on a terminal only, or\n"
	"with \\fB\\-\\-json\\fR as one line.\n"
	"The member \\fBschema\\fR of an answer grows when a member changes its meaning or goes away.\n"
	"The end of a key names the unit of its number, NCCL's own keys apart: a duration is whole\n"
	"nanoseconds (\\fB_ns\\fR), a size bytes (\\fBbytes\\fR), a rate per second (\\fBper_s\\fR), a share\n"
	"thousandths (\\fB_permille\\fR), the speed of a link megabits per second (\\fB_mbps\\fR); a time of\n"
	"day is text, in UTC.\n"
	"Tables on a terminal have at most 80 columns; the least important columns are left out.\n"
	"Elsewhere tables are whole, except that \\fBstatus\\fR shows only the beginning of evidence and\n"
	"of events; \\fBhealth\\fR and \\fBevents\\fR show all of it.\n"
	"They try its Unix socket first, then, if there is none, TCP 127.0.0.1 port 28029, which answers\n"
	"what only reads.\n"
	"A refused connection is tried four times within a second; each try may take 3 seconds.\n"
	".SH OPTIONS\n"
	"Of the commands that ask an agent; \\fBreport\\fR, \\fBmaint\\fR, \\fBforget\\fR and \\fBlog\\fR,\n"
	"which give orders, go to the Unix socket only.\n"
	"They may stand before the command as well as behind it.\n";

static const char tail[] =
	".SH EXIT STATUS\n"
	".TP\n.B 0\ndone\n"
	".TP\n.B 1\nthe question was understood, and the answer is no\n"
	".TP\n.B 2\na mistake in the command line or in a setting\n"
	".TP\n.B 3\nno agent answered\n"
	".PP\n"
	"\\fBtocsin health\\fR and \\fBtocsin soft\\-run\\fR have their own: see there.\n"
	".SH ENVIRONMENT\n"
	".TP\n.B TOCSIN_SOCKET\nthe agent's Unix socket, where \\fB\\-\\-socket\\fR is not given\n"
	".TP\n.B XDG_RUNTIME_DIR\nwhere users other than root have their agent's socket\n"
	".TP\n.B NO_COLOR\nif set and not empty, no colour\n"
	".TP\n.B TOCSIN_SOFT_WIRE TOCSIN_SOFT_ADDRESS TOCSIN_SOFT_FAULTS TOCSIN_SOFT_NAME\n"
	"of programs under \\fBtocsin soft\\-run\\fR: what its options say\n"
	".SH FILES\n"
	".TP\n.I /run/tocsin/tocsind.sock\nthe socket of the system's agent\n"
	".TP\n.I $XDG_RUNTIME_DIR/tocsin/tocsind.sock\nthe socket of a user's own\n"
	".SH SEE ALSO\n"
	".BR tocsind (8),\n"
	".BR tocsin.conf (5)\n";

void man_print(FILE *out) {
	const struct option_spec *option;

	fprintf(out, ".TH TOCSIN 1 \"\" \"Tocsin %s\" \"Tocsin Manual\"\n", TOCSIN_VERSION);
	fputs(head, out);
	// The options behind the command's own ones are shared by all commands that ask an agent.
	for (size_t n = status_command.option_count;
	     (option = command_option(&status_command, n)) != NULL; n++)
		roff_put_option(option, out);
	fputs(".SH COMMANDS\n", out);
	for (size_t n = 0; commands[n] != NULL; n++)
		roff_put_command(commands[n], out);
	fputs(tail, out);
}
