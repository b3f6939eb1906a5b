#include "kernels/KernelRegistry.h"
#include "kernels/cuda/CudaKernels.h"

#include <gtest/gtest.h>

namespace ds::kernels::test {

namespace {

TEST(CudaRegistry, HasTheKernelsOfCpus) {
  for (const auto &[name, factory] : cpuKernels().all())
    EXPECT_NE(cudaKernels().find(name), nullptr) << name << " has no kernel for CUDA";
  for (const auto &[name, factory] : cudaKernels().all())
    EXPECT_NE(cpuKernels().find(name), nullptr) << name << " has no kernel for CPUs";
}

} // namespace

} // namespace ds::kernels::test
