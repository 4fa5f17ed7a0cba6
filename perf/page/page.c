// SPDX-License-Identifier: BSD-3-Clause
// Text, tables and the HTML file around them.
#include "page_impl.h"

#include <jansson.h>

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define TEXT_BYTES 1024

// Allow only inline content, so the page makes no request of any kind.
#define POLICY "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"

int page_create(const char *title, struct page **ret_page) {
	struct page *page = calloc(1, sizeof(*page));

	if (page == NULL)
		return -ENOMEM;
	page->charts = json_array();
	page->title = strdup(title);
	page->body = open_memstream(&page->text, &page->length);
	if (page->charts == NULL || page->title == NULL || page->body == NULL) {
		page_destroy(page);
		return -ENOMEM;
	}
	*ret_page = page;
	return 0;
}

struct page *page_destroy(struct page *page) {
	if (page == NULL)
		return NULL;
	if (page->body != NULL)
		fclose(page->body);
	json_decref(page->charts);
	free(page->text);
	free(page->title);
	free(page);
	return NULL;
}

void page_put_text(FILE *file, const char *text) {
	for (; *text != '\0'; text++) {
		switch (*text) {
		case '&':
			fputs("&amp;", file);
			break;
		case '<':
			fputs("&lt;", file);
			break;
		case '>':
			fputs("&gt;", file);
			break;
		case '"':
			fputs("&quot;", file);
			break;
		default:
			fputc(*text, file);
		}
	}
}

static void put_element(struct page *page, const char *begin, const char *text, const char *end) {
	fputs(begin, page->body);
	page_put_text(page->body, text);
	fputs(end, page->body);
}

void page_heading(struct page *page, const char *text) {
	put_element(page, "<h2>", text, "</h2>\n");
}

void page_paragraph(struct page *page, enum page_tone tone, const char *format, ...) {
	static const char *const begins[] = {
		[PAGE_PLAIN] = "<p>",
		[PAGE_GOOD] = "<p class=\"good\">",
		[PAGE_BAD] = "<p class=\"bad\">",
	};
	char text[TEXT_BYTES];
	va_list arguments;

	va_start(arguments, format);
	vsnprintf(text, sizeof(text), format, arguments);
	va_end(arguments);
	put_element(page, begins[tone], text, "</p>\n");
}

void page_tiles(struct page *page, const struct page_tile *tiles, uint32_t count) {
	fputs("<div class=\"tiles\">\n", page->body);
	for (uint32_t n = 0; n < count; n++) {
		put_element(page, "<div><span>", tiles[n].name, "</span>");
		put_element(page, "<strong>", tiles[n].value, "</strong>");
		put_element(page, "<small>", tiles[n].under, "</small></div>\n");
	}
	fputs("</div>\n", page->body);
}

static void
begin_table(struct page *page, const char *class, const char *const *columns, uint32_t count) {
	fprintf(page->body, "<div class=\"wide\"><table class=\"%s\"><thead><tr>", class);
	for (uint32_t n = 0; n < count; n++)
		put_element(page, "<th scope=\"col\">", columns[n], "</th>");
	fputs("</tr></thead><tbody>\n", page->body);
}

void page_table_begin(struct page *page, const char *const *columns, uint32_t count) {
	begin_table(page, count == 2 ? "facts" : "numbers", columns, count);
}

void page_table_begin_noted(struct page *page, const char *const *columns, uint32_t count) {
	begin_table(page, "noted", columns, count);
}

void page_table_row(struct page *page, const char *const *cells, uint32_t count) {
	fputs("<tr>", page->body);
	for (uint32_t n = 0; n < count; n++)
		put_element(
			page, n == 0 ? "<th scope=\"row\">" : "<td>", cells[n],
			n == 0 ? "</th>" : "</td>"
		);
	fputs("</tr>\n", page->body);
}

void page_table_end(struct page *page) {
	fputs("</tbody></table></div>\n", page->body);
}

void page_fold_begin(struct page *page, const char *summary) {
	put_element(page, "<details><summary>", summary, "</summary>\n");
}

void page_fold_end(struct page *page) {
	fputs("</details>\n", page->body);
}

void page_put_chart(struct page *page, const char *caption, json_t *chart) {
	size_t place = json_array_size(page->charts);

	if (json_array_append_new(page->charts, chart) != 0) {
		page->failed = true;
		return;
	}
	fprintf(page->body, "<figure data-chart=\"%zu\">", place);
	put_element(page, "<figcaption>", caption, "</figcaption></figure>\n");
}

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

int page_write(struct page *page, FILE *file) {
	int failed;

	if (fflush(page->body) != 0 || ferror(page->body) != 0 || page->failed)
		return -ENOMEM;
	fputs("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
	      "<meta http-equiv=\"Content-Security-Policy\" content=\"" POLICY "\">\n"
	      "<meta name=\"viewport\" content=\"width=device-width\">\n<title>",
	      file);
	page_put_text(file, page->title);
	fputs("</title>\n<style>\n", file);
	put_bytes(file, &page_uplot_style);
	put_bytes(file, &page_style);
	fputs("</style>\n</head>\n<body>\n<h1>", file);
	page_put_text(file, page->title);
	fputs("</h1>\n", file);
	fwrite(page->text, 1, page->length, file);
	fputs("<noscript><p>The charts need JavaScript, which this browser does not run.</p>"
	      "</noscript>\n<script type=\"application/json\" id=\"charts\">",
	      file);
	failed = json_dump_callback(
		page->charts, put_script_byte, file, JSON_COMPACT | JSON_REAL_PRECISION(6)
	);
	fputs("</script>\n<script>\n", file);
	put_bytes(file, &page_uplot);
	fputs("</script>\n<script>\n", file);
	put_bytes(file, &page_script);
	fputs("</script>\n</body>\n</html>\n", file);
	return failed != 0 || ferror(file) != 0 ? -EIO : 0;
}
