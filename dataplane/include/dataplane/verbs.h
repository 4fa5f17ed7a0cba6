// SPDX-License-Identifier: BSD-3-Clause
// The one place that includes libibverbs, so that its quirks have one address.
//
// Its calls are partly macros and inline jumps through ibv_context: ibv_reg_mr() may become
// ibv_reg_mr_iova2(), and a fake has to know both.
#pragma once

#include <infiniband/verbs.h>
