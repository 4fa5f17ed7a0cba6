// SPDX-License-Identifier: BSD-3-Clause
// Descriptors 0 to 2 of a process that is started with some of them closed.
#pragma once

// Open /dev/null in place of closed standard streams. Otherwise the next opened file or socket
// would get such a descriptor, and printed text would be written to it. Reading from the
// replacement of stdin, and writing to the others, fails with EBADF, as it did for the closed
// stream. The replacements are closed on exec. Call it first in main().
void standard_streams_open(void);
