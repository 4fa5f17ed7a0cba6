// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes the configuration. The bytes up to the first 0xff 0x00 are a configuration file, the rest
// is one --set argument. A rejected configuration must give a message and leave the output
// unchanged. An accepted one is printed and read again, and must be the same.
#include <lib/must.h>
#include <lib/scoped.h>
#include <support/config_sample.h>
#include <support/fuzz.h>

static void count_message(void *context, const char *message) {
	must(message[0] != '\0');
	++*(size_t *)context;
}

static void no_change(void *context, const struct config_change *change) {
	(void)context;
	must(change == NULL); // a configuration that was read back differs
}

static int load(const char *text, size_t size, const char *setting, struct config **ret_config) {
	scoped_file FILE *stream = fmemopen((void *)text, size, "r");
	size_t messages = 0;
	struct config_reporter reporter = {.report = count_message, .context = &messages};
	struct config_input input = {
		.path = "fuzz",
		.stream = stream,
		.settings = &setting,
		.setting_count = setting != NULL};
	int err;

	must(stream != NULL);
	err = config_load(&sample_schema, &input, &reporter, ret_config);
	must((err == 0) == (messages == 0));
	return err;
}

static void read_back(const struct config *config) {
	scoped_mem char *text = NULL;
	struct config *again = NULL;
	size_t size = 0;
	FILE *stream = open_memstream(&text, &size);

	must(stream != NULL);
	must(config_print(config, stream) == 0);
	must(fclose(stream) == 0);
	must(load(text, size, NULL, &again) == 0);
	must(config_compare(config, again, no_change, NULL) == 0);
	config_destroy(again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	const uint8_t *split = memmem(data, size, "\xff", 2);
	size_t file_size = split != NULL ? (size_t)(split - data) : size;
	scoped_mem char *setting = NULL;
	struct config *const before = (struct config *)&file_size;
	struct config *config = before;

	if (split != NULL) {
		setting = strndup((const char *)split + 2, size - file_size - 2);
		must(setting != NULL);
	}
	if (load((const char *)data, file_size, setting, &config) != 0) {
		must(config == before);
		return 0;
	}
	read_back(config);
	config_destroy(config);
	return 0;
}
