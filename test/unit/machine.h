/* SPDX-License-Identifier: Apache-2.0 */
/* machine: what this build's machine and the 32-bit one beside it are called, for tests of code that looks for both. */
#ifndef GRAFT_TEST_MACHINE_H
#define GRAFT_TEST_MACHINE_H

#if defined(__aarch64__)
#define MACHINE          "aarch64"
#define MACHINE_TRIPLET  "aarch64-linux-gnu"
#define MACHINE_32       "arm-linux-gnueabihf"
#define MACHINE_LOADER   "/lib/ld-linux-aarch64.so.1"
#define MACHINE_ELF      EM_AARCH64
#define MACHINE_ELF_32   EM_ARM
#define MACHINE_FLAGS_32 EF_ARM_ABI_FLOAT_HARD
#define MACHINE_ABI      0x0a03
#define MACHINE_ABI_32   0x0903
#else
#define MACHINE          "x86_64"
#define MACHINE_TRIPLET  "x86_64-linux-gnu"
#define MACHINE_32       "i386-linux-gnu"
#define MACHINE_LOADER   "/lib64/ld-linux-x86-64.so.2"
#define MACHINE_ELF      EM_X86_64
#define MACHINE_ELF_32   EM_386
#define MACHINE_FLAGS_32 0
#define MACHINE_ABI      0x0303
#define MACHINE_ABI_32   0x0003
#endif

#define MACHINE_MUSL_LOADER "/lib/ld-musl-" MACHINE ".so.1"
#define MACHINE_MUSL_PATH   "/etc/ld-musl-" MACHINE ".path"

#endif
