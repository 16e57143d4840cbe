// How a kernel asks to be compiled for several instruction sets. For files of kernels only.
//
// The kernels are plain loops that the compiler vectorises. No clone may change a bit: no fused multiply-add (the whole
// tree is built with -ffp-contract=off), no approximate reciprocal, sums only in an order that is written down.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
// The resolver of a cloned function runs before a sanitizer's runtime is ready.
#define THINWIRE_VECTORISE
#elif defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__) && __GNUC__ >= 12
#define THINWIRE_VECTORISE __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define THINWIRE_VECTORISE
#endif

// A helper of a kernel: must end up inside every clone.
#define THINWIRE_INLINE inline __attribute__((always_inline))
