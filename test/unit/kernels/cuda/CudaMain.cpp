// The kernel tests on a GPU: every comparison with a reference runs the CUDA kernels. Without a GPU there is nothing to
// compare: skipped.
#include "kernels/cuda/CudaKernels.h"
#include "test/unit/kernels/Accelerator.h"

#include <cuda_runtime_api.h>

#include <cstdio>
#include <utility>

namespace ds::kernels::test {

namespace {

void check(cudaError_t error) {
  if (error != cudaSuccess)
    throw Error(std::string("CUDA: ") + cudaGetErrorString(error));
}

/// Memory of the device, for one test case's operand.
class DeviceMemory {
public:
  explicit DeviceMemory(size_t bytes) { check(cudaMalloc(&data_, bytes)); }
  DeviceMemory(DeviceMemory &&other) noexcept : data_(std::exchange(other.data_, nullptr)) {}
  ~DeviceMemory() { cudaFree(data_); }

  void *data() const { return data_; }

private:
  void *data_ = nullptr;
};

class CudaAccelerator : public Accelerator {
public:
  const KernelRegistry &kernels() const override { return cudaKernels(); }
  Device device() const override { return Device::Cuda; }

  Status run(const Invocation &invocation, std::vector<Buffer> &operands, CallContext context,
             std::optional<Over> over) override {
    const Factory factory = cudaKernels().find(invocation.kernel);
    if (!factory)
      throw Error("no kernel '" + invocation.kernel + "'");
    const std::unique_ptr<Kernel> kernel = factory(invocation, {});
    std::vector<DeviceMemory> memory;
    std::vector<void *> addresses;
    for (const Buffer &operand : operands) {
      memory.emplace_back(operand.storageBytes());
      addresses.push_back(memory.back().data());
      check(cudaMemcpy(addresses.back(), operand.data(), operand.storageBytes(), cudaMemcpyHostToDevice));
    }
    if (over)
      addresses[over->result] = addresses[over->operand];
    const DeviceMemory step(sizeof(uint64_t)), refused(sizeof(RefusedValue));
    check(cudaMemcpy(step.data(), &context.step, sizeof(uint64_t), cudaMemcpyHostToDevice));
    check(cudaMemset(refused.data(), 0, sizeof(RefusedValue)));
    const Stream stream{nullptr, static_cast<const uint64_t *>(step.data()),
                        static_cast<RefusedValue *>(refused.data())};
    context.stream = &stream;
    Status status = kernel->execute(context, addresses);
    check(cudaDeviceSynchronize());
    RefusedValue value{};
    check(cudaMemcpy(&value, refused.data(), sizeof(value), cudaMemcpyDeviceToHost));
    for (size_t i = 0; i < operands.size(); ++i) {
      check(cudaMemcpy(operands[i].data(), addresses[i], operands[i].storageBytes(), cudaMemcpyDeviceToHost));
      EXPECT_TRUE(operands[i].guardIntact()) << invocation.kernel << " wrote past the end of operand " << i;
    }
    return status.ok() && value.caller != 0 ? kernel->refusal(value.value) : status;
  }
};

} // namespace

} // namespace ds::kernels::test

int main(int argc, char **argv) {
  testing::InitGoogleTest(&argc, argv);
  int count = 0;
  if (cudaGetDeviceCount(&count) != cudaSuccess || count == 0) {
    std::puts("skipped: no CUDA device can be reached");
    return 77; // ctest counts it as skipped
  }
  ds::kernels::test::CudaAccelerator accelerator;
  ds::kernels::test::Accelerator::instance() = &accelerator;
  return RUN_ALL_TESTS();
}
