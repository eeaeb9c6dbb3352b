/* SPDX-License-Identifier: Apache-2.0 */
/* Headers of libstdc++ include it where there is one. That of glibc 2.32 is no use with an older one. */
inline constexpr char __libc_single_threaded = 0;
