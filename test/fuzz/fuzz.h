/* SPDX-License-Identifier: Apache-2.0 */
/* fuzz: what every fuzz target defines, for libFuzzer and for the replay of the corpus. */
#ifndef GRAFT_TEST_FUZZ_H
#define GRAFT_TEST_FUZZ_H

#include <stddef.h>
#include <stdint.h>

/* Feeds `size` bytes to one parser. Returns 0. Must leak nothing and must not write to the bytes. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
