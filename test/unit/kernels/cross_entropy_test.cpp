// cross_entropy, cross_entropy_grad, and both as one.
#include "test/unit/kernels/Harness.h"

#include <cmath>
#include <cstring>

namespace ds::kernels::test {

namespace {

Buffer randomLabels(Random &random, int64_t rows, int64_t classes, int64_t ignored) {
  Buffer labels(type(DType::I64, {rows}));
  for (int64_t row = 0; row < rows; ++row)
    labels.as<int64_t>()[row] = random.below(4) == 0 ? ignored : random.below(classes);
  return labels;
}

Attributes attributesOf(const char *reduction, int64_t ignored = -100) {
  return {{"reduction", std::string(reduction)}, {"ignore_index", ignored}};
}

/// `rows` without the columns behind `columns`.
Buffer narrowed(const Buffer &rows, int64_t columns) {
  Buffer result(type(rows.type.dtype, {rows.type.shape[0], columns}));
  const size_t bytes = size_t(byteSize(rows.type.dtype)), wide = size_t(rows.type.shape[1]);
  for (size_t row = 0; row < size_t(rows.type.shape[0]); ++row)
    std::memcpy(result.data() + row * size_t(columns) * bytes, rows.data() + row * wide * bytes,
                size_t(columns) * bytes);
  return result;
}

void expectSameBits(const std::vector<Buffer> &have, const std::vector<Buffer> &want) {
  for (size_t i = 0; i < want.size(); ++i)
    EXPECT_EQ(std::memcmp(have[i].data(), want[i].data(), want[i].bytes()), 0) << "result " << i;
}

TEST(CrossEntropy, LossAndGradient) {
  for (DType dtype : floatTypes)
    for (const char *reduction : {"mean", "sum"})
      for (const Shape &shape :
           {Shape{1, 1}, Shape{0, 3}, Shape{7, 5}, Shape{33, 1025}, Shape{3, 1160}, Shape{3, 8196}, Shape{3, 50257}}) {
        Random random{uint64_t(shape[0])};
        SCOPED_TRACE(toString(shape) + reduction);
        const double epsilon = dtype == DType::F32 ? 2e-6 : 2e-13;
        const Buffer logits = random.buffer(dtype, shape, 3);
        const Buffer labels = randomLabels(random, shape[0], shape[1], -100);
        const std::vector<Buffer> forward = expectMatchesReference(
            "cross_entropy", {logits, labels, Buffer(type(dtype, {})), Buffer(type(dtype, {shape[0]}))},
            attributesOf(reduction), {2, 3}, {epsilon, epsilon});
        Buffer dloss(type(dtype, {}));
        dtype == DType::F32 ? void(*dloss.as<float>() = 0.7f) : void(*dloss.as<double>() = 0.7);
        const std::vector<Buffer> backward = expectMatchesReference(
            "cross_entropy_grad", {logits, labels, forward[3], dloss, Buffer(type(dtype, shape))},
            attributesOf(reduction), {4}, {10 * epsilon, 1e-7});
        const std::vector<Buffer> both =
            expectMatchesReference("cross_entropy_with_grad", {logits, labels, dloss, forward[2], forward[3], logits},
                                   attributesOf(reduction), {3, 4, 5}, {10 * epsilon, 2e-6});
        expectSameBits({both[3], both[4], both[5]}, {forward[2], forward[3], backward[4]});
      }
}

TEST(CrossEntropy, PaddingCountsNowhere) {
  for (DType dtype : floatTypes)
    for (const auto &[columns, classes] : {std::pair<int64_t, int64_t>{8, 5}, {64, 1}, {1088, 1025}, {8320, 8257}}) {
      Random random{uint64_t(classes)};
      Buffer logits = random.buffer(dtype, {6, columns}, 3); // what is not read may be anything
      const Buffer labels = randomLabels(random, 6, classes, -100);
      const Buffer scalar(type(dtype, {})), lse(type(dtype, {6})), few = narrowed(logits, classes);
      Attributes attributes = attributesOf("sum"), padded = attributes;
      padded["classes"] = classes;
      const Tolerance tolerance{2e-6, 2e-6};
      const std::vector<Buffer> own =
          expectMatchesReference("cross_entropy", {logits, labels, scalar, lse}, padded, {2, 3}, tolerance);
      const std::vector<Buffer> plain =
          expectMatchesReference("cross_entropy", {few, labels, scalar, lse}, attributes, {2, 3}, tolerance);
      for (size_t operand : {2, 3})
        EXPECT_EQ(std::memcmp(own[operand].data(), plain[operand].data(), own[operand].bytes()), 0);
      const std::vector<Buffer> gradient = expectMatchesReference(
          "cross_entropy_grad", {logits, labels, own[3], own[2], logits}, padded, {4}, {2e-5, 1e-6});
      for (int64_t i = 0; i < 6 * columns; ++i)
        if (i % columns >= classes)
          EXPECT_EQ(gradient[4].at(i), 0);
      const std::vector<Buffer> both = expectMatchesReference(
          "cross_entropy_with_grad", {logits, labels, own[2], scalar, lse, logits}, padded, {3, 4, 5}, {2e-5, 2e-6});
      expectSameBits({both[3], both[4], both[5]}, {own[2], own[3], gradient[4]});
    }
}

TEST(CrossEntropy, AllLabelsIgnored) {
  // torch: a mean over nothing is NaN, a sum 0, the gradient 0 in both.
  for (const char *reduction : {"mean", "sum"}) {
    Random random(9);
    const Buffer logits = random.buffer(DType::F32, {3, 4});
    const Buffer labels(type(DType::I64, {3}), std::vector<int64_t>{2, 2, 2});
    const std::vector<Buffer> forward = expectMatchesReference(
        "cross_entropy", {logits, labels, Buffer(type(DType::F32, {})), Buffer(type(DType::F32, {3}))},
        attributesOf(reduction, 2), {2, 3}, {1e-6, 1e-6});
    EXPECT_EQ(std::isnan(*forward[2].as<float>()), std::string(reduction) == "mean");
    const std::vector<Buffer> backward =
        expectMatchesReference("cross_entropy_grad",
                               {logits, labels, forward[3], Buffer(type(DType::F32, {}), std::vector<float>{1}),
                                Buffer(type(DType::F32, {3, 4}))},
                               attributesOf(reduction, 2), {4}, {});
    for (int64_t i = 0; i < 12; ++i)
      EXPECT_EQ(backward[4].at(i), 0);
  }
}

TEST(CrossEntropy, FailsOnLabelsOutOfRange) {
  for (int64_t bad : {int64_t(4), int64_t(-1), INT64_MAX, INT64_MIN}) {
    const Buffer labels(type(DType::I64, {3}), std::vector<int64_t>{0, bad, -100});
    const std::string text = "label " + std::to_string(bad) + " at position 1 is out of range [0, 4)";
    const Buffer logits(type(DType::F32, {3, 4})), lse(type(DType::F32, {3})), scalar(type(DType::F32, {}));
    expectFails("cross_entropy", {logits, labels, scalar, lse}, attributesOf("mean"), text);
    Attributes padded = attributesOf("mean");
    padded["classes"] = int64_t(4);
    const Buffer wide(type(DType::F32, {3, 8}));
    expectFails("cross_entropy", {wide, labels, scalar, lse}, padded, text);
    expectFails("cross_entropy_grad", {logits, labels, lse, scalar, logits}, attributesOf("mean"), text);
    expectFails("cross_entropy_with_grad", {logits, labels, scalar, scalar, lse, logits}, attributesOf("mean"), text);
  }
}

TEST(CrossEntropy, RefusesWrongCalls) {
  const auto with = [](Shape logits, DType label, const char *reduction) {
    return Invocation{
        "cross_entropy",
        {type(DType::F32, std::move(logits)), type(label, {3}), type(DType::F32, {}), type(DType::F32, {3})},
        attributesOf(reduction)};
  };
  expectRefused(with({3, 2, 2}, DType::I64, "mean"), "must have shape [N, C]");
  expectRefused(with({4, 2}, DType::I64, "mean"), "must have shape [4]");
  expectRefused(with({3, 2}, DType::I32, "mean"), "must be int64, not int32");
  expectRefused(with({3, 2}, DType::I64, "none"), "must be mean or sum, not 'none'");
  for (int64_t classes : {0, 3}) {
    Invocation invocation = with({3, 2}, DType::I64, "mean");
    invocation.attributes["classes"] = classes;
    expectRefused(invocation, "attribute 'classes'");
  }
}

} // namespace

} // namespace ds::kernels::test
