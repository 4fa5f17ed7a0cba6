// SPDX-License-Identifier: BSD-3-Clause
// Memory of GPUs in words: which is shown to peers, and how that of peers is read.
#pragma once

#include "show/page.h"

#define GPU_WORDS_BYTES 400

// How often it was read, and with what; how long that takes.
void gpu_words(const json_t *gpu, char words[static GPU_WORDS_BYTES]);
void gpu_time_words(const json_t *gpu, char words[static GPU_WORDS_BYTES]);
// Paths on which only the GPU is amiss, below a head, with their peers if wanted. Nothing where
// there are none.
void gpus_say_bad(struct page *page, const json_t *gpus, const char *head, bool with_peers);
// What own devices show.
void gpus_say_devices(struct page *page, const json_t *gpus);
