//===- KernelRows.h - the rows of all kernels, for names known at compile time --===//
//
// kernel<"adamw">.operand("p") is 0, and kernel<"adamw">.operand("q") fails the build. Code that learns a kernel's name
// from a plan asks findKernel (KernelTable.h), which does not read all rows again.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "kernels/KernelRow.h"

#include <algorithm>

namespace ds::kernels {

/// Each is read for itself: compilers bound the steps that one constant may take.
namespace rows {
#define DS_KERNEL(name, factory, operands, attributes, check, factors, cpuWorkspace, cudaWorkspace, flops, text)       \
  inline constexpr KernelRow name = RowReader::read(#name, operands, attributes);
#include "kernels/Kernels.inc"
#undef DS_KERNEL
} // namespace rows

inline constexpr KernelRow kernelRows[] = {
#define DS_KERNEL(name, factory, operands, attributes, check, factors, cpuWorkspace, cudaWorkspace, flops, text)       \
  rows::name,
#include "kernels/Kernels.inc"
#undef DS_KERNEL
};

/// A name as a template's argument.
struct KernelName {
  char text[32] = {};
  consteval KernelName(std::string_view name) { std::copy(name.begin(), name.end(), text); }
  consteval KernelName(const char *name) : KernelName(std::string_view(name)) {}
};

/// The row of a kernel, or nullptr.
constexpr const KernelRow *rowNamed(std::string_view name) {
  for (const KernelRow &row : kernelRows)
    if (row.name == name)
      return &row;
  return nullptr;
}

/// The row of a kernel; a name that no kernel has fails the build.
template <KernelName name>
inline constexpr const KernelRow &kernel = []() consteval -> const KernelRow & {
  const KernelRow *row = rowNamed(name.text);
  if (!row)
    throw "no kernel has this name";
  return *row;
}();

} // namespace ds::kernels
