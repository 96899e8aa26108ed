/* SPDX-License-Identifier: MIT */
#ifndef STRAKE_FUZZ_FUZZ_H
#define STRAKE_FUZZ_FUZZ_H

/* A fuzz target: libFuzzer calls it with inputs it invents, replay.c with those of files. */

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
