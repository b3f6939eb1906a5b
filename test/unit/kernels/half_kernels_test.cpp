// Kernels on floats of 16 bits against the references, which compute in float32 and round once: on a GPU they are types
// of their own.
#include "kernels/Numbers.h"
#include "test/unit/kernels/Accelerator.h"
#include "test/unit/kernels/Program.h"

#include <array>

namespace ds::kernels::test {

namespace {

constexpr DType wide = DType::F32;

/// Runs `kernel` on random operands of `types`, the last `results` of which are written.
void check(const std::string &kernel, const std::vector<TensorType> &types, const Attributes &attributes,
           size_t results, Tolerance tolerance, CallContext context = {}) {
  SCOPED_TRACE(kernel + " " + toString(types[0].shape) + " to " + std::string(name(types.back().dtype)));
  Random random{types.size()};
  std::vector<Buffer> operands;
  std::vector<size_t> outputs;
  for (const TensorType &one : types)
    operands.push_back(random.buffer(one.dtype, one.shape));
  for (size_t i = types.size() - results; i < types.size(); ++i)
    outputs.push_back(i);
  operands = operandsOn(Device::Cpu, kernel, std::move(operands), attributes, 5); // the CPU's copies in float32
  expectMatchesReference(kernel, std::move(operands), attributes, outputs, tolerance, context);
}

/// Of each of the two types.
class HalfKernels : public testing::TestWithParam<DType> {
protected:
  const DType half = GetParam();
  const double lastPlace = half == DType::BF16 ? 0x1p-7 : 0x1p-10; ///< of 1
  /// Two results that were each rounded once differ by one last place at most.
  const Tolerance once{lastPlace, 1e-5};
};
INSTANTIATE_TEST_SUITE_P(Types, HalfKernels, testing::Values(DType::BF16, DType::F16),
                         [](const auto &test) { return std::string(name(test.param)); });

TEST_P(HalfKernels, Matmul) {
  for (const auto &[m, n, k] : std::vector<std::array<int64_t, 3>>{{1, 1, 1}, {5, 9, 67}, {33, 64, 128}, {2, 50257, 8}})
    for (int bits = 0; bits < 16; ++bits) {
      const bool transA = bits & 1, transB = bits & 2, bias = bits & 4;
      std::vector<TensorType> types = {{half, transA ? Shape{k, m} : Shape{m, k}},
                                       {half, transB ? Shape{n, k} : Shape{k, n}}};
      if (bias)
        types.push_back({half, {n}});
      types.push_back({bits & 8 ? wide : half, {m, n}}); // a residual stays float32, whatever its bias is
      check(
          "matmul", types,
          {{"trans_a", int64_t(transA)}, {"trans_b", int64_t(transB)}, {"bias", int64_t(bias)}, {"pieces", int64_t(2)}},
          1, {lastPlace, 1e-4});
    }
}

/// 257 is no number of bfloat16, nor 2049 of float16: a part of the sum that was kept in it would be 1 less.
TEST_P(HalfKernels, ProductsAreSummedInFloat32) {
  const int64_t odd = half == DType::BF16 ? 257 : 2049, k = 2 * odd;
  Buffer a(type(half, {1, k})), b(type(half, {k, 1}));
  for (int64_t i = 0; i < k; ++i) {
    storeDouble(a.data() + 2 * i, half, i < odd ? 1 : i < k - 1 ? -1 : 0);
    storeDouble(b.data() + 2 * i, half, 1);
  }
  const Attributes attributes = {
      {"trans_a", int64_t(0)}, {"trans_b", int64_t(0)}, {"bias", int64_t(0)}, {"pieces", int64_t(1)}};
  std::vector<Buffer> operands = operandsOn(Device::Cpu, "matmul", {a, b, Buffer(type(half, {1, 1}))}, attributes, 5);
  const std::vector<Buffer> after = expectMatchesReference("matmul", std::move(operands), attributes, {2}, {0, 0});
  EXPECT_EQ(after[2].at(0), 1);
}

TEST_P(HalfKernels, MatmulEpilogues) {
  Attributes attributes = {{"trans_a", int64_t(0)},
                           {"trans_b", int64_t(0)},
                           {"bias", int64_t(1)},
                           {"pieces", int64_t(1)},
                           {"epilogue", std::string("gelu_tanh")}};
  // aux is rounded before GELU here, after it there
  check("matmul", {{half, {7, 40}}, {half, {40, 64}}, {half, {64}}, {half, {7, 64}}, {half, {7, 64}}}, attributes, 2,
        {2 * lastPlace, 1e-3});
  attributes["epilogue"] = std::string("gelu_tanh_grad");
  attributes["bias"] = int64_t(0);
  check("matmul", {{half, {7, 40}}, {half, {40, 64}}, {half, {7, 64}}, {half, {7, 64}}}, attributes, 1,
        {2 * lastPlace, 0.2});
}

/// Attention of [1, heads, queries, depth], k and v of `groups` heads, and its gradients, with each kind of mask.
void checkAttention(DType half, double lastPlace, int64_t heads, int64_t groups, int64_t queries, int64_t depth) {
  for (const Shape &mask : {Shape{}, Shape{queries, queries}, Shape{1, 1, 1, queries}}) {
    const bool masked = !mask.empty();
    Random random{uint64_t(depth)};
    const Shape q = {1, heads, queries, depth}, k = {1, groups, queries, depth}, rows = {1, heads, queries};
    const Attributes attributes = {{"scale", 0.125}, {"causal", int64_t(!masked)}, {"mask", int64_t(masked)}};
    std::vector<Buffer> operands = {random.buffer(half, q), random.buffer(half, k), random.buffer(half, k)};
    if (masked)
      operands.push_back(random.buffer(half, mask));
    const size_t out = operands.size();
    operands.emplace_back(type(half, q));
    operands.emplace_back(type(wide, rows));
    std::vector<Buffer> forward =
        expectMatchesReference("attention", operands, attributes, {out, out + 1}, {2 * lastPlace, 1e-3});
    forward.erase(forward.begin() + long(out) + 2, forward.end());
    forward.insert(forward.begin(), random.buffer(half, q));
    for (const Shape &shape : {q, k, k})
      forward.emplace_back(type(half, shape));
    expectMatchesReference("attention_grad", forward, attributes, {out + 3, out + 4, out + 5}, {2 * lastPlace, 2e-3});
  }
}

TEST_P(HalfKernels, AttentionAndItsGradients) {
  checkAttention(half, lastPlace, 2, 2, 40, 64);
  checkAttention(half, lastPlace, 4, 2, 33, 128);
  checkAttention(half, lastPlace, 2, 1, 6, 8);
}

/// A head's size is a multiple of 8 for cuDNN: on a GPU our own kernels run others, which DS_CUDA_STRICT=1 refuses.
TEST_P(HalfKernels, AttentionOfOddHeadsIsOurOwn) {
  if (Accelerator *gpu = Accelerator::instance()) {
    const Strictly strictly(true);
    const TensorType q{half, {1, 2, 5, 7}}, k{half, {1, 1, 5, 7}}, lse{wide, {1, 2, 5}};
    const Attributes attributes = {{"scale", 0.125}, {"causal", int64_t(1)}, {"mask", int64_t(0)}};
    Invocation backward{"attention_grad", {q, q, k, k, q, lse, q, k, k}, attributes};
    backward.operands.push_back({DType::U8, {workspaceBytes(backward, {.device = gpu->device()})}});
    for (const Invocation &call : {Invocation{"attention", {q, k, k, q, lse}, attributes}, backward})
      try {
        (void)gpu->kernels().find(call.kernel)(call, {});
        ADD_FAILURE() << call.kernel << " was not refused";
      } catch (const Error &error) {
        EXPECT_EQ(error.what(), "kernel '" + call.kernel + "' in " + std::string(name(half)) +
                                    ": cuDNN has nothing for it, first for an operand of shape [1, 2, 5, 7]; without "
                                    "DS_CUDA_STRICT=1 our own slower kernel runs it");
      }
  }
  const Strictly leniently(false);
  checkAttention(half, lastPlace, 2, 1, 5, 7);
}

TEST_P(HalfKernels, NormsSoftmaxAndLosses) {
  const Attributes epsilon = {{"epsilon", 1e-5}}, axis = {{"axis", int64_t(1)}};
  for (const auto &[rows, cols] :
       std::vector<std::array<int64_t, 2>>{{1, 1}, {5, 33}, {3, 768}, {40, 1030}, {35, 264}, {2, 2312}, {2, 16400}}) {
    const TensorType x{half, {rows, cols}}, r{wide, {rows}}, c{wide, {cols}};
    check("layer_norm", {x, c, c, x, r, r}, epsilon, 3, {2 * lastPlace, 1e-3});
    check("rms_norm", {x, c, x, r}, epsilon, 2, {2 * lastPlace, 1e-3});
    check("layer_norm_grad", {x, x, c, r, r, x, c, c}, {}, 3, {2 * lastPlace, 0.02});
    check("rms_norm_grad", {x, x, c, r, x, c}, {}, 2, {2 * lastPlace, 0.02});
    const Attributes residual = {{"residual", int64_t(1)}};
    const Attributes ofSum = {{"epsilon", 1e-5}, {"residual", int64_t(1)}, {"rounded", int64_t(1)}};
    const TensorType sum{wide, {rows, cols}};
    check("layer_norm", {x, c, c, sum, x, r, r, sum, x}, ofSum, 4, {4 * lastPlace, 2 * lastPlace});
    check("rms_norm", {x, c, sum, x, r, sum, x}, ofSum, 3, {4 * lastPlace, 2 * lastPlace});
    check("layer_norm_grad", {x, x, c, r, r, x, x, c, c}, residual, 3, {2 * lastPlace, 0.02});
    check("rms_norm_grad", {x, x, c, r, x, x, c}, residual, 2, {2 * lastPlace, 0.02});
    check("softmax", {x, x}, axis, 1, once);
    check("softmax", {x, x}, {{"axis", int64_t(0)}}, 1, once);
    check("log_softmax", {x, x}, axis, 1, once);
    check("softmax_grad", {x, x, x}, axis, 1, {2 * lastPlace, 0.05});
    check("log_softmax_grad", {x, x, x}, {{"axis", int64_t(0)}}, 1, {2 * lastPlace, 0.05});
  }
  const TensorType images{half, {3, 4, 5, 5}}, channels{wide, {4}};
  check("batch_norm", {images, channels, channels, images, channels, channels, channels}, epsilon, 4,
        {2 * lastPlace, 1e-3});
  check("batch_norm_grad", {images, images, channels, channels, channels, images, channels, channels}, {}, 3,
        {2 * lastPlace, 0.02});
  for (int64_t classes : {3, 1000, 16392, 50257}) {
    Random random{uint64_t(classes)};
    const Attributes mean = {{"ignore_index", int64_t(-100)}, {"reduction", std::string("mean")}};
    const std::vector<Buffer> forward =
        expectMatchesReference("cross_entropy",
                               {random.buffer(half, {4, classes}),
                                Buffer(type(DType::I64, {4}), std::vector<int64_t>{1, classes - 1, -100, 0}),
                                Buffer(type(wide, {})), Buffer(type(wide, {4}))},
                               mean, {2, 3}, {1e-5, 1e-5});
    expectMatchesReference("cross_entropy_grad",
                           {forward[0], forward[1], forward[3], Buffer(type(wide, {}), std::vector<float>{0.25f}),
                            Buffer(type(half, {4, classes}))},
                           mean, {4}, {lastPlace, 1e-7});
    expectMatchesReference("cross_entropy_with_grad",
                           {forward[0], forward[1], Buffer(type(wide, {}), std::vector<float>{0.25f}), forward[2],
                            forward[3], Buffer(type(half, {4, classes}))},
                           mean, {3, 4, 5}, {lastPlace, 1e-5});
  }
}

TEST_P(HalfKernels, ReductionsAndSearches) {
  for (const auto &[x, y, axes] : std::vector<std::array<Shape, 3>>{{Shape{300, 7}, {7}, {0}},
                                                                    {Shape{7, 300}, {7}, {1}},
                                                                    {Shape{5, 6, 40}, {6}, {0, 2}},
                                                                    {Shape{70000}, {}, {0}}}) {
    for (const char *kernel : {"reduce_sum", "reduce_mean"})
      for (DType result : {half, wide})
        check(kernel, {{half, x}, {result, y}}, {{"axes", axes}}, 1, {lastPlace, 0.002});
    check("reduce_max", {{half, x}, {half, y}}, {{"axes", axes}}, 1, {});
  }
  for (int64_t axis : {0, 1}) {
    const Shape x = {13, 300};
    check("cumsum", {{half, x}, {half, x}}, {{"axis", axis}, {"exclusive", int64_t(0)}, {"reverse", int64_t(1)}}, 1,
          once);
    check("arg_max", {{half, x}, {DType::I64, {x[size_t(1 - axis)]}}}, {{"axis", axis}, {"last", int64_t(1)}}, 1, {});
  }
  check("top_k", {{half, {3, 300}}, {half, {3, 5}}, {DType::I64, {3, 5}}}, {{"smallest", int64_t(0)}}, 2, {});
}

/// By the path of floats, and by that of all types where one of the steps is of an integer.
TEST_P(HalfKernels, EveryOpcode) {
  Random random{9};
  const Buffer x = random.buffer(half, {5, 300}, 2), y = random.buffer(half, {300}, 2);
  for (const DType count : {wide, DType::I64})
    for (int64_t number = 10; number <= 69; ++number) {
      const Op op = Op(number);
      const bool comparison = op >= Op::Equal && op <= Op::GreaterEqual,
                 binary = (op >= Op::Add && op <= Op::Min) || comparison;
      if ((!binary && op < Op::Neg) || op == Op::Not)
        continue;
      SCOPED_TRACE("opcode " + std::to_string(number) + " beside " + std::string(name(count)));
      const DType result = comparison || op == Op::IsNan ? DType::Bool : half;
      Program program{2};
      const int64_t made = program.add(op, result, 0, binary ? 1 : -1);
      program.results = {made, program.add(Op::Cast, count, program.add(Op::Less, DType::Bool, 0, 1))};
      check({x, y}, program, {result, count}, {5, 300}, once);
    }
}

TEST_P(HalfKernels, MovementsAndDraws) {
  check("transpose", {{half, {5, 37, 41}}, {half, {5, 41, 37}}}, {{"perm", Shape{0, 2, 1}}}, 1, {});
  check("slice", {{half, {7, 9}}, {half, {3, 4}}}, {{"starts", Shape{1, 0}}, {"steps", Shape{2, 2}}}, 1, {});
  check("pad", {{half, {3, 4}}, {half, {3, 7}}}, {{"low", Shape{0, 1}}, {"interior", Shape{0, 0}}, {"value", 0.5}}, 1,
        {});
  check("concat", {{half, {3, 4}}, {half, {2, 4}}, {half, {5, 4}}}, {{"axis", int64_t(0)}}, 1, {});
  check("dropout", {{half, {5003}}, {half, {5003}}}, {{"ratio", 0.25}, {"op_id", int64_t(3)}}, 1, once,
        {.seed = 7, .step = 11, .microbatch = 5});
  Random random{1};
  const Buffer rows(type(DType::I64, {4}), std::vector<int64_t>{2, -3, 0, 2});
  for (int64_t inner : {1, 5, 8, 130}) {
    expectMatchesReference("gather", {random.buffer(half, {3, inner}), rows, Buffer(type(half, {4, inner}))},
                           {{"axis", int64_t(0)}}, {2}, {});
    for (DType sums : {half, wide})
      expectMatchesReference("gather_grad", {random.buffer(half, {4, inner}), rows, Buffer(type(sums, {3, inner}))},
                             {{"axis", int64_t(0)}}, {2}, once);
  }
}

TEST_P(HalfKernels, ConvolutionsAndPools) {
  const Shape x = {2, 3, 8, 8}, w = {5, 3, 3, 3}, y = {2, 5, 8, 8}, pooled = {2, 3, 4, 4};
  const Attributes window = {
      {"strides", Shape{1, 1}}, {"dilations", Shape{1, 1}}, {"low", Shape{1, 1}}, {"groups", int64_t(1)}};
  const Attributes pool = {
      {"window", Shape{2, 2}}, {"strides", Shape{2, 2}}, {"dilations", Shape{1, 1}}, {"low", Shape{0, 0}}};
  Attributes forward = window;
  forward["bias"] = int64_t(0);
  check("conv", {{half, x}, {half, w}, {half, y}}, forward, 1, {lastPlace, 1e-3});
  forward["bias"] = int64_t(1); // added to a result that was rounded
  check("conv", {{half, x}, {half, w}, {half, {5}}, {half, y}}, forward, 1, {2 * lastPlace, 0.1});
  check("conv_input_grad", {{half, y}, {half, w}, {half, x}}, window, 1, {lastPlace, 1e-3});
  check("conv_weight_grad", {{half, y}, {half, x}, {wide, w}}, window, 1, {1e-5, 1e-4});
  check("max_pool", {{half, x}, {half, pooled}}, pool, 1, {});
  check("average_pool", {{half, x}, {half, pooled}}, pool, 1, once);
  check("max_pool_grad", {{half, pooled}, {half, x}, {half, x}}, pool, 1, once);
  check("average_pool_grad", {{half, pooled}, {half, x}}, pool, 1, once);
}

} // namespace

} // namespace ds::kernels::test
