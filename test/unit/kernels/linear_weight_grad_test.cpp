// linear_weight_grad: both layouts of the weight, empty and odd shapes, rows enough to be summed in pieces.
#include "kernels/matmul/linear_weight_grad_call.h"
#include "test/unit/kernels/Harness.h"

namespace ds::kernels::test {

namespace {

struct Layer {
  int64_t rows, inputs, columns;
};

std::vector<Buffer> operandsOf(Random &random, DType dtype, DType sums, const Layer &layer, bool transposed) {
  return {random.buffer(dtype, {layer.rows, layer.columns}), random.buffer(dtype, {layer.rows, layer.inputs}),
          Buffer(type(sums, transposed ? Shape{layer.columns, layer.inputs} : Shape{layer.inputs, layer.columns})),
          Buffer(type(sums, {layer.columns}))};
}

Attributes attributesOf(bool transposed) { return {{"transposed", int64_t(transposed)}, {"pieces", int64_t(1)}}; }

constexpr Layer layers[] = {{1, 1, 1}, {5, 3, 7}, {17, 8, 16}, {64, 33, 65},
                            {0, 3, 5}, {6, 0, 4}, {6, 4, 0},   {700, 24, 40}};

TEST(LinearWeightGrad, EveryLayout) {
  for (const Layer &layer : layers)
    for (const bool transposed : {false, true})
      for (const DType dtype : floatTypes) {
        Random random(uint64_t(layer.rows));
        const double epsilon = dtype == DType::F32 ? 6e-8 : 1.2e-16;
        expectMatchesReference("linear_weight_grad", operandsOf(random, dtype, dtype, layer, transposed),
                               attributesOf(transposed), {2, 3}, {0, 8 * epsilon * double(layer.rows + 1)});
      }
}

TEST(LinearWeightGrad, BFloat16) {
  for (const Layer &layer : layers)
    for (const bool transposed : {false, true})
      for (const DType sums : {DType::F32, DType::BF16}) {
        Random random(uint64_t(layer.rows));
        const Tolerance tolerance =
            sums == DType::F32 ? Tolerance{0, 5e-7 * double(layer.rows + 1)} : Tolerance{0x1p-7, 0.02};
        expectMatchesReference("linear_weight_grad", operandsOf(random, DType::BF16, sums, layer, transposed),
                               attributesOf(transposed), {2, 3}, tolerance);
      }
}

TEST(LinearWeightGrad, RefusesWrongCalls) {
  Random random(1);
  const auto with = [&](size_t operand, const Buffer &buffer) {
    std::vector<Buffer> operands = operandsOf(random, DType::BF16, DType::F32, {6, 4, 8}, false);
    operands[operand] = buffer;
    return invocationOf("linear_weight_grad", operands, attributesOf(false));
  };
  expectRefused(with(1, Buffer(type(DType::BF16, {5, 4}))), "must have shape");
  expectRefused(with(2, Buffer(type(DType::F32, {8, 4}))), "must have shape [4, 8]");
  expectRefused(with(3, Buffer(type(DType::F32, {4}))), "must have shape [8]");
  // A CPU's kernel gets float32 copies, of one type.
  const Invocation mixed = with(3, Buffer(type(DType::BF16, {8})));
  EXPECT_THROW(LinearWeightGradCall{Call(mixed)}, Error);
  expectRefused(with(1, Buffer(type(DType::F32, {6, 4}))), "must be bfloat16, not float32");
}

} // namespace

} // namespace ds::kernels::test
