// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes key files. An accepted file must survive formatting and parsing, and an error text must
// fit its buffer.

#include <lib/must.h>
#include <lib/seal_secret.h>
#include <support/fuzz.h>

#include <errno.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	char detail[SEAL_KEYS_DETAIL_BYTES] = "";
	char text[SEAL_KEYS_TEXT_BYTES];
	const struct seal_keys *keys = NULL;
	const struct seal_keys *back;
	int err = seal_keys_parse((const char *)data, size, detail, &keys);

	must(err == 0 || err == -EINVAL);
	must((err == 0) == (keys != NULL));
	must(strnlen(detail, sizeof(detail)) < sizeof(detail));
	must((err == 0) == (detail[0] == '\0'));
	if (err != 0)
		return 0;
	must(keys->count >= 1 && keys->count <= SEAL_KEYS_MAX);
	seal_keys_format(keys, text);
	must(seal_keys_parse(text, strlen(text), detail, &back) == 0);
	must(back->count == keys->count);
	must(memcmp(back->keys, keys->keys, sizeof(keys->keys)) == 0);
	seal_keys_put(keys);
	seal_keys_put(back);
	return 0;
}
