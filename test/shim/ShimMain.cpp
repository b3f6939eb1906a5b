// The kernel tests with the GPU's kernels on the shim: every comparison with a reference runs them there, in three
// orders of threads. Ends with what ran, and fails if a kernel of the table did not. Our own attention and convolutions
// run, unless DS_FAKE_CUDNN=1: then those are cuDNN's, by its stand-in, and what counts is that it ran each. With
// DS_CUDA_STRICT=1 what counts is that none of our own ran in a library's place.
#include "kernels/cuda/CudaKernels.h"
#include "kernels/cuda/Fallback.h"
#include "test/shim/Machine.h"
#include "test/shim/ShimAccelerator.h"

#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <string_view>

namespace ds::kernels::test {

namespace {

std::string joined(const std::set<std::string> &words) {
  std::string text;
  for (const std::string &word : words)
    text += (text.empty() ? "" : " ") + word;
  return text;
}

bool hasCudnn() {
  ::setenv("DS_FAKE_CUDNN", "0", 0);
  return std::getenv("DS_FAKE_CUDNN") != std::string_view("0");
}

/// Prints what cuDNN ran; false if a kernel that it is there for is missing.
bool reportCudnn(const ShimAccelerator &accelerator) {
  bool all = true;
  std::printf("\n| by cuDNN | element types | calls |\n|---|---|---|\n");
  for (const char *name : {"attention", "attention_grad", "packed_attention", "packed_attention_grad", "conv",
                           "conv_input_grad", "conv_weight_grad"}) {
    const auto found = accelerator.ranByCudnn.find(name);
    all = all && found != accelerator.ranByCudnn.end();
    if (found != accelerator.ranByCudnn.end())
      std::printf("| `%s` | %s | %zu |\n", name, joined(found->second.types).c_str(), found->second.calls.size());
  }
  return all;
}

/// Prints a line a kernel; false if one of the table did not run.
bool report(const ShimAccelerator &accelerator) {
  size_t types = 0, calls = 0;
  bool all = true;
  std::printf("\n| kernel | element types | calls of different types, shapes or attributes |\n|---|---|---|\n");
  for (const auto &[name, factory] : cudaKernels().all()) {
    const auto found = accelerator.ran.find(name);
    if (found == accelerator.ran.end()) {
      std::printf("| %s | did not run | 0 |\n", name.c_str());
      all = false;
      continue;
    }
    std::printf("| %s | %s | %zu |\n", name.c_str(), joined(found->second.types).c_str(), found->second.calls.size());
    types += found->second.types.size();
    calls += found->second.calls.size();
  }
  const shim::Counts &counts = shim::counts();
  std::printf("\nThe shim ran %zu kernels, %zu pairs of kernel and type, %zu calls: %" PRId64 " launches of %" PRId64
              " threads, %" PRId64 " accesses checked.\n",
              accelerator.ran.size(), types, calls, counts.launches, counts.threads, counts.accesses);
  return all;
}

} // namespace

} // namespace ds::kernels::test

int main(int argc, char **argv) {
  ::setenv("DS_FAKE_CUDA_GPUS", "2", 0);
  testing::InitGoogleTest(&argc, argv);
  ds::kernels::test::ShimAccelerator accelerator(ds::kernels::cudaKernels());
  ds::kernels::test::Accelerator::instance() = &accelerator;
  const bool hasCudnn = ds::kernels::test::hasCudnn();
  const int code = RUN_ALL_TESTS();
  if (testing::GTEST_FLAG(list_tests))
    return code;
  if (hasCudnn && !ds::kernels::test::reportCudnn(accelerator) && !ds::kernels::cuda::isStrict()) {
    std::puts("cuDNN's stand-in did not run a kernel that it is there for");
    return 1;
  }
  if (hasCudnn)
    return code;
  const bool all = ds::kernels::test::report(accelerator);
  if (testing::GTEST_FLAG(filter) == "*" && !all) {
    std::puts("a kernel of the table did not run on the shim");
    return 1;
  }
  return code;
}
