// SPDX-License-Identifier: BSD-3-Clause
// Binds the loader's functions to their versions in libdl.so.2 of glibc 2.17; see old_symbols.h.
#pragma once

#include "old_symbols.h"

#ifdef OLD_SYMBOL
#if defined(__x86_64__)
OLD_SYMBOL(dlopen, "2.2.5");
OLD_SYMBOL(dlsym, "2.2.5");
OLD_SYMBOL(dlclose, "2.2.5");
OLD_SYMBOL(dlerror, "2.2.5");
OLD_SYMBOL(dladdr, "2.2.5");
#else
OLD_SYMBOL(dlopen, "");
OLD_SYMBOL(dlsym, "");
OLD_SYMBOL(dlclose, "");
OLD_SYMBOL(dlerror, "");
OLD_SYMBOL(dladdr, "");
#endif
#endif
