#include "kernels/index/search_call.h"

namespace ds::kernels {

static void expectNumber(const Call &call, size_t operand) {
  call.require(call.dtype(operand) != DType::Bool, "operand " + std::to_string(operand) + " must not be bool");
}

ArgMaxCall::ArgMaxCall(const Call &call) : dtype(call.dtype(0)), last(call.flag("last")) {
  call.expectOperands(2);
  expectNumber(call, 0);
  Shape expected = call.shape(0);
  const size_t axis = call.axis(expected);
  x = viewAlong(expected, axis);
  call.require(x.length > 0, "axis " + std::to_string(axis) + " of x " + toString(expected) + " has no elements");
  expected.erase(expected.begin() + int64_t(axis));
  call.expectDType(1, DType::I64);
  call.expectShape(1, expected);
}

TopKCall::TopKCall(const Call &call) : dtype(call.dtype(0)), smallest(call.flag("smallest")) {
  call.expectOperands(3);
  expectNumber(call, 0);
  Shape expected = call.shape(0);
  call.require(!expected.empty() && call.shape(1).size() == expected.size(), "x and values must have one rank above 0");
  length = expected.back();
  k = expected.back() = call.shape(1).back();
  call.require(k <= length,
               "the last dimension of x has " + std::to_string(length) + " elements, not " + std::to_string(k));
  rows = k == 0 ? 0 : elementCount(expected) / k;
  call.expectDType(1, dtype);
  call.expectShape(1, expected);
  call.expectDType(2, DType::I64);
  call.expectShape(2, expected);
}

CumSumCall::CumSumCall(const Call &call)
    : dtype(call.dtype(0)), exclusive(call.flag("exclusive")), reverse(call.flag("reverse")) {
  call.expectOperands(2);
  expectNumber(call, 0);
  x = viewAlong(call.shape(0), call.axis(call.shape(0)));
  call.expectLike(1, 0);
}

} // namespace ds::kernels
