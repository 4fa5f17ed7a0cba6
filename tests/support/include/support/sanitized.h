// SPDX-License-Identifier: BSD-3-Clause
// Reduced test sizes under a sanitizer. Hundreds of runs there show lifetime errors, while each run
// costs several times more than in release.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OR_SANITIZED(whole, part) (part)
#else
#define OR_SANITIZED(whole, part) (whole)
#endif
