//===- Device.h - where a plan's kernels run ------------------------------===//
#pragma once

namespace ds::kernels {

enum class Device { Cpu, Cuda };

} // namespace ds::kernels
