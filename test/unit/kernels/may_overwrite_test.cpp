// Kernels that MayOverwrite.h names, with a result in the memory of an operand: the same bits as apart. The programs of
// `elementwise` are in elementwise_test.cpp.
#include "kernels/MayOverwrite.h"
#include "test/unit/kernels/Harness.h"

#include <cstring>

namespace ds::kernels::test {

namespace {

/// Every pair that may share memory, one at a time, fast and reference.
void expectSameBitsInPlace(const std::string &kernel, const std::vector<Buffer> &operands, const Attributes &attributes,
                           size_t reads) {
  const Invocation invocation = invocationOf(kernel, operands, attributes);
  for (const KernelRegistry *registry : {&cpuKernels(), &cpuReferenceKernels()}) {
    std::vector<Buffer> apart = operands;
    ASSERT_TRUE(runKernel(*registry, invocation, apart, 3).ok());
    size_t pairs = 0;
    for (size_t operand = 0; operand < reads; ++operand)
      for (size_t result = reads; result < operands.size(); ++result) {
        if (!mayOverwrite(kernel, operand, result))
          continue;
        ++pairs;
        std::vector<Buffer> together = operands;
        Workers workers(3);
        CallContext context{&workers};
        std::vector<void *> addresses;
        for (Buffer &buffer : together)
          addresses.push_back(buffer.data());
        addresses[result] = addresses[operand];
        ASSERT_TRUE(registry->find(kernel)(invocation, {3})->execute(context, addresses).ok());
        for (size_t i = reads; i < operands.size(); ++i)
          if (operands[i].type.dtype != DType::U8) // the workspace
            EXPECT_EQ(std::memcmp(addresses[i], apart[i].data(), apart[i].bytes()), 0)
                << kernel << ": operand " << i << " where " << result << " lies over " << operand;
      }
    EXPECT_GT(pairs, 0u);
  }
}

void addWorkspace(const std::string &kernel, std::vector<Buffer> &operands) {
  std::vector<TensorType> types;
  for (const Buffer &operand : operands)
    types.push_back(operand.type);
  operands.emplace_back(type(DType::U8, {workspaceBytes(kernel, types, {})}));
}

TEST(MayOverwrite, GradientsOfNorms) {
  for (DType dtype : floatTypes)
    for (const auto &[rows, cols] : {std::pair<int64_t, int64_t>{3, 7}, {200, 133}}) {
      Random random(5);
      const Shape shape = {rows, cols};
      std::vector<Buffer> layer = {random.buffer(dtype, shape),  random.buffer(dtype, shape),
                                   random.buffer(dtype, {cols}), random.buffer(dtype, {rows}, 0.1),
                                   random.buffer(dtype, {rows}), Buffer(type(dtype, shape)),
                                   Buffer(type(dtype, {cols})),  Buffer(type(dtype, {cols}))};
      addWorkspace("layer_norm_grad", layer);
      expectSameBitsInPlace("layer_norm_grad", layer, {}, 5);
      std::vector<Buffer> rms = {random.buffer(dtype, shape),  random.buffer(dtype, shape),
                                 random.buffer(dtype, {cols}), random.buffer(dtype, {rows}),
                                 Buffer(type(dtype, shape)),   Buffer(type(dtype, {cols}))};
      addWorkspace("rms_norm_grad", rms);
      expectSameBitsInPlace("rms_norm_grad", rms, {}, 4);
    }
}

TEST(MayOverwrite, GradientOfTheCrossEntropy) {
  for (DType dtype : floatTypes) {
    Random random(6);
    std::vector<Buffer> operands = {random.buffer(dtype, {40, 300}), Buffer(type(DType::I64, {40})),
                                    random.buffer(dtype, {40}), random.buffer(dtype, {}),
                                    Buffer(type(dtype, {40, 300}))};
    for (int64_t row = 0; row < 40; ++row)
      reinterpret_cast<int64_t *>(operands[1].data())[row] = row % 7 == 0 ? -1 : row * 7;
    expectSameBitsInPlace("cross_entropy_grad", operands, {{"ignore_index", int64_t(-1)}, {"reduction", "mean"}}, 4);
  }
}

TEST(MayOverwrite, NothingElse) {
  EXPECT_FALSE(mayOverwrite("softmax", 0, 1));
  EXPECT_FALSE(mayOverwrite("matmul", 0, 2));
  EXPECT_FALSE(mayOverwrite("layer_norm_grad", 2, 6));
  EXPECT_FALSE(mayOverwrite("cross_entropy_grad", 2, 4));
}

} // namespace

} // namespace ds::kernels::test
