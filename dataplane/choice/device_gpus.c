// SPDX-License-Identifier: BSD-3-Clause
// Where CUDA's GPUs are.
#include <dataplane/device_choice.h>

#include <stdio.h>
#include <string.h>

static int gpu_find(void *ctx, uint32_t ordinal, char ret_pci[static DEVICE_PCI_BYTES]) {
	return cuda_pci(ctx, ordinal, ret_pci);
}

void device_gpus_init(struct device_gpus *ret_gpus) {
	struct cuda *cuda = NULL;

	memset(ret_gpus, 0, sizeof(*ret_gpus));
	snprintf(ret_gpus->reason, sizeof(ret_gpus->reason), "out of memory");
	if (cuda_open(NULL, ret_gpus->reason, &cuda) != 0)
		return;
	ret_gpus->pci = gpu_find;
	ret_gpus->ctx = cuda;
}

void device_gpus_fini(struct device_gpus *gpus) {
	cuda_close(gpus->ctx);
	memset(gpus, 0, sizeof(*gpus));
}
