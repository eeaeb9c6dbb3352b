/* SPDX-License-Identifier: Apache-2.0 */
/* What Debian's static library of C++ calls that glibc 2.28 lacks. */
#include <stdlib.h>
#include <unistd.h>

/* Of glibc 2.32: whether counts of references need no atomic operations. */
char __libc_single_threaded = 0;

/* Of glibc 2.36. */
unsigned arc4random(void) {
  unsigned value;
  if (getentropy(&value, sizeof value) != 0) abort();
  return value;
}
