#include "kernels/fp8/fp8_call.h"

#include "kernels/matmul/matmul_call.h"

namespace ds::kernels {

namespace {

Float8 formatOf(const Call &call, std::string_view attribute) {
  return call.text(attribute) == "e4m3" ? Float8::E4M3 : Float8::E5M2;
}

} // namespace

QuantizeFp8Call::QuantizeFp8Call(const Call &call)
    : format(formatOf(call, "format")), transposed(call.flag("transposed")), rows(call.shape(x)[0]),
      cols(call.shape(x)[1]), dtype(call.dtype()), workspace(call.workspace()) {
  call.require(dtype != DType::F64, "operand 0 (x) must have at most 32 bits, not float64");
  call.expectShape(q, transposed ? Shape{cols, rows} : Shape{rows, cols});
}

Fp8MatmulCall::Fp8MatmulCall(const Call &call)
    : aFormat(formatOf(call, "a_format")), bFormat(formatOf(call, "b_format")), hasBias(call.flag("bias")),
      c(call["c"]), m(call.shape(a)[0]), n(call.shape(b)[0]), k(call.shape(a)[1]), pieces(call.integer("pieces")),
      dtype(call.dtype()), workspace(call.workspace()) {
  call.require(dtype != DType::F64, "c must have at most 32 bits, not float64");
  call.require(aFormat == Float8::E4M3 || bFormat == Float8::E4M3, "a and b are both e5m2; one must be e4m3");
  (void)MatmulCall{Call(product(false))}; // its pieces
}

Invocation Fp8MatmulCall::product(bool takesBias) const {
  const bool bias = hasBias && takesBias;
  Invocation matmul{"matmul",
                    {{DType::F32, {m, k}}, {DType::F32, {n, k}}},
                    {{"trans_a", int64_t(0)}, {"trans_b", int64_t(1)}, {"bias", int64_t(bias)}, {"pieces", pieces}}};
  if (bias)
    matmul.operands.push_back({DType::F32, {n}});
  matmul.operands.push_back({DType::F32, {m, n}});
  return matmul;
}

} // namespace ds::kernels
