// SPDX-License-Identifier: BSD-3-Clause
// A stream into one block of memory, compressed on the way if wanted. A compressed page is never
// held as plain text.
//
// One thread. The block grows by an eighth, so its size is close to what is written.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#define ZLIB_CONST // input is constant
#include <zlib.h>

#define PAGE_WRITER_GROW_BYTES 65536

struct page_writer {
	FILE *out; // write here; NULL: closed
	char *bytes;
	size_t size_bytes; // written so far; the stream may hold more
	size_t room_bytes; // size of the block
	bool gzip;
	z_stream deflate;
};

// Open the stream, with gzip or without. Returns 0 or -ENOMEM.
int page_writer_init(struct page_writer *writer, bool gzip);
// Close the stream and hand over the block, which the caller frees. Returns 0 or -ENOMEM; a failed
// writer holds nothing.
int page_writer_finish(struct page_writer *writer, char **ret_bytes, size_t *ret_size_bytes);
// Close the stream and free the block. A closed writer is fine.
void page_writer_fini(struct page_writer *writer);
