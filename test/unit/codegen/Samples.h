//===- Samples.h - calls of `elementwise` as plans have them -----------------===//
#pragma once

#include "test/unit/kernels/Program.h"

#include <string>
#include <vector>

namespace ds::codegen::test {

using namespace ds::kernels::test;
using ds::DType;
using ds::Shape;

struct Sample {
  std::string name;
  ds::kernels::Invocation invocation;
  std::vector<uint64_t> alignments; ///< of every operand
};

inline Sample sample(std::string name, const std::vector<kernels::TensorType> &inputs, const Program &program,
                     const std::vector<DType> &results, const Shape &shape, uint64_t alignment = 512) {
  Sample made{std::move(name), {"elementwise", inputs, program.attributes()}, {}};
  for (DType result : results)
    made.invocation.operands.push_back(type(result, shape));
  made.alignments.assign(made.invocation.operands.size(), alignment);
  return made;
}

/// x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))) / 2, step by step in the type.
inline Sample gelu(DType dtype, const Shape &shape) {
  Program p{1};
  const auto number = [&](double value) { return p.constant(dtype, value); };
  const int64_t cube = p.add(Op::Pow, dtype, 0, number(3));
  const int64_t inner = p.add(Op::Add, dtype, 0, p.add(Op::Mul, dtype, cube, number(0.044715)));
  const int64_t tanh = p.add(Op::Tanh, dtype, p.add(Op::Mul, dtype, inner, number(0.7978845608)));
  const int64_t half = p.add(Op::Mul, dtype, 0, number(0.5));
  p.results = {p.add(Op::Mul, dtype, half, p.add(Op::Add, dtype, tanh, number(1)))};
  return sample("gelu_forward", {type(dtype, shape)}, p, {dtype}, shape);
}

/// Its gradient by x and by the gradient of its result, tanh made again.
inline Sample geluGradient(DType dtype, const Shape &shape) {
  Program p{2};
  const auto number = [&](double value) { return p.constant(dtype, value); };
  const int64_t square = p.add(Op::Mul, dtype, 0, 0);
  const int64_t cube = p.add(Op::Mul, dtype, square, 0);
  const int64_t inner = p.add(Op::Add, dtype, 0, p.add(Op::Mul, dtype, cube, number(0.044715)));
  const int64_t tanh = p.add(Op::Tanh, dtype, p.add(Op::Mul, dtype, inner, number(0.7978845608)));
  const int64_t slope = p.add(Op::Sub, dtype, number(1), p.add(Op::Mul, dtype, tanh, tanh));
  const int64_t half = p.add(Op::Mul, dtype, 0, number(0.5));
  const int64_t left = p.add(Op::Mul, dtype, 1, p.add(Op::Add, dtype, tanh, number(1)));
  const int64_t right = p.add(Op::Mul, dtype, p.add(Op::Mul, dtype, 1, half), slope);
  const int64_t chain =
      p.add(Op::Add, dtype, number(0.7978845608), p.add(Op::Mul, dtype, square, number(0.1070322243)));
  const int64_t sum =
      p.add(Op::Add, dtype, p.add(Op::Mul, dtype, left, number(0.5)), p.add(Op::Mul, dtype, right, chain));
  p.results = {sum};
  return sample("gelu_backward", {type(dtype, shape), type(dtype, shape)}, p, {dtype}, shape);
}

inline Sample unaryOf(Op op, DType dtype, const Shape &shape) {
  Program p{1};
  const DType result = op == Op::IsNan ? DType::Bool : dtype;
  p.results = {p.add(op, result, 0)};
  return sample("unary_" + std::to_string(int64_t(op)), {type(dtype, shape)}, p, {result}, shape);
}

inline std::vector<Sample> samples() {
  constexpr DType f32 = DType::F32, bf16 = DType::BF16, boolean = DType::Bool;
  std::vector<Sample> all = {gelu(bf16, {16, 1024, 3072}), geluGradient(bf16, {16, 1024, 3072})};
  {
    Program p{2};
    p.results = {p.add(Op::Add, bf16, 0, 1)};
    const Shape shape{16, 1024, 768};
    all.push_back(sample("residual_add", {type(bf16, shape), type(bf16, shape)}, p, {bf16}, shape));
  }
  {
    Program p{2};
    const int64_t sum = p.add(Op::Add, bf16, 0, 1);
    p.results = {p.add(Op::Relu, bf16, sum), p.add(Op::Cast, f32, sum)};
    const Shape shape{16, 1024, 768};
    all.push_back(sample("bias_relu", {type(bf16, shape), type(bf16, {768})}, p, {bf16, f32}, shape));
  }
  {
    Program p{3};
    p.results = {p.add(Op::Mul, f32, p.add(Op::Sub, f32, 0, 1), 2)};
    const Shape shape{6, 5, 30, 7};
    all.push_back(
        sample("broadcast_odd", {type(f32, shape), type(f32, {6, 1, 1, 7}), type(f32, {5, 1, 1})}, p, {f32}, shape));
  }
  {
    Program p{3};
    p.results = {p.add(Op::Select, bf16, 2, p.add(Op::Mul, bf16, 0, 1), p.constant(bf16, 0))};
    const Shape shape{16, 12, 64, 64};
    all.push_back(
        sample("dropout_select", {type(bf16, shape), type(bf16, {}), type(boolean, shape)}, p, {bf16}, shape));
  }
  {
    Program p{2};
    const int64_t less = p.add(Op::LessEqual, boolean, 0, 1);
    const int64_t both = p.add(Op::And, boolean, less, p.add(Op::Not, boolean, p.add(Op::IsNan, boolean, 0)));
    p.results = {both, p.add(Op::Cast, bf16, less)};
    all.push_back(sample("compare", {type(f32, {4, 1000}), type(f32, {4, 1})}, p, {boolean, bf16}, {4, 1000}));
  }
  {
    Program p{4}; // weight, gradient, first and second moment
    const auto number = [&](double value) { return p.constant(f32, value); };
    const int64_t m = p.add(Op::Add, f32, p.add(Op::Mul, f32, 2, number(0.9)), p.add(Op::Mul, f32, 1, number(0.1)));
    const int64_t v = p.add(Op::Add, f32, p.add(Op::Mul, f32, 3, number(0.999)),
                            p.add(Op::Mul, f32, p.add(Op::Mul, f32, 1, 1), number(0.001)));
    const int64_t root = p.add(Op::Add, f32, p.add(Op::Sqrt, f32, v), number(1e-8));
    p.results = {p.add(Op::Sub, f32, 0, p.add(Op::Mul, f32, p.add(Op::Div, f32, m, root), number(3e-4))), m, v};
    const std::vector<kernels::TensorType> four(4, type(f32, {1003}));
    all.push_back(sample("moments", four, p, {f32, f32, f32}, {1003}));
  }
  {
    Program p{1};
    p.results = {p.add(Op::Mul, bf16, 0, 0)};
    all.push_back(sample("unaligned_square", {type(bf16, {7, 13})}, p, {bf16}, {7, 13}, 2));
  }
  {
    Program p{2};
    p.results = {p.add(Op::Pow, f32, 0, 1)};
    all.push_back(sample("pow", {type(f32, {500}), type(f32, {500})}, p, {f32}, {500}));
  }
  for (Op op : {Op::Sqrt, Op::Rsqrt,   Op::Reciprocal, Op::Exp,   Op::Log,      Op::Log1p,        Op::Expm1, Op::Erf,
                Op::Tanh, Op::Sigmoid, Op::Sin,        Op::Cos,   Op::Sign,     Op::Floor,        Op::Ceil,  Op::Round,
                Op::Atan, Op::Neg,     Op::Abs,        Op::IsNan, Op::GeluTanh, Op::GeluTanhSlope})
    all.push_back(unaryOf(op, f32, {1001}));
  return all;
}

} // namespace ds::codegen::test
