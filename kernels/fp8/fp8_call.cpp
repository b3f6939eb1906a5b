#include "kernels/fp8/fp8_call.h"

#include "kernels/matmul/matmul_call.h"

namespace ds::kernels {

namespace {

Float8 formatOf(const Call &call, std::string_view attribute) {
  return call.text(attribute) == "e4m3" ? Float8::E4M3 : Float8::E5M2;
}

Float8Block blockOf(const Call &call, std::string_view attribute) {
  const std::string &block = call.text(attribute);
  return block.empty() ? Float8Block::Tensor : block == "1x128" ? Float8Block::Line : Float8Block::Square;
}

Shape shapeOf(const Float8Scales &scales) {
  return scales.block == Float8Block::Tensor ? Shape{} : Shape{scales.rows(), scales.cols()};
}

} // namespace

QuantizeFp8Call::QuantizeFp8Call(const Call &call)
    : format(formatOf(call, "format")), transposed(call.flag("transposed")), rows(call.shape(x)[0]),
      cols(call.shape(x)[1]), scales{blockOf(call, "block"), transposed ? cols : rows, transposed ? rows : cols},
      dtype(call.dtype()), workspace(call.workspace()) {
  call.require(dtype != DType::F64, "operand 0 (x) must have at most 32 bits, not float64");
  call.expectShape(q, {scales.lines, scales.depth});
  call.expectShape(scale, shapeOf(scales));
}

Fp8MatmulCall::Fp8MatmulCall(const Call &call)
    : aFormat(formatOf(call, "a_format")), bFormat(formatOf(call, "b_format")), hasBias(call.flag("bias")),
      c(call["c"]), m(call.shape(a)[0]), n(call.shape(b)[0]), k(call.shape(a)[1]),
      aScales{blockOf(call, "a_block"), m, k}, bScales{blockOf(call, "b_block"), n, k}, pieces(call.integer("pieces")),
      dtype(call.dtype()), workspace(call.workspace()) {
  call.require(dtype != DType::F64, "c must have at most 32 bits, not float64");
  call.require(aFormat == Float8::E4M3 || bFormat == Float8::E4M3, "a and b are both e5m2; one must be e4m3");
  call.require((aScales.block == Float8Block::Tensor) == (bScales.block == Float8Block::Tensor),
               "one of a and b has a scale for each block; both must, or neither");
  call.require(aScales.block != Float8Block::Square || bScales.block != Float8Block::Square,
               "a and b have both blocks of 128x128; one must have 1x128");
  call.expectShape(aScale, shapeOf(aScales));
  call.expectShape(bScale, shapeOf(bScales));
  (void)MatmulCall{Call(product(false))}; // its pieces
}

Invocation Fp8MatmulCall::product(bool takesBias, int64_t depth) const {
  const bool bias = hasBias && takesBias;
  Invocation matmul{"matmul",
                    {{DType::F32, {m, depth}}, {DType::F32, {n, depth}}},
                    {{"trans_a", int64_t(0)}, {"trans_b", int64_t(1)}, {"bias", int64_t(bias)}, {"pieces", pieces}}};
  if (bias)
    matmul.operands.push_back({DType::F32, {n}});
  matmul.operands.push_back({DType::F32, {m, n}});
  return matmul;
}

} // namespace ds::kernels
