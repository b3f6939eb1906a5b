//===- CostModel.h - how long work takes, roughly ---------------------------===//
#pragma once

namespace ds::kernels {

/// Seconds of work on one rank: products at 100 GFLOP/s, and every byte read or written once at 10 GB/s. It is no
/// measure of any machine: only ratios matter.
inline constexpr double seconds(double flops, double bytes) { return flops / 1e11 + bytes / 1e10; }

} // namespace ds::kernels
