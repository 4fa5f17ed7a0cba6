// SPDX-License-Identifier: BSD-3-Clause
// Encodes untrue statements, observations and grants.
#include "payloads.h"

#include <control/health.h>
#include <lib/must.h>
#include <lib/wire.h>
#include <ras/collective.h>
#include <verdict/observation.h>

#include <assert.h>

static_assert(LIAR_NOTICE_HEALTH == HEALTH_NOTICE, "");
static_assert(LIAR_NOTICE_GRANTS == HEALTH_GRANTS, "");

#define GRANTS_FORMAT 1
#define GRANT_SECONDS 90
// A statement begins with its kind, u16 size and u64 subject. The verdict follows.
#define STATEMENT_VERDICT_AT 11

size_t liar_payload_statement(uint64_t subject, void *bytes) {
	const struct statement statement = {
		.subject = subject,
		.verdict = VERDICT_CHECK_FAILED,
		.reason = "DiskFailed",
		.evidence = "the disk does not answer",
	};
	struct wire_writer writer;

	wire_writer_init(&writer, bytes, RAS_NOTICE_BYTES_MAX);
	must(statement_put(&writer, &statement) == 0);
	return wire_writer_used(&writer);
}

size_t
liar_payload_observation(uint64_t observer, uint64_t subject, uint64_t incarnation, void *bytes) {
	const struct observation observation = {
		.observer = observer,
		.subject = subject,
		.incarnation = incarnation,
		.kind = OBSERVATION_SILENT,
		.responder = OBSERVATION_RESPONDER_HARDWARE,
		.reach = VERDICT_REACH_NONE,
		.own_good = true,
		.device = "soft0",
		.peer_device = "soft0",
	};
	struct wire_writer writer;

	wire_writer_init(&writer, bytes, RAS_NOTICE_BYTES_MAX);
	must(observation_put(&writer, &observation) == 0);
	return wire_writer_used(&writer);
}

bool liar_payload_worsen(uint64_t subject, uint8_t *bytes, size_t size) {
	struct wire_reader reader;
	struct told told;

	wire_reader_init(&reader, bytes, size);
	if (notice_item_get(&reader, &told) != 0 || told.kind != TOLD_STATEMENT ||
	    told.statement.subject != subject || told.statement.verdict == VERDICT_CHECK_FAILED)
		return false;
	bytes[STATEMENT_VERDICT_AT] = VERDICT_CHECK_FAILED;
	return true;
}

size_t liar_payload_grant(uint64_t subject, uint64_t start, void *bytes) {
	struct wire_writer writer;

	wire_writer_init(&writer, bytes, RAS_NOTICE_BYTES_MAX);
	wire_put_u8(&writer, GRANTS_FORMAT);
	wire_put_u8(&writer, 0);
	wire_put_u16(&writer, 1);
	wire_put_u64(&writer, subject);
	wire_put_u64(&writer, start);
	wire_put_u32(&writer, 0);
	wire_put_u32(&writer, GRANT_SECONDS);
	return wire_writer_used(&writer);
}
