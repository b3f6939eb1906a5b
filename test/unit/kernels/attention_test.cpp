// attention and attention_grad, packed or not: every mask, grouped heads, edges of tiles.
#include "test/unit/kernels/Harness.h"

#include <array>
#include <cstring>
#include <limits>
#include <optional>
#include <span>

namespace ds::kernels::test {

namespace {

struct Case {
  int64_t batch, heads, groups, queries, keys, depth, columns;
  bool causal = false;
  std::optional<Shape> mask = {};
  bool boolMask = false;
};

const Case cases[] = {{1, 1, 1, 1, 1, 1, 1},
                      {2, 3, 3, 5, 7, 4, 6},
                      {2, 4, 2, 6, 6, 8, 8, true},
                      {1, 6, 1, 130, 130, 16, 16, true}, // two tiles a side, one group
                      {1, 2, 2, 129, 300, 5, 3},
                      {1, 2, 2, 300, 129, 5, 3, true},
                      {2, 2, 1, 9, 200, 4, 4, false, Shape{2, 1, 1, 200}},
                      {2, 2, 2, 140, 10, 4, 4, true, Shape{140, 10}},
                      {2, 2, 2, 9, 11, 4, 4, false, Shape{2, 2, 9, 11}, true},
                      {2, 2, 2, 9, 11, 4, 4, false, Shape{2, 1, 9, 1}, true},
                      {1, 2, 2, 9, 11, 4, 4, false, Shape{1}},
                      {0, 2, 2, 3, 3, 4, 4},
                      {1, 2, 2, 3, 0, 4, 4},
                      {1, 2, 2, 0, 3, 4, 4}};

Attributes attributesOf(const Case &c, bool bshd = false) {
  Attributes attributes = {{"scale", 0.37}, {"causal", int64_t(c.causal)}, {"mask", int64_t(c.mask.has_value())}};
  if (bshd)
    attributes["bshd"] = int64_t(1);
  return attributes;
}

/// [batch, heads, rows, width], or with bshd [batch, rows, heads, width].
Shape shapeOf(const Case &c, int64_t heads, int64_t rows, int64_t width, bool bshd) {
  return bshd ? Shape{c.batch, rows, heads, width} : Shape{c.batch, heads, rows, width};
}

/// q, k, v, [mask].
std::vector<Buffer> inputsOf(Random &random, DType dtype, const Case &c, bool bshd = false) {
  std::vector<Buffer> operands = {random.buffer(dtype, shapeOf(c, c.heads, c.queries, c.depth, bshd)),
                                  random.buffer(dtype, shapeOf(c, c.groups, c.keys, c.depth, bshd)),
                                  random.buffer(dtype, shapeOf(c, c.groups, c.keys, c.columns, bshd))};
  if (c.mask)
    operands.push_back(random.buffer(c.boolMask ? DType::Bool : dtype, *c.mask));
  return operands;
}

void addResults(std::vector<Buffer> &operands, DType dtype, const Case &c, bool bshd = false) {
  operands.emplace_back(type(dtype, shapeOf(c, c.heads, c.queries, c.columns, bshd)));
  operands.emplace_back(type(dtype == DType::BF16 ? DType::F32 : dtype, {c.batch, c.heads, c.queries}));
}

Tolerance toleranceOf(DType dtype) {
  if (dtype == DType::BF16)
    return {0x1p-6, 2e-3};
  return dtype == DType::F32 ? Tolerance{2e-5, 2e-5} : Tolerance{1e-13, 1e-13};
}

/// Both layouts of every case.
template <typename Check> void forEachCase(Check &&check) {
  for (DType dtype : floatTypes)
    for (size_t i = 0; i < std::size(cases); ++i)
      for (bool bshd : {false, true}) {
        SCOPED_TRACE("case " + std::to_string(i) + (bshd ? ", bshd" : ""));
        check(dtype, i, bshd);
      }
}

TEST(Attention, EveryMask) {
  forEachCase([](DType dtype, size_t i, bool bshd) {
    Random random(i);
    std::vector<Buffer> operands = inputsOf(random, dtype, cases[i], bshd);
    const size_t out = operands.size();
    addResults(operands, dtype, cases[i], bshd);
    expectMatchesReference("attention", operands, attributesOf(cases[i], bshd), {out, out + 1}, toleranceOf(dtype));
  });
}

TEST(AttentionGrad, EveryMask) {
  forEachCase([](DType dtype, size_t i, bool bshd) {
    Random random(i);
    std::vector<Buffer> forward = inputsOf(random, dtype, cases[i], bshd);
    addResults(forward, dtype, cases[i], bshd);
    const Attributes attributes = attributesOf(cases[i], bshd);
    ASSERT_TRUE(runKernel(cpuReferenceKernels(), invocationOf("attention", forward, attributes), forward).ok());
    std::vector<Buffer> operands = {random.buffer(dtype, forward[forward.size() - 2].type.shape)};
    operands.insert(operands.end(), forward.begin(), forward.end());
    for (size_t input = 0; input < 3; ++input)
      operands.emplace_back(forward[input].type);
    const size_t dq = operands.size() - 3;
    Tolerance tolerance = toleranceOf(dtype);
    tolerance.absolute *= 20; // sums over heads and up to 300 queries
    expectMatchesReference("attention_grad", operands, attributes, {dq, dq + 1, dq + 2}, tolerance);
  });
}

/// Queries that see all keys alike, since a mask of the least number leaves scores no digits: each key has its part of
/// the gradient. lse is the least number, too.
TEST(AttentionGrad, TheLeastNumber) {
  for (DType dtype : {DType::F32, DType::F64}) {
    const Case c{1, 2, 2, 3, 200, 4, 4, false, Shape{200}};
    Random random(3);
    std::vector<Buffer> forward = inputsOf(random, dtype, c);
    for (int64_t key = 0; key < c.keys; ++key) {
      if (dtype == DType::F32)
        forward[3].as<float>()[key] = std::numeric_limits<float>::lowest();
      else
        forward[3].as<double>()[key] = std::numeric_limits<double>::lowest();
    }
    addResults(forward, dtype, c);
    ASSERT_TRUE(runKernel(cpuReferenceKernels(), invocationOf("attention", forward, attributesOf(c)), forward).ok());
    std::vector<Buffer> operands = {random.buffer(dtype, forward[4].type.shape)};
    operands.insert(operands.end(), forward.begin(), forward.end());
    for (size_t input = 0; input < 3; ++input)
      operands.emplace_back(forward[input].type);
    const std::vector<Buffer> after =
        expectMatchesReference("attention_grad", operands, attributesOf(c), {7, 8, 9}, {1e-6, 1e-6});
    for (int64_t head = 0; head < 2; ++head)
      for (int64_t l = 0; l < 4; ++l) {
        double sum = 0;
        for (int64_t query = 0; query < 3; ++query)
          sum += operands[0].at((head * 3 + query) * 4 + l) / 200;
        for (int64_t key = 0; key < 200; ++key)
          EXPECT_NEAR(after[9].at((head * 200 + key) * 4 + l), sum, 1e-7);
      }
  }
}

/// The reference of one layout is that of the other with dimensions exchanged: of [1, heads, queries, depth] and [1,
/// queries, heads, depth], element by element.
TEST(Attention, LayoutsAgree) {
  const Case c{1, 3, 3, 4, 5, 2, 2};
  Random random(7);
  std::vector<Buffer> bhsd = inputsOf(random, DType::F64, c), bshd = inputsOf(random, DType::F64, c, true);
  const auto exchange = [](const Buffer &from, Buffer &to) { // [1, heads, rows, width] -> [1, rows, heads, width]
    const int64_t heads = from.type.shape[1], rows = from.type.shape[2], width = from.type.shape[3];
    for (int64_t i = 0; i < heads * rows * width; ++i)
      to.as<double>()[(i / width % rows * heads + i / width / rows) * width + i % width] = from.at(i);
  };
  for (size_t i = 0; i < 3; ++i)
    exchange(bhsd[i], bshd[i]);
  addResults(bhsd, DType::F64, c);
  addResults(bshd, DType::F64, c, true);
  ASSERT_TRUE(runKernel(cpuReferenceKernels(), invocationOf("attention", bhsd, attributesOf(c)), bhsd).ok());
  ASSERT_TRUE(runKernel(cpuReferenceKernels(), invocationOf("attention", bshd, attributesOf(c, true)), bshd).ok());
  Buffer expected = bshd[3];
  exchange(bhsd[3], expected);
  for (int64_t i = 0; i < 3 * 4 * 2; ++i)
    EXPECT_EQ(bshd[3].at(i), expected.at(i));
  for (int64_t i = 0; i < 3 * 4; ++i)
    EXPECT_EQ(bshd[4].at(i), bhsd[4].at(i));
}

/// q, k and v, or their gradients, in one tensor; each is [batch, rows, heads, depth].
Buffer packed(std::span<const Buffer> parts) {
  TensorType whole = parts[0].type;
  for (const Buffer &part : parts.subspan(1))
    whole.shape[2] += part.type.shape[2];
  Buffer result(whole);
  std::byte *to = result.data();
  const auto rows = size_t(whole.shape[0] * whole.shape[1]);
  for (size_t row = 0; row < rows; ++row)
    for (const Buffer &part : parts) {
      const size_t bytes = part.bytes() / rows;
      to = std::copy_n(part.data() + row * bytes, bytes, to);
    }
  return result;
}

/// The operands with the three from `first` on in one.
std::vector<Buffer> withPacked(const std::vector<Buffer> &operands, size_t first) {
  std::vector<Buffer> result(operands.begin(), operands.begin() + long(first));
  result.push_back(packed(std::span(operands).subspan(first, 3)));
  result.insert(result.end(), operands.begin() + long(first) + 3, operands.end());
  return result;
}

/// The operands after the reference, and after the kernel.
std::array<std::vector<Buffer>, 2> runBoth(const std::string &kernel, const std::vector<Buffer> &operands,
                                           const Attributes &attributes, const std::vector<size_t> &outputs,
                                           Tolerance tolerance) {
  std::vector<Buffer> reference = operands;
  EXPECT_TRUE(runKernel(cpuReferenceKernels(), invocationOf(kernel, operands, attributes), reference).ok());
  return {reference, expectMatchesReference(kernel, operands, attributes, outputs, tolerance)};
}

void expectSameBits(const Buffer &left, const Buffer &right) {
  ASSERT_EQ(left.type.shape, right.type.shape);
  EXPECT_EQ(std::memcmp(left.data(), right.data(), left.bytes()), 0);
}

/// Of packed_attention and of attention with `bshd`, of the same numbers; and of their gradients.
void expectSameAsOfParts(DType dtype, const Case &c) {
  Random random(5);
  const Attributes attributes = attributesOf(c, true), packedAttributes = attributesOf(c);
  Tolerance tolerance = toleranceOf(dtype);
  std::vector<Buffer> apart = inputsOf(random, dtype, c, true);
  const size_t out = apart.size();
  addResults(apart, dtype, c, true);
  const auto forward = runBoth("attention", apart, attributes, {out, out + 1}, tolerance),
             packedForward =
                 runBoth("packed_attention", withPacked(apart, 0), packedAttributes, {out - 2, out - 1}, tolerance);
  for (size_t run : {0, 1})
    for (size_t result : {out, out + 1})
      expectSameBits(packedForward[run][result - 2], forward[run][result]);
  std::vector<Buffer> operands = {random.buffer(dtype, apart[out].type.shape)};
  operands.insert(operands.end(), forward[0].begin(), forward[0].begin() + long(out) + 2);
  const size_t dq = operands.size();
  for (size_t input = 0; input < 3; ++input)
    operands.emplace_back(apart[input].type);
  tolerance.absolute *= 20; // sums over heads and up to 130 queries
  const auto backward = runBoth("attention_grad", operands, attributes, {dq, dq + 1, dq + 2}, tolerance),
             packedBackward = runBoth("packed_attention_grad", withPacked(withPacked(operands, dq), 1),
                                      packedAttributes, {dq - 2}, tolerance);
  for (size_t run : {0, 1})
    expectSameBits(packedBackward[run][dq - 2], packed(std::span(backward[run]).subspan(dq, 3)));
}

TEST(PackedAttention, IsThatOfItsParts) {
  const Case packedCases[] = {{1, 1, 1, 1, 1, 1, 1},
                              {2, 3, 3, 7, 7, 5, 5},
                              {2, 4, 2, 6, 6, 8, 8, true},
                              {1, 6, 1, 130, 130, 16, 16, true}, // two tiles a side, one group
                              {2, 2, 1, 40, 40, 4, 4, false, Shape{2, 1, 1, 40}},
                              {2, 4, 2, 9, 9, 4, 4, true, Shape{9, 9}},
                              {2, 2, 2, 11, 11, 3, 3, false, Shape{2, 2, 11, 11}, true},
                              {0, 2, 2, 3, 3, 4, 4},
                              {1, 2, 2, 0, 0, 4, 4}};
  for (DType dtype : {DType::F32, DType::F64, DType::BF16})
    for (size_t i = 0; i < std::size(packedCases); ++i) {
      SCOPED_TRACE(std::string(name(dtype)) + ", case " + std::to_string(i));
      expectSameAsOfParts(dtype, packedCases[i]);
    }
}

TEST(PackedAttention, RefusesWrongCalls) {
  const auto call = [](int64_t heads, int64_t all, Shape lse) {
    return Invocation{
        "packed_attention",
        {type(DType::F32, {2, 3, all, 8}), type(DType::F32, {2, 3, heads, 8}), type(DType::F32, std::move(lse))},
        {{"scale", 1.0}, {"causal", int64_t(0)}, {"mask", int64_t(0)}}};
  };
  expectRefused(call(4, 7, {2, 4, 3}), "qkv [2, 3, 7, 8] is not [batch, rows, heads + 2 * groups, depth] of 4 heads");
  expectRefused(call(4, 4, {2, 4, 3}), "4 heads are not a multiple of 0 groups");
  expectRefused(call(3, 7, {2, 3, 3}), "3 heads are not a multiple of 2 groups");
  expectRefused(call(4, 8, {2, 3, 4}), "must have shape [2, 4, 3]");
}

/// A row that sees no key yields zeros and gives no gradient, whatever hid the keys.
TEST(Attention, HiddenRows) {
  const Attributes attributes = {{"scale", 1.0}, {"causal", int64_t(0)}, {"mask", int64_t(1)}};
  const float low = -std::numeric_limits<float>::infinity();
  for (bool boolMask : {false, true}) {
    Random random(3);
    std::vector<Buffer> operands = {random.buffer(DType::F32, {1, 1, 2, 4}), random.buffer(DType::F32, {1, 1, 3, 4}),
                                    random.buffer(DType::F32, {1, 1, 3, 5})};
    if (boolMask)
      operands.emplace_back(type(DType::Bool, {2, 3}), std::vector<uint8_t>{0, 0, 0, 1, 0, 1});
    else
      operands.emplace_back(type(DType::F32, {2, 3}), std::vector<float>{low, low, low, 0, low, 1});
    operands.emplace_back(type(DType::F32, {1, 1, 2, 5}));
    operands.emplace_back(type(DType::F32, {1, 1, 2}));
    const std::vector<Buffer> after = expectMatchesReference("attention", operands, attributes, {4, 5}, {1e-5, 1e-5});
    for (int64_t c = 0; c < 5; ++c)
      EXPECT_EQ(after[4].at(c), 0);
    std::vector<Buffer> gradient = {random.buffer(DType::F32, {1, 1, 2, 5})};
    gradient.insert(gradient.end(), after.begin(), after.end());
    for (size_t input = 0; input < 3; ++input)
      gradient.emplace_back(after[input].type);
    const std::vector<Buffer> done =
        expectMatchesReference("attention_grad", gradient, attributes, {7, 8, 9}, {1e-4, 1e-5});
    for (int64_t l = 0; l < 4; ++l)
      EXPECT_EQ(done[7].at(l), 0);
  }
}

TEST(Attention, RefusesWrongCalls) {
  Random random(1);
  const Case good{2, 4, 2, 3, 5, 4, 6, false, Shape{3, 5}};
  const auto with = [&](size_t operand, Shape shape, DType dtype = DType::F32) {
    std::vector<Buffer> operands = inputsOf(random, DType::F32, good);
    addResults(operands, DType::F32, good);
    Invocation invocation = invocationOf("attention", operands, attributesOf(good));
    invocation.operands[operand] = type(dtype, std::move(shape));
    return invocation;
  };
  expectRefused(with(0, {2, 4, 3}), "must have shape [B, H, Q, D]");
  Invocation three = with(0, {2, 3, 3, 4});
  three.operands[4].shape = {2, 3, 3, 6};
  three.operands[5].shape = {2, 3, 3};
  expectRefused(three, "3 heads are not a multiple of 2 groups");
  expectRefused(with(1, {2, 2, 5, 3}), "must have shape [2, 2, 5, 4]");
  expectRefused(with(2, {2, 2, 4, 6}), "must have shape [2, 2, 5, E]");
  expectRefused(with(3, {4, 5}), "does not broadcast to [2, 4, 3, 5]");
  expectRefused(with(3, {3, 5}, DType::I64), "must be bool or float32, not int64");
  expectRefused(with(4, {2, 4, 3, 4}), "must have shape [2, 4, 3, 6]");
  expectRefused(with(5, {2, 4, 3, 1}), "must have shape [2, X, Y]");
  expectRefused(with(5, {2, 3, 4}), "is not [batch, heads, queries] of q [2, 4, 3, 4]");
  Invocation invocation = with(5, {2, 4, 3});
  invocation.operands.pop_back();
  expectRefused(invocation, "takes 6 operands, not 5");
}

} // namespace

} // namespace ds::kernels::test
