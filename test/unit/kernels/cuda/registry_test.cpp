#include "core/Error.h"
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

/// What global_norm of so many tensors is refused for; "" if it is not.
std::string refusalOfNorm(size_t tensors) {
  Invocation invocation{"global_norm", std::vector<TensorType>(tensors, {DType::F64, {3}}), {}};
  invocation.operands.push_back({DType::F64, {}});
  invocation.attributes["blocks"] = std::vector<int64_t>(tensors, 1024);
  try {
    (void)cudaKernels().find("global_norm")(invocation, {});
  } catch (const Error &error) {
    return error.what();
  }
  return "";
}

TEST(CudaRegistry, RefusesANormOfMoreTensorsThanALaunchHolds) {
  EXPECT_EQ(refusalOfNorm(1024), "");
  EXPECT_EQ(refusalOfNorm(1025), "kernel 'global_norm': has 1025 tensors of partials; a GPU takes 1024");
}

} // namespace

} // namespace ds::kernels::test
