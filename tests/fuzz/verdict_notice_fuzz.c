// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes verdict notices. A decoded notice must survive encoding and decoding.
#include <lib/must.h>
#include <lib/wire.h>
#include <support/fuzz.h>
#include <verdict/observation.h>

static int put(struct wire_writer *writer, const struct told *told) {
	return told->kind == TOLD_OBSERVATION ? observation_put(writer, &told->observation)
					      : statement_put(writer, &told->statement);
}

static void again(const struct told *told) {
	uint8_t once[512];
	uint8_t twice[512];
	struct wire_writer writer;
	struct wire_reader reader;
	struct told read;
	size_t used;
	size_t used_again;

	wire_writer_init(&writer, once, sizeof(once));
	must(put(&writer, told) == 0);
	must(wire_writer_finish(&writer, &used) == 0);
	wire_reader_init(&reader, once, used);
	must(notice_item_get(&reader, &read) == 0);
	must(read.kind == told->kind);
	wire_writer_init(&writer, twice, sizeof(twice));
	must(put(&writer, &read) == 0);
	must(wire_writer_finish(&writer, &used_again) == 0);
	must(used == used_again && memcmp(once, twice, used) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct wire_reader reader;
	struct told told;
	int err;

	wire_reader_init(&reader, data, size);
	while ((err = notice_item_get(&reader, &told)) == 0)
		again(&told);
	must(err == -ENODATA || err == -EBADMSG || err == -EMSGSIZE || err == -EILSEQ);
	return 0;
}
