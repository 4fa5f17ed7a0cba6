// SPDX-License-Identifier: BSD-3-Clause
// GPU memory in words: what is exposed to peers, and how the memory of peers is read.
#pragma once

#include "show/page.h"

#define GPU_WORDS_BYTES 400

// gpu_words() describes the probes of one GPU: state, and counts of failures. gpu_time_words()
// describes the read times.
void gpu_words(const json_t *gpu, char words[static GPU_WORDS_BYTES]);
void gpu_time_words(const json_t *gpu, char words[static GPU_WORDS_BYTES]);
// Print the paths with bad GPU reads below `head`, optionally with the peer's name. Prints nothing
// if there are none.
void gpus_print_bad(struct page *page, const json_t *gpus, const char *head, bool with_peers);
// Print what the own devices expose.
void gpus_print_devices(struct page *page, const json_t *gpus);
