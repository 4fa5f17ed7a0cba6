// SPDX-License-Identifier: BSD-3-Clause
// HTML shell around the JSON of a page.
#include "page.h"

#include "page_data.h"

#include <lib/escape.h>

#include <jansson.h>

#include <errno.h>

// Allow only inline content, so the page makes no request of any kind.
#define POLICY "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
#define DIGITS 12 // of a real number in the page, which shows at most 10

// Write JSON inside <script>. A "<" is escaped, since it could end the script even within a string.
static int put_script_byte(const char *buffer, size_t size, void *data) {
	FILE *file = data;

	for (size_t n = 0; n < size; n++) {
		if (buffer[n] == '<')
			fputs("\\u003c", file);
		else
			fputc(buffer[n], file);
	}
	return ferror(file) != 0 ? -1 : 0;
}

static void put_bytes(FILE *file, const struct page_bytes *bytes) {
	fwrite(bytes->bytes, 1, bytes->count, file);
	fputc('\n', file);
}

int page_write(const struct page *page, FILE *file) {
	int failed;

	fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"" POLICY "\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>",
	      file);
	escape_put_markup(page->title, file);
	fputs("</title>\n<style>\n", file);
	put_bytes(file, &page_uplot_style);
	put_bytes(file, &page_style);
	fputs("</style>\n</head>\n<body>\n<h1>", file);
	escape_put_markup(page->title, file);
	fputs("</h1>\n<noscript><p>", file);
	escape_put_markup(page->headline, file);
	fputs("</p>\n<p>Tables and charts need JavaScript, which this browser does not run.</p>"
	      "</noscript>\n<script type=\"application/json\" id=\"result\" data-kind=\"",
	      file);
	escape_put_markup(page->kind, file);
	fputs("\">", file);
	failed = json_dump_callback(
		page->json, put_script_byte, file, JSON_COMPACT | JSON_REAL_PRECISION(DIGITS)
	);
	fputs("</script>\n<script>\n", file);
	put_bytes(file, &page_uplot);
	fputs("</script>\n<script>\n(function () {\n\"use strict\";\n", file);
	put_bytes(file, &page_charts);
	put_bytes(file, &page_kinds);
	put_bytes(file, &page_script);
	fputs("})();\n</script>\n</body>\n</html>\n", file);
	return failed != 0 || ferror(file) != 0 ? -EIO : 0;
}
