#include "test/unit/kernels/Harness.h"

namespace ds::kernels::test {

namespace {

struct Product {
  Shape a, b, c;
  bool transA = false, transB = false, bias = false;
};

Attributes attributesOf(const Product &product) {
  return {{"trans_a", int64_t(product.transA)}, {"trans_b", int64_t(product.transB)}, {"bias", int64_t(product.bias)}};
}

std::vector<Buffer> operandsOf(Random &random, DType dtype, const Product &product, int64_t workspace) {
  std::vector<Buffer> operands = {random.buffer(dtype, product.a), random.buffer(dtype, product.b)};
  if (product.bias)
    operands.push_back(random.buffer(dtype, {product.c.back()}));
  operands.emplace_back(type(dtype, product.c));
  operands.emplace_back(type(DType::U8, {workspace}));
  return operands;
}

void check(uint64_t seed, const Product &product, int64_t workspace) {
  for (DType dtype : floatTypes) {
    Random random(seed);
    SCOPED_TRACE("a " + toString(product.a) + " b " + toString(product.b) + " workspace " + std::to_string(workspace));
    const double epsilon = dtype == DType::F32 ? 6e-8 : 1.2e-16;
    const double depth = double(product.a[product.a.size() - (product.transA ? 2 : 1)]) + 1;
    const Tolerance tolerance{0, 8 * epsilon * depth};
    expectMatchesReference("matmul", operandsOf(random, dtype, product, workspace), attributesOf(product),
                           {size_t(product.bias ? 3 : 2)}, tolerance);
  }
}

TEST(Matmul, EveryTransposeAndBias) {
  for (int64_t m : {0, 1, 5, 14, 33})
    for (int64_t n : {0, 1, 31, 32, 70})
      for (int64_t k : {0, 1, 17, 64})
        for (int bits = 0; bits < 8; ++bits) {
          const bool transA = bits & 1, transB = bits & 2, bias = bits & 4;
          const Product product{
              transA ? Shape{k, m} : Shape{m, k}, transB ? Shape{n, k} : Shape{k, n}, {m, n}, transA, transB, bias};
          check(uint64_t(m * 1000 + n * 10 + k), product, 1 << 20);
        }
}

TEST(Matmul, SharedBlocks) {
  check(1, {{300, 130}, {130, 600}, {300, 600}, false, false, true}, 8 << 20);
  check(2, {{130, 300}, {600, 130}, {300, 600}, true, true, false}, 8 << 20);
  check(3, {{64, 1500}, {1500, 80}, {64, 80}, false, false, true}, 8 << 20);  // more than one depth
  check(4, {{1100, 40}, {40, 64}, {1100, 64}, false, false, false}, 8 << 20); // more than one block of rows
  check(5, {{40, 33}, {33, 4200}, {40, 4200}, false, false, true}, 8 << 20);  // more than one block of columns
}

TEST(Matmul, AnyWorkspace) {
  for (int64_t workspace : {0, 1, 63, 1000, 33000, 40000, 100000, 300000})
    for (int bits = 0; bits < 4; ++bits) {
      const bool transA = bits & 1, transB = bits & 2;
      check(7,
            {transA ? Shape{200, 150} : Shape{150, 200},
             transB ? Shape{170, 200} : Shape{200, 170},
             {150, 170},
             transA,
             transB,
             true},
            workspace);
    }
}

/// Every form is right with what a plan reserves for it, and a product that fits on the stack gets nothing.
TEST(Matmul, PlannedWorkspace) {
  const Product products[] = {{{300, 130}, {130, 600}, {300, 600}, false, false, true},
                              {{130, 300}, {600, 130}, {300, 600}, true, true, false},
                              {{6, 70, 300}, {6, 300, 90}, {6, 70, 90}},
                              {{4, 33, 64}, {64, 192}, {4, 33, 192}},
                              {{4, 64, 33}, {64, 192}, {4, 33, 192}, true},
                              {{64, 64}, {64, 64}, {64, 64}},
                              {{1, 1}, {1, 1}, {1, 1}}};
  for (const Product &product : products)
    for (int workers : {1, 2, 8}) {
      const std::vector<TensorType> types = {type(DType::F32, product.a), type(DType::F32, product.b),
                                             type(DType::F32, product.c)};
      const int64_t bytes = workspaceBytes("matmul", types, {.workers = workers});
      EXPECT_LE(bytes, workers * (int64_t(4) << 20));
      check(uint64_t(workers), product, bytes);
    }
  EXPECT_EQ(workspaceBytes("matmul", std::vector<TensorType>(3, type(DType::F32, {16, 16})), {}), 0);
}

TEST(Matmul, BroadcastsLeadingDimensions) {
  check(11, {{3, 4, 5, 6}, {3, 4, 6, 7}, {3, 4, 5, 7}}, 1 << 20);
  check(12, {{3, 4, 5, 6}, {6, 7}, {3, 4, 5, 7}, false, false, true}, 1 << 20);
  check(13, {{3, 4, 6, 5}, {6, 7}, {3, 4, 5, 7}, true, false, true}, 1 << 20);
  check(14, {{5, 6}, {3, 4, 6, 7}, {3, 4, 5, 7}}, 1 << 20);
  check(15, {{3, 1, 5, 6}, {4, 6, 7}, {3, 4, 5, 7}}, 1 << 20);
  check(16, {{1, 4, 5, 6}, {3, 1, 7, 6}, {3, 4, 5, 7}, false, true}, 1 << 20);
  check(17, {{3, 1, 5, 6}, {1, 1, 6, 7}, {3, 1, 5, 7}}, 1 << 20);
  check(18, {{0, 5, 6}, {1, 6, 7}, {0, 5, 7}}, 1 << 20);
  check(19, {{6, 80, 64}, {6, 64, 90}, {6, 80, 90}}, 2 << 20);
  check(20, {{2, 300, 64}, {2, 64, 300}, {2, 300, 300}}, 2 << 20);
}

TEST(Matmul, RefusesWrongShapes) {
  Random random(1);
  const Product good{{4, 5}, {5, 6}, {4, 6}};
  const auto with = [&](const Product &product) {
    return invocationOf("matmul", operandsOf(random, DType::F32, product, 64), attributesOf(good));
  };
  expectRefused(with({{4, 5}, {6, 6}, {4, 6}}), "op(a) has 5 columns and op(b) 6 rows");
  expectRefused(with({{4, 5}, {5, 6}, {6, 4}}), "must have shape [4, 6]");
  expectRefused(with({{5}, {5, 6}, {6}}), "at least two dimensions");
  expectRefused(with({{2, 4, 5}, {3, 5, 6}, {3, 4, 6}}), "do not broadcast");
  Invocation invocation = with(good);
  invocation.attributes["trans_a"] = int64_t(2);
  expectRefused(invocation, "must be in [0, 1], not 2");
  invocation = with(good);
  invocation.attributes.erase("bias");
  expectRefused(invocation, "needs attribute 'bias'");
  invocation = with(good);
  invocation.operands[1].dtype = DType::F64;
  expectRefused(invocation, "must be float32, not float64");
  invocation = with(good);
  invocation.operands.pop_back();
  expectRefused(invocation, "takes 4 operands, not 3");
  invocation = with(good);
  invocation.operands[0].shape = {int64_t(1) << 40, int64_t(1) << 40};
  expectRefused(invocation, "impossible shape");
}

} // namespace

} // namespace ds::kernels::test
