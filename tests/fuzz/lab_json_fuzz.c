// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes result files of runs. Any JSON is verified, or rejected with a reason.
#include "report/json.h"

#include <lib/must.h>
#include <support/fuzz.h>

#include <jansson.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	struct lab_why why = {.text = ""};
	json_error_t error;
	json_t *root = json_loadb((const char *)data, size, JSON_REJECT_DUPLICATES, &error);

	if (root == NULL)
		return 0;
	if (verify_json(root, &why) != 0)
		must(why.text[0] != '\0');
	json_decref(root);
	return 0;
}
