// SPDX-License-Identifier: BSD-3-Clause
// page-sample KIND: read JSON from standard input and print its page. The title contains HTML, a
// script and invalid UTF-8, to test the escaping.
#include <jansson.h>

#include <page.h>
#include <stdio.h>

#define IMAGE "<img src=x onerror=\"document.title='taken'\">"
#define HOSTILE IMAGE "</script><script>document.title='taken'</script><b title=\"x\">&amp;\xff\x01"

int main(int argc, char **argv) {
	struct page page = {
		.title = "Sample " HOSTILE,
		.headline = HOSTILE "</noscript>",
		.kind = argc == 2 ? argv[1] : "",
	};
	json_t *json = json_loadf(stdin, 0, NULL);
	int err;

	if (json == NULL)
		return 2;
	page.json = json;
	err = page_write(&page, stdout);
	json_decref(json);
	return err == 0 ? 0 : 1;
}
