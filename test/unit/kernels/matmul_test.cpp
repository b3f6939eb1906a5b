#include "test/unit/kernels/Harness.h"

namespace ds::kernels::test {

namespace {

struct Product {
  Shape a, b, c;
  bool transA = false, transB = false, bias = false;
  int64_t pieces = 2;
};

Attributes attributesOf(const Product &product) {
  return {{"trans_a", int64_t(product.transA)},
          {"trans_b", int64_t(product.transB)},
          {"bias", int64_t(product.bias)},
          {"pieces", product.pieces}};
}

std::vector<Buffer> operandsOf(Random &random, DType dtype, const Product &product) {
  std::vector<Buffer> operands = {random.buffer(dtype, product.a), random.buffer(dtype, product.b)};
  if (product.bias)
    operands.push_back(random.buffer(dtype, {product.c.back()}));
  operands.emplace_back(type(dtype, product.c));
  return operands;
}

void check(uint64_t seed, const Product &product) {
  for (DType dtype : floatTypes) {
    Random random(seed);
    SCOPED_TRACE("a " + toString(product.a) + " b " + toString(product.b));
    const double epsilon = dtype == DType::F32 ? 6e-8 : 1.2e-16;
    const double depth = double(product.a[product.a.size() - (product.transA ? 2 : 1)]) + 1;
    const Tolerance tolerance{0, 8 * epsilon * depth};
    expectMatchesReference("matmul", operandsOf(random, dtype, product), attributesOf(product),
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
          check(uint64_t(m * 1000 + n * 10 + k), product);
        }
}

TEST(Matmul, SeveralPieces) {
  check(1, {{300, 130}, {130, 1600}, {300, 1600}, false, false, true});
  check(2, {{130, 300}, {800, 130}, {300, 800}, true, true, false});
  check(3, {{64, 1500}, {1500, 80}, {64, 80}, false, false, true}); // a long sum
  check(4, {{40, 1100}, {40, 64}, {1100, 64}, true, false, true});
  check(5, {{40, 33}, {33, 2200}, {40, 2200}, false, false, true});
  for (int64_t pieces : {1, 3, 7, 16, 4096}) { // 7 does not divide, 4096 would be smaller than a piece may be
    check(6, {{300, 130}, {130, 700}, {300, 700}, false, false, true, pieces});
    check(7, {{3, 70, 40}, {3, 40, 200}, {3, 70, 200}, false, false, false, pieces});
  }
  check(8, {{8, 3}, {3, 500000}, {8, 500000}}); // more than one round of pieces
}

TEST(Matmul, BroadcastsLeadingDimensions) {
  check(11, {{3, 4, 5, 6}, {3, 4, 6, 7}, {3, 4, 5, 7}});
  check(12, {{3, 4, 5, 6}, {6, 7}, {3, 4, 5, 7}, false, false, true});
  check(13, {{3, 4, 6, 5}, {6, 7}, {3, 4, 5, 7}, true, false, true});
  check(14, {{5, 6}, {3, 4, 6, 7}, {3, 4, 5, 7}});
  check(15, {{3, 1, 5, 6}, {4, 6, 7}, {3, 4, 5, 7}});
  check(16, {{1, 4, 5, 6}, {3, 1, 7, 6}, {3, 4, 5, 7}, false, true});
  check(17, {{3, 1, 5, 6}, {1, 1, 6, 7}, {3, 1, 5, 7}});
  check(18, {{0, 5, 6}, {1, 6, 7}, {0, 5, 7}});
  check(19, {{6, 80, 64}, {6, 64, 90}, {6, 80, 90}});
  check(20, {{2, 300, 64}, {2, 64, 300}, {2, 300, 300}});
}

/// `product` with epilogue `name`: c = gelu_tanh(r), aux = r; or c = r * gelu_tanh'(aux).
void checkEpilogue(uint64_t seed, const Product &product, const std::string &name) {
  for (DType dtype : floatTypes) {
    Random random(seed);
    SCOPED_TRACE(name + ", a " + toString(product.a));
    const bool grad = name == "gelu_tanh_grad";
    std::vector<Buffer> operands = operandsOf(random, dtype, product);
    if (grad)
      operands.insert(operands.end() - 1, random.buffer(dtype, product.c));
    else
      operands.emplace_back(type(dtype, product.c));
    Attributes attributes = attributesOf(product);
    attributes["epilogue"] = name;
    const double epsilon = dtype == DType::F32 ? 6e-8 : 1.2e-16;
    const double depth = double(product.a.back() + product.a[product.a.size() - 2] + elementCount(product.c));
    std::vector<size_t> written = {operands.size() - 1};
    if (!grad)
      written.push_back(operands.size() - 2); // c, before aux
    expectMatchesReference("matmul", operands, attributes, written, {8 * epsilon, 8 * epsilon * depth});
  }
}

TEST(Matmul, Epilogues) {
  const Product plain{{70, 33}, {33, 130}, {70, 130}}, biased{{70, 33}, {33, 130}, {70, 130}, false, false, true},
      batched{{3, 20, 9}, {17, 9}, {3, 20, 17}, false, true}, empty{{0, 5}, {5, 6}, {0, 6}};
  for (const Product &product : {plain, batched, empty})
    for (const char *name : {"gelu_tanh", "gelu_tanh_grad"})
      checkEpilogue(21, product, name);
  checkEpilogue(22, biased, "gelu_tanh");
}

TEST(Matmul, RefusesWrongEpilogues) {
  Random random(1);
  const Product product{{4, 5}, {5, 6}, {4, 6}}, biased{{4, 5}, {5, 6}, {4, 6}, false, false, true};
  Invocation invocation = invocationOf("matmul", operandsOf(random, DType::F32, product), attributesOf(product));
  invocation.attributes["epilogue"] = std::string("relu");
  expectRefused(invocation, "attribute 'epilogue' must be gelu_tanh or gelu_tanh_grad, not 'relu'");
  invocation.attributes["epilogue"] = std::string("gelu_tanh");
  expectRefused(invocation, "takes 4 operands, not 3");
  invocation.operands.push_back(type(DType::F32, {6, 4}));
  expectRefused(invocation, "operand 3 (aux) must have shape [4, 6], not [6, 4]");
  invocation = invocationOf("matmul", operandsOf(random, DType::F32, biased), attributesOf(biased));
  invocation.attributes["epilogue"] = std::string("gelu_tanh_grad");
  invocation.operands.push_back(invocation.operands.back());
  expectRefused(invocation, "epilogue gelu_tanh_grad takes no bias");
}

TEST(Matmul, RefusesWrongShapes) {
  Random random(1);
  const Product good{{4, 5}, {5, 6}, {4, 6}};
  const auto with = [&](const Product &product) {
    return invocationOf("matmul", operandsOf(random, DType::F32, product), attributesOf(good));
  };
  expectRefused(with({{4, 5}, {6, 6}, {4, 6}}), "op(a) has 5 columns and op(b) 6 rows");
  expectRefused(with({{4, 5}, {5, 6}, {6, 4}}), "must have shape [4, 6]");
  expectRefused(with({{5}, {5, 6}, {6}}), "at least two dimensions");
  expectRefused(with({{2, 4, 5}, {3, 5, 6}, {3, 4, 6}}), "do not broadcast");
  Invocation invocation = with(good);
  invocation.attributes["trans_a"] = int64_t(2);
  expectRefused(invocation, "must be 0 or 1, not 2");
  for (int64_t pieces : {0, 4097}) {
    invocation.attributes["trans_a"] = int64_t(0);
    invocation.attributes["pieces"] = pieces;
    expectRefused(invocation, "attribute pieces is " + std::to_string(pieces) + ", but 1 to 4096 is allowed");
  }
  invocation = with(good);
  invocation.attributes.erase("bias");
  expectRefused(invocation, "needs attribute 'bias'");
  invocation = with(good);
  invocation.operands[1].dtype = DType::F64;
  expectRefused(invocation, "must be float32, not float64");
  invocation = with(good);
  invocation.operands.pop_back();
  expectRefused(invocation, "takes 3 operands, not 2");
  invocation = with(good);
  invocation.operands[0].shape = {int64_t(1) << 40, int64_t(1) << 40};
  expectRefused(invocation, "impossible shape");
}

} // namespace

} // namespace ds::kernels::test
