#include "test/unit/kernels/DrawnCalls.h"

#include "kernels/Call.h"
#include "kernels/ElementwiseProgram.h"
#include "kernels/Float8.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

namespace ds::kernels::test {

namespace {

constexpr DType F64 = DType::F64;

/// Draws what calls are made of.
class Draw {
public:
  explicit Draw(Random &random) : random(random) {}

  bool flag() { return random.below(2) == 1; }
  int64_t size() { return 4 + 2 * random.below(2); }
  Shape sizes(int64_t rank) {
    Shape shape(size_t(rank), 0);
    std::ranges::generate(shape, [&] { return size(); });
    return shape;
  }
  double number() { return 0.1 + 0.8 * double(random.below(1000)) / 1000; }
  Buffer in(Shape shape) { return random.buffer(F64, shape); }
  Buffer out(Shape shape) { return Buffer(type(F64, std::move(shape))); }
  Buffer positive(const Shape &shape) {
    Buffer buffer = in(shape);
    for (int64_t i = 0; i < elementCount(shape); ++i)
      buffer.as<double>()[i] = 0.1 + std::abs(buffer.as<double>()[i]);
    return buffer;
  }
  /// Integers from `low` to `high` - 1.
  Buffer indices(const Shape &shape, int64_t low, int64_t high) {
    Buffer buffer(type(DType::I64, shape));
    for (int64_t i = 0; i < elementCount(shape); ++i)
      buffer.as<int64_t>()[i] = low + random.below(high - low);
    return buffer;
  }
  /// A shape that broadcasts to `to`.
  Shape narrower(Shape to) {
    for (int64_t &size : to)
      size = random.below(3) == 0 ? 1 : size;
    to.erase(to.begin(), to.begin() + random.below(int64_t(to.size()) + 1));
    return to;
  }
  /// The sizes of both.
  static Shape joined(Shape a, const Shape &b) {
    a.insert(a.end(), b.begin(), b.end());
    return a;
  }

  Random &random;
};

using Operands = std::vector<Buffer>;
using Drawn = DrawnCall;

Drawn elementwise(Draw &draw, const std::string &) {
  const Shape shape = draw.sizes(1 + draw.random.below(4));
  const auto f64 = int64_t(F64);
  const std::vector<int64_t> program = {int64_t(ElementwiseOp::Mul),  f64, 0, 1,  -1, // register 3
                                        int64_t(ElementwiseOp::Add),  f64, 3, 2,  -1, // 4
                                        int64_t(ElementwiseOp::Tanh), f64, 4, -1, -1};
  return {
      "elementwise",
      {draw.in(shape), draw.in(draw.narrower(shape)), draw.in(draw.narrower(shape)), draw.out(shape), draw.out(shape)},
      {{"program", program}, {"constants", std::vector<double>{}}, {"results", std::vector<int64_t>{4, 5}}}};
}

Drawn matmul(Draw &draw, const std::string &) {
  const Shape batch = draw.sizes(draw.random.below(3));
  const int64_t m = draw.size(), n = draw.size(), k = draw.size();
  const bool transA = draw.flag(), transB = draw.flag();
  const bool isFull = draw.flag(); // which factor has all of the batch
  const std::string epilogue =
      std::vector<std::string>{"", "", "gelu_tanh", "gelu_tanh_grad"}[size_t(draw.random.below(4))];
  const bool isGradient = epilogue == "gelu_tanh_grad", bias = !isGradient && draw.flag();
  const Shape c = Draw::joined(batch, {m, n}), few = draw.narrower(batch);
  Operands operands = {draw.in(Draw::joined(isFull ? batch : few, transA ? Shape{k, m} : Shape{m, k})),
                       draw.in(Draw::joined(isFull ? few : batch, transB ? Shape{n, k} : Shape{k, n}))};
  if (bias)
    operands.push_back(draw.in({n}));
  if (isGradient)
    operands.push_back(draw.in(c));
  operands.push_back(draw.out(c));
  if (epilogue == "gelu_tanh")
    operands.push_back(draw.out(c));
  return {"matmul",
          std::move(operands),
          {{"trans_a", int64_t(transA)},
           {"trans_b", int64_t(transB)},
           {"bias", int64_t(bias)},
           {"pieces", int64_t(1)},
           {"epilogue", epilogue}}};
}

Drawn linearWeightGrad(Draw &draw, const std::string &kernel) {
  const int64_t rows = draw.size(), n = draw.size(), m = draw.size();
  const bool transposed = draw.flag();
  return {kernel,
          {draw.in({rows, n}), draw.in({rows, m}), draw.out(transposed ? Shape{n, m} : Shape{m, n}), draw.out({n})},
          {{"transposed", int64_t(transposed)}, {"pieces", int64_t(1)}}};
}

/// Scales of codes [lines, depth], drawn powers of two, by which float32 multiplies without rounding.
Buffer fp8Scales(Draw &draw, Float8Block block, int64_t lines, int64_t depth) {
  const Float8Scales scales{block, lines, depth};
  Buffer buffer(type(DType::F32, block == Float8Block::Tensor ? Shape{} : Shape{scales.rows(), scales.cols()}));
  for (int64_t i = 0; i < scales.count(); ++i)
    buffer.as<float>()[i] = draw.flag() ? 0.5F : 2;
  return buffer;
}

std::string blockName(Float8Block block) { return block == Float8Block::Line ? "1x128" : "128x128"; }

Drawn quantizeFp8(Draw &draw, const std::string &kernel) {
  const Shape x = draw.sizes(2);
  const bool transposed = draw.flag();
  const auto block = Float8Block(draw.random.below(3));
  const Shape q = transposed ? Shape{x[1], x[0]} : x;
  Attributes attributes = {{"format", std::string(draw.flag() ? "e4m3" : "e5m2")}, {"transposed", int64_t(transposed)}};
  if (block != Float8Block::Tensor)
    attributes["block"] = blockName(block);
  return {kernel,
          {draw.random.buffer(DType::F32, x), Buffer(type(DType::U8, q)), fp8Scales(draw, block, q[0], q[1])},
          std::move(attributes)};
}

/// Of small integers, whose sums float32 has in any order; more than one block of 128 where there are blocks.
Drawn fp8Matmul(Draw &draw, const std::string &kernel) {
  using enum Float8Block;
  static constexpr Float8Block blocks[][2] = {{Tensor, Tensor}, {Line, Line}, {Line, Square}, {Square, Line}};
  const auto [aBlock, bBlock] = blocks[draw.random.below(4)];
  const int64_t m = draw.size(), n = draw.size(), k = draw.size() * (aBlock == Tensor ? 1 : 33);
  const Float8 bFormat = draw.flag() ? Float8::E4M3 : Float8::E5M2;
  const bool bias = draw.flag();
  const auto codes = [&](Float8 format, int64_t rows) {
    Buffer buffer(type(DType::U8, {rows, k}));
    for (int64_t i = 0; i < rows * k; ++i)
      buffer.as<uint8_t>()[i] = float8Bits(format, float(draw.random.below(9) - 4));
    return buffer;
  };
  Operands operands = {codes(Float8::E4M3, m), fp8Scales(draw, aBlock, m, k), codes(bFormat, n),
                       fp8Scales(draw, bBlock, n, k)};
  if (bias)
    operands.push_back(draw.random.buffer(DType::F32, {n}));
  operands.push_back(Buffer(type(DType::F32, {m, n})));
  Attributes attributes = {{"a_format", std::string("e4m3")},
                           {"b_format", std::string(bFormat == Float8::E4M3 ? "e4m3" : "e5m2")},
                           {"bias", int64_t(bias)},
                           {"pieces", int64_t(1)}};
  if (aBlock != Tensor) {
    attributes["a_block"] = blockName(aBlock);
    attributes["b_block"] = blockName(bBlock);
  }
  return {kernel, std::move(operands), std::move(attributes)};
}

/// A mask that broadcasts to `scores`; a bool hides few keys.
Buffer mask(Draw &draw, Shape scores) {
  if (draw.flag())
    return draw.in(draw.narrower(scores));
  Buffer hidden(type(DType::Bool, scores));
  for (int64_t i = 0; i < elementCount(scores); ++i)
    hidden.as<bool>()[i] = draw.random.below(8) > 0;
  return hidden;
}

Drawn attention(Draw &draw, const std::string &kernel) {
  const int64_t b = draw.size(), g = draw.size(), heads = g * (1 + draw.random.below(2) * 3), d = draw.size();
  const int64_t e = draw.size(), queries = draw.size(), keys = 2 + draw.size();
  const bool bshd = draw.flag(), masked = draw.flag();
  const auto shape = [&](int64_t count, int64_t rows, int64_t width) {
    return bshd ? Shape{b, rows, count, width} : Shape{b, count, rows, width};
  };
  const Shape q = shape(heads, queries, d), k = shape(g, keys, d), v = shape(g, keys, e),
              out = shape(heads, queries, e);
  const bool isGradient = kernel == "attention_grad";
  Operands operands;
  if (isGradient)
    operands.push_back(draw.in(out));
  for (const Shape &read : {q, k, v})
    operands.push_back(draw.in(read));
  if (masked)
    operands.push_back(mask(draw, {b, heads, queries, keys}));
  if (isGradient) {
    operands.push_back(draw.in(out));
    operands.push_back(draw.in({b, heads, queries}));
    for (const Shape &written : {q, k, v})
      operands.push_back(draw.out(written));
  } else {
    operands.push_back(draw.out(out));
    operands.push_back(draw.out({b, heads, queries}));
  }
  return {kernel,
          std::move(operands),
          {{"scale", 0.5}, {"causal", int64_t(draw.flag())}, {"mask", int64_t(masked)}, {"bshd", int64_t(bshd)}}};
}

Drawn packedAttention(Draw &draw, const std::string &kernel) {
  const int64_t b = draw.size(), rows = 2 + draw.size(), g = draw.size(), heads = g * (1 + draw.random.below(2));
  const int64_t d = draw.size();
  const bool masked = draw.flag();
  const Shape qkv = {b, rows, heads + 2 * g, d}, out = {b, rows, heads, d}, lse = {b, heads, rows};
  const bool isGradient = kernel == "packed_attention_grad";
  Operands operands;
  if (isGradient)
    operands.push_back(draw.in(out));
  operands.push_back(draw.in(qkv));
  if (masked)
    operands.push_back(mask(draw, {b, heads, rows, rows}));
  operands.push_back(isGradient ? draw.in(out) : draw.out(out));
  operands.push_back(isGradient ? draw.in(lse) : draw.out(lse));
  if (isGradient)
    operands.push_back(draw.out(qkv));
  return {kernel, std::move(operands), {{"scale", 0.5}, {"causal", int64_t(draw.flag())}, {"mask", int64_t(masked)}}};
}

Drawn transpose(Draw &draw, const std::string &kernel) {
  const Shape x = draw.sizes(1 + draw.random.below(4));
  std::vector<int64_t> perm(x.size());
  std::iota(perm.begin(), perm.end(), 0);
  std::ranges::shuffle(perm, draw.random.engine);
  Shape y;
  for (int64_t axis : perm)
    y.push_back(x[size_t(axis)]);
  return {kernel, {draw.in(x), draw.out(y)}, {{"perm", perm}}};
}

/// slice takes a part of some dimensions; pad puts x somewhere.
Drawn moved(Draw &draw, const std::string &kernel) {
  const bool isPad = kernel == "pad";
  Shape small = draw.sizes(1 + draw.random.below(3)), large = small;
  std::vector<int64_t> starts(small.size()), steps(small.size(), isPad ? 0 : 1);
  for (size_t d = 0; d < small.size(); ++d)
    if (draw.flag()) {
      starts[d] = draw.random.below(3);
      const int64_t step = 1 + draw.random.below(2);
      steps[d] = step - isPad;
      large[d] = starts[d] + (small[d] - 1) * step + 1 + draw.random.below(3);
    }
  if (isPad)
    return {kernel, {draw.in(small), draw.out(large)}, {{"low", starts}, {"interior", steps}, {"value", 0.25}}};
  return {kernel, {draw.in(large), draw.out(small)}, {{"starts", starts}, {"steps", steps}}};
}

Drawn concat(Draw &draw, const std::string &kernel) {
  Shape y = draw.sizes(1 + draw.random.below(3));
  const size_t axis = size_t(draw.random.below(int64_t(y.size())));
  y[axis] = 0;
  Operands operands;
  for (int64_t left = 1 + draw.random.below(3); left > 0; --left) {
    Shape x = y;
    x[axis] = draw.size();
    y[axis] += x[axis];
    operands.push_back(draw.in(x));
  }
  operands.push_back(draw.out(y));
  return {kernel, std::move(operands), {{"axis", int64_t(axis)}}};
}

Drawn reduce(Draw &draw, const std::string &kernel) {
  const Shape x = draw.sizes(1 + draw.random.below(4));
  const bool isKept = draw.flag();
  std::vector<int64_t> axes;
  Shape y;
  for (size_t d = 0; d < x.size(); ++d) {
    const bool isReduced = draw.flag();
    if (isReduced)
      axes.push_back(int64_t(d));
    if (!isReduced || isKept)
      y.push_back(isReduced ? 1 : x[d]);
  }
  const DType dtype = kernel == "reduce_sum" && draw.random.below(4) == 0 ? DType::I64 : F64;
  return {kernel, {draw.random.buffer(dtype, x), Buffer(type(dtype, y))}, {{"axes", axes}}};
}

/// All operands have one shape.
Drawn alongAxis(Draw &draw, const std::string &kernel) {
  const Shape shape = draw.sizes(1 + draw.random.below(3));
  Operands operands = {draw.in(shape)};
  if (kernel.ends_with("_grad"))
    operands.push_back(draw.in(shape));
  operands.push_back(draw.out(shape));
  Attributes attributes = {{"axis", draw.random.below(int64_t(shape.size()))}};
  if (kernel == "cumsum") {
    attributes["exclusive"] = int64_t(draw.flag());
    attributes["reverse"] = int64_t(draw.flag());
  }
  return {kernel, std::move(operands), std::move(attributes)};
}

Drawn norm(Draw &draw, const std::string &kernel) {
  const Shape x = draw.sizes(2 + draw.random.below(2)), cols = {x.back()};
  Shape rows(x.begin(), x.end() - 1);
  if (draw.flag())
    rows = {elementCount(rows)};
  const bool isLayer = kernel.starts_with("layer"), residual = draw.flag();
  if (!kernel.ends_with("_grad")) {
    Operands operands = {draw.in(x), draw.in(cols)};
    if (isLayer)
      operands.push_back(draw.in(cols));
    if (residual)
      operands.push_back(draw.in(x));
    operands.push_back(draw.out(x));
    for (int statistic = 0; statistic < 1 + isLayer; ++statistic)
      operands.push_back(draw.out(rows));
    const bool rounded = residual && draw.flag();
    for (int sums = 0; sums < residual + rounded; ++sums)
      operands.push_back(draw.out(x));
    return {kernel,
            std::move(operands),
            {{"epsilon", 1e-5}, {"residual", int64_t(residual)}, {"rounded", int64_t(rounded)}}};
  }
  Operands operands = {draw.in(x), draw.in(x), draw.in(cols)};
  for (int statistic = 0; statistic < 1 + isLayer; ++statistic)
    operands.push_back(draw.in(rows));
  if (residual)
    operands.push_back(draw.in(x));
  operands.push_back(draw.out(x));
  for (int sums = 0; sums < 1 + isLayer; ++sums)
    operands.push_back(draw.out(cols));
  return {kernel, std::move(operands), {{"residual", int64_t(residual)}}};
}

/// How windows of `window` elements move over `in`; `out` results.
struct Windows {
  Shape in, window, out;
  Attributes attributes;
};
Windows windows(Draw &draw) {
  Windows result;
  std::vector<int64_t> strides, dilations, low;
  const int64_t rank = 1 + draw.random.below(2);
  for (int64_t d = 0; d < rank; ++d) {
    const bool isApart = draw.flag();
    const int64_t stride = 1 + draw.random.below(3), dilation = isApart ? 1 : 1 + draw.random.below(2);
    const int64_t window = isApart ? 1 + draw.random.below(stride) : 2 + draw.random.below(2), out = draw.size();
    strides.push_back(stride);
    dilations.push_back(dilation);
    low.push_back(isApart ? 0 : draw.random.below(2));
    result.window.push_back(window);
    result.out.push_back(out);
    result.in.push_back(isApart ? out * stride : (out - 1) * stride + (window - 1) * dilation + 1 - low.back());
  }
  result.attributes = {{"strides", strides}, {"dilations", dilations}, {"low", low}};
  return result;
}

Drawn conv(Draw &draw, const std::string &kernel) {
  Windows w = windows(draw);
  const int64_t samples = draw.size(), groups = draw.size(), channels = draw.size(), filters = draw.size();
  const Shape x = Draw::joined({samples, groups * channels}, w.in),
              y = Draw::joined({samples, groups * filters}, w.out);
  const Shape weight = Draw::joined({groups * filters, channels}, w.window);
  w.attributes["groups"] = groups;
  Operands operands;
  if (kernel == "conv") {
    const bool bias = draw.flag();
    w.attributes["bias"] = int64_t(bias);
    operands = {draw.in(x), draw.in(weight)};
    if (bias)
      operands.push_back(draw.in({groups * filters}));
    operands.push_back(draw.out(y));
  } else {
    const bool isInput = kernel == "conv_input_grad";
    operands = {draw.in(y), draw.in(isInput ? weight : x), draw.out(isInput ? x : weight)};
  }
  return {kernel, std::move(operands), std::move(w.attributes)};
}

Drawn pool(Draw &draw, const std::string &kernel) {
  Windows w = windows(draw);
  const Shape planes = draw.sizes(2), x = Draw::joined(planes, w.in), y = Draw::joined(planes, w.out);
  w.attributes["window"] = w.window;
  Operands operands;
  if (kernel.ends_with("_grad")) {
    operands.push_back(draw.in(y));
    if (kernel == "max_pool_grad")
      operands.push_back(draw.in(x));
    operands.push_back(draw.out(x));
  } else {
    operands = {draw.in(x), draw.out(y)};
  }
  return {kernel, std::move(operands), std::move(w.attributes)};
}

Drawn gather(Draw &draw, const std::string &kernel) {
  const Shape data = draw.sizes(2 + draw.random.below(2)), indices = draw.sizes(1 + draw.random.below(2));
  const int64_t axis = draw.random.below(int64_t(data.size())), length = data[size_t(axis)];
  Shape taken = Draw::joined({data.begin(), data.begin() + axis}, indices);
  taken = Draw::joined(taken, {data.begin() + axis + 1, data.end()});
  Operands operands = {draw.in(kernel == "gather" ? data : taken), draw.indices(indices, -length, length),
                       draw.out(kernel == "gather" ? taken : data)};
  return {kernel, std::move(operands), {{"axis", axis}}};
}

Drawn elementIndex(Draw &draw, const std::string &kernel) {
  const Shape data = draw.sizes(2 + draw.random.below(2));
  Shape at = data;
  const int64_t axis = draw.random.below(int64_t(data.size())), length = data[size_t(axis)];
  for (int64_t &size : at)
    size = draw.random.below(3) == 0 ? size / 2 : size;
  at[size_t(axis)] = 2 + draw.size();
  if (kernel == "gather_elements")
    return {kernel, {draw.in(data), draw.indices(at, -length, length), draw.out(at)}, {{"axis", axis}}};
  const std::string reduction =
      std::vector<std::string>{"replace", "add", "mul", "max", "min"}[size_t(draw.random.below(5))];
  return {kernel,
          {draw.in(data), draw.indices(at, -length, length), draw.in(at), draw.out(data)},
          {{"axis", axis}, {"reduction", reduction}}};
}

Drawn argMax(Draw &draw, const std::string &kernel) {
  const Shape x = Draw::joined({4}, draw.sizes(1 + draw.random.below(2)));
  const int64_t axis = draw.random.below(int64_t(x.size()));
  Shape y = x;
  y.erase(y.begin() + axis);
  return {kernel, {draw.in(x), Buffer(type(DType::I64, y))}, {{"axis", axis}, {"last", int64_t(draw.flag())}}};
}

Drawn topK(Draw &draw, const std::string &kernel) {
  Shape x = draw.sizes(1 + draw.random.below(2));
  x.push_back(6);
  Shape values = x;
  values.back() = draw.size();
  return {
      kernel, {draw.in(x), draw.out(values), Buffer(type(DType::I64, values))}, {{"smallest", int64_t(draw.flag())}}};
}

Drawn crossEntropy(Draw &draw, const std::string &kernel) {
  const int64_t rows = draw.size(), columns = 2 + draw.size(), classes = draw.flag() ? columns - 1 : columns;
  Buffer labels = draw.indices({rows}, 0, classes);
  labels.as<int64_t>()[0] = -100;
  Attributes attributes = {{"ignore_index", int64_t(-100)}, {"reduction", std::string(draw.flag() ? "mean" : "sum")}};
  if (classes < columns)
    attributes["classes"] = classes;
  Operands operands = {draw.in({rows, columns}), labels};
  if (kernel == "cross_entropy_grad")
    operands.push_back(draw.in({rows}));
  if (kernel != "cross_entropy")
    operands.push_back(draw.positive({}));
  if (kernel != "cross_entropy_grad") {
    operands.push_back(draw.out({}));
    operands.push_back(draw.out({rows}));
  }
  if (kernel != "cross_entropy")
    operands.push_back(draw.out({rows, columns}));
  return {kernel, std::move(operands), std::move(attributes)};
}

Drawn blockSumSquares(Draw &draw, const std::string &kernel) {
  const std::vector<Shape> shapes = {{256}, {4, 128}, {4, 8, 16}, {6, 32}, {3, 100}, {1000}, {2, 32, 6}, {2, 2, 64}};
  const Shape g = shapes[size_t(draw.random.below(int64_t(shapes.size())))];
  const int64_t block = 64 << draw.random.below(2);
  return {kernel, {draw.in(g), draw.out({piecesOf(elementCount(g), block)})}, {{"block", block}}};
}

Drawn globalNorm(Draw &draw, const std::string &kernel) {
  return {kernel,
          {draw.positive({draw.size()}), draw.positive({2 * draw.size()}), draw.out({})},
          {{"blocks", std::vector<int64_t>{1024, 512}}}};
}

Drawn learningRate(Draw &draw, const std::string &kernel) {
  return {
      kernel, {draw.indices({}, 0, 10), draw.out({})}, {{"schedule", std::string("constant")}, {"lr", draw.number()}}};
}

Drawn cycledMomentum(Draw &draw, const std::string &kernel) {
  return {kernel,
          {draw.indices({}, 0, 10), draw.out({})},
          {{"cycle_min_mom", 0.5},
           {"cycle_max_mom", 0.75},
           {"decay_mom_rate", 0.5},
           {"cycle_first_step_size", int64_t(4)},
           {"cycle_second_step_size", int64_t(2)},
           {"cycle_first_stair_count", int64_t(0)},
           {"cycle_second_stair_count", int64_t(0)},
           {"decay_step_size", int64_t(1)}}};
}

struct Drawer {
  Drawn (*draw)(Draw &, const std::string &);
  std::vector<std::string_view> kernels;
};
const Drawer drawers[] = {{elementwise, {"elementwise"}},
                          {matmul, {"matmul"}},
                          {linearWeightGrad, {"linear_weight_grad"}},
                          {quantizeFp8, {"quantize_fp8"}},
                          {fp8Matmul, {"fp8_matmul"}},
                          {attention, {"attention", "attention_grad"}},
                          {packedAttention, {"packed_attention", "packed_attention_grad"}},
                          {transpose, {"transpose"}},
                          {moved, {"slice", "pad"}},
                          {concat, {"concat"}},
                          {reduce, {"reduce_sum", "reduce_mean", "reduce_max"}},
                          {alongAxis, {"softmax", "softmax_grad", "log_softmax", "log_softmax_grad", "cumsum"}},
                          {norm, {"layer_norm", "layer_norm_grad", "rms_norm", "rms_norm_grad"}},
                          {conv, {"conv", "conv_input_grad", "conv_weight_grad"}},
                          {pool, {"max_pool", "average_pool", "max_pool_grad", "average_pool_grad"}},
                          {gather, {"gather", "gather_grad"}},
                          {elementIndex, {"gather_elements", "scatter_elements"}},
                          {argMax, {"arg_max"}},
                          {topK, {"top_k"}},
                          {crossEntropy, {"cross_entropy", "cross_entropy_grad", "cross_entropy_with_grad"}},
                          {blockSumSquares, {"block_sum_squares"}},
                          {globalNorm, {"global_norm"}},
                          {learningRate, {"learning_rate"}},
                          {cycledMomentum, {"cycled_momentum"}}};

AttributeValue drawAttribute(Draw &draw, const KernelRow &row, const AttributeRow &attribute) {
  switch (attribute.kind) {
  case AttributeKind::Integer:
    return draw.random.below(100);
  case AttributeKind::Number:
    return draw.number() * (attribute.name.starts_with("max_") ? 1000 : attribute.name.starts_with("min_") ? 1e-3 : 1);
  case AttributeKind::Flag:
    return int64_t(draw.flag());
  default:
    throw Error("DrawnCalls.cpp draws no attribute " + std::string(attribute.name) + " of " + std::string(row.name));
  }
}

DrawnCall drawByRow(Draw &draw, const KernelRow &row) {
  DrawnCall call{std::string(row.name), {}, {}};
  for (const AttributeRow &attribute : row.attributes)
    if (attribute.name != "whole" && attribute.name != "first") // of a part
      call.attributes[std::string(attribute.name)] = drawAttribute(draw, row, attribute);
  std::map<std::string_view, Shape> known;
  for (const OperandRow &operand : row.operands) {
    const auto said = call.attributes.find(operand.attribute);
    if (operand.presence == Presence::If && said->second == AttributeValue(int64_t(0)))
      continue;
    if (operand.shape.empty() || operand.repeated)
      throw Error("DrawnCalls.cpp draws no operand " + std::string(operand.name) + " of " + std::string(row.name));
    Shape shape;
    for (const SizeName &name : sizeNames(operand.shape)) {
      const auto [it, isNew] = known.try_emplace(name.name);
      if (isNew)
        it->second = draw.sizes(name.isRest ? 2 + draw.random.below(2) : 1);
      shape = Draw::joined(shape, it->second);
    }
    const bool isFloat = operand.types.own || operand.types.statistic || operand.types.sum ||
                         (operand.types.any & OperandTypes::bit(F64)) != 0;
    call.operands.push_back(isFloat ? draw.positive(shape) : draw.indices(shape, 0, 10));
  }
  return call;
}

} // namespace

DrawnCall drawCall(const KernelRow &row, Random &random) {
  Draw draw(random);
  for (const Drawer &drawer : drawers)
    if (std::ranges::count(drawer.kernels, row.name))
      return drawer.draw(draw, std::string(row.name));
  return drawByRow(draw, row);
}

} // namespace ds::kernels::test
