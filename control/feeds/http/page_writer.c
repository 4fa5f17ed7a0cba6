// SPDX-License-Identifier: BSD-3-Clause
// Writes a page into memory, plain or as gzip.
#include "feeds/http/page_writer.h"

#include <lib/must.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// Rows of a page are alike: the fastest level makes a tenth of them, higher levels little less.
#define DEFLATE_LEVEL 1
#define DEFLATE_WINDOW_GZIP (15 + 16) // as <zlib.h> says: the largest window, and gzip's header
#define DEFLATE_MEMORY 8	      // zlib's default
#define DEFLATE_ROOM_BYTES 4096

static int room_make(struct page_writer *writer, size_t more_bytes) {
	size_t room_bytes =
		writer->size_bytes + writer->size_bytes / 8 + more_bytes + PAGE_WRITER_GROW_BYTES;
	char *bytes;

	if (writer->room_bytes - writer->size_bytes >= more_bytes)
		return 0;
	bytes = realloc(writer->bytes, room_bytes);
	if (bytes == NULL)
		return -ENOMEM;
	writer->bytes = bytes;
	writer->room_bytes = room_bytes;
	return 0;
}

static int deflate_text(struct page_writer *writer, const char *text, size_t size, int flush) {
	z_stream *stream = &writer->deflate;
	int err, rc;

	stream->next_in = (const Bytef *)text;
	stream->avail_in = (uInt)size;
	do {
		err = room_make(writer, DEFLATE_ROOM_BYTES);
		if (err != 0)
			return err;
		stream->next_out = (Bytef *)writer->bytes + writer->size_bytes;
		stream->avail_out = (uInt)(writer->room_bytes - writer->size_bytes);
		rc = deflate(stream, flush);
		must(rc == Z_OK || rc == Z_STREAM_END || rc == Z_BUF_ERROR);
		writer->size_bytes = writer->room_bytes - stream->avail_out;
	} while (stream->avail_out == 0);
	return 0;
}

// Take bytes of the stream. A result of 0 makes the stream fail, as fopencookie(3) demands.
static ssize_t stream_write(void *cookie, const char *text, size_t size) {
	struct page_writer *writer = cookie;

	if (writer->gzip)
		return deflate_text(writer, text, size, Z_NO_FLUSH) == 0 ? (ssize_t)size : 0;
	if (room_make(writer, size) != 0)
		return 0;
	memcpy(writer->bytes + writer->size_bytes, text, size);
	writer->size_bytes += size;
	return (ssize_t)size;
}

int page_writer_init(struct page_writer *writer, bool gzip) {
	*writer = (struct page_writer){.gzip = gzip};
	if (gzip && deflateInit2(
			    &writer->deflate, DEFLATE_LEVEL, Z_DEFLATED, DEFLATE_WINDOW_GZIP,
			    DEFLATE_MEMORY, Z_DEFAULT_STRATEGY
		    ) != Z_OK)
		return -ENOMEM;
	writer->out = fopencookie(writer, "w", (cookie_io_functions_t){.write = stream_write});
	if (writer->out == NULL) {
		if (gzip)
			deflateEnd(&writer->deflate);
		return -ENOMEM;
	}
	return 0;
}

void page_writer_fini(struct page_writer *writer) {
	if (writer->out == NULL)
		return;
	(void)fclose(writer->out); // the block is thrown away, so an error is of no interest
	if (writer->gzip)
		deflateEnd(&writer->deflate);
	free(writer->bytes);
	*writer = (struct page_writer){.out = NULL};
}

int page_writer_finish(struct page_writer *writer, char **ret_bytes, size_t *ret_size_bytes) {
	bool failed = fflush(writer->out) != 0 || ferror(writer->out);
	char *bytes;

	if (!failed && writer->gzip)
		failed = deflate_text(writer, NULL, 0, Z_FINISH) != 0;
	if (failed) {
		page_writer_fini(writer);
		return -ENOMEM;
	}
	bytes = realloc(writer->bytes, writer->size_bytes > 0 ? writer->size_bytes : 1);
	*ret_bytes = bytes != NULL ? bytes : writer->bytes;
	*ret_size_bytes = writer->size_bytes;
	writer->bytes = NULL;
	page_writer_fini(writer);
	return 0;
}
