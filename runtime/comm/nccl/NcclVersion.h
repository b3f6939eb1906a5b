//===- NcclVersion.h - which NCCL this process has loaded -----------------===//
#pragma once

namespace ds::runtime {

/// 22809 for 2.28.9; 0 where it does not say.
int ncclVersion() noexcept;

} // namespace ds::runtime
