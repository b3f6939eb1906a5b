//===- Fallback.h - where a library does not do what it is there for ------===//
#pragma once

#include "kernels/KernelRegistry.h"

#include <cstdint>
#include <map>
#include <string>

namespace ds::kernels::cuda {

/// A kernel is made without `library`, which refuses the call as `refusal` says: says so on the standard error, once
/// for a kernel and its element type; with DS_CUDA_STRICT=1 throws Error. Our own kernel is right and slow.
void fallBack(const Invocation &invocation, const char *library, const std::string &refusal = "has nothing for it");

/// Whether DS_CUDA_STRICT is 1. Throws Error where it is neither 0 nor 1.
bool isStrict();

/// How often since the start of the process.
int64_t fallbacks();
/// The same by kernel and type: "kernel 'matmul' in bfloat16".
std::map<std::string, int64_t> fallbacksByKernel();

} // namespace ds::kernels::cuda
