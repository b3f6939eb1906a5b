// Kernels that memory bounds, at GPT-2 124M's shapes (4 x 256 tokens). Bytes are what must be read and written once.
#include "bench/kernels/Bench.h"
#include "kernels/ElementwiseProgram.h"
#include "kernels/clip/block_sum_squares_call.h"

namespace ds::kernels::bench {

namespace {

constexpr int64_t tokens = 1024, width = 768, vocabulary = 50257;

/// A benchmark of float operands, after `setup` of those that hold something else.
void add(const std::string &name, const std::string &kernel, double bytes, const std::vector<TensorType> &types,
         const Attributes &attributes, const std::function<void(std::vector<Operand> &)> &setup = {}) {
  benchBytes(name, bytes, [=] {
    std::vector<Operand> operands;
    for (const TensorType &type : types)
      operands.emplace_back(type);
    if (setup)
      setup(operands);
    return std::make_unique<KernelCall>(kernel, std::move(operands), attributes);
  });
}

/// Indices spread over [0, bound).
void spread(Operand &operand, int64_t bound) {
  auto *values = static_cast<int64_t *>(operand.data());
  for (int64_t i = 0; i < elementCount(operand.type.shape); ++i)
    values[i] = i * 7919 % bound;
}

void set(Operand &operand, double value) { *static_cast<double *>(operand.data()) = value; }

Attributes program(std::vector<int64_t> code, std::vector<double> constants, int64_t result) {
  return {{"program", std::move(code)}, {"constants", std::move(constants)}, {"results", std::vector<int64_t>{result}}};
}

void registerElementwise() {
  constexpr auto f = int64_t(DType::F32);
  const double big = 4.0 * tokens * 4 * width, small = 4.0 * tokens * width;
  const TensorType hidden = f32({tokens, 4 * width}), stream = f32({tokens, width});
  const auto op = [](ElementwiseOp code) { return int64_t(code); };
  // gelu_new: x/2 (1 + tanh(c (x + .044715 x^3)))
  const std::vector<int64_t> gelu = {
      op(ElementwiseOp::Constant), f, 0,  -1, -1, op(ElementwiseOp::Pow),      f, 0, 1,  -1,
      op(ElementwiseOp::Constant), f, 1,  -1, -1, op(ElementwiseOp::Mul),      f, 2, 3,  -1,
      op(ElementwiseOp::Add),      f, 0,  4,  -1, op(ElementwiseOp::Constant), f, 2, -1, -1,
      op(ElementwiseOp::Mul),      f, 5,  6,  -1, op(ElementwiseOp::Tanh),     f, 7, -1, -1,
      op(ElementwiseOp::Constant), f, 3,  -1, -1, op(ElementwiseOp::Add),      f, 8, 9,  -1,
      op(ElementwiseOp::Mul),      f, 0,  10, -1, op(ElementwiseOp::Constant), f, 4, -1, -1,
      op(ElementwiseOp::Mul),      f, 11, 12, -1};
  add("elementwise/gelu_new", "elementwise", 2 * big, {hidden, hidden},
      program(gelu, {3, 0.044715, 0.79788456, 1, 0.5}, 13));
  add("elementwise/add", "elementwise", 3 * small, {stream, stream, stream},
      program({op(ElementwiseOp::Add), f, 0, 1, -1}, {}, 2));
  add("elementwise/add_bias", "elementwise", 2 * big, {hidden, f32({4 * width}), hidden},
      program({op(ElementwiseOp::Add), f, 0, 1, -1}, {}, 2));
  for (auto [name, code] : {std::pair{"exp", ElementwiseOp::Exp},
                            {"tanh", ElementwiseOp::Tanh},
                            {"erf", ElementwiseOp::Erf},
                            {"log", ElementwiseOp::Log},
                            {"sigmoid", ElementwiseOp::Sigmoid},
                            {"sin", ElementwiseOp::Sin}})
    add(std::string("elementwise/") + name, "elementwise", 2 * big, {hidden, hidden},
        program({op(code), f, 0, -1, -1}, {}, 1));
}

void registerRows() {
  const double stream = 4.0 * tokens * width, scores = 4.0 * 48 * 256 * 256, logits = 4.0 * tokens * vocabulary;
  const TensorType x = f32({tokens, width}), c = f32({width}), r = f32({tokens}), s = f32({48, 256, 256});
  const TensorType l = f32({tokens, vocabulary});
  add("softmax/scores", "softmax", 2 * scores, {s, s}, {{"axis", int64_t(2)}});
  add("softmax_grad/scores", "softmax_grad", 3 * scores, {s, s, s}, {{"axis", int64_t(2)}});
  add("layer_norm", "layer_norm", 2 * stream, {x, c, c, x, r, r}, {{"epsilon", 1e-5}});
  add("layer_norm_grad", "layer_norm_grad", 3 * stream, {x, x, c, r, r, x, c, c}, {});
  const Attributes loss = {{"ignore_index", int64_t(-100)}, {"reduction", std::string("mean")}};
  const auto labels = [](std::vector<Operand> &operands) { spread(operands[1], vocabulary); };
  add("cross_entropy", "cross_entropy", logits, {l, i64({tokens}), f32({}), r}, loss, labels);
  add("cross_entropy_grad", "cross_entropy_grad", 2 * logits, {l, i64({tokens}), r, f32({}), l}, loss, labels);
  add("reduce_sum/bias", "reduce_sum", 4 * stream, {f32({tokens, 4 * width}), f32({4 * width})},
      {{"axes", std::vector<int64_t>{0}}});
  add("reduce_sum/rows", "reduce_sum", 4 * stream, {f32({tokens, 4 * width}), r}, {{"axes", std::vector<int64_t>{1}}});
}

void registerMovement() {
  const double stream = 4.0 * tokens * width;
  add("transpose/heads", "transpose", 2 * stream, {f32({4, 256, 12, 64}), f32({4, 12, 256, 64})},
      {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  add("transpose/keys", "transpose", 2 * stream, {f32({4, 256, 12, 64}), f32({4, 12, 64, 256})},
      {{"perm", std::vector<int64_t>{0, 2, 3, 1}}});
  add("slice/qkv", "slice", 2 * stream, {f32({tokens, 3 * width}), f32({tokens, width})},
      {{"starts", std::vector<int64_t>{0, width}}, {"steps", std::vector<int64_t>{1, 1}}});
  add("concat/qkv", "concat", 6 * stream,
      {f32({tokens, width}), f32({tokens, width}), f32({tokens, width}), f32({tokens, 3 * width})},
      {{"axis", int64_t(1)}});
  add("pad/qkv", "pad", 4 * stream, {f32({tokens, width}), f32({tokens, 3 * width})},
      {{"low", std::vector<int64_t>{0, width}}, {"interior", std::vector<int64_t>{0, 0}}, {"value", 0.0}});
  const auto ids = [](std::vector<Operand> &operands) { spread(operands[1], vocabulary); };
  add("gather/embedding", "gather", 2 * stream, {f32({vocabulary, width}), i64({tokens}), f32({tokens, width})},
      {{"axis", int64_t(0)}}, ids);
  add("gather_grad/embedding", "gather_grad", stream + 4.0 * vocabulary * width,
      {f32({tokens, width}), i64({tokens}), f32({vocabulary, width})}, {{"axis", int64_t(0)}}, ids);
  add("dropout", "dropout", 2 * stream, {f32({tokens, width}), f32({tokens, width})},
      {{"ratio", 0.1}, {"op_id", int64_t(1)}});
}

void registerOptimizer() {
  const double elements = double(vocabulary) * width;
  const TensorType p = f32({vocabulary, width}), scalar = {DType::F64, {}};
  const auto scalars = [](size_t first) {
    return [first](std::vector<Operand> &operands) {
      set(operands[first], 1e-4);
      set(operands[first + 2], 1);
    };
  };
  add("adamw/embedding", "adamw", 28 * elements, {p, p, p, p, scalar, i64({}), scalar},
      {{"beta1", 0.9}, {"beta2", 0.999}, {"epsilon", 1e-8}, {"weight_decay", 0.01}, {"adam_w_mode", int64_t(1)}},
      [=](std::vector<Operand> &operands) {
        scalars(4)(operands);
        auto *v = static_cast<float *>(operands[3].data());
        for (int64_t i = 0; i < vocabulary * width; ++i)
          v[i] = v[i] * v[i];
        *static_cast<int64_t *>(operands[5].data()) = 10;
      });
  add("sgd/momentum", "sgd", 20 * elements, {p, p, p, scalar, i64({}), scalar},
      {{"momentum", 0.9}, {"weight_decay", 0.01}, {"nesterov", int64_t(0)}}, [=](std::vector<Operand> &operands) {
        scalars(3)(operands);
        *static_cast<int64_t *>(operands[4].data()) = 10;
      });
  add("block_sum_squares", "block_sum_squares", 4 * elements,
      {p, {DType::F64, {piecesOf(vocabulary * width, sumSquaresBlock)}}}, {{"block", sumSquaresBlock}});
}

} // namespace

void registerBandwidth() {
  registerElementwise();
  registerRows();
  registerMovement();
  registerOptimizer();
}

} // namespace ds::kernels::bench
