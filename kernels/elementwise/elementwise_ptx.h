//===- elementwise_ptx.h - whether PTX computes the program of a call ------===//
#pragma once

#include "kernels/KernelRegistry.h"

#include <cstdint>
#include <optional>
#include <span>
#include <string>

namespace ds::kernels {

/// How a call's code differs from the call's program, a sentence; nothing where no difference is seen. The code must be
/// PTX for `isa` or an older one. It is run by an emulator (kernels/ptx) on inputs that are drawn by `seed`, and the
/// bits of each element that it writes are those that the interpreter makes of the same inputs, with exp, tanh and the
/// like as elementwise_functions.h says. Small kernels run whole; of larger ones run the first and last blocks and some
/// that are drawn, which must write what their place in the grid says. `alignments`: by operand, the bytes up to 16
/// that its address is a multiple of.
std::optional<std::string> differenceOf(const Invocation &call, const std::string &isa,
                                        std::span<const uint64_t> alignments, uint64_t seed);

} // namespace ds::kernels
