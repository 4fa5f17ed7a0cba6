// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes the messages between the two ends of tocsin-perf. A decoded message must be within its
// bounds and encode to the same bytes. The first byte selects the message.
#include "report/threshold.h"
#include "run/end.h"
#include "run/environment.h"
#include "run/noise.h"
#include "run/plan.h"
#include "run/proof.h"

#include <lib/must.h>
#include <support/fuzz.h>

#include <string.h>

#define BYTES_MAX 16384

static void look_at_plan(struct wire_reader *reader, struct wire_writer *writer) {
	struct plan plan = plan_default;
	struct lab_why why = {.text = ""};

	plan_decode(reader, &plan);
	if (wire_reader_finish(reader) != 0)
		return;
	must(plan.size_count <= PLAN_SIZES_MAX && plan.op < PLAN_OP_COUNT);
	must(plan_compare(&plan, &plan, UINT32_MAX, &why) == 0);
	if (plan_check(&plan, &why) == 0)
		must(plan_size_max(&plan) > 0 && plan_size_max(&plan) <= PLAN_SIZE_BYTES_MAX);
	else
		must(why.text[0] != '\0');
	plan_encode(&plan, writer);
}

static void look_at_endpoint(struct wire_reader *reader, struct wire_writer *writer) {
	static struct lab_environment environment;
	struct lab_end_info about = {.key = 0};

	lab_end_info_decode(reader, &about);
	environment_decode(reader, &environment);
	if (wire_reader_finish(reader) != 0)
		return;
	must(environment.count <= ENVIRONMENT_ITEMS_MAX);
	(void)environment_get(&environment, "host");
	lab_end_info_encode(&about, writer);
	environment_encode(&environment, writer);
}

static void look_at_noise(struct wire_reader *reader, struct wire_writer *writer) {
	char text[NOISE_TEXT_BYTES];
	struct noise noise = {{0}}, none;

	noise_decode(reader, &noise);
	if (wire_reader_finish(reader) != 0)
		return;
	(void)noise_format(&noise, text);
	must(memchr(text, '\0', sizeof(text)) != NULL);
	none = noise_between(&noise, &noise);
	(void)noise_format(&none, text);
	noise_encode(&noise, writer);
}

static void look_at_threshold(const uint8_t *data, size_t size) {
	struct threshold threshold, again;
	struct parse_error error;

	if (threshold_parse((const char *)data, size, &error, &threshold) != 0)
		return;
	must(strlen(threshold.text) == size);
	must(threshold_parse(threshold.text, size, &error, &again) == 0);
	must(again.bound == threshold.bound && again.below == threshold.below);
	must(again.unit == threshold.unit);
}

// The only message that a server reads before a client has proven anything. No input is the mark of
// a secret that the fuzzer does not know.
static void look_at_knock(const uint8_t *data, size_t size) {
	struct channel_message message = {.kind = CHANNEL_KNOCK, .bytes = data, .size = size};
	struct proof_secrets secrets = {.open = size % 2 == 1};
	struct proof proof = {.secret = NULL};
	uint8_t buffer[PROOF_MESSAGE_BYTES];
	enum proof_answer answer;
	struct wire_writer writer;

	must(proof_init() == 0);
	proof_add_token(&secrets, "token");
	wire_writer_init(&writer, buffer, sizeof(buffer));
	if (proof_challenge(&proof, &secrets, &message, &writer, &answer) == 0)
		must(wire_writer_used(&writer) == 1 + PROOF_NONCE_BYTES + SEAL_KEY_ID_BYTES);
	message.kind = CHANNEL_CHALLENGE;
	(void)proof_read_challenge(&proof, &secrets, &message, &answer);
	proof.secret = &secrets.list[0];
	message.kind = CHANNEL_PROOF;
	must(!proof_mark_is_valid(&proof, PROOF_CLIENT, &message));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	uint8_t bytes[BYTES_MAX];
	struct wire_reader reader;
	struct wire_writer writer;

	if (size == 0 || size > BYTES_MAX)
		return 0;
	wire_reader_init(&reader, data + 1, size - 1);
	wire_writer_init(&writer, bytes, sizeof(bytes));
	switch (data[0] % 5) {
	case 0:
		look_at_plan(&reader, &writer);
		break;
	case 1:
		look_at_endpoint(&reader, &writer);
		break;
	case 2:
		look_at_noise(&reader, &writer);
		break;
	case 4:
		look_at_knock(data + 1, size - 1);
		return 0;
	default:
		look_at_threshold(data + 1, size - 1);
		return 0;
	}
	// A decoded message must encode to the same bytes.
	if (wire_writer_used(&writer) > 0) {
		must(wire_writer_used(&writer) == size - 1);
		must(memcmp(bytes, data + 1, size - 1) == 0);
	}
	return 0;
}
