// How calls become launches: what kernels/cuda computes without a GPU, against the obvious.
#include "kernels/attention/attention_cuda_plan.h"
#include "kernels/conv/conv_cuda_plan.h"
#include "kernels/conv/window_space.h"
#include "kernels/cuda/FixedSum.h"
#include "kernels/cuda/Grid.h"
#include "kernels/index/element_space.h"
#include "kernels/matmul/matmul_cuda_plan.h"
#include "kernels/movement/copy_cuda_plan.h"
#include "kernels/reduce/online_softmax.h"
#include "kernels/reduce/reduce_cuda_plan.h"
#include "test/unit/kernels/Harness.h"

#include <cmath>
#include <cstring>
#include <numeric>

namespace ds::kernels::cuda::test {

namespace {

using namespace ds::kernels::test;

TEST(CudaGrid, CoversTheWork) {
  EXPECT_EQ(blocksFor(0), 1u);
  EXPECT_EQ(blocksFor(256), 1u);
  EXPECT_EQ(blocksFor(257), 2u);
  EXPECT_EQ(blocksFor(int64_t(1) << 50), unsigned(mostBlocks));
  EXPECT_EQ(rowThreads(1), 32u);
  EXPECT_EQ(rowThreads(768), 256u);
  EXPECT_EQ(rowThreads(1 << 20), 512u);
}

/// Runs a plan element by element, as the launches would.
void runCopy(const CopyPlan &plan, const CopySpace &space, const std::byte *from, std::byte *to) {
  if (plan.empty)
    return;
  from += plan.fromOffset;
  to += plan.toOffset;
  const int64_t bytes = space.elementBytes;
  for (int64_t i = 0; i < space.elements; ++i) {
    const CopySpace::Offsets at = space.at(i);
    if (!plan.turns) {
      std::memcpy(to + at.to * bytes, from + at.from * bytes, size_t(bytes));
      continue;
    }
    for (int64_t a = 0; a < plan.across.size; ++a)
      for (int64_t b = 0; b < plan.along.size; ++b)
        std::memcpy(to + (at.to + a * plan.across.to + b * plan.along.to) * bytes,
                    from + (at.from + a * plan.across.from + b * plan.along.from) * bytes, size_t(bytes));
  }
}

/// Compares a movement kernel's plan, plain and wide, with the reference.
void expectMoves(const std::string &kernel, std::vector<Buffer> operands, const Attributes &attributes, bool turns,
                 int64_t wideBytes) {
  const Invocation invocation = invocationOf(kernel, operands, attributes);
  std::vector<Buffer> reference = operands;
  ASSERT_TRUE(runKernel(cpuReferenceKernels(), invocation, reference).ok());
  const Call call(invocation);
  const CopyPlan plan = kernel == "transpose" ? transposePlan(TransposeCall(call))
                        : kernel == "slice"   ? slicePlan(SliceCall(call))
                                              : padPlan(PadCall(call));
  EXPECT_EQ(plan.turns, turns);
  if (!turns) {
    EXPECT_EQ(plan.wide.elementBytes, wideBytes);
  }
  for (const CopySpace *space : {&plan.plain, &plan.wide}) {
    if (plan.turns && space == &plan.wide)
      continue;
    Buffer y = operands[1];
    std::memset(y.data(), 0, y.bytes()); // pad's value
    runCopy(plan, *space, operands[0].data(), y.data());
    EXPECT_TRUE(y.guardIntact());
    EXPECT_EQ(std::memcmp(y.data(), reference[1].data(), y.bytes()), 0) << kernel;
  }
}

TEST(CudaCopy, TransposesSlicesAndPads) {
  Random random(3);
  const auto transpose = [&](const Shape &x, std::vector<int64_t> perm, bool turns, int64_t wideBytes) {
    Shape y;
    for (int64_t axis : perm)
      y.push_back(x[size_t(axis)]);
    expectMoves("transpose", {random.buffer(DType::F32, x), Buffer(type(DType::F32, y))}, {{"perm", perm}}, turns,
                wideBytes);
  };
  transpose({40, 50}, {1, 0}, true, 4);
  transpose({3, 40, 50}, {0, 2, 1}, true, 4);
  transpose({2, 16, 4, 8}, {0, 2, 1, 3}, false, 16); // heads: rows of 8 move together
  transpose({2, 5, 4, 6}, {0, 2, 1, 3}, false, 8);
  transpose({2, 5, 4, 7}, {2, 0, 1, 3}, false, 4);
  transpose({9, 10, 11}, {2, 1, 0}, true, 4);
  transpose({3, 4, 5}, {2, 1, 0}, false, 4); // too small to turn
  transpose({4, 0}, {1, 0}, false, 1);
  transpose({6, 8}, {0, 1}, false, 16);
  expectMoves("slice", {random.buffer(DType::F32, {6, 10}), Buffer(type(DType::F32, {3, 4}))},
              {{"starts", std::vector<int64_t>{1, 2}}, {"steps", std::vector<int64_t>{2, 1}}}, false,
              16); // from byte 48, every 80
  expectMoves("slice", {random.buffer(DType::I64, {11}), Buffer(type(DType::I64, {4}))},
              {{"starts", std::vector<int64_t>{1}}, {"steps", std::vector<int64_t>{3}}}, false, 8);
  expectMoves("pad", {random.buffer(DType::F32, {3, 4}), Buffer(type(DType::F32, {8, 12}))},
              {{"low", std::vector<int64_t>{1, 4}}, {"interior", std::vector<int64_t>{1, 0}}, {"value", 0.0}}, false,
              16);
}

TEST(CudaCopy, Concatenates) {
  Random random(4);
  std::vector<Buffer> operands = {random.buffer(DType::F32, {3, 2, 5}), random.buffer(DType::F32, {3, 4, 5}),
                                  Buffer(type(DType::F32, {3, 6, 5}))};
  const Invocation invocation = invocationOf("concat", operands, {{"axis", int64_t(1)}});
  std::vector<Buffer> reference = operands;
  ASSERT_TRUE(runKernel(cpuReferenceKernels(), invocation, reference).ok());
  const ConcatCall call{Call(invocation)};
  for (size_t k = 0; k < 2; ++k) {
    const CopyPlan plan = concatPlan(call, k);
    EXPECT_EQ(plan.wide.elementBytes, 8); // rows of 40 and 80 bytes in rows of 120
    runCopy(plan, plan.wide, operands[k].data(), operands[2].data());
  }
  EXPECT_EQ(std::memcmp(operands[2].data(), reference[2].data(), operands[2].bytes()), 0);
}

/// Element (row, col) of a matrix by columns.
double elementOf(const Buffer &buffer, int64_t start, const ColumnMajor &matrix, int64_t batch, int64_t row,
                 int64_t col, bool transposed) {
  if (transposed)
    std::swap(row, col);
  EXPECT_LT(row, matrix.rows);
  EXPECT_LT(col, matrix.cols);
  return buffer.at(start + batch * matrix.stride + col * matrix.leading + row);
}

void expectProduct(const Shape &a, const Shape &b, const Shape &c, bool transA, bool transB, size_t launches,
                   int64_t batches) {
  Random random(9);
  SCOPED_TRACE(toString(a) + " by " + toString(b));
  std::vector<Buffer> operands = {random.buffer(DType::F64, a), random.buffer(DType::F64, b),
                                  Buffer(type(DType::F64, c))};
  const Invocation invocation = invocationOf(
      "matmul", operands,
      {{"trans_a", int64_t(transA)}, {"trans_b", int64_t(transB)}, {"bias", int64_t(0)}, {"pieces", int64_t(1)}});
  std::vector<Buffer> reference = operands;
  ASSERT_TRUE(runKernel(cpuReferenceKernels(), invocation, reference).ok());
  const MatmulPlan plan{MatmulCall(Call(invocation))};
  EXPECT_EQ(plan.launches.size(), launches);
  EXPECT_EQ(plan.batches, batches);
  EXPECT_EQ(plan.rows() * plan.n, elementCount(c));
  for (const MatmulPlan::Start &start : plan.launches)
    for (int64_t batch = 0; batch < plan.batches; ++batch)
      for (int64_t i = 0; i < plan.n; ++i) // rows of c^T
        for (int64_t j = 0; j < plan.m; ++j) {
          double sum = 0;
          for (int64_t l = 0; l < plan.k; ++l)
            sum += elementOf(operands[1], start.b, plan.first, batch, i, l, plan.transposeFirst) *
                   elementOf(operands[0], start.a, plan.second, batch, l, j, plan.transposeSecond);
          operands[2].as<double>()[start.c + batch * plan.result.stride + j * plan.result.leading + i] = sum;
        }
  for (int64_t i = 0; i < elementCount(c); ++i)
    ASSERT_NEAR(operands[2].at(i), reference[2].at(i), 1e-12);
}

TEST(CudaMatmul, DescribesProductsByColumns) {
  for (bool transA : {false, true})
    for (bool transB : {false, true})
      expectProduct(transA ? Shape{5, 4} : Shape{4, 5}, transB ? Shape{6, 5} : Shape{5, 6}, {4, 6}, transA, transB, 1,
                    1);
  expectProduct({3, 4, 5}, {5, 6}, {3, 4, 6}, false, false, 1, 1); // one b: a single product of 12 rows
  expectProduct({3, 5, 4}, {5, 6}, {3, 4, 6}, true, false, 1, 3);
  expectProduct({2, 3, 4, 5}, {2, 3, 5, 6}, {2, 3, 4, 6}, false, false, 1, 6);
  expectProduct({2, 1, 4, 5}, {3, 5, 6}, {2, 3, 4, 6}, false, false, 2, 3);
  expectProduct({4, 5}, {2, 3, 6, 5}, {2, 3, 4, 6}, false, true, 1, 6);
  expectProduct({3, 1, 4, 5}, {1, 2, 5, 6}, {3, 2, 4, 6}, false, false, 3, 2);
  expectProduct({0, 4, 5}, {5, 6}, {0, 4, 6}, false, false, 0, 1);
  expectProduct({4, 0}, {0, 6}, {4, 6}, false, false, 1, 1);
}

TEST(CudaReduce, VisitsEveryElementOnce) {
  for (const auto &[shape, axes] : std::vector<std::pair<Shape, std::vector<int64_t>>>{{{4, 5, 6}, {0, 2}},
                                                                                       {{4, 5, 6}, {1}},
                                                                                       {{7, 3}, {0}},
                                                                                       {{7, 3}, {1}},
                                                                                       {{2, 3, 4, 5}, {0, 1}},
                                                                                       {{5}, {0}},
                                                                                       {{3, 1, 4}, {}}}) {
    Shape kept;
    for (size_t d = 0; d < shape.size(); ++d)
      kept.push_back(std::find(axes.begin(), axes.end(), int64_t(d)) == axes.end() ? shape[d] : 1);
    const Invocation invocation{"reduce_sum", {type(DType::F32, shape), type(DType::F32, kept)}, {{"axes", axes}}};
    const ReduceSpace space(ReduceCall(Call(invocation), Reduction::Sum), 0);
    EXPECT_EQ(space.outputs * space.length, elementCount(shape));
    std::vector<int64_t> owner(size_t(elementCount(shape)), -1);
    for (int64_t o = 0; o < space.outputs; ++o)
      for (int64_t k = 0; k < space.length; ++k) {
        const size_t at = size_t(space.keptOffset(o) + space.reducedOffset(k));
        EXPECT_EQ(owner.at(at), -1);
        owner[at] = o;
      }
    for (int64_t i = 0; i < elementCount(shape); ++i) { // the output that holds element i, in row-major order
      const auto index = unravel(i, shape);
      int64_t output = 0;
      for (size_t d = 0; d < shape.size(); ++d)
        output = output * kept[d] + (kept[d] == 1 ? 0 : index[d]);
      EXPECT_EQ(owner[size_t(i)], output);
    }
  }
}

TEST(CudaReduce, CutsOnlyWithAWorkspace) {
  const Invocation invocation{
      "reduce_sum", {type(DType::F32, {100000, 8}), type(DType::F32, {8})}, {{"axes", std::vector<int64_t>{0}}}};
  const ReduceCall call(Call(invocation), Reduction::Sum);
  const int64_t bytes = workspaceBytes(invocation, {.device = Device::Cuda});
  const ReduceSpace whole(call, bytes - 1), cut(call, bytes);
  EXPECT_EQ(whole.pieces, 1);
  EXPECT_EQ(whole.perPiece, 100000);
  EXPECT_GT(cut.pieces, 1);
  EXPECT_EQ(cut.pieces * 8 * 8, bytes);
  EXPECT_GE(cut.pieces * cut.perPiece, 100000);
  EXPECT_LT((cut.pieces - 1) * cut.perPiece, 100000);
}

TEST(CudaSoftmax, PartsCombineInAnyGrouping) {
  Random random(8);
  std::normal_distribution<double> normal(0, 30);
  for (int round = 0; round < 20; ++round) {
    std::vector<MaxSum<double>> parts(size_t(1 + round));
    double largest = -HUGE_VAL, sum = 0;
    std::vector<double> all;
    for (int i = 0; i < 50; ++i) {
      all.push_back(normal(random.engine));
      parts[size_t(random.below(int64_t(parts.size())))].add(all.back());
      largest = std::max(largest, all.back());
    }
    for (double x : all)
      sum += std::exp(x - largest);
    MaxSum<double> total;
    for (const MaxSum<double> &part : parts)
      total = MaxSum<double>::combined(part, total);
    EXPECT_NEAR(total.logSum(), largest + std::log(sum), 1e-12 * std::fabs(largest));
  }
  MaxSum<double> nan, infinite;
  nan.add(1);
  nan.add(NAN);
  nan.add(2);
  infinite.add(HUGE_VAL);
  EXPECT_TRUE(std::isnan(nan.logSum()));
  EXPECT_TRUE(std::isnan(infinite.logSum()));
  EXPECT_TRUE(std::isnan(MaxSum<double>().logSum()));
}

TEST(CudaGlobalNorm, SumsDoNotDependOnTheOrder) {
  Random random(12);
  std::vector<double> values(1000);
  for (double &value : values)
    value = std::ldexp(double(random.below(1 << 30)), -int(random.below(90)));
  values[3] = 0;
  const double largest = *std::max_element(values.begin(), values.end());
  Fixed forward = 0, backward = 0;
  for (double value : values)
    forward += toFixed(value, largest);
  std::reverse(values.begin(), values.end());
  for (double value : values)
    backward += toFixed(value, largest);
  EXPECT_TRUE(forward == backward);
  std::sort(values.begin(), values.end());
  const long double sum = std::accumulate(values.begin(), values.end(), 0.0L);
  EXPECT_NEAR(fromFixed(forward, largest) / double(sum), 1, 1e-15);
  EXPECT_EQ(fromFixed(toFixed(0.1, 0.1), 0.1), 0.1);
  EXPECT_TRUE(toFixed(1e-300, 1e300) == Fixed(0));
}

TEST(CudaPool, WindowsAgreeWithThoseOfCpus) {
  for (const auto &[in, size, out, strides, dilations, low] :
       std::vector<std::array<Shape, 6>>{{Shape{7, 9}, {3, 2}, {4, 4}, {2, 2}, {1, 1}, {1, 0}},
                                         {Shape{8}, {3}, {6}, {1}, {2}, {1}},
                                         {Shape{4, 5, 6}, {2, 3, 1}, {3, 3, 3}, {1, 2, 2}, {2, 1, 3}, {1, 1, 0}}}) {
    const auto plane = [](Shape places) { // one sample, one channel
      places.insert(places.begin(), {1, 1});
      return TensorType{DType::F32, places};
    };
    const Invocation invocation{"max_pool",
                                {plane(in), plane(out)},
                                {{"window", size}, {"strides", strides}, {"dilations", dilations}, {"low", low}}};
    const Window window(Call(invocation), in, size, out);
    const WindowSpace space(window);
    std::vector<std::vector<int64_t>> around(size_t(space.inputs()));
    int64_t o = 0;
    for (int64_t a = 0; a < window.output[0]; ++a)
      for (int64_t b = 0; b < window.output[1]; ++b)
        for (int64_t c = 0; c < window.output[2]; ++c, ++o) {
          const int64_t place[3] = {a, b, c};
          std::vector<int64_t> elements, expected;
          space.forEachElement(place, [&](int64_t i) { elements.push_back(i); });
          for (int64_t tap = 0; tap < space.taps(); ++tap)
            if (const int64_t at = space.positionOf(o, tap); at >= 0) {
              expected.push_back(at);
              EXPECT_EQ(space.tapAt(place, at), tap);
            }
          EXPECT_EQ(elements, expected);
          EXPECT_EQ(space.countOf(place), int64_t(elements.size()));
          int64_t count = 0; // as calls/window.h walks it
          for (size_t d = 0; d < 3; ++d) {
            const Window::Range range = window.elementsOf(d, place[d]);
            count = (d == 0 ? 1 : count) * (range.end - range.first);
          }
          EXPECT_EQ(count, int64_t(elements.size()));
          for (int64_t i : elements)
            around[size_t(i)].push_back(o);
        }
    for (int64_t i = 0; i < space.inputs(); ++i) {
      std::vector<int64_t> places;
      space.forEachPlaceAround(i, [&](const int64_t *place, int64_t at) {
        if (space.tapAt(place, i) >= 0)
          places.push_back(at);
      });
      EXPECT_EQ(places, around[size_t(i)]) << "element " << i;
    }
  }
}

TEST(CudaConv, DescribesTensorsForCudnn) {
  // 9 + 1 + 2 - (2 * 2 + 1) = 7 steps of 2 in height; in width the last column is never read.
  const Invocation invocation{"conv",
                              {type(DType::F32, {2, 6, 9, 8}), type(DType::F32, {4, 3, 3, 2}),
                               type(DType::F32, {2, 4, 4, 3}), type(DType::U8, {0})},
                              {{"strides", std::vector<int64_t>{2, 3}},
                               {"dilations", std::vector<int64_t>{2, 1}},
                               {"low", std::vector<int64_t>{1, 0}},
                               {"groups", int64_t(2)},
                               {"bias", int64_t(0)}}};
  const ConvForwardCall call{Call(invocation)};
  const ConvPlan plan(ConvKind::Forward, call, DType::F32);
  EXPECT_EQ(plan.x.dims, (std::vector<int64_t>{2, 6, 9, 8}));
  EXPECT_EQ(plan.x.strides, (std::vector<int64_t>{432, 72, 8, 1}));
  EXPECT_EQ(plan.w.dims, (std::vector<int64_t>{4, 3, 3, 2}));
  EXPECT_EQ(plan.y.dims, (std::vector<int64_t>{2, 4, 4, 3}));
  EXPECT_EQ(plan.before, (std::vector<int64_t>{1, 0}));
  EXPECT_EQ(plan.after, (std::vector<int64_t>{1, 0}));
  for (size_t d = 0; d < 2; ++d) // cuDNN's rule for the size of y
    EXPECT_EQ((plan.x.dims[2 + d] + plan.before[d] + plan.after[d] - (plan.w.dims[2 + d] - 1) * plan.dilations[d] - 1) /
                      plan.strides[d] +
                  1,
              plan.y.dims[2 + d]);
}

/// A stride leaves rows behind the last window; most engines of cuDNN want the padding of both sides equal.
TEST(CudaConv, PadsBothSidesAlikeWhereTheResultIsTheSame) {
  struct Sizes {
    int64_t x, w, stride, before, y, after;
  };
  // ResNet's first layer and its 3 by 3 of stride 2; what has no padding; a row more behind x, and one less.
  for (const Sizes &c : {Sizes{224, 7, 2, 3, 112, 3}, Sizes{56, 3, 2, 1, 28, 1}, Sizes{8, 1, 2, 0, 4, 0},
                         Sizes{56, 3, 1, 1, 57, 2}, Sizes{56, 3, 1, 1, 55, 0}}) {
    SCOPED_TRACE(c.y);
    const Invocation invocation{"conv",
                                {type(DType::BF16, {1, 1, c.x, c.x}), type(DType::BF16, {1, 1, c.w, c.w}),
                                 type(DType::BF16, {1, 1, c.y, c.y}), type(DType::U8, {0})},
                                {{"strides", std::vector<int64_t>{c.stride, c.stride}},
                                 {"dilations", std::vector<int64_t>{1, 1}},
                                 {"low", std::vector<int64_t>{c.before, c.before}},
                                 {"groups", int64_t(1)},
                                 {"bias", int64_t(0)}}};
    const ConvPlan plan(ConvKind::Forward, ConvForwardCall{Call(invocation)}, DType::BF16);
    EXPECT_EQ(plan.after, std::vector<int64_t>(2, c.after));
  }
}

TEST(CudaConv, SeesOneDimensionAsTwo) {
  const Invocation invocation{
      "conv",
      {type(DType::F32, {2, 3, 9}), type(DType::F32, {4, 3, 3}), type(DType::F32, {2, 4, 7}), type(DType::U8, {0})},
      {{"strides", std::vector<int64_t>{1}},
       {"dilations", std::vector<int64_t>{1}},
       {"low", std::vector<int64_t>{0}},
       {"groups", int64_t(1)},
       {"bias", int64_t(0)}}};
  const ConvPlan plan(ConvKind::Forward, ConvForwardCall{Call(invocation)}, DType::F32);
  EXPECT_EQ(plan.x.dims, (std::vector<int64_t>{2, 3, 1, 9}));
  EXPECT_EQ(plan.w.dims, (std::vector<int64_t>{4, 3, 1, 3}));
  EXPECT_EQ(plan.strides, (std::vector<int64_t>{1, 1}));
  EXPECT_FALSE(plan.empty);
}

TEST(CudaElements, ColumnsMeetTheDataAsOnCpus) {
  const Shape data{4, 5, 6}, indices{3, 7, 2};
  const ElementSpace space(data, indices, 1);
  EXPECT_EQ(space.columns, 6);
  EXPECT_EQ(space.length, 7);
  EXPECT_EQ(space.dataLength, 5);
  EXPECT_EQ(space.dataStride, 6);
  EXPECT_EQ(space.indexStride, 2);
  EXPECT_EQ(space.column(3).data, 30 + 1); // [1, :, 1]
  EXPECT_EQ(space.column(3).indices, 14 + 1);
  EXPECT_EQ(ElementSpace(data, {3, 0, 2}, 1).columns, 0);
}

/// Masks of ones at [q, k] = 10 q + k, to see which was read.
struct SeenAt {
  bool isSeen(int64_t at) const { return at % 2 == 0; }
  double added(int64_t at) const { return double(at); }
};

TEST(CudaAttention, ScoresAreHiddenAndMasked) {
  Invocation invocation{"attention",
                        {type(DType::F64, {2, 4, 3, 8}), type(DType::F64, {2, 2, 5, 8}), type(DType::F64, {2, 2, 5, 6}),
                         type(DType::F64, {4, 1, 5}), type(DType::F64, {2, 4, 3, 6}), type(DType::F64, {2, 4, 3})},
                        {{"scale", 0.5}, {"causal", int64_t(1)}, {"mask", int64_t(1)}}};
  const AttentionSpace space(AttentionCall{Call(invocation)});
  EXPECT_EQ(space.groupOf(5), 2); // heads 4 and 5 of all are the second batch's first group
  EXPECT_EQ(space.score(4.0, SeenAt{}, 6, 2, 1), 2.0 + 2 * 5 + 1); // head 2 of its batch
  EXPECT_EQ(space.score(4.0, SeenAt{}, 6, 1, 2), -HUGE_VAL);       // causal
  EXPECT_EQ(space.score(4.0, SeenAt{}, 6, 3, 0), -HUGE_VAL);       // no such query
  EXPECT_EQ(space.score(4.0, SeenAt{}, 6, 2, 5), -HUGE_VAL);       // nor key
  invocation.operands[3].dtype = DType::Bool;
  const AttentionSpace hiding(AttentionCall{Call(invocation)});
  EXPECT_EQ(hiding.score(4.0, SeenAt{}, 0, 2, 2), 2.0);
  EXPECT_EQ(hiding.score(4.0, SeenAt{}, 0, 2, 1), -HUGE_VAL);
}

} // namespace

} // namespace ds::kernels::cuda::test
