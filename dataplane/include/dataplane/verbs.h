// SPDX-License-Identifier: BSD-3-Clause
// The only header that includes libibverbs, so that its quirks are handled in one place.
//
// Some libibverbs calls are macros or inline jumps through ibv_context: ibv_reg_mr() may become
// ibv_reg_mr_iova2(). A fake must provide both.
#pragma once

#include <infiniband/verbs.h>
